"""What QLever reports of the index that it serves: how large it is, and whether another has taken its place."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import anyio
from pydantic import TypeAdapter, ValidationError

from kg_adapters.errors import KGError

STATS: Final[Mapping[str, str]] = {"cmd": "stats"}
STATEMENTS: Final = "num-triples-normal"
_COUNTS: Final = ("num-subjects-normal", "num-predicates-normal", "num-objects-normal")
_NAMES: Final = ("name-index", "name-text-index", "git-hash-index")
_MOST_BYTES: Final = 64_000
_AGAIN_S: Final = 60.0
_TIMEOUT_S: Final = 2.0
_DOCUMENT: Final = TypeAdapter(dict[str, object])


class Describing(Protocol):
    """What describes itself to a request without a query, as `SparqlEndpoint` does."""

    async def about(self, parameters: Mapping[str, str], *, timeout_s: float) -> bytes:
        """Return what it answers."""
        ...


@dataclass(frozen=True, slots=True)
class IndexStats:
    """One index: what tells it from others, and how many statements it has."""

    id: str
    statements: int


class IndexState:
    """Reads the statistics of an index, at most once a minute; while they cannot be read, the last ones hold.

    Args:
        endpoint: What serves it.
        clock: Returns the time, in seconds.
    """

    def __init__(self, endpoint: Describing, clock: Callable[[], float] = time.monotonic) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._read_again = -math.inf
        self._reading = anyio.Lock()
        self.known: IndexStats | None = None

    async def current(self) -> IndexStats | None:
        """Return the statistics; None before they could be read."""
        async with self._reading:
            if self._clock() >= self._read_again:
                self._read_again = self._clock() + _AGAIN_S
                try:
                    found = document(await self._endpoint.about(STATS, timeout_s=_TIMEOUT_S))
                except KGError:
                    return self.known
                self.known = _stats(found) or self.known
        return self.known


def document(text: bytes) -> Mapping[str, object]:
    """Return a JSON object that describes an engine; empty for anything else."""
    try:
        return _DOCUMENT.validate_json(text[:_MOST_BYTES])
    except ValidationError:
        return {}


def _stats(found: Mapping[str, object]) -> IndexStats | None:
    statements = found.get(STATEMENTS)
    if not isinstance(statements, int) or statements < 0:
        return None
    # The index id is made of most of these, so it needs no further request.
    return IndexStats(repr([found.get(name) for name in (*_NAMES, STATEMENTS, *_COUNTS)]), statements)
