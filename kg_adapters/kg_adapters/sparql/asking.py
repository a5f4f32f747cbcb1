"""How an adapter queries its endpoint: one request, or a bounded series of them in the background."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Final, Protocol

from kg_adapters.calls import time_left_s
from kg_adapters.errors import BackendTimeout
from kg_adapters.open_options import setting
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.index_state import IndexState
from kg_adapters.sparql.queries.writing import is_askable
from kg_adapters.sparql.solutions import Solution, Solutions, in_slices
from kg_adapters.terms import XSD, BlankNode, Iri, Literal, Node, Term

_GEOMETRY: Final = Iri("http://www.openlinksw.com/schemas/virtrdf#Geometry")
"""What Virtuoso makes of the datatype of a point."""
_WKT: Final = Iri("http://www.opengis.net/ont/geosparql#wktLiteral")
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


class QueryAsker:
    """Asks queries of the adapter's own.

    Args:
        endpoint: What answers.
        dialect: The engine.
        timeout_s: How many seconds an answer may take.
        state: What the engine reports of its index; None for one that reports nothing.
    """

    def __init__(
        self, endpoint: QueryAnswerer, dialect: Dialect, timeout_s: float, state: IndexState | None = None
    ) -> None:
        self.dialect = dialect
        self.timeout_s = timeout_s
        self.state = state
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
        """Return whether a query can be about a node: blank nodes of most endpoints mean nothing in the next query."""
        return is_askable(node, self.dialect)


def as_meant(found: Solutions, dialect: Dialect) -> Solutions:
    """Return an answer with booleans in words and points as they are written elsewhere."""
    if not dialect.digit_booleans:
        return found
    return replace(found, rows=tuple(tuple(map(_as_written, row)) for row in found.rows))


def part_of_an_answer() -> BackendTimeout:
    """Return the failure of an answer whose missing rows might hold what was asked for."""
    return BackendTimeout(
        "The endpoint ran out of time and sent only a part of its answer, which leaves open what was asked. "
        f"To wait longer, raise {setting('timeout_s')}."
    )


def _marked(term: Term | None, mark: str) -> Term | None:
    return BlankNode(mark + term.label) if isinstance(term, BlankNode) else term


def _as_written(term: Term | None) -> Term | None:
    if isinstance(term, Literal) and term.datatype == _BOOLEAN and term.value in _WORDS:
        return Literal(_WORDS[term.value], _BOOLEAN)
    if isinstance(term, Literal) and term.datatype == _GEOMETRY:
        return Literal(term.value.replace("POINT(", "Point("), _WKT)
    return term
