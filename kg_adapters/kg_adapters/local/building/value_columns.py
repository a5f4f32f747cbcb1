"""The values of an index as numbers that order them, many at once: what `kg_adapters.value_order` says of one."""

from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.local.index import Longs, StringTable
from kg_adapters.profile import ValueKind
from kg_adapters.value_order import MAX_COMPARED, date_order, number_order

Floats = npt.NDArray[np.float64]
_Bytes = npt.NDArray[np.uint8]

# So many texts take some 60 MB while they are compared.
_BLOCK: Final = 100_000
_ZERO: Final = ord("0")
_MARKS: Final = np.isin(np.arange(256), [*b"0123456789+-.eE", 0])
_LAYOUT: Final = b"0000-00-00"
_BARE: Final = (4, 7, 10)


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
    short = np.flatnonzero((sizes > 0) & (sizes <= MAX_COMPARED))
    texts = _padded(values, rows[short], sizes[short])
    plain = _plain_numbers(texts) if kind == "number" else _plain_dates(texts, sizes[short])
    orders[short] = plain
    order_of = number_order if kind == "number" else date_order
    for place in short[np.isnan(plain)].tolist():
        order = order_of(values[int(rows[place])])
        orders[place] = np.nan if order is None else order
    return orders


def _padded(values: StringTable, rows: Longs, sizes: Longs) -> _Bytes:
    """Return texts as rows of bytes, filled up with zeros; shape [rows, MAX_COMPARED]."""
    places = np.arange(MAX_COMPARED)
    inside = places < sizes[:, None]
    wanted = np.where(inside, values.offsets[rows][:, None] + places, 0)
    return np.where(inside, values.text[wanted], 0).astype(np.uint8)


def _plain_numbers(texts: _Bytes) -> Floats:
    """Return numbers that consist of digits, signs and points; NaN for the rest, which is looked at one by one."""
    orders = np.full(len(texts), np.nan)
    likely = np.flatnonzero(_MARKS[texts].all(axis=1) & (texts[:, 0] != 0))
    try:
        found = np.ascontiguousarray(texts[likely]).view(f"S{MAX_COMPARED}").ravel().astype(np.float64)
    except ValueError:
        return orders
    orders[likely] = np.where(np.isfinite(found), found, np.nan)
    return orders


def _plain_dates(texts: _Bytes, sizes: Longs) -> Floats:
    """Return what orders dates and years of four digits without a time; NaN for the rest, as above."""
    orders = np.full(len(texts), np.nan)
    digits = texts.astype(np.int64) - _ZERO
    fits = np.isin(sizes, _BARE)
    for place, mark in enumerate(_LAYOUT):
        right = texts[:, place] == mark if mark != _ZERO else (digits[:, place] >= 0) & (digits[:, place] <= 9)
        fits &= right | (sizes <= place)
    chosen = np.flatnonzero(fits)
    parts = digits[chosen]
    year = parts[:, :4] @ np.array([1000, 100, 10, 1])
    month = np.where(sizes[chosen] >= _BARE[1], parts[:, 5] * 10 + parts[:, 6], 0)
    day = np.where(sizes[chosen] >= _BARE[2], parts[:, 8] * 10 + parts[:, 9], 0)
    orders[chosen] = ((year * 13 + month) * 32 + day) * 86_400
    return orders
