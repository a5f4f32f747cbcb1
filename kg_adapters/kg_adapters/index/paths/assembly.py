"""From the node ids along a path to its triples, the best paths first."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from math import prod
from typing import Final, TypeAlias

import numpy as np

from kg_adapters.index.graph_index import EdgeTable, GraphIndex, Ints, Longs, relation_ids, stored_node, stored_relation
from kg_adapters.models import Path
from kg_adapters.terms import Iri, Node, Triple

Ids: TypeAlias = tuple[int, int, int]
"""A triple as the ids of head, relation and tail; comparing two compares their texts."""
# About as many edges pass through one vectorised scan in the time that a look-up of one pair takes to start.
_SCANNED_PER_LOOKUP: Final = 2_000


@dataclass(frozen=True, slots=True)
class NodePaths:
    """Paths of equally many hops, by their nodes.

    Args:
        nodes: The node ids along each path, both ends included; shape [paths, hops + 1].
        costs: The sum of the degrees of each path's inner nodes; shape [paths].
    """

    nodes: Ints
    costs: Longs

    def best(self, limit: int) -> "NodePaths":
        """Return the `limit` cheapest in the order of their costs, and all that cost as much as the last of them."""
        kept = self.costs <= cutoff(self.costs, limit)
        order = np.argsort(self.costs[kept], kind="stable")
        return NodePaths(self.nodes[kept][order], self.costs[kept][order])


def cutoff(costs: Longs, limit: int) -> int:
    """Return the `limit`-th smallest of the costs, or a number that none exceeds where there are fewer."""
    if len(costs) < limit:
        return int(np.iinfo(np.int64).max)
    return int(np.partition(costs, limit - 1)[limit - 1])


class TripleFinder:
    """Finds the triples between nodes, and assembles paths of them.

    Args:
        index: The graph.
        left_out: Relations that only a path of one hop may have.
        inverses: Pairs of relations that say the same in opposite directions.

    Attributes:
        twins: How many paths say the same over inverses as those that were assembled.
    """

    def __init__(
        self, index: GraphIndex, left_out: Collection[Iri], inverses: Collection[tuple[Iri, Iri]] = ()
    ) -> None:
        self.twins = 0
        self._index = index
        self._left_out = frozenset(relation_ids(index, left_out))
        self._inverse_of = {one: other for pair in inverses for one, other in (pair, pair[::-1])}
        self._inverses: dict[int, int | None] = {}
        self._forms: dict[Ids, int] = {}
        self._pairs: dict[tuple[int, int], list[Ids]] = {}
        self._nodes: dict[int, Node] = {}

    def best_paths(self, layers: Sequence[NodePaths], limit: int) -> tuple[Path, ...]:
        """Return the first `limit` paths in the order of `PathsFound`.

        Args:
            layers: Fewer hops first. Of each, any superset of the node paths that its share of the limit needs.
            limit: At least 1.
        """
        return tuple(islice(self._in_order(layers, limit), limit))

    def between(self, here: int, others: Ints, *, direct: bool = False) -> list[tuple[Ids, int]]:
        """Return the triples between one node and each of `others`, sorted, with the other node of each.

        Of those that say the same over inverse relations, only the first.

        Args:
            here: A node id.
            others: Sorted and distinct node ids.
            direct: Whether relations count that are left out elsewhere.
        """
        if len(others) == 1 or len(others) * _SCANNED_PER_LOOKUP < self._edge_count(here):
            each: list[int] = others.tolist()
            found = [(ids, other) for other in each for ids in self._between_two(here, other)]
        else:
            out, into = self._index.out, self._index.into
            found = [((here, relation, other), other) for relation, other in _scan(out, here, others)]
            found += [((other, relation, here), other) for relation, other in _scan(into, here, others)]
        ordered = sorted(pair for pair in found if direct or pair[0][1] not in self._left_out)
        return self._once(ordered) if self._inverse_of else ordered

    def _once(self, found: Sequence[tuple[Ids, int]]) -> list[tuple[Ids, int]]:
        forms: dict[Ids, list[tuple[Ids, int]]] = {}
        for pair in found:
            head, relation, tail = pair[0]
            inverse = self._inverse(relation)
            same = pair[0] if inverse is None else min(pair[0], (tail, inverse, head))
            forms.setdefault(same, []).append(pair)
        self._forms.update((same[0][0], len(same)) for same in forms.values())
        return [same[0] for same in forms.values()]

    def _inverse(self, relation: int) -> int | None:
        if relation not in self._inverses:
            inverse = self._inverse_of.get(stored_relation(self._index, relation))
            self._inverses[relation] = None if inverse is None else self._index.relations.find(inverse.value)
        return self._inverses[relation]

    def by_first_triple(self, here: int, others: Ints) -> Ints:
        """Return nodes in the order of the first triple that links each to `here`; they come sorted and distinct."""
        seen = dict.fromkeys(other for _, other in self.between(here, others))
        return np.fromiter(seen, dtype=np.int32, count=len(seen))

    def _in_order(self, layers: Sequence[NodePaths], limit: int) -> Iterator[Path]:
        for layer in layers:
            best = layer.best(limit)
            bounds = np.flatnonzero(np.diff(best.costs, prepend=-1, append=-1)).tolist()
            for first, last in pairwise(bounds):
                nodes = best.nodes[first:last]
                for triples in self._expand(nodes, 0, ()):
                    self.twins += prod(self._forms.get(each, 1) for each in triples) - 1
                    yield self._path(nodes[0, 0], triples, int(best.costs[first]))

    def _expand(self, nodes: Ints, level: int, before: tuple[Ids, ...]) -> Iterator[tuple[Ids, ...]]:
        """Yield all choices of triples in their order; up to `level` the rows of `nodes` agree."""
        if level + 1 == nodes.shape[1]:
            yield before
            return
        column = nodes[:, level + 1]
        others = column if len(column) == 1 else np.unique(column)
        for ids, other in self.between(int(nodes[0, level]), others, direct=nodes.shape[1] == 2):
            rest = nodes if len(others) == 1 else nodes[column == other]
            yield from self._expand(rest, level + 1, (*before, ids))

    def _between_two(self, here: int, other: int) -> list[Ids]:
        pair = (min(here, other), max(here, other))
        if pair not in self._pairs:
            quiet, busy = sorted(pair, key=self._edge_count)
            wanted = np.array([busy], dtype=np.int32)
            found = [(quiet, relation, busy) for relation, _ in _scan(self._index.out, quiet, wanted)]
            found += [(busy, relation, quiet) for relation, _ in _scan(self._index.into, quiet, wanted)]
            self._pairs[pair] = found
        return self._pairs[pair]

    def _edge_count(self, node: int) -> int:
        return sum(last - first for first, last in (_span(self._index.out, node), _span(self._index.into, node)))

    def _path(self, source: int, triples: tuple[Ids, ...], cost: int) -> Path:
        nodes = [int(source)]
        for head, _, tail in triples:
            nodes.append(tail if head == nodes[-1] else head)
        return Path(tuple(self.node(each) for each in nodes), tuple(self._triple(ids) for ids in triples), cost)

    def _triple(self, ids: Ids) -> Triple:
        head, relation, tail = ids
        return Triple(self.node(head), stored_relation(self._index, relation), self.node(tail))

    def node(self, number: int) -> Node:
        """Return the node with this id."""
        if number not in self._nodes:
            self._nodes[number] = stored_node(self._index, number)
        return self._nodes[number]


def _span(table: EdgeTable, node: int) -> tuple[int, int]:
    return int(table.starts[table.groups[node]]), int(table.starts[table.groups[node + 1]])


def _scan(table: EdgeTable, node: int, wanted: Ints) -> list[tuple[int, int]]:
    """Return the relation and neighbour of each of a node's edges to one of `wanted`, which is sorted."""
    first, last = _span(table, node)
    neighbors = table.neighbors[first:last]
    if len(wanted) == 1:
        places = np.flatnonzero(neighbors == wanted[0])
    else:
        nearest = np.minimum(np.searchsorted(wanted, neighbors), len(wanted) - 1)
        places = np.flatnonzero(wanted[nearest] == neighbors)
    if not len(places):
        return []
    group, end = int(table.groups[node]), int(table.groups[node + 1])
    groups = np.searchsorted(table.starts[group:end], places + first, side="right") - 1
    relations: list[int] = table.relations[group + groups].tolist()
    others: list[int] = neighbors[places].tolist()
    return list(zip(relations, others, strict=True))
