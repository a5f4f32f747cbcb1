"""What stands before a local graph and passes every question on to it."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

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
from kg_adapters.protocol import KGAdapter, SupportsPaths, SupportsSets, SupportsSparql
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.surroundings import LabelVectors, SupportsSurroundings, SupportsVectors, Surroundings
from kg_adapters.terms import Fact, Iri, Node

if TYPE_CHECKING:
    from kg_adapters.embedding.protocol import Vectors
    from kg_adapters.set_requests import Computed, SetRequest

T = TypeVar("T")


class LocalGraph(
    KGAdapter, SupportsPaths, SupportsSets, SupportsSparql, SupportsVectors, SupportsSurroundings, Protocol
):
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

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        return await self.ask(lambda graph: graph.neighbors(request))

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        return await self.ask(lambda graph: graph.degrees(entities, direction=direction, relations=relations))

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        return await self.ask(lambda graph: graph.contains(facts))

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        return await self.ask(lambda graph: graph.features(request))

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        return await self.ask(lambda graph: graph.search(text, limit=limit, type=type))

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await self.ask(lambda graph: graph.find_relations(text, limit=limit))

    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        return await self.ask(lambda graph: graph.surroundings(request))

    async def label_vectors(self, fingerprint: str) -> LabelVectors | None:
        return await self.ask(lambda graph: graph.label_vectors(fingerprint))

    async def search_vectors(
        self, vector: "Vectors", *, fingerprint: str, limit: int, type: Node | None = None
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

    async def compute(self, request: "SetRequest") -> "Computed":
        return await self.ask(lambda graph: graph.compute(request))

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        return await self.ask(lambda graph: graph.select(query, timeout_s=timeout_s, max_rows=max_rows))
