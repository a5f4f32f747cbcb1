"""Questions that no caller waits for: so many, so long, and one after the other."""

from dataclasses import dataclass
from typing import Final

import anyio

from kg_adapters.errors import BackendUnavailable, KGError
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.queries.profiles import MAX_ROWS
from kg_adapters.sparql.rows import Row, rows

_REFUSED: Final = 3
"""After how many queries in a row without an answer nothing more is asked."""


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """How much the survey for a profile asks for.

    Args:
        read: Graphs of up to so many statements are read instead, all of them.
        classes: How many classes are looked at, the largest ones.
        instances: How many instances of one class.
        together: How many instances, or pairs of entities, one query looks at.
        relations: How many relations are compared to find inverses.
        pairs: How many pairs of entities of one relation.
        sampled: How many statements are looked at to find classes where counting them all takes too long.
        queries: How many queries are sent.
        timeout_s: How many seconds one may take.
        total_s: How many all together; what is not answered by then is not known.
        pause_s: How many seconds pass between two queries, so that others are served as well.
        whole: Whether the graph is small enough for what is asked about all of it: its hierarchy of classes, its
            entities, and the edges that lead to instances.
    """

    read: int = 100_000
    classes: int = 60
    instances: int = 10_000
    together: int = 10_000
    relations: int = 200
    pairs: int = 10_000
    sampled: int = 100_000
    queries: int = 150
    timeout_s: float = 30.0
    total_s: float = 300.0
    pause_s: float = 0.05
    whole: bool = True


class Enough(Exception):
    """Nothing more is to be asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of an answer; `whole` unless there may be more."""

    rows: tuple[Row, ...]
    whole: bool


class BoundedAsker:
    """Asks one query after the other, until it has asked enough.

    Args:
        asker: What asks the endpoint.
        limits: How much is enough.
    """

    def __init__(self, asker: Asker, limits: ProfileLimits) -> None:
        self.limits = limits
        self.can_name = asker.can_name
        self._asker = asker
        self._asked = self._refused = 0

    @property
    def refused(self) -> bool:
        """Whether so many queries in a row had no answer that nothing more is asked."""
        return self._refused >= _REFUSED

    async def ask(self, query: str) -> Found | None:
        """Return what was found; None without an answer.

        Raises:
            BackendUnavailable: The endpoint cannot be reached.
            Enough: So many queries were sent as may be, or too many in a row had no answer.
        """
        if self._asked >= self.limits.queries or self.refused:
            raise Enough
        if self._asked:
            await anyio.sleep(self.limits.pause_s)
        self._asked += 1
        try:
            answer = await self._asker.ask_whole(query, timeout_s=self.limits.timeout_s)
        except BackendUnavailable:
            raise
        except KGError:
            self._refused += 1
            return None
        self._refused = 0
        return Found(tuple(rows(answer)), not answer.truncated and len(answer.rows) < MAX_ROWS)
