"""Small operations on sorted arrays that sets are made of."""

import numpy as np
import numpy.typing as npt

from kg_adapters.local.index import Ints, Longs
from kg_adapters.local.sums import first_of_each

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


def joined(places: Longs, middles: Longs, ahead: tuple[Longs, Longs], of: Longs) -> tuple[Longs, Longs]:
    """Return where pairs lead to over a second step.

    Args:
        places: The places that the first steps start from.
        middles: Where they lead to.
        ahead: The second steps: places in `of`, in order, and where they lead to.
        of: The nodes that the second steps start from, sorted.
    """
    rows = np.searchsorted(of, middles)
    starts = np.searchsorted(ahead[0], rows)
    positions, row_of = spread(starts, np.searchsorted(ahead[0], rows, side="right"))
    return places[row_of], ahead[1][positions]
