"""How an adapter queries its endpoint: one request, or a bounded series of them in the background."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, Protocol

import anyio

from kg_adapters.calls import time_left_s
from kg_adapters.errors import BackendTimeout, BackendUnavailable, KGError
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries.profiles import MAX_ROWS
from kg_adapters.sparql.queries.writing import is_askable
from kg_adapters.sparql.rows import Bindings, rows
from kg_adapters.sparql.solutions import Solution, Solutions, in_slices
from kg_adapters.terms import XSD, BlankNode, Iri, Literal, Node, Term

_BOOLEAN: Final = Iri(XSD + "boolean")

_WORDS: Final[Mapping[str, str]] = {"0": "false", "1": "true"}


class QueryAnswerer(Protocol):
    """What answers queries: a `SparqlEndpoint`, or a stand-in for one."""

    async def query(
        self,
        text: str,
        *,
        timeout_s: float | None = None,
        max_rows: int | None = None,
        parameters: Mapping[str, str] = ...,
    ) -> Solutions:
        """Ask a query; see `SparqlEndpoint.query`."""
        ...

    async def aclose(self) -> None:
        """Give back what it holds."""
        ...


class Asker:
    """Asks queries of the adapter's own.

    Args:
        endpoint: What answers.
        dialect: The engine.
        timeout_s: How many seconds an answer may take.
    """

    def __init__(self, endpoint: QueryAnswerer, dialect: Dialect, timeout_s: float) -> None:
        self.dialect = dialect
        self.timeout_s = timeout_s
        self._endpoint = endpoint
        self._answers = count(1)

    async def ask(self, query: str, *, timeout_s: float | None = None) -> Solutions:
        """Return the answer, with blank nodes that are no other answer's unless the engine keeps their names.

        Raises:
            BackendError: There is no answer.
        """
        allowed_s = self.timeout_s if timeout_s is None else min(timeout_s, self.timeout_s)
        left_s = time_left_s(allowed_s)
        parameters = self.dialect.parameters(allowed_s, left_s)
        found = await self._endpoint.query(query, timeout_s=left_s, parameters=parameters)
        found = as_meant(found, self.dialect)
        if self.dialect.blank_nodes is not None:
            return found
        mark = f"a{next(self._answers)}-"
        rows: list[Solution] = []
        async for some in in_slices(found.rows):
            rows += [tuple([_marked(term, mark) for term in row]) for row in some]
        return replace(found, rows=tuple(rows))

    async def ask_whole(self, query: str, *, timeout_s: float | None = None) -> Solutions:
        """Return the answer like `ask`, for questions to which silence is an answer too.

        Raises:
            BackendError: There is no answer, or only a part of one.
        """
        found = await self.ask(query, timeout_s=timeout_s)
        if found.cut:
            raise part_of_an_answer()
        return found

    def can_name(self, node: Node) -> bool:
        """Say whether a query can be about a node: blank nodes of most endpoints mean nothing in the next query."""
        return is_askable(node, self.dialect)


def as_meant(found: Solutions, dialect: Dialect) -> Solutions:
    """Return an answer with booleans in words."""
    if not dialect.digit_booleans:
        return found
    return replace(found, rows=tuple(tuple(map(_in_words, row)) for row in found.rows))


def part_of_an_answer() -> BackendTimeout:
    """Return the failure of an answer whose missing rows might say what it does not."""
    return BackendTimeout(
        "The endpoint ran out of time and sent only a part of its answer, which leaves open what was asked. "
        "Ask for less at once, or allow more time."
    )


def _marked(term: Term | None, mark: str) -> Term | None:
    return BlankNode(mark + term.label) if isinstance(term, BlankNode) else term


def _in_words(term: Term | None) -> Term | None:
    if isinstance(term, Literal) and term.datatype == _BOOLEAN and term.value in _WORDS:
        return Literal(_WORDS[term.value], _BOOLEAN)
    return term


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

    rows: tuple[Bindings, ...]
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
