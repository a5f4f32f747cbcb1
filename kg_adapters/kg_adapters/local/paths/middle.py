"""Paths of four hops: where the steps from both ends meet in the middle.

The steps from the source lead over x to m, those from the target over y to m. There may be hundreds of millions of
pairs, so they are counted by their sums at each m, and only those that can be among the best are formed.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from kg_adapters.local.index import Ints, Longs
from kg_adapters.local.paths.assembly import cutoff
from kg_adapters.local.paths.frontier import Flags, Places, Steps, matches, spread

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
        owners, places = spread(self.first[below], ends)
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
        owners, places = spread(starts, ends)
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
