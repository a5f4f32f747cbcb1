"""What a client of a soak keeps in its memory, and whether it is still there in the end."""

import random
from collections.abc import Sequence
from typing import Final

from mcp import Client
from pydantic import TypeAdapter

from benchmarks.soak_report import Said

_MOST: Final = 5
_ROWS: Final = TypeAdapter(list[list[str]])


class Notebook:
    """The memory of one client, and every fact that the server said it keeps.

    Args:
        triples: What may be kept: head, relation and tail, by their ids.
        dice: What chooses from them.
    """

    def __init__(self, triples: Sequence[tuple[str, ...]], dice: random.Random) -> None:
        self._triples = triples
        self._dice = dice
        self._handle: str | None = None
        self.acknowledged: set[tuple[str, ...]] = set()

    @property
    def begun(self) -> bool:
        """Whether there is something to read."""
        return self._handle is not None

    async def append(self, client: Client) -> Said:
        """Keep some triples more."""
        chosen = self._dice.sample(self._triples, min(_MOST, len(self._triples)))
        arguments: dict[str, object] = {"triples": [list(triple) for triple in chosen]}
        if self._handle is not None:
            arguments["memory"] = self._handle
        said = Said.by(await client.call_tool("memory-append", arguments))
        if not said.is_error:
            self._handle = str(said.data["memory"])
            self.acknowledged.update(chosen)
        return said

    async def read(self, client: Client) -> Said:
        """Read the first page."""
        return Said.by(await client.call_tool("memory-read", {"memory": self._handle}))

    async def lost(self, client: Client) -> set[tuple[str, ...]]:
        """Read all pages, and return what was acknowledged and is not there."""
        if not self.begun:
            return set()
        found: set[tuple[str, ...]] = set()
        arguments: dict[str, object] = {"memory": self._handle}
        while True:
            result = await client.call_tool("memory-read", arguments)
            content: dict[str, object] = result.structured_content or {}
            found.update(tuple(row[1:4]) for row in _ROWS.validate_python(content.get("facts", [])))
            if content.get("cursor") is None:
                return self.acknowledged - found
            arguments["cursor"] = content["cursor"]
