"""What an index answers at once about entities and facts, without waiting for anything."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from kg_adapters.index.graph_index import Dictionary, GraphIndex
from kg_adapters.index.neighborhood import START, Edge, Neighborhood, Position, degree_in_index, has_edge, is_in_groups
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count, Degree, Description, Direction, FeaturePage, NeighborPage, Role, ValueUse
from kg_adapters.requests import (
    FeatureRequest,
    NeighborRequest,
    past_the_end,
    question_about,
    read_cursor,
    write_cursor,
)
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple

if TYPE_CHECKING:
    from kg_adapters.index.sets.answers import IndexSets

_MAX_TYPES: Final = 100


class IndexReader:
    """Reads one index; methods return what those of `KGAdapter` with the same names promise.

    Args:
        index: The graph.
        vocabulary: The relations that name, describe and type its entities.
        content: Tells the graph, or its present state, from others in cursors.

    Attributes:
        dictionary: The terms of the index.
    """

    def __init__(self, index: GraphIndex, vocabulary: Vocabulary, content: str) -> None:
        self.dictionary = Dictionary(index)
        self._index = index
        self._vocabulary = vocabulary
        self._content = content

    @cached_property
    def sets(self) -> "IndexSets":
        """What answers questions about sets."""
        from kg_adapters.index.sets.answers import IndexSets  # noqa: PLC0415 - needed by `Compose` alone

        return IndexSets(self._index, self.dictionary, self._vocabulary)

    @cached_property
    def types(self) -> frozenset[int]:
        """The ids of the relations to classes."""
        return self.dictionary.relation_ids(self._vocabulary.types)

    @cached_property
    def texts(self) -> frozenset[int]:
        """The ids of the relations to names and descriptions."""
        return self.dictionary.relation_ids(self._vocabulary.texts)

    def describe(self, terms: Iterable[Node]) -> dict[Node, Description]:
        """Return the descriptions of terms."""
        found = ((term, self._description(term)) for term in dict.fromkeys(terms))
        return {term: description for term, description in found if description is not None}

    def neighbors(self, request: NeighborRequest) -> dict[Node, NeighborPage]:
        """Return a page of facts for each entity."""
        nodes, start = dict.fromkeys(request.entities), START
        if request.cursor is not None:
            rank, place = read_cursor(request.cursor, 2, question_about(request.entities[0], request), self._content)
            start = (rank, place)
        wanted = None if request.relations is None else self.dictionary.relation_ids(request.relations)
        pages: dict[Node, NeighborPage] = {}
        for node in nodes:
            number = self.dictionary.node_id(node)
            if number is not None:
                around = Neighborhood(
                    self._index, number, request.direction, wanted, values=request.values, texts=self.texts
                )
                if request.cursor is not None and not around.holds(start, request.limit_per_relation):
                    raise past_the_end()
                pages[node] = self._page(node, around, request, start)
        return pages

    def degrees(
        self, entities: Iterable[Node], direction: Direction, relations: Collection[Iri] | None
    ) -> dict[Node, Degree]:
        """Return the degree of each entity."""
        wanted = None if relations is None else self.dictionary.relation_ids(relations)
        numbers = ((node, self.dictionary.node_id(node)) for node in dict.fromkeys(entities))
        return {
            node: degree_in_index(self._index, self.dictionary, number, direction, wanted)
            for node, number in numbers
            if number is not None
        }

    def contains(self, facts: Iterable[Fact]) -> frozenset[Fact]:
        """Return those facts that the graph holds."""
        return frozenset(fact for fact in facts if self._holds(fact))

    def features(self, request: FeatureRequest) -> dict[Node, FeaturePage]:
        """Return a page of values for each entity that has any."""
        wanted = None if request.relations is None else sorted(self.dictionary.relation_ids(request.relations))
        pages: dict[Node, FeaturePage] = {}
        for node in dict.fromkeys(request.entities):
            number = self.dictionary.node_id(node)
            rows = [] if number is None else self._feature_rows(number, wanted)
            if total := sum(map(len, rows)):
                shown = islice(chain.from_iterable(rows), request.limit)
                pages[node] = FeaturePage(tuple(map(self.dictionary.feature, shown)), Count(total))
        return pages

    def uses_of_values(self, texts: Iterable[str], limit: int) -> dict[str, Sequence[ValueUse]]:
        """Return which relations have texts as values, as `SupportsValueSearch` promises."""
        from kg_adapters.index.value_uses import uses_in_index  # noqa: PLC0415 - needed where nothing has a name

        found = {text: uses_in_index(self._index, self.dictionary, text, limit, self.texts) for text in texts}
        return {text: uses for text, uses in found.items() if uses}

    def instances(self, type: Node) -> Callable[[int], bool]:
        """Return the test whether a node, by its id, is an instance of a type."""
        number = self.dictionary.node_id(type)
        groups = [] if number is None else Neighborhood(self._index, number, "in", self.types).groups
        return partial(is_in_groups, self._index.into, groups)

    def _description(self, term: Node) -> Description | None:
        number = self.dictionary.node_id(term)
        roles: list[Role] = [] if number is None else ["entity"]
        if self.dictionary.relation_id(term) is not None:
            roles.append("relation")
        if not roles:
            return None
        if number is None:
            return Description(None, None, (), frozenset(roles))
        texts = self.dictionary.label(number), self.dictionary.description(number)
        return Description(*texts, self._types_of(number), frozenset(roles))

    def _types_of(self, number: int) -> tuple[Node, ...]:
        found: set[int] = set()
        for group in Neighborhood(self._index, number, "out", self.types).groups:
            found.update(self._index.out.neighbors[group.start : min(group.end, group.start + _MAX_TYPES)].tolist())
        return tuple(self.dictionary.node(place) for place in sorted(found)[:_MAX_TYPES])

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
        head, relation = self.dictionary.node_id(fact.head), self.dictionary.relation_id(fact.relation)
        if head is None or relation is None:
            return False
        if isinstance(fact, Attribute):
            return any(self.dictionary.literal(row) == fact.tail for row in self._rows_of(head, relation))
        tail = self.dictionary.node_id(fact.tail)
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
        relation = self.dictionary.relation(group.relation)
        if group.of_values:
            return Attribute(node, relation, self.dictionary.literal(number))
        neighbor = self.dictionary.node(number)
        return Triple(node, relation, neighbor) if group.outgoing else Triple(neighbor, relation, node)
