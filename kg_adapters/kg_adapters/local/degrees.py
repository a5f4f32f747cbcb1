"""How many distinct neighbours an entity has, without reading through a hub where there is another way."""

from collections.abc import Collection
from typing import Final

import numpy as np

from kg_adapters.local.dictionary import Dictionary
from kg_adapters.local.index import EdgeTable, GraphIndex, Ints
from kg_adapters.local.neighborhood import Neighborhood
from kg_adapters.models import Count, Degree, Direction, RelationCount

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
