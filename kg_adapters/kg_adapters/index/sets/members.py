"""Sets of nodes as sorted arrays of ids: what `kg_adapters.algebra` says, worked out over an index."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kg_adapters.algebra import (
    Best,
    Compares,
    Condition,
    Function,
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
    Operator,
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
from kg_adapters.index.columns import Floats, first_of_each_row
from kg_adapters.index.graph_index import Dictionary, Longs
from kg_adapters.index.sets.values import IndexValues, Mask
from kg_adapters.index.sets.walks import EMPTY, PathEnds, SetLimits, Walks, distinct, within
from kg_adapters.labels import Vocabulary
from kg_adapters.terms import Literal, Node, node_key
from kg_adapters.values import SIGNS


@dataclass(frozen=True, slots=True)
class Measured:
    """How many members of a set have no measure, other values instead or besides, and a measure, and over what."""

    without: int = 0
    unfit: int = 0
    partly: int = 0
    members: int = 0
    values: int = 0


class SetMembers:
    """Works out the sets of one request, each once.

    Args:
        walks: Walks over the index.
        values: Its values.
        dictionary: Its terms.
        vocabulary: Says of what class nodes are.
        limits: What it may cost.
    """

    def __init__(
        self, walks: Walks, values: IndexValues, dictionary: Dictionary, vocabulary: Vocabulary, limits: SetLimits
    ) -> None:
        self.walks = walks
        self.values = values
        self.dictionary = dictionary
        self._vocabulary = vocabulary
        self._limits = limits
        self._nodes: dict[SetExpression, Longs] = {}
        self._literals: dict[SetExpression, frozenset[Literal]] = {}
        self._ranked: dict[SetExpression, Measured] = {}
        self._strange: list[Node] = []

    def require_room(self, pairs: int) -> None:
        """Give up before so many pairs are worked out; see `SetLimits`."""
        self._limits.require_room(pairs)

    def nodes(self, expression: SetExpression) -> Longs:
        """Return the ids of a set of nodes, sorted; nodes that the graph does not mention have ids behind all others.

        Raises:
            BackendTimeout: It takes too long.
        """
        known = self._nodes.get(expression)
        if known is None:
            self._limits.require_time()
            known = self._nodes[expression] = self._worked_out(expression)
        return known

    def literals(self, expression: SetExpression) -> frozenset[Literal]:
        """Return the members of a set of values."""
        known = self._literals.get(expression)
        if known is None:
            self._limits.require_time()
            known = self._literals[expression] = self._values_of(expression)
        return known

    def term(self, number: int) -> Node:
        """Return the node with an id."""
        size = len(self.walks.index.nodes)
        return self.dictionary.node(number) if number < size else self._strange[number - size]

    def ordered(self, expression: SetExpression) -> Longs:
        """Return the ids of a set of nodes in the order of `Listed`."""
        return self.best(expression) if isinstance(expression, Best) else self.in_order(self.nodes(expression))

    def ranked(self, expression: SetExpression) -> Measured:
        """Return what a `Best` that was worked out ranked."""
        return self._ranked.get(expression, Measured())

    def measured(self, nodes: Longs, by: Measure) -> tuple[Longs, Floats, Longs]:
        """Return the places of nodes that have a measure, the measures, and the rows of values that say so (or -1)."""
        if isinstance(by, TotalOf):
            places, orders, _ = self.added_up(nodes, by)
            found, totals, _ = totalled(places, orders, by.function)
            return found, totals, np.full(len(found), -1, dtype=np.int64)
        return self.values.measured(self.walks.ends(nodes, by.path), by, len(nodes))

    def unfit(self, nodes: Longs, by: Measure, measured: Longs) -> tuple[int, int]:
        """Return how many nodes have ends that do not measure them, without a measure and beside one.

        Args:
            nodes: The nodes.
            by: The measure.
            measured: The places of those that have one, sorted.
        """
        if isinstance(by, NumberOf):
            return 0, 0
        ends = self.walks.ends(nodes, by.path)
        places = ends.places
        if isinstance(by, ValueOf) or by.function != "count":
            value = by if isinstance(by, ValueOf) else by.by
            fits = ~np.isnan(self.values.orders(ends.rows, value.kind, value.unit))
            places = np.append(places, ends.value_places[~fits])
        odd = distinct(places)
        partly = int(within(odd, measured).sum())
        return len(odd) - partly, partly

    def added_up(self, nodes: Longs, total: TotalOf) -> tuple[Longs, Floats, Longs]:
        """Return the places of nodes, the numbers that each way leads to from them, and the rows of these.

        Equal numbers at the end of one way, such as 10 and 10.0, are one. Where all values are counted the numbers are
        zeros.
        """
        ways = self.walks.ways(nodes, total.path)
        if total.function == "count":
            ways = self.values.each(ways)
            return ways.places, np.zeros(len(ways.places)), ways.rows
        orders = self.values.orders(ways.rows, total.by.kind, total.by.unit)
        chosen = np.flatnonzero(~np.isnan(orders))
        chosen = chosen[np.sort(first_of_each_row(ways.ways[chosen], orders[chosen]))]
        return ways.places[chosen], orders[chosen], ways.rows[chosen]

    def in_order(self, numbers: Longs) -> Longs:
        """Return ids in the order of `node_key`, in which they are but for those that the graph does not mention."""
        if not len(numbers) or numbers[-1] < len(self.walks.index.nodes):
            return numbers
        keys = {number: node_key(self.term(number)) for number in numbers.tolist()}
        return np.array(sorted(keys, key=lambda number: keys[number]), dtype=np.int64)

    def best(self, best: Best) -> Longs:
        """Return the members of a `Best`, the best first, then by id."""
        nodes = self.in_order(self.nodes(best.of))
        places, measures, _ = self.measured(nodes, best.by)
        lowest, found = np.full(len(nodes), np.inf), distinct(places)
        np.minimum.at(lowest, places, measures if best.lowest else -measures)
        unfit, partly = self.unfit(nodes, best.by, found)
        values = len(places) if isinstance(best.by, ValueOf) else 0
        self._ranked[best] = Measured(len(nodes) - len(found), unfit, partly, len(found), values)
        if len(found) > best.n:
            found = found[lowest[found] <= np.partition(lowest[found], best.n - 1)[best.n - 1]]
        return nodes[found[np.argsort(lowest[found], kind="stable")]]

    def classes(self, instances: Instances) -> Longs:
        """Return the classes whose instances are meant, sorted."""
        owner, wider = self._ids([instances.owner]), self._vocabulary.subclasses
        if not instances.subclasses or not wider:
            return owner
        narrower = Hop(tuple(Step(iri, "in") for iri in wider), repeated=True)
        return distinct(np.append(owner, self.walks.reach(owner, HopPath((narrower,)))))

    def _worked_out(self, expression: SetExpression) -> Longs:
        match expression:
            case Members(nodes):
                found = self._ids(nodes)
            case Instances():
                found = self._instances(expression)
            case Reached(of, path):
                found = self.walks.reach(self.nodes(of), path)
            case Union(sets):
                found = distinct(np.concatenate([self.nodes(each) for each in sets]))
            case Intersect(sets):
                found = self._of_all(sets)
            case Minus(sets):
                others = distinct(np.concatenate([EMPTY, *(self.nodes(each) for each in sets[1:])]))
                found = self.nodes(sets[0])
                found = found[~within(found, others)]
            case Kept(of, condition):
                found = self.nodes(of)
                found = found[_true_of(self, found, condition)]
            case Best():
                found = distinct(self.best(expression))
            case Values():
                raise AssertionError("a set of values has no nodes")
        return found

    def _instances(self, instances: Instances) -> Longs:
        types = tuple(map(Step, self._vocabulary.types))
        return self.walks.before(self.classes(instances), HopPath((Hop(types),))) if types else EMPTY

    def _of_all(self, sets: Sequence[SetExpression]) -> Longs:
        first, *others = sorted((self.nodes(each) for each in sets), key=len)
        for other in others:
            first = first[within(first, other)]
        return first

    def _values_of(self, expression: SetExpression) -> frozenset[Literal]:
        match expression:
            case Values(of, path):
                ranked = self.values.ranked(self.walks.reach_values(self.nodes(of), path))
                return frozenset(map(self.values.literal, ranked.rows.tolist()))
            case Union(sets):
                return frozenset[Literal]().union(*map(self.literals, sets))
            case Intersect(sets):
                return self.literals(sets[0]).intersection(*map(self.literals, sets[1:]))
            case Minus(sets):
                return self.literals(sets[0]).difference(*map(self.literals, sets[1:]))
            case _:
                raise AssertionError("a set of nodes has no values")

    def _ids(self, nodes: Sequence[Node]) -> Longs:
        return distinct(np.array([self._id(node) for node in nodes], dtype=np.int64)) if nodes else EMPTY

    def _id(self, node: Node) -> int:
        number = self.dictionary.node_id(node)
        if number is not None:
            return number
        if node not in self._strange:
            self._strange.append(node)
        return len(self.walks.index.nodes) + self._strange.index(node)


def totalled(codes: Longs, orders: Floats, function: Function) -> tuple[Longs, Floats, Longs]:
    """Return different codes, what the numbers of each come to, and how many they are."""
    found, places, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    totals: Floats = sizes.astype(np.float64)
    if function in {"sum", "mean"}:
        sums = np.bincount(places, weights=orders, minlength=len(found))
        totals = np.asarray(sums, dtype=np.float64) if function == "sum" else np.divide(sums, totals)
    elif function != "count":
        lowest = function == "min"
        totals = np.full(len(found), np.inf if lowest else -np.inf)
        (np.minimum if lowest else np.maximum).at(totals, places, orders)
    return found, totals, sizes


def _true_of(sets: SetMembers, nodes: Longs, condition: Condition) -> Mask:
    """Say of which nodes a condition is true."""
    match condition:
        case Linked(path, to) if not holds_values(to):
            return within(nodes, sets.walks.before(sets.nodes(to), path))
        case Meets(path, other):
            return _meets(sets, nodes, sets.walks.ends(nodes, path), sets.walks.ends(nodes, other))
        case Outranks(by, other, operator):
            mine, theirs = (
                sets.values.measured(sets.walks.ends(nodes, each.path), each, len(nodes))[:2] for each in (by, other)
            )
            return _outranks(mine, theirs, operator, len(nodes))
        case Numbers(path, operator, number):
            sizes = sets.values.sizes(sets.walks.ends(nodes, path), path, len(nodes))
            return np.isin(np.sign(sizes - number), SIGNS[operator])
        case Has(path):
            ends = sets.walks.ends(nodes, path)
            places = np.append(ends.places, ends.value_places)
        case Compares(path) | Timed(path):
            ends = sets.walks.ends(nodes, path)
            places = ends.value_places[sets.values.holding(ends.rows, condition)]
        case Linked(path, to):
            ends, wanted = sets.walks.ends(nodes, path), sets.literals(to)
            same = (sets.values.literal(row) in wanted for row in ends.rows.tolist())
            places = ends.value_places[np.fromiter(same, np.bool_, len(ends.rows))]
    return _mask(places, len(nodes))


def _outranks(mine: tuple[Longs, Floats], theirs: tuple[Longs, Floats], operator: Operator, count: int) -> Mask:
    """Return for each place whether some order of the one compares as stated with some order of the other."""
    if operator == "=":
        different = np.unique(np.append(mine[1], theirs[1]))
        one, other = (places * len(different) + np.searchsorted(different, each) for places, each in (mine, theirs))
        return _mask(mine[0][within(one, distinct(other))], count)
    (least, greatest), (their_least, their_greatest) = _extremes(*mine, count), _extremes(*theirs, count)
    has = _mask(mine[0], count) & _mask(theirs[0], count)
    pairs = ((greatest, their_least), (least, their_greatest))
    found = [np.isin((one > other).astype(np.int64) - (one < other), SIGNS[operator]) for one, other in pairs]
    return has & (found[0] | found[1])


def _extremes(places: Longs, orders: Floats, count: int) -> tuple[Floats, Floats]:
    least, greatest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, places, orders)
    np.maximum.at(greatest, places, orders)
    return least, greatest


def _meets(sets: SetMembers, nodes: Longs, one: PathEnds, other: PathEnds) -> Mask:
    width = len(sets.walks.index.nodes)
    edges = within(one.places * width + one.nodes, other.places * width + other.nodes)
    found = _mask(one.places[edges], len(nodes))
    if len(one.rows) and len(other.rows):
        ranked = sets.values.ranked(np.append(one.rows, other.rows))
        mine, theirs = np.split(ranked.ranks, [len(one.rows)])
        pairs = distinct(other.value_places * len(ranked.rows) + theirs)
        found |= _mask(one.value_places[within(one.value_places * len(ranked.rows) + mine, pairs)], len(nodes))
    return found


def _mask(places: Longs, count: int) -> Mask:
    found = np.zeros(count, dtype=np.bool_)
    found[places] = True
    return found
