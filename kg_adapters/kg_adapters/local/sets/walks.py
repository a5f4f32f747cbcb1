"""Walking from many nodes at once over the arrays of an index."""

from dataclasses import dataclass

import numpy as np

from kg_adapters.algebra import Hop, HopPath, Step
from kg_adapters.local.index import EdgeTable, Longs
from kg_adapters.local.sets.limits import Limits
from kg_adapters.local.sets.spreading import EMPTY, Joint, distinct, distinct_pairs, spread, within
from kg_adapters.local.sets.tables import Tables
from kg_adapters.terms import Iri


@dataclass(frozen=True, slots=True)
class Ends:
    """What a path reaches from nodes, as different pairs: of a node's place and a node, of a place and a row of values.

    Several rows may hold the same value where `repeats` says so.
    """

    places: Longs
    nodes: Longs
    value_places: Longs
    rows: Longs
    repeats: bool


class Walks:
    """Walks over one index for one question.

    Args:
        tables: Who has which relation.
        limits: What the walks may cost: time is looked at before each hop, room before paths are joined.
    """

    def __init__(self, tables: Tables, limits: Limits) -> None:
        self.index = tables.index
        self._tables = tables
        self._limits = limits

    def reach(self, nodes: Longs, path: HopPath) -> Longs:
        """Return the nodes that a path reaches from some nodes, sorted."""
        for hop in path.hops:
            nodes = self._hop(nodes, hop)
        return nodes

    def before(self, nodes: Longs, path: HopPath) -> Longs:
        """Return the nodes from which a path reaches some nodes, sorted."""
        return self.reach(nodes, backwards(path))

    def reach_values(self, nodes: Longs, path: HopPath) -> Longs:
        """Return the rows of the values that a path reaches from some nodes; several may hold the same value."""
        *hops, last = path.hops
        for hop in hops:
            nodes = self._hop(nodes, hop)
        if last.repeated:
            nodes = distinct(np.append(nodes, self._hop(nodes, last)))
        return self.values(nodes, last)[1]

    def ends(self, nodes: Longs, path: HopPath) -> Ends:
        """Return what a path reaches from each of some nodes."""
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
        return Ends(at, ends, value_places, rows, repeats=not single)

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


def backwards(path: HopPath) -> HopPath:
    """Return the path that leads back from where a path leads to."""
    return HopPath(tuple(Hop(_turned(hop.steps), repeated=hop.repeated) for hop in reversed(path.hops)))


def _turned(steps: tuple[Step, ...] | None) -> tuple[Step, ...] | None:
    if steps is None:
        return None
    return tuple(Step(step.relation, "in" if step.direction == "out" else "out") for step in steps)
