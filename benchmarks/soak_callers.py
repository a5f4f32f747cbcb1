"""Those who ask in a soak, one after the other's answer, and judge what they get."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from benchmarks.soak_memories import Notebook
from benchmarks.soak_mix import SHARES, Known, new_question
from benchmarks.soak_report import Said, Tally

# Far beyond any deadline: a call that takes longer hangs.
_HANGS_S: Final = 120.0
_ROWS: Final = TypeAdapter(list[list[str]])
_NEW: Final = frozenset({"observe, new question", "Retrieve, new words"})


@dataclass(frozen=True)
class Mix:
    """What may be asked, with the answers, by kind.

    Args:
        known: The questions with one answer for ever.
        entities: What new questions are about.
        triples: What may be kept in memories.
    """

    known: Mapping[str, Sequence[Known]]
    entities: Sequence[str]
    triples: Sequence[tuple[str, ...]]

    @classmethod
    def of(cls, known: Sequence[Known], entities: Sequence[str]) -> "Mix":
        """Sort known questions by kind, and take the triples from their answers."""
        by_kind: dict[str, list[Known]] = defaultdict(list)
        for each in known:
            by_kind[each.question.kind].append(each)
        rows = [row for each in by_kind["GetNeighbor"] for row in _ROWS.validate_python(each.expected.data["triples"])]
        return cls(by_kind, entities, sorted({tuple(row) for row in rows}))


class Caller:
    """One caller, who asks whatever the dice say.

    Args:
        client: Whom it asks.
        mix: What it may ask.
        dice: What chooses.
        tallies: Where its answers are counted, by kind.
    """

    def __init__(self, client: Client, mix: Mix, dice: random.Random, tallies: Mapping[str, Tally]) -> None:
        self._client = client
        self._mix = mix
        self._dice = dice
        self._tallies = tallies
        self._notebook = Notebook(mix.triples, dice)

    @property
    def acknowledged(self) -> int:
        """How many facts the server said it keeps."""
        return len(self._notebook.acknowledged)

    async def ask_until(self, end: float) -> None:
        """Ask until the clock says so."""
        while perf_counter() < end:
            (kind,) = self._dice.choices(list(SHARES), list(SHARES.values()))
            await self._ask(kind)

    async def lost(self) -> int:
        """Return how many facts that were acknowledged are not there."""
        return len(await self._notebook.lost(self._client))

    async def _ask(self, kind: str) -> None:
        began = perf_counter()
        try:
            with anyio.fail_after(_HANGS_S):
                what, said, expected = await self._answer(kind)
        except (MCPError, TimeoutError) as error:
            what, said, expected = kind, Said(f"{type(error).__name__}: {error}", {}, is_error=True), _NOTHING
        self._tallies[kind].add(what, said, expected, perf_counter() - began)

    async def _answer(self, kind: str) -> tuple[str, Said, Said]:
        """Return what was asked, what was said, and what should have been."""
        if kind == "memory-append" or (kind == "memory-read" and not self._notebook.begun):
            said = await self._notebook.append(self._client)
        elif kind == "memory-read":
            said = await self._notebook.read(self._client)
        elif kind in _NEW:
            said = await new_question(kind, self._dice, self._mix.entities).ask(self._client)
        else:
            known = self._dice.choice(self._mix.known[kind])
            return str(known.question), await known.question.ask(self._client), known.expected
        # Nobody knows the answer beforehand: whatever is in time and no error is right.
        return kind, said, _NOTHING if said.data.get("status") == "timeout" else replace(said, is_error=False)


_NOTHING: Final = Said("", {}, is_error=False)
