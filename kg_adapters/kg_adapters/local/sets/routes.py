"""One chain of facts along a path."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from kg_adapters.algebra import Hop, HopPath
from kg_adapters.local.dictionary import Dictionary
from kg_adapters.local.index import EdgeTable, Longs
from kg_adapters.local.neighborhood import has_edge
from kg_adapters.local.sets.spreading import distinct, within
from kg_adapters.local.sets.values import Mask
from kg_adapters.local.sets.walks import Walks, backwards
from kg_adapters.terms import Attribute, Fact, Triple

Accepts: TypeAlias = Callable[[Longs], Mask]


class Routes:
    """Finds chains of facts in one index.

    Args:
        walks: Walks over the index.
        dictionary: Its terms.
    """

    def __init__(self, walks: Walks, dictionary: Dictionary) -> None:
        self._walks = walks
        self._dictionary = dictionary
        self._kept: tuple[Longs, tuple[Hop, ...], tuple[list[Longs], Longs, Longs]] | None = None

    def to_nodes(self, start: int, path: HopPath, targets: Longs) -> tuple[int, list[Fact]] | None:
        """Return the first of some nodes that a path reaches from a node, and the facts on the way; None if none is."""
        levels = self._levels(np.array([start], dtype=np.int64), path.hops)
        ends = levels[-1][within(levels[-1], targets)]
        return (int(ends[0]), self._back(levels, path.hops, int(ends[0]))[1]) if len(ends) else None

    def to_value(self, start: int, path: HopPath, accepts: Accepts) -> list[Fact] | None:
        """Return the facts that lead over a path from a node to a value that is accepted; None if there is none."""
        found = self.to_value_from(np.array([start], dtype=np.int64), path, accepts)
        return None if found is None else found[1]

    def to_value_from(self, starts: Longs, path: HopPath, accepts: Accepts) -> tuple[int, list[Fact]] | None:
        """Return the one of some nodes from which a path leads to a value that is accepted, and the facts on the way.

        What the path reaches is kept for the next value of the same nodes.
        """
        *hops, last = path.hops
        for ahead in (hops, [*hops, last]) if last.repeated else (hops,):
            levels, places, rows = self._reached(starts, ahead, last)
            accepted = np.flatnonzero(accepts(rows))
            if len(accepted):
                row, subject = int(rows[accepted[0]]), int(levels[-1][places[accepted[0]]])
                start, facts = self._back(levels, ahead, subject)
                return start, [*facts, self._attribute(subject, row)]
        return None

    def _reached(self, starts: Longs, hops: Sequence[Hop], last: Hop) -> tuple[list[Longs], Longs, Longs]:
        if self._kept is not None and self._kept[0] is starts and self._kept[1] == (*hops, last):
            return self._kept[2]
        levels = self._levels(starts, hops)
        found = (levels, *self._walks.values(levels[-1], last))
        self._kept = (starts, (*hops, last), found)
        return found

    def _levels(self, starts: Longs, hops: Sequence[Hop]) -> list[Longs]:
        levels = [starts]
        for hop in hops:
            levels.append(self._walks.reach(levels[-1], HopPath((hop,))))
        return levels

    def _back(self, levels: Sequence[Longs], hops: Sequence[Hop], end: int) -> tuple[int, list[Fact]]:
        """Return the facts that lead over levels to a node of the last one, and the node that they start from."""
        facts: list[Fact] = []
        for level, hop in zip(reversed(levels[:-1]), reversed(hops), strict=True):
            ahead = self._walks.reach(np.array([end], dtype=np.int64), backwards(HopPath((hop,))))
            start = int(level[within(level, ahead)][0])
            facts[:0] = self._steps(start, end, hop) if hop.repeated else [self._triple(start, end, hop)]
            end = start
        return end, facts

    def _steps(self, start: int, end: int, hop: Hop) -> list[Fact]:
        """Return the facts of the fewest steps between two nodes, of which there is at least one."""
        once = HopPath((Hop(hop.steps),))
        levels = [np.array([start], dtype=np.int64)]
        seen = levels[0][:0]
        while not within(np.array([end]), levels[-1])[0] or len(levels) == 1:
            ahead = self._walks.reach(levels[-1], once)
            levels.append(ahead[~within(ahead, seen)])
            seen = distinct(np.append(seen, levels[-1]))
        nodes = [end]
        for level in reversed(levels[:-1]):
            before = self._walks.before(np.array(nodes[:1], dtype=np.int64), once)
            nodes.insert(0, int(level[within(level, before)][0]))
        return [self._triple(head, tail, hop) for head, tail in pairwise(nodes)]

    def _triple(self, start: int, end: int, hop: Hop) -> Fact:
        """Return the fact of a single step between two nodes."""
        out = self._walks.index.out
        if hop.steps is None:
            head, tail, relation = self._any(start, end, out)
        else:
            ids = ((step, self._walks.relation_id(step.relation)) for step in hop.steps)
            ends = ((*((start, end) if step.direction == "out" else (end, start)), each) for step, each in ids)
            head, tail, relation = next(
                (head, tail, each) for head, tail, each in ends if each is not None and has_edge(out, head, each, tail)
            )
        return Triple(self._dictionary.node(head), self._dictionary.relation(relation), self._dictionary.node(tail))

    def _any(self, start: int, end: int, out: EdgeTable) -> tuple[int, int, int]:
        for head, tail in ((start, end), (end, start)):
            relations = out.relations[out.groups[head] : out.groups[head + 1]]
            for relation in relations.tolist():
                if has_edge(out, head, relation, tail):
                    return head, tail, relation
        raise AssertionError("no edge where one was walked")

    def _attribute(self, subject: int, row: int) -> Fact:
        relation = self._dictionary.relation(int(self._walks.index.features.relations[row]))
        return Attribute(self._dictionary.node(subject), relation, self._dictionary.literal(row))
