"""The adapter over a store on this machine."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from kg_adapters.definition_files import PROFILE_FILE, SCHEMA_FILE
from kg_adapters.index.graph_index import Dictionary
from kg_adapters.index.neighborhood import START, Edge, Neighborhood, Position, degree_in_index, has_edge, is_in_groups
from kg_adapters.labels import Vocabulary
from kg_adapters.local.sparql.pool import SparqlLimits
from kg_adapters.local.store import LocalStore
from kg_adapters.local.store_parts import (
    StorePart,
    StoreSparql,
    StoreVectors,
    intact,
    open_store_names,
    read_store_profile,
    read_store_schema,
    telling,
)
from kg_adapters.models import (
    Candidate,
    Count,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    PathRequest,
    PathsFound,
    RelationCandidate,
    Role,
    SparqlAnswer,
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.requests import (
    FeatureRequest,
    NeighborRequest,
    SurroundingsRequest,
    past_the_end,
    question_about,
    read_cursor,
    write_cursor,
)
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple

if TYPE_CHECKING:
    from kg_adapters.embedding.protocol import Vectors
    from kg_adapters.index.sets.answers import IndexSets
    from kg_adapters.local.surroundings import RelationAliases
    from kg_adapters.local.vectors.labels import StoredLabelVectors
    from kg_adapters.set_requests import Computed, SetRequest
    from kg_adapters.surroundings import Surroundings

_MAX_TYPES: Final = 100
_MOST_ON_LOOP: Final = 2_000
"""The labels of more terms are read in a thread."""


class LocalAdapter:
    """Answers from one imported store: from the adjacency index at once, from its files in a thread or process.

    Args:
        store: An open store; it may be shared by any number of adapters.
        sparql: How much of the machine SPARQL queries may take; what suits the machine when None.
        prepares: Whether a process makes what SPARQL needs where a large store came without it, before anybody asks.

    Attributes:
        store: The same.
        sparql: What answers SPARQL.
    """

    def __init__(self, store: LocalStore, sparql: SparqlLimits | None = None, *, prepares: bool = False) -> None:
        self.store = store
        self._index = store.index
        self._dictionary = Dictionary(store.index)
        self._content = store.content
        self._schema = StorePart(store, SCHEMA_FILE, read_store_schema)
        self._profile = StorePart(store, PROFILE_FILE, read_store_profile)
        self._names = StorePart(store, "text/", open_store_names)
        self._vectors = StoreVectors(store)
        self.sparql = StoreSparql(store, sparql, prepares=prepares)

    @cached_property
    def _aliases(self) -> "RelationAliases":
        from kg_adapters.local.surroundings import RelationAliases

        return RelationAliases(self._index, self._dictionary, self.vocabulary)

    @cached_property
    def _sets(self) -> "IndexSets":
        from kg_adapters.index.sets.answers import IndexSets

        return IndexSets(self._index, self._dictionary, self.vocabulary)

    @cached_property
    def _types(self) -> frozenset[int]:
        return self._dictionary.relation_ids(self.vocabulary.types)

    @cached_property
    def _texts(self) -> frozenset[int]:
        return self._dictionary.relation_ids(self.vocabulary.texts)

    @property
    def name(self) -> str:
        return self.store.info.name

    @property
    def prefixes(self) -> Prefixes:
        return self.store.info.prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return self.store.info.vocabulary

    @property
    def remote(self) -> bool:
        return False

    @intact
    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        if len(terms) <= _MOST_ON_LOOP:
            return self._dictionary.labels_of(terms)
        return await anyio.to_thread.run_sync(self._dictionary.labels_of, terms)

    @intact
    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        found = ((term, self._description(term)) for term in dict.fromkeys(terms))
        return {term: description for term, description in found if description is not None}

    @intact
    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        nodes, start = dict.fromkeys(request.entities), START
        if request.cursor is not None:
            rank, place = read_cursor(request.cursor, 2, question_about(request.entities[0], request), self._content)
            start = (rank, place)
        wanted = None if request.relations is None else self._dictionary.relation_ids(request.relations)
        pages: dict[Node, NeighborPage] = {}
        for node in nodes:
            number = self._dictionary.node_id(node)
            if number is not None:
                around = Neighborhood(
                    self._index, number, request.direction, wanted, values=request.values, texts=self._texts
                )
                if request.cursor is not None and not around.holds(start, request.limit_per_relation):
                    raise past_the_end()
                pages[node] = self._page(node, around, request, start)
        return pages

    @intact
    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        wanted = None if relations is None else self._dictionary.relation_ids(relations)
        numbers = ((node, self._dictionary.node_id(node)) for node in dict.fromkeys(entities))
        return {
            node: degree_in_index(self._index, self._dictionary, number, direction, wanted)
            for node, number in numbers
            if number is not None
        }

    @intact
    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        return frozenset(fact for fact in facts if self._holds(fact))

    @intact
    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        wanted = None if request.relations is None else sorted(self._dictionary.relation_ids(request.relations))
        pages: dict[Node, FeaturePage] = {}
        for node in dict.fromkeys(request.entities):
            number = self._dictionary.node_id(node)
            rows = [] if number is None else self._feature_rows(number, wanted)
            if total := sum(map(len, rows)):
                shown = islice(chain.from_iterable(rows), request.limit)
                pages[node] = FeaturePage(tuple(map(self._dictionary.feature, shown)), Count(total))
        return pages

    @intact
    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        accept = None if type is None else self._instances(type)
        return await anyio.to_thread.run_sync(self._search, text, limit, accept)

    @intact
    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await anyio.to_thread.run_sync(lambda: self._names.get().checked().relations.find(text, limit))

    @intact
    async def surroundings(self, request: SurroundingsRequest) -> "Surroundings":
        if "_aliases" not in vars(self):
            await anyio.to_thread.run_sync(lambda: self._aliases)
        from kg_adapters.local.surroundings import surroundings_in_index

        told = telling(self.store)
        return surroundings_in_index(self._index, self._dictionary, request, self._texts, self._aliases, told)

    @intact
    async def label_vectors(self, fingerprint: str) -> "StoredLabelVectors | None":
        return await anyio.to_thread.run_sync(self._vectors.labels, fingerprint)

    @intact
    async def search_vectors(
        self, vector: "Vectors", *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        accept = None if type is None else self._instances(type)
        found = await anyio.to_thread.run_sync(self._vectors.nearest, vector, fingerprint, limit, accept)
        return [self._meant(number, cosine) for number, cosine in found]

    @intact
    async def schema(self) -> GraphSchema:
        return await anyio.to_thread.run_sync(self._schema.get)

    @intact
    async def profile(self) -> GraphProfile:
        return await anyio.to_thread.run_sync(self._profile.get)

    @intact
    async def paths(self, request: PathRequest) -> PathsFound:
        def find() -> PathsFound:
            from kg_adapters.index.paths.search import find_paths_in_index

            return find_paths_in_index(self._index, request, self.vocabulary.unwalked)

        return await anyio.to_thread.run_sync(find, abandon_on_cancel=True)

    @intact
    async def compute(self, request: "SetRequest") -> "Computed":
        return await anyio.to_thread.run_sync(lambda: self._sets.compute(request), abandon_on_cancel=True)

    @intact
    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        return await self.sparql.select(query, timeout_s=timeout_s, max_rows=max_rows)

    async def aclose(self) -> None:
        await self.sparql.aclose()

    def _description(self, term: Node) -> Description | None:
        number = self._dictionary.node_id(term)
        roles: list[Role] = [] if number is None else ["entity"]
        if self._dictionary.relation_id(term) is not None:
            roles.append("relation")
        if not roles:
            return None
        if number is None:
            return Description(None, None, (), frozenset(roles))
        texts = self._dictionary.label(number), self._dictionary.description(number)
        return Description(*texts, self._types_of(number), frozenset(roles))

    def _types_of(self, number: int) -> tuple[Node, ...]:
        found: set[int] = set()
        for group in Neighborhood(self._index, number, "out", self._types).groups:
            found.update(self._index.out.neighbors[group.start : min(group.end, group.start + _MAX_TYPES)].tolist())
        return tuple(self._dictionary.node(place) for place in sorted(found)[:_MAX_TYPES])

    def _page(self, node: Node, around: Neighborhood, request: NeighborRequest, start: Position) -> NeighborPage:
        most = request.limit_per_relation
        edges, following = around.page(request.limit, limit_per_relation=most, position=start)
        return NeighborPage(
            facts=tuple(self._fact(node, edge) for edge in edges),
            total=Count(around.total),
            truncated=following is not None or around.drops(most),
            cursor=None if following is None else write_cursor(following, question_about(node, request), self._content),
        )

    def _holds(self, fact: Fact) -> bool:
        head, relation = self._dictionary.node_id(fact.head), self._dictionary.relation_id(fact.relation)
        if head is None or relation is None:
            return False
        if isinstance(fact, Attribute):
            return any(self._dictionary.literal(row) == fact.tail for row in self._rows_of(head, relation))
        tail = self._dictionary.node_id(fact.tail)
        return tail is not None and has_edge(self._index.out, head, relation, tail)

    def _feature_rows(self, node: int, relations: Sequence[int] | None) -> list[range]:
        if relations is None:
            return [range(int(self._index.features.starts[node]), int(self._index.features.starts[node + 1]))]
        return [self._rows_of(node, relation) for relation in relations]

    def _rows_of(self, node: int, relation: int) -> range:
        table = self._index.features
        bounds = int(table.starts[node]), int(table.starts[node + 1])
        return range(*(bisect_left(table.relations, each, *bounds) for each in (relation, relation + 1)))

    def _fact(self, node: Node, edge: Edge) -> Fact:
        group, number = edge
        relation = self._dictionary.relation(group.relation)
        if group.of_values:
            return Attribute(node, relation, self._dictionary.literal(number))
        neighbor = self._dictionary.node(number)
        return Triple(node, relation, neighbor) if group.outgoing else Triple(neighbor, relation, node)

    def _instances(self, type: Node) -> Callable[[int], bool]:
        """Return what says whether a node is an instance of a type."""
        number = self._dictionary.node_id(type)
        groups = [] if number is None else Neighborhood(self._index, number, "in", self._types).groups
        return partial(is_in_groups, self._index.into, groups)

    def _search(self, text: str, limit: int, accept: Callable[[int], bool] | None) -> list[Candidate]:
        hits = self._names.get().checked().search(text, limit=limit, accept=accept)
        return [hit.candidate(self._dictionary.node(hit.bearer)) for hit in hits]

    def _meant(self, number: int, cosine: float) -> Candidate:
        label = self._dictionary.label(number)
        return Candidate(self._dictionary.node(number), min(max(cosine, 0.0), 1.0), "meaning", label or "")
