"""The adapter over a store on this machine."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Final

import anyio.to_thread

from kg_adapters.embedding.protocol import Vectors
from kg_adapters.errors import InvalidRequest
from kg_adapters.labels import Vocabulary
from kg_adapters.local.cursors import Question, invalid_cursor, read_cursor, write_cursor
from kg_adapters.local.definition import StoreDefinition
from kg_adapters.local.degrees import count_neighbors
from kg_adapters.local.dictionary import Dictionary
from kg_adapters.local.intact import intact, telling
from kg_adapters.local.neighborhood import START, Edge, Neighborhood, Position, has_edge
from kg_adapters.local.path_search import find_paths_in_index
from kg_adapters.local.sparql_pool import SparqlLimits, SparqlPool
from kg_adapters.local.sparql_store import ensure_sparql_store
from kg_adapters.local.store import LocalStore
from kg_adapters.local.store_names import StoreNames
from kg_adapters.local.store_vectors import StoreVectors
from kg_adapters.local.surroundings import surroundings_in_index
from kg_adapters.local.vectors import LabelVectors
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
    RelationCount,
    Role,
    SparqlAnswer,
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.surroundings import Surroundings
from kg_adapters.terms import Iri, Node, Triple

_MAX_TYPES: Final = 100


class LocalAdapter:
    """Answers from one imported store: from the adjacency index at once, from its files in a thread or process.

    Args:
        store: An open store; it may be shared by any number of adapters.
        sparql: How much of the machine SPARQL queries may take; what suits the machine when None.

    Attributes:
        store: The same.
        sparql: What answers SPARQL.
    """

    def __init__(self, store: LocalStore, sparql: SparqlLimits | None = None) -> None:
        self.store = store
        self._index = store.index
        self._dictionary = Dictionary(store.index)
        self._content = store.content
        self._definition = StoreDefinition(store)
        self._names = StoreNames(store)
        self._vectors = StoreVectors(store)
        self.sparql = SparqlPool(store.folder, store.info.prefixes, sparql)
        self._sparql_known = False

    @cached_property
    def _types(self) -> frozenset[int]:
        return self._ids(self.vocabulary.types)

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
        found: dict[Node, str] = {}
        for term in terms:
            number = self._dictionary.node_id(term)
            label = None if number is None else self._dictionary.label(number)
            if label is not None:
                found[term] = label
        return found

    @intact
    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        found = ((term, self._description(term)) for term in dict.fromkeys(terms))
        return {term: description for term, description in found if description is not None}

    @intact
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
        _require_positive(limit)
        _require_positive(1 if limit_per_relation is None else limit_per_relation)
        question = Question(direction, relations, limit_per_relation)
        nodes = dict.fromkeys(entities)
        start = START
        if cursor is not None:
            if len(nodes) != 1:
                raise invalid_cursor(cursor, f"goes with one entity, not with {len(nodes)}")
            start = read_cursor(cursor, question.seal(self._content, *nodes))
        wanted = None if relations is None else self._ids(relations)
        pages: dict[Node, NeighborPage] = {}
        for node in nodes:
            number = self._dictionary.node_id(node)
            if number is not None:
                around = Neighborhood(self._index, number, direction, wanted)
                if cursor is not None and not around.holds(start, limit_per_relation):
                    raise invalid_cursor(cursor, "points behind the end")
                pages[node] = self._page(node, around, question, start, limit)
        return pages

    @intact
    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        wanted = None if relations is None else self._ids(relations)
        numbers = ((node, self._dictionary.node_id(node)) for node in dict.fromkeys(entities))
        return {node: self._degree(number, direction, wanted) for node, number in numbers if number is not None}

    @intact
    async def contains(self, triples: Collection[Triple]) -> frozenset[Triple]:
        numbers = ((triple, self._dictionary.triple_ids(triple)) for triple in triples)
        return frozenset(each for each, ids in numbers if ids is not None and has_edge(self._index.out, *ids))

    @intact
    async def features(self, entity: Node, *, relation: Iri | None = None, limit: int = 200) -> FeaturePage:
        _require_positive(limit)
        number = self._dictionary.node_id(entity)
        wanted = None if relation is None else self._dictionary.relation_id(relation)
        if number is None or (relation is not None and wanted is None):
            return FeaturePage((), Count(0))
        table = self._index.features
        first, last = int(table.starts[number]), int(table.starts[number + 1])
        if wanted is not None:
            first = bisect_left(table.relations, wanted, first, last)
            last = bisect_left(table.relations, wanted + 1, first, last)
        shown = range(first, min(last, first + limit))
        return FeaturePage(tuple(self._dictionary.feature(row) for row in shown), Count(last - first))

    @intact
    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        accept = None if type is None else self._instances(type)
        return await anyio.to_thread.run_sync(self._search, text, limit, accept)

    @intact
    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await anyio.to_thread.run_sync(self._names.relations, text, limit)

    @intact
    async def surroundings(self, entities: Sequence[Node], *, per_relation: int, per_entity: int) -> Surroundings:
        limits = {"per_relation": per_relation, "per_entity": per_entity}
        return surroundings_in_index(self._index, self._dictionary, entities, **limits, telling=telling(self.store))

    @intact
    async def label_vectors(self, fingerprint: str) -> LabelVectors | None:
        return await anyio.to_thread.run_sync(self._vectors.labels, fingerprint)

    @intact
    async def search_vectors(
        self, vector: Vectors, *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        accept = None if type is None else self._instances(type)
        found = await anyio.to_thread.run_sync(self._vectors.nearest, vector, fingerprint, limit, accept)
        return [self._meant(number, cosine) for number, cosine in found]

    @intact
    async def schema(self) -> GraphSchema:
        return await self._definition.schema()

    @intact
    async def profile(self) -> GraphProfile:
        return await self._definition.profile()

    @intact
    async def paths(self, request: PathRequest) -> PathsFound:
        unwalked = self.vocabulary.unwalked
        return await anyio.to_thread.run_sync(
            find_paths_in_index, self._index, request, unwalked, abandon_on_cancel=True
        )

    @intact
    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        # A store may come without its SPARQL part; making it once is not what the deadline of a query is for.
        self.store.require_current()
        await ensure_sparql_store(self.store.folder, self._index, sizes_only=self._sparql_known)
        self._sparql_known = True
        answer = await self.sparql.select(query, timeout_s=timeout_s, max_rows=max_rows)
        self.store.require_current()
        return answer

    async def aclose(self) -> None:
        await self.sparql.aclose()

    def _ids(self, relations: Collection[Iri]) -> frozenset[int]:
        found = (self._dictionary.relation_id(relation) for relation in relations)
        return frozenset(number for number in found if number is not None)

    def _description(self, term: Node) -> Description | None:
        number = self._dictionary.node_id(term)
        roles: list[Role] = [] if number is None else ["entity"]
        if self._dictionary.relation_id(term) is not None:
            roles.append("relation")
        if not roles:
            return None
        if number is None:
            return Description(None, None, (), frozenset(roles))
        label, description = self._dictionary.label(number), self._dictionary.description(number)
        return Description(label, description, self._types_of(number), frozenset(roles))

    def _types_of(self, number: int) -> tuple[Node, ...]:
        found: set[int] = set()
        for group in Neighborhood(self._index, number, "out", self._types).groups:
            found.update(self._index.out.neighbors[group.start : min(group.end, group.start + _MAX_TYPES)].tolist())
        return tuple(self._dictionary.node(place) for place in sorted(found)[:_MAX_TYPES])

    def _page(self, node: Node, around: Neighborhood, question: Question, start: Position, limit: int) -> NeighborPage:
        edges, following = around.page(limit, limit_per_relation=question.limit_per_relation, position=start)
        return NeighborPage(
            triples=tuple(self._triple(node, edge) for edge in edges),
            total=Count(around.total),
            truncated=following is not None or around.drops(question.limit_per_relation),
            cursor=None if following is None else write_cursor(following, question.seal(self._content, node)),
        )

    def _triple(self, node: Node, edge: Edge) -> Triple:
        relation, neighbor = self._dictionary.relation(edge.relation), self._dictionary.node(edge.neighbor)
        return Triple(node, relation, neighbor) if edge.outgoing else Triple(neighbor, relation, node)

    def _degree(self, number: int, direction: Direction, relations: Collection[int] | None) -> Degree:
        counts = tuple(
            RelationCount(
                self._dictionary.relation(group.relation), "out" if group.outgoing else "in", Count(group.length)
            )
            for group in Neighborhood(self._index, number, direction, relations).groups
        )
        return Degree(Count(count_neighbors(self._index, number, direction, relations)), counts)

    def _instances(self, type: Node) -> Callable[[int], bool]:
        """Return what says whether a node is an instance of a type."""
        number, into = self._dictionary.node_id(type), self._index.into
        groups = [] if number is None else Neighborhood(self._index, number, "in", self._types).groups

        def accept(node: int) -> bool:
            places = ((bisect_left(into.neighbors, node, group.start, group.end), group.end) for group in groups)
            return any(place < end and into.neighbors[place] == node for place, end in places)

        return accept

    def _search(self, text: str, limit: int, accept: Callable[[int], bool] | None) -> list[Candidate]:
        return [hit.candidate(self._dictionary.node(hit.bearer)) for hit in self._names.entities(text, limit, accept)]

    def _meant(self, number: int, cosine: float) -> Candidate:
        label = self._dictionary.label(number)
        return Candidate(self._dictionary.node(number), min(max(cosine, 0.0), 1.0), "meaning", label or "")


def _require_positive(limit: int) -> None:
    if limit < 1:
        raise InvalidRequest(f"The limit must be at least 1; it is {limit}.")
