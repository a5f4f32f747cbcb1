"""The values in rows of an index: what orders them, which are the same, which stand in a relation to a given one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.algebra import (
    ComparedKind,
    Compares,
    HopPath,
    NumberOf,
    Operator,
    Timed,
    ValueOf,
    Zone,
    counts_values,
)
from kg_adapters.dates import period_of
from kg_adapters.index.columns import Floats, first_of_each_row, orders_of
from kg_adapters.index.graph_index import Dictionary, GraphIndex, Longs
from kg_adapters.index.sets.walks import PathEnds, ValueWays, distinct_pairs
from kg_adapters.profile import ValueKind, kind_of
from kg_adapters.terms import Iri, Literal
from kg_adapters.values import SIGNS, compared_kind_of, order_of_kind, text_compares, unit_of

Mask = npt.NDArray[np.bool_]
_ASCII: Final = 128
_LOWER: Final = np.frombuffer(bytes(range(256)).lower(), dtype=np.uint8)
_DAY_SIZE, _ZONE_SIZE = len("2024-05-01"), len("+02:00")
_LOOKED_AT: Final = 64
"""How many bytes of many texts are compared at once."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The different values in some rows, in the order of `literal_key`.

    Args:
        ranks: The place of each row's value among them.
        rows: A row of each of them.
    """

    ranks: Longs
    rows: Longs


class IndexValues:
    """The rows of values of one index.

    Args:
        index: The graph.
        dictionary: The same.
    """

    def __init__(self, index: GraphIndex, dictionary: Dictionary) -> None:
        self._table = index.features
        self._dictionary = dictionary
        self._datatypes = index.datatypes

    @cached_property
    def _kinds(self) -> list[ValueKind]:
        """The kind of each datatype; read by the first call that compares, which tells damage as all calls do."""
        return [kind_of(Iri(self._datatypes[place])) for place in range(len(self._datatypes))]

    def literal(self, row: int) -> Literal:
        """Return the value in a row."""
        return self._dictionary.literal(row)

    def equal(self, rows: Longs, value: Literal) -> Mask:
        """Say which rows hold a value."""
        table, wanted = self._table, value.value.encode()
        starts = table.values.offsets[rows]
        likely = np.flatnonzero(table.values.offsets[rows + 1] - starts == len(wanted))
        for place, byte in enumerate(wanted[:_LOOKED_AT]):
            likely = likely[table.values.text[starts[likely] + place] == byte]
        same = np.zeros(len(rows), dtype=np.bool_)
        if len(wanted) > _LOOKED_AT:
            same[[place for place in likely.tolist() if self.literal(int(rows[place])) == value]] = True
            return same
        sorts = table.languages[rows[likely]].astype(np.int64) * len(self._datatypes) + table.datatypes[rows[likely]]
        for sort in np.unique(sorts).tolist():
            of_sort = likely[sorts == sort]
            same[of_sort] = self.literal(int(rows[of_sort[0]])) == value
        return same

    def orders(self, rows: Longs, kind: ComparedKind, unit: Iri | None = None) -> Floats:
        """Return what orders the values in some rows; NaN where one is of another kind or unit, or has no order."""
        orders = np.full(len(rows), np.nan)
        of_kind = np.flatnonzero(self._of_kind(rows, kind, unit))
        orders[of_kind] = orders_of(self._table.values, rows[of_kind], kind)
        return orders

    def ranked(self, rows: Longs) -> Ranked:
        """Return which rows hold the same value, and the order of the different values."""
        table, offsets = self._table, self._table.values.offsets
        texts = (
            table.values.text[first:last].tobytes()
            for first, last in zip(offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True)
        )
        keys = list(zip(texts, table.languages[rows].tolist(), table.datatypes[rows].tolist(), strict=True))
        examples = dict(zip(keys, rows.tolist(), strict=True))
        order = sorted(examples)
        places = {key: place for place, key in enumerate(order)}
        ranks = np.fromiter((places[key] for key in keys), dtype=np.int64, count=len(keys))
        return Ranked(ranks, np.fromiter((examples[key] for key in order), dtype=np.int64, count=len(order)))

    def measured(self, ends: PathEnds, by: ValueOf | NumberOf, count: int) -> tuple[Longs, Floats, Longs]:
        """Return the places that have a measure, the measures, and the rows of values that say so (or -1).

        Args:
            ends: What the path of the measure reaches.
            by: The measure.
            count: How many places there are.
        """
        if isinstance(by, ValueOf):
            places, rows = self.different(ends)
            orders = self.orders(rows, by.kind, by.unit)
            told = ~np.isnan(orders)
            return places[told], orders[told], rows[told]
        sizes = self.sizes(ends, by.path, count)
        places = np.flatnonzero(sizes)
        return places, sizes[places].astype(np.float64), np.full(len(places), -1, dtype=np.int64)

    def sizes(self, ends: PathEnds, path: HopPath, count: int) -> Longs:
        """Return how many different ends of a path each place reaches, counted as in `NumberOf`."""
        sizes = np.bincount(ends.places, minlength=count)
        return sizes + np.bincount(self.different(ends)[0], minlength=count) if counts_values(path) else sizes

    def different(self, ends: PathEnds) -> tuple[Longs, Longs]:
        """Return the pairs of a place and a row of values, one for each different value of a place."""
        if not ends.repeats or not len(ends.rows):
            return ends.value_places, ends.rows
        ranked = self.ranked(ends.rows)
        places, ranks = distinct_pairs(ends.value_places, ranked.ranks)
        return places, ranked.rows[ranks]

    def each(self, ways: ValueWays) -> ValueWays:
        """Return the same ways with each of the different values at the end of one way once."""
        if not ways.repeats or not len(ways.rows):
            return ways
        chosen = np.sort(first_of_each_row(ways.ways, self.ranked(ways.rows).ranks))
        return ValueWays(ways.places[chosen], ways.ways[chosen], ways.rows[chosen], repeats=False)

    def holding(self, rows: Longs, condition: Compares | Timed) -> Mask:
        """Say of which values a condition is true, as `values.compares` does."""
        if isinstance(condition, Timed):
            return self._timed(rows, condition.zones)
        operator, given = condition.operator, condition.value
        kind = compared_kind_of(given, operator)
        if kind is None:
            wanted = given.value.lower()
            if operator in {"=", "!="}:
                same = self._in_lower_case(rows, wanted)
                return same if operator == "=" else ~same
            texts = (self._dictionary.text(row).lower() for row in rows.tolist())
            return np.fromiter((text_compares(text, operator, wanted) for text in texts), np.bool_, len(rows))
        unit = unit_of(given)
        order, orders = order_of_kind(given, kind, unit), self.orders(rows, kind, unit)
        if order is None:
            return np.zeros(len(rows), dtype=np.bool_)
        if kind == "date":
            return _dates_comparing(orders, operator, given.value, possibly=condition.possibly)
        signs = (orders > order).astype(np.int8) - (orders < order)
        return np.isin(signs, SIGNS[operator]) & ~np.isnan(orders)

    def _timed(self, rows: Longs, zones: Sequence[Zone]) -> Mask:
        """Say which rows hold a point in time in one of these zones."""
        values = self._table.values
        starts, ends = values.offsets[rows], values.offsets[rows + 1]
        times = np.flatnonzero(self._of_kind(rows, "date", None) & (ends - starts > _DAY_SIZE))
        times = times[values.text[starts[times] + _DAY_SIZE] == ord("T")]
        last = np.stack([values.text[ends[times] - place] for place in range(_ZONE_SIZE, 0, -1)], axis=1)
        zoned = np.isin(last[:, 0], (ord("+"), ord("-"))) & (last[:, 3] == ord(":"))
        utc = (last[:, -1] == ord("Z")) | (zoned & (last[:, [1, 2, 4, 5]] == ord("0")).all(axis=1))
        found = np.zeros(len(rows), dtype=np.bool_)
        found[times] = np.isin(np.where(utc, "utc", np.where(zoned, "other", "none")), zones)
        return found

    def _in_lower_case(self, rows: Longs, wanted: str) -> Mask:
        """Say which rows hold a text that is a given one in lower case; only those that may be are decoded."""
        values = self._table.values
        starts, ends = values.offsets[rows], values.offsets[rows + 1]
        likely, others = np.arange(len(rows)), list[Longs]()
        for place, byte in enumerate(wanted.encode()[:_LOOKED_AT]):
            likely = likely[starts[likely] + place < ends[likely]]
            found = values.text[starts[likely] + place]
            # Letters of other alphabets may have more bytes in one case than in the other.
            others.append(likely[found >= _ASCII])
            likely = likely[(found < _ASCII) & (_LOWER[found] == byte)]
        same = np.zeros(len(rows), dtype=np.bool_)
        for place in np.concatenate((likely, *others)).tolist():
            same[place] = self._dictionary.text(int(rows[place])).lower() == wanted
        return same

    def _of_kind(self, rows: Longs, kind: ComparedKind, unit: Iri | None) -> Mask:
        if unit is None:
            places = [place for place, each in enumerate(self._kinds) if each == kind]
        else:
            places = [place for place in range(len(self._datatypes)) if self._datatypes[place] == unit.value]
        return np.isin(self._table.datatypes[rows], places)


def _dates_comparing(orders: Floats, operator: Operator, given: str, *, possibly: bool) -> Mask:
    period, signs = period_of(given), SIGNS[operator]
    within = (orders < period.after) | (orders == period.first)
    found = np.isin(np.where(orders < period.first, -1, np.where(within, 0, 1)), signs) & ~np.isnan(orders)
    for order, is_met in period.vague_for(signs, possibly=possibly).items():
        found[orders == order] = is_met
    return found
