"""Small operations on sorted arrays that sets are made of."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kg_adapters.index.columns import first_of_each
from kg_adapters.local.index import Ints, Longs

EMPTY: Longs = np.zeros(0, dtype=np.int64)


def spread(starts: Longs, ends: Longs) -> tuple[Longs, Longs]:
    """Return every number of many ranges, and for each the place of the range that it belongs to."""
    sizes = ends - starts
    places = np.repeat(np.arange(len(starts)), sizes)
    inside = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return starts[places] + inside, places


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
