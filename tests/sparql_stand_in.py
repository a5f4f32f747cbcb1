"""A stand-in for a SPARQL endpoint: Oxigraph in this process, or in one that can be killed where the graph is large."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Final

import anyio
import anyio.to_thread
import pyoxigraph

from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest, KGError
from kg_adapters.labels import Vocabulary
from kg_adapters.local.sparql.pool import SparqlPool
from kg_adapters.local.sparql.store import ensure_sparql_store
from kg_adapters.prefixes import Prefixes
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.dialects import DIALECTS, Dialect
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.solutions import GRAPH_VARIABLES, Solutions
from kg_adapters.terms import BlankNode, Iri, Literal, Term
from kg_adapters.testing import ntriples
from small_graphs import store_of

LARGE: Final = 1_000
PREFIXES: Final = Prefixes({"ex": "http://example.org/"}, blank_nodes=False)
_NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})


class StandInEndpoint:
    """Answers queries about one graph, and keeps what it was asked and how many rows it answered.

    Args:
        triples: The graph, in N-Triples.
        failures: What the next queries end with; None for those that are answered.
    """

    def __init__(self, triples: str, failures: Iterable[BackendError | None] = ()) -> None:
        self.asked: list[str] = []
        self.sizes: list[int] = []
        self.parameters: list[Mapping[str, str]] = []
        self.failures = list(failures)
        self.closed = 0
        self.triples = triples
        self._store = pyoxigraph.Store()
        self._store.load(triples, pyoxigraph.RdfFormat.N_TRIPLES)
        self._pool: SparqlPool | None = None

    async def query(
        self,
        text: str,
        *,
        timeout_s: float | None = None,
        max_rows: int | None = None,
        parameters: Mapping[str, str] = _NO_PARAMETERS,
    ) -> Solutions:
        """See `SparqlEndpoint.query`."""
        self.asked.append(text)
        self.parameters.append(parameters)
        return await self.answer(text, timeout_s, max_rows)

    async def answer(self, text: str, timeout_s: float | None, max_rows: int | None) -> Solutions:
        """Answer a query, or raise the next failure; special endpoints override this."""
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        # Only the queries of users come with a bound on rows, and only they may have no end.
        if max_rows is not None and len(self._store) > LARGE:
            found = await self._in_process(text, timeout_s or 60.0, max_rows)
        else:
            found = await anyio.to_thread.run_sync(self._answer, text, max_rows)
        self.sizes.append(len(found.rows))
        return found

    async def aclose(self) -> None:
        """End the process, if there is one."""
        self.closed += 1
        if self._pool is not None:
            await self._pool.aclose()

    async def _in_process(self, text: str, timeout_s: float, max_rows: int) -> Solutions:
        if self._pool is None:
            store = await anyio.to_thread.run_sync(lambda: store_of(Path(mkdtemp()), self.triples))
            await ensure_sparql_store(store.folder, store.index)
            self._pool = SparqlPool(store.folder, Prefixes())
        found = await self._pool.select(text, timeout_s=timeout_s, max_rows=max_rows)
        return Solutions(found.variables, found.rows, found.truth, found.truncated)

    def _answer(self, text: str, max_rows: int | None) -> Solutions:
        try:
            found = self._store.query(text)
        except SyntaxError as error:
            raise InvalidRequest(f"The endpoint says that the query is wrong: {error}") from error
        if isinstance(found, pyoxigraph.QueryBoolean):
            return Solutions((), (), truth=bool(found))
        if isinstance(found, pyoxigraph.QuerySolutions):
            variables = tuple(variable.value for variable in found.variables)
            rows = tuple(tuple(_term(term) for term in solution) for solution in found)
        else:
            variables = GRAPH_VARIABLES
            rows = tuple(tuple(_term(term) for term in triple) for triple in found)
        return Solutions(variables, rows[:max_rows], truncated=max_rows is not None and len(rows) > max_rows)


class LateEndpoint(StandInEndpoint):
    """Answers all queries but those with a certain text, which time out, or end with another error."""

    def __init__(self, triples: str, late: str, error: KGError | None = None) -> None:
        super().__init__(triples)
        self._late = late
        self._error = error or BackendTimeout("The endpoint gave no answer.")

    def recover(self) -> None:
        """Answer every query from now on."""
        self._late = "\0"

    async def answer(self, text: str, timeout_s: float | None, max_rows: int | None) -> Solutions:
        """See `StandInEndpoint.answer`."""
        if self._late in text:
            raise self._error
        return await super().answer(text, timeout_s, max_rows)


class SlowEndpoint(StandInEndpoint):
    """Takes some seconds for each query, on a separate clock, and records how many it answered at once.

    Args:
        triples: The graph, in N-Triples.
        seconds: How long a query takes.
    """

    def __init__(self, triples: str, seconds: float) -> None:
        super().__init__(triples)
        self.most_at_once = 0
        self._seconds = seconds
        self._elapsed_s = 0.0
        self._under_way = 0

    def clock(self) -> float:
        """Return the time, in seconds."""
        return self._elapsed_s

    async def answer(self, text: str, timeout_s: float | None, max_rows: int | None) -> Solutions:
        """See `StandInEndpoint.answer`."""
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        self._elapsed_s += self._seconds
        found = await super().answer(text, timeout_s, max_rows)
        self._under_way -= 1
        return found


class CannedEndpoint(StandInEndpoint):
    """Gives the same answer to every query."""

    def __init__(self, answer: Solutions) -> None:
        super().__init__("")
        self._canned = answer

    async def answer(self, text: str, timeout_s: float | None, max_rows: int | None) -> Solutions:
        """See `StandInEndpoint.answer`."""
        return self._canned


def endpoint_of(statements: Iterable[str]) -> StandInEndpoint:
    """Return an endpoint for a graph in the notation of `kg_adapters.testing`."""
    return StandInEndpoint(ntriples(statements))


def adapter_over(
    endpoint: StandInEndpoint,
    *,
    dialect: Dialect = DIALECTS["standard"],
    vocabulary: Vocabulary | None = None,
    edge_namespace: str | None = None,
) -> SparqlAdapter:
    """Return an adapter over an endpoint."""
    queries = Queries.of(dialect, vocabulary or Vocabulary(), edge_namespace=edge_namespace)
    return SparqlAdapter(parts_of(endpoint, queries))


def parts_of(endpoint: StandInEndpoint, queries: Queries) -> SparqlParts:
    """Return what an adapter over an endpoint is made of."""
    return SparqlParts("stand-in", endpoint, queries, PREFIXES, graphs=("http://example.org/graph",))


def _term(term: object) -> Term | None:
    match term:
        case None:
            return None
        case pyoxigraph.NamedNode():
            return Iri(term.value)
        case pyoxigraph.BlankNode():
            return BlankNode(term.value)
        case pyoxigraph.Literal():
            return Literal(term.value, Iri(term.datatype.value), term.language)
        case _:
            raise TypeError(f"{term!r} is no term of RDF 1.1")
