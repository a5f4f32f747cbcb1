"""What stands before a local graph and passes every question on to it."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from kg_adapters.embedding.protocol import Vectors
from kg_adapters.models import (
    Candidate,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    PathRequest,
    PathsFound,
    RelationCandidate,
    SparqlAnswer,
)
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import KGAdapter, SupportsPaths, SupportsSparql
from kg_adapters.surroundings import SupportsSurroundings, Surroundings
from kg_adapters.terms import Iri, Node, Triple
from kg_adapters.vectors import LabelVectors, SupportsVectors

T = TypeVar("T")


class LocalGraph(KGAdapter, SupportsPaths, SupportsSparql, SupportsVectors, SupportsSurroundings, Protocol):
    """All that a graph on this machine can do."""


class ForwardingAdapter(ABC):
    """Passes every question on to a local graph, which need not be the same one every time."""

    @abstractmethod
    async def ask(self, question: Callable[[LocalGraph], Awaitable[T]]) -> T:
        """Return what the graph that is to be asked now answers to a question."""

    @property
    def remote(self) -> bool:
        return False

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        return await self.ask(lambda graph: graph.labels(terms))

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        return await self.ask(lambda graph: graph.describe(terms))

    async def neighbors(
        self,
        entities: Sequence[Node],
        *,
        direction: Direction,
        relations: Collection[Iri] | None = None,
        limit_per_relation: int | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> Mapping[Node, NeighborPage]:
        return await self.ask(
            lambda graph: graph.neighbors(
                entities,
                direction=direction,
                relations=relations,
                limit_per_relation=limit_per_relation,
                limit=limit,
                cursor=cursor,
            )
        )

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        return await self.ask(lambda graph: graph.degrees(entities, direction=direction, relations=relations))

    async def contains(self, triples: Collection[Triple]) -> frozenset[Triple]:
        return await self.ask(lambda graph: graph.contains(triples))

    async def features(self, entity: Node, *, relation: Iri | None = None, limit: int = 200) -> FeaturePage:
        return await self.ask(lambda graph: graph.features(entity, relation=relation, limit=limit))

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        return await self.ask(lambda graph: graph.search(text, limit=limit, type=type))

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await self.ask(lambda graph: graph.find_relations(text, limit=limit))

    async def surroundings(self, entities: Sequence[Node], *, per_relation: int, per_entity: int) -> Surroundings:
        return await self.ask(
            lambda graph: graph.surroundings(entities, per_relation=per_relation, per_entity=per_entity)
        )

    async def label_vectors(self, fingerprint: str) -> LabelVectors | None:
        return await self.ask(lambda graph: graph.label_vectors(fingerprint))

    async def search_vectors(
        self, vector: Vectors, *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        return await self.ask(
            lambda graph: graph.search_vectors(vector, fingerprint=fingerprint, limit=limit, type=type)
        )

    async def schema(self) -> GraphSchema:
        return await self.ask(lambda graph: graph.schema())

    async def profile(self) -> GraphProfile:
        return await self.ask(lambda graph: graph.profile())

    async def paths(self, request: PathRequest) -> PathsFound:
        return await self.ask(lambda graph: graph.paths(request))

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        return await self.ask(lambda graph: graph.select(query, timeout_s=timeout_s, max_rows=max_rows))
