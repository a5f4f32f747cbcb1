"""A graph that is already in this process as an rdflib `Graph` or `Dataset`, whatever store plugin holds it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
import rdflib

from kg_adapters.errors import BackendError
from kg_adapters.labels import Vocabulary
from kg_adapters.local.sparql.pool import SparqlLimits
from kg_adapters.local.sparql.store import SparqlSnapshots
from kg_adapters.models import (
    Candidate,
    Count,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    RelationCandidate,
    SparqlAnswer,
)
from kg_adapters.prefixes import Prefixes, prefixes_in_use
from kg_adapters.profile import GraphProfile
from kg_adapters.rdflib_reader import RdflibReader
from kg_adapters.rdflib_terms import RdflibStatements
from kg_adapters.requests import FeatureRequest, NeighborRequest, offset_of
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.terms import Fact, Iri, Node

K = TypeVar("K")
T = TypeVar("T")


class RdflibAdapter:
    """Answers from an rdflib graph; for a dataset from all its graphs together.

    The graph stays the caller's: it may change between two calls, and neighbours, labels and features follow at once,
    while search, schema, profile, sets and SPARQL read the whole graph once, when first asked, and again after
    `refresh`. A cursor holds only as long as the entity's edges stay. Do not change the graph during a call: the store
    is read in a worker thread, by one call at a time.

    SPARQL is answered by Oxigraph from a copy in a temporary folder, because rdflib cannot stop a query at a deadline.
    Statements that are not RDF, such as those with a blank in an IRI, are skipped.

    Args:
        graph: A graph, or a dataset for the union of its graphs.
        name: What people call it.
        vocabulary: The relations that name, describe and type its entities.
        prefixes: The short forms of its IRIs; by default those bound to the graph and well-known ones, where they are
            used, which takes one reading of the graph.
        sparql: How much of the machine SPARQL queries may take; what suits the machine when None.
    """

    def __init__(
        self,
        graph: rdflib.Graph,
        *,
        name: str = "rdflib graph",
        vocabulary: Vocabulary | None = None,
        prefixes: Prefixes | None = None,
        sparql: SparqlLimits | None = None,
    ) -> None:
        self._reader = RdflibReader(graph, vocabulary or Vocabulary())
        self._name = name
        self._prefixes = prefixes or _bound_prefixes(graph)
        self._turn = anyio.CapacityLimiter(1)
        self._sparql = SparqlSnapshots(self._prefixes, sparql)

    @property
    def name(self) -> str:  # noqa: D102 - documented on the protocol, like all below
        return self._name

    @property
    def prefixes(self) -> Prefixes:  # noqa: D102
        return self._prefixes

    @property
    def vocabulary(self) -> Vocabulary:  # noqa: D102
        return self._reader.vocabulary

    @property
    def remote(self) -> bool:  # noqa: D102
        return False

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:  # noqa: D102
        return _known(await self._each(self._reader.label, terms))

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:  # noqa: D102
        return _known(await self._each(self._reader.description, terms))

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:  # noqa: D102
        page = partial(self._reader.page, request, offset_of(request, self._name), self._name)
        return _known(await self._each(page, request.entities))

    async def degrees(  # noqa: D102
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        wanted = None if relations is None else frozenset(relations)
        return _known(await self._each(partial(self._reader.degree, direction, wanted), entities))

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:  # noqa: D102
        found = await self._each(self._reader.has, facts)
        return frozenset(fact for fact, there in found.items() if there)

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:  # noqa: D102
        found = await self._each(partial(self._reader.features, request.relations), request.entities)
        return {
            entity: FeaturePage(features[: request.limit], Count(len(features)))
            for entity, features in found.items()
            if features
        }

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:  # noqa: D102
        return await self._run(partial(self._reader.search, text, limit, type))

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:  # noqa: D102
        return await self._run(lambda: self._reader.relation_index.find(text, limit))

    async def schema(self) -> GraphSchema:  # noqa: D102
        return await self._run(lambda: self._reader.survey.schema(self._prefixes))

    async def profile(self) -> GraphProfile:  # noqa: D102
        return await self._run(lambda: self._reader.survey.profile)

    async def compute(self, request: SetRequest) -> Computed:  # noqa: D102
        return await self._run(lambda: self._reader.survey.sets.compute(request))

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:  # noqa: D102
        index = await self._run(lambda: self._reader.survey.index)
        return await self._sparql.select(index, query, timeout_s=timeout_s, max_rows=max_rows)

    async def refresh(self) -> None:
        """Read the whole graph anew for search, schema, profile, sets and SPARQL, after it changed."""
        await self._run(self._reader.forget)

    async def aclose(self) -> None:  # noqa: D102
        await self._sparql.aclose()
        await self._run(self._reader.forget)

    async def _each(self, answer: Callable[[K], T], things: Iterable[K]) -> dict[K, T]:
        asked = dict.fromkeys(things)
        return await self._run(lambda: {thing: answer(thing) for thing in asked})

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._turn)
        except OSError as error:
            raise BackendError(f"The store of {self._name} failed to answer: {error}") from error


def _known(found: Mapping[K, T | None]) -> dict[K, T]:
    return {thing: answer for thing, answer in found.items() if answer is not None}


def _bound_prefixes(graph: rdflib.Graph) -> Prefixes:
    declared = {prefix: str(namespace) for prefix, namespace in graph.namespaces()}
    return prefixes_in_use(sorted(RdflibStatements(graph).iris()), declared)
