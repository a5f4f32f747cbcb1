"""One entity's edges as groups, the pages that take them in turns, and how many neighbours there are."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from kg_adapters.index.graph_index import Dictionary, EdgeTable, FeatureTable, GraphIndex, Ints, ListTable
from kg_adapters.models import Count, Degree, Direction, RelationCount

Position: TypeAlias = tuple[int, int]
"""Where a page begins: how many of every group were taken before, and the place of the group that is next."""
START: Final[Position] = (0, 0)


class EdgeGroup(NamedTuple):
    """The edges of one relation in one direction: `length` of them from `start` in the neighbours of the table.

    `loop` is where the entity itself stands among them if it is not to be listed, otherwise -1. Of values, `start` is
    the first row of the feature table. Where the neighbours came of a list, `order` is where their order begins in the
    places of the table of lists, otherwise -1.
    """

    relation: int
    outgoing: bool
    start: int
    length: int
    loop: int = -1
    of_values: bool = False
    order: int = -1

    @property
    def end(self) -> int:
        """Where the next group begins in the neighbours of the table."""
        return self.start + self.length + (self.loop >= 0)

    def neighbors(self, table: EdgeTable, first: int, end: int) -> list[int]:
        """Return the ids of the neighbours with the ranks from `first`, from 0, to before `end`."""
        start = self.start + first
        if end - first == 1 and self.loop < 0:
            # Most groups are no larger.
            return [int(table.neighbors[start])]
        ids: list[int] = table.neighbors[start : self.start + end + (self.loop >= 0)].tolist()
        if self.loop >= 0:
            # What stands before the entity itself moves up by none, what is behind it by one.
            del ids[min(max(self.loop - start, 0), len(ids) - 1)]
        return ids


Edge: TypeAlias = tuple[EdgeGroup, int]
"""An edge or value of an entity: its group, and the id of the neighbour or the row of the feature table."""


class Neighborhood:
    """The groups of one entity in the order that `KGAdapter.neighbors` promises.

    Args:
        index: The graph.
        node: The entity's id.
        direction: Which edges count; with `both`, those from the entity to itself only as outgoing.
        relations: The relation ids that count; None for all.
        values: Whether literals count beside edges, where the direction is not `in`.
        texts: Relation ids whose literals count only where `relations` names them.
    """

    def __init__(
        self,
        index: GraphIndex,
        node: int,
        direction: Direction,
        relations: Collection[int] | None = None,
        *,
        values: bool = False,
        texts: Collection[int] = (),
    ) -> None:
        self._index = index
        out = [] if direction == "in" else list(_groups(index.out, node, relations, outgoing=True, lists=index.lists))
        into = [] if direction == "out" else list(_groups(index.into, node, relations, outgoing=False))
        if out and into:
            into = _without_loops(index.into, into, node, {group.relation for group in out})
        if values and direction != "in":
            stated = _value_groups(index.features, node, relations, texts)
            # Sorting keeps the edges of a relation before its values.
            out = sorted((*out, *stated), key=lambda group: group.relation)
        self.groups = [*out, *into]

    @property
    def total(self) -> int:
        """The number of edges."""
        return sum(group.length for group in self.groups)

    def page(
        self, limit: int, *, limit_per_relation: int | None = None, position: Position = START
    ) -> tuple[list[Edge], Position | None]:
        """Return up to `limit` edges from a position on, and the position of the next, or None at the end."""
        lengths = [group.length for group in self.groups]
        if limit_per_relation is not None:
            lengths = [min(length, limit_per_relation) for length in lengths]
        rank, first = position
        edges: list[Edge] = []
        columns: dict[int, Sequence[int]] = {}
        begun = until = rank
        open_groups = [place for place, length in enumerate(lengths) if length > rank]
        while open_groups:
            if rank == until:
                # As many rounds as there will be if no group ends, and again from there where some do.
                begun, until = rank, rank + (limit - len(edges)) // len(open_groups) + 1
                columns = {
                    place: self._neighbors(self.groups[place], begun, min(until, lengths[place]))
                    for place in open_groups
                }
            for place in open_groups:
                if place < first:
                    continue
                if len(edges) == limit:
                    return edges, (rank, place)
                edges.append((self.groups[place], columns[place][rank - begun]))
            rank, first = rank + 1, 0
            open_groups = [place for place in open_groups if lengths[place] > rank]
        return edges, None

    def holds(self, position: Position, limit_per_relation: int | None) -> bool:
        """Say whether there is an edge at a position."""
        rank, place = position
        if place >= len(self.groups) or (limit_per_relation is not None and rank >= limit_per_relation):
            return False
        return rank < self.groups[place].length

    def drops(self, limit_per_relation: int | None) -> bool:
        """Say whether a limit per relation leaves edges out."""
        return limit_per_relation is not None and any(group.length > limit_per_relation for group in self.groups)

    def _neighbors(self, group: EdgeGroup, first: int, end: int) -> Sequence[int]:
        """Return the neighbours of a group, or the rows of its values, with the ranks from `first` to before `end`."""
        if group.of_values:
            return range(group.start + first, group.start + end)
        table = self._index.out if group.outgoing else self._index.into
        if group.order < 0:
            return group.neighbors(table, first, end)
        ranks = self._index.lists.places[group.order + first : group.order + end]
        found: list[int] = table.neighbors[group.start + ranks].tolist()
        return found


def has_edge(table: EdgeTable, node: int, relation: int, neighbor: int) -> bool:
    """Say whether a node has a neighbour over a relation."""
    first, last = int(table.groups[node]), int(table.groups[node + 1])
    group = bisect_left(table.relations, relation, first, last)
    if group == last or table.relations[group] != relation:
        return False
    start, end = int(table.starts[group]), int(table.starts[group + 1])
    place = bisect_left(table.neighbors, neighbor, start, end)
    return place < end and bool(table.neighbors[place] == neighbor)


def is_in_groups(table: EdgeTable, groups: Iterable[EdgeGroup], node: int) -> bool:
    """Say whether a node is a neighbour in one of some groups of a table."""
    return any(_find(table, group, node) >= 0 for group in groups)


def _groups(
    table: EdgeTable, node: int, relations: Collection[int] | None, *, outgoing: bool, lists: ListTable | None = None
) -> Iterator[EdgeGroup]:
    first, last = int(table.groups[node]), int(table.groups[node + 1])
    starts: list[int] = table.starts[first : last + 1].tolist()
    owned: list[int] = table.relations[first:last].tolist()
    for place, relation in enumerate(owned):
        if relations is None or relation in relations:
            order = -1 if lists is None or not len(lists.groups) else _order(lists, first + place)
            yield EdgeGroup(relation, outgoing, starts[place], starts[place + 1] - starts[place], order=order)


def _order(lists: ListTable, group: int) -> int:
    place = bisect_left(lists.groups, group)
    return int(lists.starts[place]) if place < len(lists.groups) and lists.groups[place] == group else -1


def _value_groups(
    table: FeatureTable, node: int, relations: Collection[int] | None, texts: Collection[int]
) -> Iterator[EdgeGroup]:
    start, last = int(table.starts[node]), int(table.starts[node + 1])
    while start < last:
        relation = int(table.relations[start])
        end = bisect_right(table.relations, relation, start, last)
        if relation not in texts if relations is None else relation in relations:
            yield EdgeGroup(relation, outgoing=True, start=start, length=end - start, of_values=True)
        start = end


def _without_loops(table: EdgeTable, groups: list[EdgeGroup], node: int, outgoing: Collection[int]) -> list[EdgeGroup]:
    kept: list[EdgeGroup] = []
    for group in groups:
        loop = _find(table, group, node) if group.relation in outgoing else -1
        if loop < 0:
            kept.append(group)
        elif group.length > 1:
            kept.append(EdgeGroup(group.relation, group.outgoing, group.start, group.length - 1, loop))
    return kept


def _find(table: EdgeTable, group: EdgeGroup, node: int) -> int:
    place = bisect_left(table.neighbors, node, group.start, group.end)
    return place if place < group.end and table.neighbors[place] == node else -1


_FEW: Final = 100
"""Up to so many neighbours are counted sooner without arrays."""


def degree_in_index(
    index: GraphIndex, dictionary: Dictionary, node: int, direction: Direction, relations: Collection[int] | None
) -> Degree:
    """Return the number of distinct neighbours of a node, in all and by relation."""
    found = Neighborhood(index, node, direction, relations).groups
    counts = (
        RelationCount(dictionary.relation(each.relation), "out" if each.outgoing else "in", Count(each.length))
        for each in found
    )
    return Degree(Count(count_neighbors(index, node, direction, relations)), tuple(counts))


def count_neighbors(
    index: GraphIndex, node: int, direction: Direction, relations: Collection[int] | None = None
) -> int:
    """Return the number of distinct neighbours over everything asked for; the entity itself is none of them."""
    if relations is not None:
        return _count_over(index, node, direction, relations)
    first, last = int(index.links.starts[node]), int(index.links.starts[node + 1])
    if direction == "both":
        return last - first
    asked, other = (index.out, index.into) if direction == "out" else (index.into, index.out)
    mine, others = _edges(asked, node), _edges(other, node)
    if len(mine) <= _FEW:
        return len({*mine.tolist()} - {node})
    if len(mine) <= len(others):
        return int(np.count_nonzero(np.unique(mine) != node))
    # The larger side is all who are next to the entity, but for those whom the smaller side alone reaches.
    neighbors, counts = np.unique(others, return_counts=True)
    apart = neighbors != node
    places = first + np.searchsorted(index.links.neighbors[first:last], neighbors[apart])
    return last - first - int(np.count_nonzero(index.links.edges[places] == counts[apart]))


def _count_over(index: GraphIndex, node: int, direction: Direction, relations: Collection[int]) -> int:
    groups = Neighborhood(index, node, direction, relations).groups
    parts = [
        (index.out if group.outgoing else index.into).neighbors[group.start : group.end]
        for group in sorted(groups, key=lambda group: group.length)
    ]
    if not parts:
        return 0
    # The largest group is sorted already; only what is not in it is gathered.
    largest = parts.pop()
    rest = np.unique(np.concatenate(parts)) if parts else largest[:0]
    places = np.minimum(np.searchsorted(largest, rest), len(largest) - 1)
    apart = rest[(largest[places] != rest) & (rest != node)]
    place = min(int(np.searchsorted(largest, node)), len(largest) - 1)
    return len(largest) - int(largest[place] == node) + len(apart)


def _edges(table: EdgeTable, node: int) -> Ints:
    first, last = table.groups[node], table.groups[node + 1]
    return table.neighbors[table.starts[first] : table.starts[last]]
