"""The frontiers of a path search, and where those of both ends meet in the middle.

Of four hops there may be hundreds of millions of meetings, so they are counted by their sums at each middle, and only
those that can be among the best are formed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.index.columns import spread
from kg_adapters.index.graph_index import Ints, LinkTable, Longs
from kg_adapters.index.paths.assembly import cutoff

Flags: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Fan:
    """The nodes one step from an end, sorted, and how many triples lead to each."""

    end: int
    nodes: Ints
    edges: Longs

    def only(self, kept: Flags) -> "Fan":
        """Return the part of it that a mask keeps."""
        return Fan(self.end, self.nodes[kept], self.edges[kept])


@dataclass(frozen=True, slots=True)
class Steps:
    """Pairs of neighbours: `near[i]` is one step from the end, `far[i]` two; `ways[i]` choices of triples lead there.

    They are sorted by `near`, then by `far`.
    """

    near: Ints
    far: Ints
    ways: Longs

    def only(self, kept: Flags | Places) -> "Steps":
        """Return the part of them that a mask or places choose."""
        return Steps(self.near[kept], self.far[kept], self.ways[kept])


def fan_of(table: LinkTable, end: int, other_end: int) -> Fan:
    """Return the nodes around one end; the other end is not among them."""
    row = slice(int(table.starts[end]), int(table.starts[end + 1]))
    fan = Fan(end, table.neighbors[row], table.edges[row].astype(np.int64))
    return fan.only(fan.nodes != other_end)


def steps_of(table: LinkTable, fan: Fan, wanted: Ints | None, size: int) -> Steps:
    """Return the steps beyond a fan.

    Args:
        table: Who is next to whom.
        fan: Where the steps begin.
        wanted: Only the steps that reach one of these nodes, sorted; None for all.
        size: The number of nodes in the graph.
    """
    places, owners = spread(table.starts[fan.nodes], table.starts[fan.nodes + 1])
    if wanted is not None:
        hits, _ = matches(wanted, table.neighbors[places], size)
        owners, places = owners[hits], places[hits]
    return Steps(fan.nodes[owners], table.neighbors[places], fan.edges[owners] * table.edges[places])


def chained(parts: Sequence[Steps]) -> Steps:
    """Return the steps of all parts, one behind the other."""
    if not parts:
        return Steps(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))
    return Steps(
        np.concatenate([part.near for part in parts]),
        np.concatenate([part.far for part in parts]),
        np.concatenate([part.ways for part in parts]),
    )


def matches(values: Ints, wanted: Ints, size: int) -> tuple[Places, Places]:
    """Return which of `wanted` are among `values`, and where.

    Args:
        values: Node ids, sorted and distinct.
        wanted: Node ids in any order.
        size: The number of nodes in the graph.
    """
    if len(values) == 0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    hits = np.arange(len(wanted))
    # Marking every node of the graph pays only where there is much to look up.
    if len(wanted) * 8 > size:
        marks = np.zeros(size, dtype=np.bool_)
        marks[values] = True
        hits = np.flatnonzero(marks[wanted])
    places = np.minimum(np.searchsorted(values, wanted[hits]), len(values) - 1)
    found = values[places] == wanted[hits]
    return hits[found], places[found]


Costs: TypeAlias = Callable[[Ints], Longs]


def join_steps(left: Steps, right: Steps, size: int) -> tuple[Steps, Steps]:
    """Return the steps of both sides that reach a node which the other side reaches too."""
    reached = np.zeros((2, size), dtype=np.bool_)
    reached[0, left.far] = True
    reached[1, right.far] = True
    shared = reached[0] & reached[1]
    return left.only(shared[left.far]), right.only(shared[right.far])


def count_meetings(left: Steps, right: Steps, size: int) -> int:
    """Return the number of ways over x, m and y, where x and y differ."""
    middles = np.unique(left.far)
    sums = [
        np.bincount(np.searchsorted(middles, side.far), weights=side.ways, minlength=len(middles)).astype(np.int64)
        for side in (left, right)
    ]
    return int(sums[0] @ sums[1]) - _there_and_back(left, right, size)


def nearest_meetings(left: Steps, right: Steps, cost: Costs, order: Callable[[Ints], Ints], limit: int) -> Ints:
    """Return x, m and y of the cheapest paths: enough for the best `limit`, ties included; shape [paths, 3].

    Args:
        left: Steps from the source; each reaches a middle that one of `right` reaches.
        right: Steps from the target; the same the other way round.
        cost: What passing through a node costs, at least 1.
        order: Sorts nodes by the first triple that links each to the source.
        limit: At least 1.
    """
    pairs = _Pairs(left, right, cost)
    bound = pairs.bound(limit)
    starts, below, upto = pairs.first, pairs.reach(bound), pairs.reach(bound + 1)
    cheaper = pairs.rows(np.arange(len(left.near)), starts, below)
    tied = np.flatnonzero(upto > below)
    # One pair of a range may turn back over x itself; where there is just one, that is known.
    counts = upto[tied] - below[tied]
    sure = np.where(counts == 1, pairs.right.near[below[tied]] != left.near[tied], counts - 1)
    tied = tied[_first_enough(left.near[tied], sure, order, limit)]
    return np.concatenate((cheaper, pairs.rows(tied, below[tied], upto[tied])))


class _Pairs:
    """All pairs of a step from the left and one from the right that meet, as ranges of the right for each left."""

    def __init__(self, left: Steps, right: Steps, cost: Costs) -> None:
        middles, groups = np.unique(right.far, return_inverse=True)
        costs = cost(right.near)
        self._span = int(costs.max(initial=0)) + 1
        keys = groups * self._span + costs
        by_key = np.argsort(keys)
        self._keys = keys[by_key]
        self._right_costs = costs[by_key]
        self.right = right.only(by_key)
        self.left = left
        self._left_costs = cost(left.near) + cost(left.far)
        self._origin = np.searchsorted(middles, left.far) * self._span
        self.first = np.searchsorted(self._keys, self._origin)
        self._last = np.searchsorted(self._keys, self._origin + self._span)

    def bound(self, limit: int) -> int:
        """Return the cost of the pair that is the `limit`-th cheapest, or a number above all where there are fewer."""
        leading = self.first + (self.right.near[self.first] == self.left.near)
        valid = np.flatnonzero(leading < self._last)
        lowest = self._left_costs[valid] + self._right_costs[leading[valid]]
        bound = min(cutoff(lowest, limit), self._highest())
        # Only lefts below the bound can lower it, fewer than `limit`, each by its first few.
        below = valid[lowest < bound]
        ends = np.minimum(self._last[below], self.first[below] + limit + 1)
        places, owners = spread(self.first[below], ends)
        lefts = below[owners]
        apart = self.left.near[lefts] != self.right.near[places]
        costs = self._left_costs[lefts[apart]] + self._right_costs[places[apart]]
        return min(bound, cutoff(costs, limit))

    def reach(self, bound: int) -> Places:
        """Return for each left where the pairs end that cost less than `bound`."""
        wanted: Longs = self._origin + np.clip(bound - self._left_costs, 0, self._span)
        return np.searchsorted(self._keys, wanted)

    def rows(self, lefts: Places, starts: Places, ends: Places) -> Ints:
        """Return x, m and y of the pairs in the ranges of these lefts."""
        places, owners = spread(starts, ends)
        near, far = self.left.near[lefts[owners]], self.left.far[lefts[owners]]
        others = self.right.near[places]
        apart = near != others
        return np.stack((near[apart], far[apart], others[apart]), axis=1)

    def _highest(self) -> int:
        return int(self._left_costs.max(initial=0)) + self._span


def _first_enough(near: Ints, sure: Longs, order: Callable[[Ints], Ints], limit: int) -> Flags:
    """Return which tied lefts to keep: those over the first x that have `limit` pairs for sure."""
    if len(near) == 0:
        return np.zeros(0, dtype=np.bool_)
    nodes = np.unique(near)
    counts = np.bincount(np.searchsorted(nodes, near), weights=sure, minlength=len(nodes))
    ordered = order(nodes)
    reached = np.cumsum(counts[np.searchsorted(nodes, ordered)])
    chosen = ordered[: int(np.searchsorted(reached, limit)) + 1]
    return np.isin(near, chosen)


def _there_and_back(left: Steps, right: Steps, size: int) -> int:
    """Return the number of ways that go over one x on both sides."""
    hits, _ = matches(np.unique(right.near), left.near, size)
    left = left.only(hits)
    wanted = left.near.astype(np.int64) * size + left.far
    present = right.near.astype(np.int64) * size + right.far
    places = np.minimum(np.searchsorted(present, wanted), len(present) - 1)
    same = present[places] == wanted
    return int((left.ways[same] * right.ways[places[same]]).sum())
