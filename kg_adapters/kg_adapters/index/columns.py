"""Aggregate columns by key, chunk by chunk, and order values as numbers."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.dates import DAY, DAY_S, DAY_SLOT, MONTH_SLOT, TIME_SLOT, YEAR_SLOT, date_order, days_before
from kg_adapters.index.graph_index import MOST_AT_ONCE, Longs, StringTable
from kg_adapters.profile import ValueKind
from kg_adapters.values import number_order

_MOST_PENDING: Final = 2_000_000
PASSES: Final = 8
"""How many times as many rows are run through, a part at a time, as are held at once."""


def portions(sizes: Longs) -> Iterator[slice]:
    """Yield slices of things of these sizes whose total is small enough to work on, or that hold one thing."""
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + MOST_AT_ONCE, side="right")))
        yield slice(first, last)
        first = last


def spread(starts: Longs, ends: Longs) -> tuple[Longs, Longs]:
    """Return every number of many ranges, and for each the place of the range that it belongs to."""
    sizes = ends - starts
    places = np.repeat(np.arange(len(starts)), sizes)
    inside = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return starts[places] + inside, places


def most_of_each(sizes: Longs, weights: Longs, most: int) -> int:
    """Return the largest number `n`, at least 1, for which the sum of `min(n, size) * weight` is at most `most`."""
    low, high = 1, max(1, int(sizes.max(initial=1)))
    middle = high
    while low < high:
        if int((np.minimum(sizes, middle) * weights).sum()) <= most:
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


class Sums:
    """Adds up numbers by key."""

    def __init__(self) -> None:
        self._parts: list[tuple[Longs, Longs]] = []
        self._pending = 0

    def add(self, keys: Longs, numbers: Longs | None = None) -> None:
        """Add numbers to their keys; 1 to each when None."""
        self._parts.append(summed(keys, numbers))
        self._pending += len(self._parts[-1][0])
        if self._pending > _MOST_PENDING:
            self._parts = [self.result()]
            self._pending = 0

    def result(self) -> tuple[Longs, Longs]:
        """Return the keys, sorted, and their sums."""
        if not self._parts:
            empty = np.zeros(0, dtype=np.int64)
            return empty, empty
        keys, numbers = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        return summed(keys, numbers)


def summed(keys: Longs, numbers: Longs | None) -> tuple[Longs, Longs]:
    """Return the distinct keys, sorted, and the sums of their numbers; 1 for each when None."""
    if numbers is None:
        found = np.sort(keys)
        firsts = first_of_each(found)
        return found[firsts], np.diff(np.append(firsts, len(found)))
    order = np.argsort(keys, kind="stable")
    firsts = first_of_each(keys[order])
    totals = np.add.reduceat(numbers[order], firsts) if len(firsts) else numbers
    return keys[order][firsts], totals


Floats = npt.NDArray[np.float64]


def first_of_each(numbers: Longs | Floats) -> Longs:
    """Return the places where another number begins among sorted ones; much faster than `np.unique`."""
    fresh = np.ones(len(numbers), dtype=np.bool_)
    fresh[1:] = numbers[1:] != numbers[:-1]
    return np.flatnonzero(fresh)


def first_of_each_row(*columns: Longs | Floats) -> Longs:
    """Return the place of the first of equal rows in columns of one length, in the order of the columns."""
    order = np.lexsort(columns[::-1])
    fresh = np.zeros(len(order), dtype=np.bool_)
    for column in columns:
        fresh[first_of_each(column[order])] = True
    return order[fresh]


class Extremes:
    """Keeps for every key the row with the least number and the row with the greatest, the first of equal ones."""

    def __init__(self) -> None:
        empty = np.zeros(0, dtype=np.int64)
        self._least = (empty, np.zeros(0), empty)
        self._greatest = self._least

    def add(self, keys: Longs, numbers: npt.NDArray[np.float64], rows: Longs) -> None:
        """Compare numbers that belong to keys."""
        self._least = _firsts(self._least, (keys, numbers, rows))
        self._greatest = _firsts(self._greatest, (keys, -numbers, rows))

    def result(self) -> tuple[Longs, Longs, Longs]:
        """Return the keys, sorted, with the row of the least and of the greatest number."""
        return self._least[0], self._least[2], self._greatest[2]

    def numbers(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the least and the greatest numbers, in the order of `result`."""
        return self._least[1], -self._greatest[1]


_Column = tuple[Longs, npt.NDArray[np.float64], Longs]


def _firsts(one: _Column, other: _Column) -> _Column:
    keys = np.concatenate((one[0], other[0]))
    numbers = np.concatenate((one[1], other[1]))
    rows = np.concatenate((one[2], other[2]))
    order = np.lexsort((rows, numbers, keys))
    chosen = order[first_of_each(keys[order])]
    return keys[chosen], numbers[chosen], rows[chosen]


_Bytes = npt.NDArray[np.uint8]
# So many texts take some 60 MB while they are compared.
_BLOCK: Final = 100_000
# The most bytes of a number or date that are read together with others; longer ones are read one by one.
_SHORT: Final = 32
_ZERO: Final = ord("0")
_MARKS: Final = np.isin(np.arange(256), [*b"0123456789+-.eE", 0])
_LAYOUT: Final = b"0000-00-00T00:00:00+00:00"
_YEAR, _MONTH, _DATE, _TIME, _UTC, _ZONED = 4, 7, 10, 19, 20, 25
"""How long years, months, dates and times are without a zone, in UTC and with another zone."""


def orders_of(values: StringTable, rows: Longs, kind: ValueKind) -> Floats:
    """Return what orders the values in some rows; NaN where one cannot be compared.

    Args:
        values: The texts of all values.
        rows: Which of them.
        kind: `number` or `date`, for all of them.
    """
    blocks = [_orders(values, rows[first : first + _BLOCK], kind) for first in range(0, len(rows), _BLOCK)]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _orders(values: StringTable, rows: Longs, kind: ValueKind) -> Floats:
    sizes = values.offsets[rows + 1] - values.offsets[rows]
    orders = np.full(len(rows), np.nan)
    short = np.flatnonzero((sizes > 0) & (sizes <= _SHORT))
    texts = _padded(values, rows[short], sizes[short])
    orders[short] = _plain_numbers(texts) if kind == "number" else _plain_dates(texts, sizes[short])
    order_of = number_order if kind == "number" else date_order
    for place in np.flatnonzero(np.isnan(orders)).tolist():
        order = order_of(values[int(rows[place])])
        orders[place] = np.nan if order is None else order
    return orders


def _padded(values: StringTable, rows: Longs, sizes: Longs) -> _Bytes:
    """Return texts as rows of bytes, filled up with zeros; shape [rows, _SHORT]."""
    places = np.arange(_SHORT)
    inside = places < sizes[:, None]
    wanted = np.where(inside, values.offsets[rows][:, None] + places, 0)
    return np.where(inside, values.text[wanted], 0).astype(np.uint8)


def _plain_numbers(texts: _Bytes) -> Floats:
    """Return numbers that consist of digits, signs and points; NaN for the rest, which is looked at one by one."""
    orders = np.full(len(texts), np.nan)
    likely = np.flatnonzero(_MARKS[texts].all(axis=1) & (texts[:, 0] != 0))
    with suppress(ValueError):
        orders[likely] = np.ascontiguousarray(texts[likely]).view(f"S{_SHORT}").ravel().astype(np.float64)
    return orders


def _plain_dates(texts: _Bytes, sizes: Longs) -> Floats:
    """Return what orders dates and whole seconds in years of four digits; NaN for the rest, as above."""
    orders = np.full(len(texts), np.nan)
    digits = texts.astype(np.int64) - _ZERO
    fits = np.isin(sizes, (_YEAR, _MONTH, _DATE, _TIME, _UTC, _ZONED))
    for place, mark in enumerate(_LAYOUT[: int(sizes.max(initial=0))]):
        right = texts[:, place] == mark if mark != _ZERO else (digits[:, place] >= 0) & (digits[:, place] <= 9)
        if place == _TIME:
            in_utc = texts[:, place] == ord("Z")
            right = (in_utc & (sizes == _UTC)) | ((right | (texts[:, place] == ord("-"))) & (sizes == _ZONED))
        fits &= right | (sizes <= place)
    chosen = np.flatnonzero(fits)
    orders[chosen] = _date_orders(digits[chosen], sizes[chosen])
    return orders


def _date_orders(digits: Longs, sizes: Longs) -> Floats:
    def pair(place: int, least: int) -> Longs:
        return np.where(sizes >= least, digits[:, place] * 10 + digits[:, place + 1], 0)

    year, month, day = digits[:, :4] @ np.array([1000, 100, 10, 1]), pair(5, _MONTH), pair(8, _DATE)
    days = days_before(year, np.maximum(month, 1), np.maximum(day, 1))
    offset = (pair(20, _ZONED) * 60 + pair(23, _ZONED)) * np.where(digits[:, _TIME] == ord("-") - _ZERO, -1, 1)
    hour, minutes, second = pair(11, _TIME), pair(14, _TIME), pair(17, _TIME)
    later, minute = np.divmod(hour * 60 + minutes - offset, DAY_S // 60)
    slots = np.select(
        (sizes >= _TIME, (month > 0) & (day > 0), month > 0),
        (TIME_SLOT + minute * 60 + second, DAY_SLOT, MONTH_SLOT),
        YEAR_SLOT,
    )
    right = (month <= 12) & (day <= 31) & (hour <= 24) & (minutes < 60) & (second <= 60)
    return np.where(right, (days + later) * DAY + slots, np.nan)
