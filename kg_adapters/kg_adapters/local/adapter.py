"""The adapter over a store on this machine."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from kg_adapters.definition_files import PROFILE_FILE, SCHEMA_FILE
from kg_adapters.index.reader import IndexReader
from kg_adapters.labels import Vocabulary
from kg_adapters.local.sparql.pool import SparqlLimits
from kg_adapters.local.store import LocalStore
from kg_adapters.local.store_parts import (
    StorePart,
    StoreSparql,
    StoreVectors,
    late_reads,
    open_store_names,
    read_store_profile,
    read_store_schema,
    reports_damage,
)
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
    ValueUse,
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.requests import (
    FeatureRequest,
    NeighborRequest,
    SurroundingsRequest,
)
from kg_adapters.terms import Fact, Iri, Node

if TYPE_CHECKING:
    from kg_adapters.embedding.protocol import Vectors
    from kg_adapters.local.surroundings import RelationAliases
    from kg_adapters.local.vectors.labels import StoredLabelVectors
    from kg_adapters.set_requests import Computed, SetRequest
    from kg_adapters.surroundings import Surroundings

_MOST_ON_LOOP: Final = 2_000
"""The labels of more terms are read in a thread."""


class LocalAdapter:
    """Answers from one imported store: from the adjacency index at once, from its files in a thread or process.

    Args:
        store: An open store; it may be shared by any number of adapters.
        sparql: How much of the machine SPARQL queries may take; what suits the machine when None.
        prepares: Whether a process makes what SPARQL needs where a large store came without it, before anybody asks.
        name: What the graph is called; as its store says when None.

    Attributes:
        store: The same.
        sparql: What answers SPARQL.
    """

    def __init__(
        self, store: LocalStore, sparql: SparqlLimits | None = None, *, prepares: bool = False, name: str | None = None
    ) -> None:
        self.store = store
        self._name = name
        self._index = store.index
        self._reader = IndexReader(store.index, store.info.vocabulary, store.content)
        self._dictionary = self._reader.dictionary
        self._schema = StorePart(store, SCHEMA_FILE, read_store_schema)
        self._profile = StorePart(store, PROFILE_FILE, read_store_profile)
        self._names = StorePart(store, "text/", open_store_names)
        self._vectors = StoreVectors(store)
        self.sparql = StoreSparql(store, sparql, prepares=prepares)

    @cached_property
    def _aliases(self) -> "RelationAliases":
        from kg_adapters.local.surroundings import RelationAliases

        return RelationAliases(self._index, self._dictionary, self.vocabulary)

    @property
    def name(self) -> str:
        return self._name or self.store.info.name

    @property
    def prefixes(self) -> Prefixes:
        return self.store.info.prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return self.store.info.vocabulary

    @property
    def remote(self) -> bool:
        return False

    @reports_damage
    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        if len(terms) <= _MOST_ON_LOOP:
            return self._dictionary.labels_of(terms)
        return await anyio.to_thread.run_sync(self._dictionary.labels_of, terms)

    @reports_damage
    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        return self._reader.describe(terms)

    @reports_damage
    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        return self._reader.neighbors(request)

    @reports_damage
    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        return self._reader.degrees(entities, direction, relations)

    @reports_damage
    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        return self._reader.contains(facts)

    @reports_damage
    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        return self._reader.features(request)

    @reports_damage
    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        accept = None if type is None else self._reader.instances(type)
        return await anyio.to_thread.run_sync(self._search, text, limit, accept)

    @reports_damage
    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await anyio.to_thread.run_sync(lambda: self._names.get().checked().relations.find(text, limit))

    @reports_damage
    async def uses_of_values(self, texts: Collection[str], *, limit: int) -> Mapping[str, Sequence[ValueUse]]:
        return await anyio.to_thread.run_sync(self._reader.uses_of_values, texts, limit)

    @reports_damage
    async def surroundings(self, request: SurroundingsRequest) -> "Surroundings":
        if "_aliases" not in vars(self):
            await anyio.to_thread.run_sync(lambda: self._aliases)
        from kg_adapters.local.surroundings import surroundings_in_index

        return surroundings_in_index(
            self._index, self._dictionary, request, self._reader.texts, self._aliases, late_reads(self.store)
        )

    @reports_damage
    async def label_vectors(self, fingerprint: str) -> "StoredLabelVectors | None":
        return await anyio.to_thread.run_sync(self._vectors.labels, fingerprint)

    @reports_damage
    async def search_vectors(
        self, vector: "Vectors", *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        accept = None if type is None else self._reader.instances(type)
        found = await anyio.to_thread.run_sync(self._vectors.nearest, vector, fingerprint, limit, accept)
        return [self._meant(number, cosine) for number, cosine in found]

    @reports_damage
    async def schema(self) -> GraphSchema:
        return await self._schema.load()

    @reports_damage
    async def profile(self) -> GraphProfile:
        return await self._profile.load()

    @reports_damage
    async def paths(self, request: PathRequest) -> PathsFound:
        def find() -> PathsFound:
            from kg_adapters.index.paths.search import find_paths_in_index

            return find_paths_in_index(self._index, request, self.vocabulary.unwalked)

        return await anyio.to_thread.run_sync(find, abandon_on_cancel=True)

    @reports_damage
    async def compute(self, request: "SetRequest") -> "Computed":
        return await anyio.to_thread.run_sync(lambda: self._reader.sets.compute(request), abandon_on_cancel=True)

    @reports_damage
    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        return await self.sparql.select(query, timeout_s=timeout_s, max_rows=max_rows)

    async def aclose(self) -> None:
        await self.sparql.aclose()

    def _search(self, text: str, limit: int, accept: Callable[[int], bool] | None) -> list[Candidate]:
        hits = self._names.get().checked().search(text, limit=limit, accept=accept, prefixes=self.prefixes)
        return [hit.candidate(self._dictionary.node(hit.bearer)) for hit in hits]

    def _meant(self, number: int, cosine: float) -> Candidate:
        label = self._dictionary.label(number)
        return Candidate(self._dictionary.node(number), min(max(cosine, 0.0), 1.0), "meaning", label or "")
