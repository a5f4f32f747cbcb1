"""The facts that show why something is in a set."""

from collections.abc import Iterable
from functools import partial

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
    Numbers,
    Reached,
    SetExpression,
    Step,
    Union,
    ValueOf,
    Values,
    holds_values,
)
from kg_adapters.labels import Vocabulary
from kg_adapters.local.index import Longs
from kg_adapters.local.sets.members import SetMembers
from kg_adapters.local.sets.routes import Routes
from kg_adapters.local.sets.spreading import within
from kg_adapters.local.sets.values import Mask
from kg_adapters.local.sets.walks import backwards
from kg_adapters.set_requests import COUNTED_ENDS
from kg_adapters.terms import Fact, Literal


class Witnesses:
    """Shows why terms are in the sets of one request.

    Args:
        sets: What worked them out.
        vocabulary: Says of what class nodes are.
    """

    def __init__(self, sets: SetMembers, vocabulary: Vocabulary) -> None:
        self._sets = sets
        self._vocabulary = vocabulary
        self._routes = Routes(sets.walks, sets.dictionary)

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
        """Return the facts that lead from a node to the value that it is measured by; none where ends are counted."""
        if not isinstance(by, ValueOf):
            return []
        ends = self._sets.walks.ends(np.array([node], dtype=np.int64), by.path)
        _, orders, rows = self._sets.values.measured(ends, by, 1)
        row = int(rows[orders.argmin() if best.lowest else orders.argmax()])
        return self.along(node, by.path, [self._sets.values.literal(row)])

    def along(self, node: int, path: HopPath, ends: Iterable[Literal | int]) -> list[Fact]:
        """Return the facts of a path from a node to each of some values and nodes."""
        facts: list[Fact] = []
        for end in ends:
            if isinstance(end, Literal):
                facts += self._routes.to_value(node, path, partial(self._same, [end])) or []
            elif (found := self._routes.to_nodes(node, path, np.array([end], dtype=np.int64))) is not None:
                facts += found[1]
        return facts

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
        found = self._routes.to_nodes(node, backwards(path), self._sets.nodes(of))
        return [] if found is None else [*self.of_node(of, found[0]), *reversed(found[1])]

    def _condition(self, node: int, condition: Condition) -> list[Fact]:
        match condition:
            case Linked(path, to) if not holds_values(to):
                found = self._routes.to_nodes(node, path, self._sets.nodes(to))
                return [] if found is None else [*found[1], *self.of_node(to, found[0])]
            case Linked(path, to):
                wanted = self._sets.literals(to)
                return self._routes.to_value(node, path, partial(self._same, wanted)) or []
            case Compares(path, operator, value):
                accepts = partial(self._sets.values.comparing, operator=operator, given=value)
                return self._routes.to_value(node, path, accepts) or []
            case Meets(path, other):
                theirs = frozenset(self._ends(node, other))
                common = [end for end in self._ends(node, path) if end in theirs][:1]
                return [*self.along(node, path, common), *self.along(node, other, common)]
            case Has(path):
                return self.along(node, path, self._ends(node, path)[:1])
            case Numbers(path):
                return self.along(node, path, self._ends(node, path)[:COUNTED_ENDS])

    def _ends(self, node: int, path: HopPath) -> list[Literal | int]:
        ends = self._sets.walks.ends(np.array([node], dtype=np.int64), path)
        _, rows = self._sets.values.different(ends)
        return [*ends.nodes.tolist(), *map(self._sets.values.literal, rows.tolist())]

    def _same(self, wanted: Iterable[Literal], rows: Longs) -> Mask:
        values = frozenset(wanted)
        return np.fromiter((self._sets.values.literal(row) in values for row in rows.tolist()), np.bool_, len(rows))
