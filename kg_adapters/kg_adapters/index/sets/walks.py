"""Walking from many nodes at once over the arrays of an index, within limits of time and memory."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.algebra import Hop, HopPath, Step
from kg_adapters.errors import BackendTimeout, Unsupported
from kg_adapters.index.columns import first_of_each, spread
from kg_adapters.index.graph_index import EdgeTable, GraphIndex, Ints, Longs, relation_ids
from kg_adapters.labels import Vocabulary
from kg_adapters.terms import Iri

MOST_PAIRS: Final = 10_000_000
"""How many pairs of a node and what a path reaches from it are worked out at once; they take some 60 bytes each."""


class SetLimits:
    """The time and the memory of one question.

    Args:
        timeout_s: After how many seconds it is given up.
        most_pairs: How many pairs may be held.
    """

    def __init__(self, timeout_s: float, most_pairs: int = MOST_PAIRS) -> None:
        self._until = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._most_pairs = most_pairs

    def require_time(self) -> None:
        """Give up where there is no time left.

        Raises:
            BackendTimeout: There is none.
        """
        if time.monotonic() > self._until:
            raise BackendTimeout(f"Working out these sets took longer than {self._timeout_s:g} seconds. Ask for less.")

    def require_room(self, pairs: int) -> None:
        """Give up before so many pairs are worked out, if they are too many.

        Raises:
            Unsupported: They are.
        """
        if pairs > self._most_pairs:
            raise Unsupported(
                f"This path leads from these nodes to {pairs:,} ends, and {self._most_pairs:,} are worked out at most. "
                "Start from fewer nodes, or leave out a step that leads to very many."
            )


EMPTY: Longs = np.zeros(0, dtype=np.int64)


def distinct(numbers: Longs | Ints) -> Longs:
    """Return numbers sorted and without repeats."""
    found = np.sort(numbers.astype(np.int64, copy=False))
    return found[first_of_each(found)]


def within(numbers: Longs, members: Longs) -> npt.NDArray[np.bool_]:
    """Say which numbers are members of a sorted set."""
    if not len(members):
        return np.zeros(len(numbers), dtype=np.bool_)
    places = np.minimum(np.searchsorted(members, numbers), len(members) - 1)
    return np.equal(members[places], numbers)


def distinct_pairs(places: Longs, ends: Longs) -> tuple[Longs, Longs]:
    """Return pairs sorted by place, then by end, without repeats."""
    if not len(places):
        return EMPTY, EMPTY
    width = int(ends.max()) + 1
    keys = distinct(places * width + ends)
    return keys // width, keys % width


@dataclass(frozen=True, slots=True)
class Joint:
    """Where first steps meet second ones.

    Args:
        starts: For each first step the first of the second steps that go on from its end.
        stops: For each the place behind the last of them.
    """

    starts: Longs
    stops: Longs

    @classmethod
    def of(cls, middles: Longs, ahead: Longs, starts: Longs) -> "Joint":
        """Return where steps meet.

        Args:
            middles: Where each first step leads to.
            ahead: Where each second step starts from, as places in `starts`, in order.
            starts: The nodes that second steps start from, sorted.
        """
        rows = np.searchsorted(starts, middles)
        return cls(np.searchsorted(ahead, rows), np.searchsorted(ahead, rows, side="right"))

    def __len__(self) -> int:
        return int((self.stops - self.starts).sum())

    def pairs(self, places: Longs, ends: Longs) -> tuple[Longs, Longs]:
        """Return where the first steps start from, and the second ones lead to."""
        positions, row_of = spread(self.starts, self.stops)
        return places[row_of], ends[positions]


_KEPT_ENDS: Final = 1_000_000
_KEPT_NUMBERS: Final = 16_000_000
"""How many numbers are kept of tables that were looked up: 128 MB."""


@dataclass(frozen=True, slots=True)
class Owned:
    """The nodes that have something over one relation, sorted, and where each has it."""

    nodes: Longs
    at: Longs


class Tables:
    """The tables of one index, for all questions.

    Args:
        index: The graph.
        vocabulary: Says which features are left out where none is named.
    """

    def __init__(self, index: GraphIndex, vocabulary: Vocabulary) -> None:
        self.index = index
        self.texts = np.array(relation_ids(index, sorted(vocabulary.texts)), dtype=np.int64)
        self._keeping = Lock()
        self._kept: OrderedDict[tuple[str, int], Owned] = OrderedDict()

    def relation_id(self, relation: Iri) -> int | None:
        """Return the id of a relation, or None where no statement has it."""
        return self.index.relations.find(relation.value)

    def owned(self, what: str, relation: int) -> Owned:
        """Return who has a relation: over which group of edges, or in which row of values."""
        key = (what, relation)
        with self._keeping:
            if (known := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return known
        owned = self._look_up(what, relation)
        with self._keeping:
            self._kept[key] = owned
            while len(self._kept) > 1 and sum(2 * len(each.at) for each in self._kept.values()) > _KEPT_NUMBERS:
                self._kept.popitem(last=False)
        return owned

    def _look_up(self, what: str, relation: int) -> Owned:
        if what == "value":
            starts, relations = self.index.features.starts, self.index.features.relations
        else:
            table = self.index.out if what == "out" else self.index.into
            starts, relations = table.groups, table.relations
        at = np.flatnonzero(relations == relation)
        return Owned(np.searchsorted(starts, at, side="right") - 1, at)


@dataclass(frozen=True, slots=True)
class PathEnds:
    """What a path reaches from nodes, as different pairs: of a node's place and a node, of a place and a row of values.

    Several rows may hold the same value where `repeats` says so.
    """

    places: Longs
    nodes: Longs
    value_places: Longs
    rows: Longs
    repeats: bool


@dataclass(frozen=True, slots=True)
class ValueWays:
    """The values that a path leads to from nodes, once for each way through nodes.

    Args:
        places: The place of the node that the way starts from.
        ways: The number of the way.
        rows: The row of the value; several rows at the end of one way may hold the same value where `repeats` is true.
        repeats: Whether they may.
    """

    places: Longs
    ways: Longs
    rows: Longs
    repeats: bool


class Walks:
    """Walks over one index for one question.

    Args:
        tables: Who has which relation.
        limits: What the walks may cost: time is looked at before each hop, room before paths are joined.
    """

    def __init__(self, tables: Tables, limits: SetLimits) -> None:
        self.index = tables.index
        self._tables = tables
        self._limits = limits
        self._last: tuple[Longs, HopPath, PathEnds] | None = None

    def reach(self, nodes: Longs, path: HopPath) -> Longs:
        """Return the nodes that a path reaches from some nodes, sorted."""
        for hop in path.hops:
            nodes = self._hop(nodes, hop)
        return nodes

    def before(self, nodes: Longs, path: HopPath) -> Longs:
        """Return the nodes from which a path reaches some nodes, sorted."""
        return self.reach(nodes, path.backwards())

    def reach_values(self, nodes: Longs, path: HopPath) -> Longs:
        """Return the rows of the values that a path reaches from some nodes; several may hold the same value."""
        *hops, last = path.hops
        for hop in hops:
            nodes = self._hop(nodes, hop)
        if last.repeated:
            nodes = distinct(np.append(nodes, self._hop(nodes, last)))
        return self.values(nodes, last)[1]

    def ends(self, nodes: Longs, path: HopPath) -> PathEnds:
        """Return what a path reaches from each of some nodes; the last answer is kept for the next condition."""
        if self._last is not None and self._last[0] is nodes and self._last[1] == path:
            return self._last[2]
        found = self._ends(nodes, path)
        self._last = (nodes, path, found) if len(found.nodes) + len(found.rows) <= _KEPT_ENDS else None
        return found

    def _ends(self, nodes: Longs, path: HopPath) -> PathEnds:
        places, middles = np.arange(len(nodes)), nodes
        *hops, last = path.hops
        for hop in hops:
            of = distinct(middles)
            places, middles = distinct_pairs(*self._joined(places, middles, self.edges(of, hop), of))
        of = distinct(middles)
        edges = self.edges(of, last)
        at, ends = distinct_pairs(*self._joined(places, middles, edges, of))
        if last.repeated:
            places, middles = distinct_pairs(np.append(places, at), np.append(middles, ends))
            of = distinct(middles)
        value_places, rows = distinct_pairs(*self._joined(places, middles, self.values(of, last), of))
        single = not hops and not last.repeated and last.steps is not None and len(last.steps) == 1
        return PathEnds(at, ends, value_places, rows, repeats=not single)

    def ways(self, nodes: Longs, path: HopPath) -> ValueWays:
        """Return the values that a path leads to from each of some nodes, once for each way through nodes."""
        *hops, last = path.hops
        if not hops or last.repeated:
            ends = self.ends(nodes, path)
            return ValueWays(ends.value_places, ends.value_places, ends.rows, ends.repeats)
        places, middles = np.arange(len(nodes)), nodes
        for hop in hops:
            of = distinct(middles)
            places, middles = self._joined(places, middles, self.edges(of, hop), of)
        of = distinct(middles)
        ways, rows = self._joined(np.arange(len(places)), middles, self.values(of, last), of)
        return ValueWays(places[ways], ways, rows, repeats=last.steps is None or len(last.steps) > 1)

    def edges(self, nodes: Longs, hop: Hop) -> tuple[Longs, Longs]:
        """Return the different pairs of a node's place and a node that a hop leads to, sorted."""
        self._limits.require_time()
        if hop.steps is None:
            parts = [self._any_edges(nodes, self.index.out), self._any_edges(nodes, self.index.into)]
        else:
            parts = [self._step_edges(nodes, step) for step in hop.steps]
        places, ends = distinct_pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        return self._closed(places, ends, hop) if hop.repeated else (places, ends)

    def values(self, nodes: Longs, hop: Hop) -> tuple[Longs, Longs]:
        """Return the pairs of a node's place and a row of values that a hop leads to, sorted by place."""
        self._limits.require_time()
        if hop.steps is None:
            starts = self.index.features.starts
            known = np.flatnonzero(nodes < len(starts) - 1)
            rows, places = spread(starts[nodes[known]], starts[nodes[known] + 1])
            told = ~np.isin(self.index.features.relations[rows], self._tables.texts)
            return known[places[told]], rows[told]
        found = [self._step_values(nodes, step) for step in hop.steps if step.direction == "out"]
        if not found:
            return EMPTY, EMPTY
        return distinct_pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def relation_id(self, relation: Iri) -> int | None:
        """Return the id of a relation, or None where no statement has it."""
        return self._tables.relation_id(relation)

    def _joined(self, places: Longs, middles: Longs, ahead: tuple[Longs, Longs], of: Longs) -> tuple[Longs, Longs]:
        """Return where pairs lead to over a second step; see `Joint`."""
        joint = Joint.of(middles, ahead[0], of)
        self._limits.require_room(len(joint))
        return joint.pairs(places, ahead[1])

    def _hop(self, nodes: Longs, hop: Hop) -> Longs:
        once = Hop(hop.steps)
        found = distinct(self.edges(nodes, once)[1])
        ahead = found if hop.repeated else EMPTY
        while len(ahead):
            fresh = distinct(self.edges(ahead, once)[1])
            ahead = fresh[~within(fresh, found)]
            found = distinct(np.append(found, ahead))
        return found

    def _closed(self, places: Longs, ends: Longs, hop: Hop) -> tuple[Longs, Longs]:
        """Return the pairs that any number of steps lead to, from those of one step."""
        once, width = Hop(hop.steps), len(self.index.nodes)
        ahead = (places, ends)
        while len(ahead[0]):
            of = distinct(ahead[1])
            at, found = distinct_pairs(*self._joined(*ahead, self.edges(of, once), of))
            fresh = ~within(at * width + found, places * width + ends)
            ahead = at[fresh], found[fresh]
            self._limits.require_room(len(places) + len(ahead[0]))
            places, ends = distinct_pairs(np.append(places, ahead[0]), np.append(ends, ahead[1]))
        return places, ends

    def _any_edges(self, nodes: Longs, table: EdgeTable) -> tuple[Longs, Longs]:
        known = np.flatnonzero(nodes < len(table.groups) - 1)
        groups, places = spread(table.groups[nodes[known]], table.groups[nodes[known] + 1])
        positions, group_of = spread(table.starts[groups], table.starts[groups + 1])
        return known[places[group_of]], table.neighbors[positions].astype(np.int64)

    def _step_edges(self, nodes: Longs, step: Step) -> tuple[Longs, Longs]:
        relation = self.relation_id(step.relation)
        if relation is None:
            return EMPTY, EMPTY
        table = self.index.out if step.direction == "out" else self.index.into
        owned = self._tables.owned(step.direction, relation)
        places = np.flatnonzero(within(nodes, owned.nodes))
        groups = owned.at[np.searchsorted(owned.nodes, nodes[places])]
        positions, group_of = spread(table.starts[groups], table.starts[groups + 1])
        return places[group_of], table.neighbors[positions].astype(np.int64)

    def _step_values(self, nodes: Longs, step: Step) -> tuple[Longs, Longs]:
        relation = self.relation_id(step.relation)
        if relation is None:
            return EMPTY, EMPTY
        owned = self._tables.owned("value", relation)
        firsts = np.searchsorted(owned.nodes, nodes)
        positions, places = spread(firsts, np.searchsorted(owned.nodes, nodes, side="right"))
        return places, owned.at[positions]
