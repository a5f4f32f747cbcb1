"""The facts that show why something is in a set."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from kg_adapters.algebra import (
    Best,
    Compares,
    Condition,
    Has,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Measure,
    Meets,
    Members,
    Minus,
    NumberOf,
    Numbers,
    Outranks,
    Reached,
    SetExpression,
    Step,
    Timed,
    TotalOf,
    Union,
    ValueOf,
    Values,
    holds_values,
)
from kg_adapters.index.columns import Floats
from kg_adapters.index.graph_index import Dictionary, EdgeTable, Longs
from kg_adapters.index.neighborhood import has_edge
from kg_adapters.index.sets.members import SetMembers
from kg_adapters.index.sets.values import Mask
from kg_adapters.index.sets.walks import Walks, distinct, within
from kg_adapters.labels import Vocabulary
from kg_adapters.terms import Attribute, Fact, Literal, Triple
from kg_adapters.values import SIGNS

Accepts: TypeAlias = Callable[[Longs], Mask]

COUNTED_ENDS = 3
"""How many of the ends that a condition counts are shown."""


class FactRoutes:
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
            ahead = self._walks.reach(np.array([end], dtype=np.int64), HopPath((hop,)).backwards())
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


class Witnesses:
    """Shows why terms are in the sets of one request.

    Args:
        sets: What worked them out.
        vocabulary: Says of what class nodes are.
    """

    def __init__(self, sets: SetMembers, vocabulary: Vocabulary) -> None:
        self._sets = sets
        self._vocabulary = vocabulary
        self._routes = FactRoutes(sets.walks, sets.dictionary)

    def of_node(self, expression: SetExpression, node: int) -> list[Fact]:
        """Return the facts that show why a node is in a set."""
        match expression:
            case Instances():
                found = self._instance(expression, node)
            case Reached(of, path):
                found = self._led_to(of, path, node)
            case Union(sets):
                found = self.of_node(next(each for each in sets if self._in(each, node)), node)
            case Intersect(sets):
                found = [fact for each in sets for fact in self.of_node(each, node)]
            case Minus(sets):
                found = self.of_node(sets[0], node)
            case Kept(of, condition):
                found = [*self.of_node(of, node), *self._condition(node, condition)]
            case Best(of, by):
                found = [*self.of_node(of, node), *self.of_measure(expression, node, by)]
            case Members() | Values():
                found = []
        return list(dict.fromkeys(found))

    def of_value(self, expression: SetExpression, value: Literal) -> list[Fact]:
        """Return the facts that show why a value is in a set."""
        match expression:
            case Values(of, path):
                found = self._routes.to_value_from(
                    self._sets.nodes(of), path, lambda rows: self._sets.values.equal(rows, value)
                )
                return [] if found is None else list(dict.fromkeys([*self.of_node(of, found[0]), *found[1]]))
            case Union(sets):
                return self.of_value(next(each for each in sets if value in self._sets.literals(each)), value)
            case Intersect(sets):
                return list(dict.fromkeys(fact for each in sets for fact in self.of_value(each, value)))
            case Minus(sets):
                return self.of_value(sets[0], value)
            case _:
                return []

    def of_measure(self, best: Best, node: int, by: Measure) -> list[Fact]:
        """Return the facts that lead from a node to the value, or the first values, that it is measured by."""
        if isinstance(by, NumberOf):
            return []
        if isinstance(by, TotalOf):
            return self.along(node, by.path, self._ends(node, by.path)[:COUNTED_ENDS])
        orders, rows = self._orders(node, by)
        row = int(rows[orders.argmin() if best.lowest else orders.argmax()])
        return self.along(node, by.path, [self._sets.values.literal(row)])

    def _orders(self, node: int, by: ValueOf) -> tuple[Floats, Longs]:
        """Return what orders the values that a node is measured by, and their rows."""
        ends = self._sets.walks.ends(np.array([node], dtype=np.int64), by.path)
        return self._sets.values.measured(ends, by, 1)[1:]

    def along(self, node: int, path: HopPath, ends: Iterable[Literal | int]) -> list[Fact]:
        """Return the facts of a path from a node to each of some values and nodes."""
        facts: list[Fact] = []
        for end in ends:
            if isinstance(end, Literal):
                facts += self._routes.to_value(node, path, partial(self._same, [end])) or []
            elif (found := self._routes.to_nodes(node, path, np.array([end], dtype=np.int64))) is not None:
                facts += found[1]
        return facts

    def to_row(self, node: int, path: HopPath, row: int) -> list[Fact]:
        """Return the facts of a path from a node to the value in a row."""
        return self._routes.to_value(node, path, lambda rows: np.equal(rows, row)) or []

    def _in(self, expression: SetExpression, node: int) -> bool:
        return bool(within(np.array([node], dtype=np.int64), self._sets.nodes(expression))[0])

    def _instance(self, instances: Instances, node: int) -> list[Fact]:
        types = HopPath((Hop(tuple(map(Step, self._vocabulary.types))),))
        found = self._routes.to_nodes(node, types, self._sets.classes(instances))
        owner = self._sets.nodes(Members((instances.owner,)))
        if found is None or found[0] in owner:
            return [] if found is None else found[1]
        wider = HopPath((Hop(tuple(map(Step, self._vocabulary.subclasses)), repeated=True),))
        above = self._routes.to_nodes(found[0], wider, owner)
        return [*found[1], *(above[1] if above is not None else ())]

    def _led_to(self, of: SetExpression, path: HopPath, node: int) -> list[Fact]:
        found = self._routes.to_nodes(node, path.backwards(), self._sets.nodes(of))
        return [] if found is None else [*self.of_node(of, found[0]), *reversed(found[1])]

    def _condition(self, node: int, condition: Condition) -> list[Fact]:
        match condition:
            case Linked(path, to) if not holds_values(to):
                found = self._routes.to_nodes(node, path, self._sets.nodes(to))
                return [] if found is None else [*found[1], *self.of_node(to, found[0])]
            case Linked(path, to):
                wanted = self._sets.literals(to)
                return self._routes.to_value(node, path, partial(self._same, wanted)) or []
            case Compares() | Timed():
                return (
                    self._routes.to_value(node, condition.path, partial(self._sets.values.holding, condition=condition))
                    or []
                )
            case Meets(path, other):
                theirs = frozenset(self._ends(node, other))
                common = [end for end in self._ends(node, path) if end in theirs][:1]
                return [*self.along(node, path, common), *self.along(node, other, common)]
            case Outranks():
                return self._compared(node, condition)
            case Has(path) | Numbers(path):
                most = 1 if isinstance(condition, Has) else COUNTED_ENDS
                return self.along(node, path, self._ends(node, path)[:most])

    def _compared(self, node: int, condition: Outranks) -> list[Fact]:
        (mine, rows), (theirs, others) = (self._orders(node, by) for by in (condition.by, condition.other))
        _, same, equal = np.intersect1d(mine, theirs, return_indices=True)
        # Of all pairs that compare as stated, one is of these.
        places = np.array([mine.argmin(), mine.argmax(), *same[:1]])
        against = np.array([theirs.argmin(), theirs.argmax(), *equal[:1]])
        one, two = mine[places][:, None], theirs[against]
        signs = (one > two).astype(np.int64) - (one < two)
        found, by = np.argwhere(np.isin(signs, SIGNS[condition.operator]))[0].tolist()
        first, second = (self._sets.values.literal(int(row)) for row in (rows[places[found]], others[against[by]]))
        return [*self.along(node, condition.by.path, [first]), *self.along(node, condition.other.path, [second])]

    def _ends(self, node: int, path: HopPath) -> list[Literal | int]:
        ends = self._sets.walks.ends(np.array([node], dtype=np.int64), path)
        _, rows = self._sets.values.different(ends)
        return [*ends.nodes.tolist(), *map(self._sets.values.literal, rows.tolist())]

    def _same(self, wanted: Iterable[Literal], rows: Longs) -> Mask:
        values = frozenset(wanted)
        return np.fromiter((self._sets.values.literal(row) in values for row in rows.tolist()), np.bool_, len(rows))
