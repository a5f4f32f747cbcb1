"""Numbering any number of texts by their order, in bounded memory: sorted in runs, which are merged at the end."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Final

import numpy as np

from kg_adapters.errors import InvalidSource
from kg_adapters.local.building.growing import GrowingStrings, Storage
from kg_adapters.local.index import Ints, Longs, StringTable

_MOST_TEXTS: Final = np.iinfo(np.int32).max
# What a text takes in memory beside its own bytes.
_TEXT_BYTES: Final = 100
_COPIED: Final = 500_000


class Numbers(dict[str, int]):
    """Numbers texts in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        number = len(self)
        self[text] = number
        return number


class SortedTexts:
    """Numbers the texts of one run after another.

    Args:
        storage: Where the runs are kept.

    Attributes:
        numbers: Those of the present run.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._runs: list[StringTable] = []
        self.numbers = Numbers()

    def end_run(self) -> Ints:
        """Begin another run, and return the place that each number of this one has in its order.

        Raises:
            UnicodeEncodeError: A text holds half a surrogate pair, which UTF-8 cannot say.
        """
        numbers, self.numbers = self.numbers, Numbers()
        texts = sorted(numbers)
        ranks = np.empty(len(texts), dtype=np.int32)
        order = np.fromiter(map(numbers.__getitem__, texts), dtype=np.int32, count=len(texts))
        ranks[order] = np.arange(len(texts), dtype=np.int32)
        strings = self._storage.passing_strings()
        strings.extend([text.encode() for text in texts])
        self._runs.append(strings.finish())
        return ranks

    def add_run(self, table: StringTable) -> None:
        """Take a table, sorted and distinct, for a run that has ended."""
        self._runs.append(table)

    def merged(self, strings: GrowingStrings | None = None) -> tuple[StringTable, list[Ints | None]]:
        """Make one run of those that have ended.

        Args:
            strings: Where its texts go; None to have them among what is needed on the way.

        Returns:
            The texts, sorted and distinct, and for each run the place there that each of its places has; None where
            they are the same.

        Raises:
            InvalidSource: There are more texts than can be numbered.
        """
        if len(self._runs) == 1:
            return self._runs[0] if strings is None else copied_table(self._runs[0], strings), [None]
        strings = strings or self._storage.passing_strings()
        places = merge_tables(self._runs, strings, self._storage.room.merged_bytes)
        self._runs = [strings.finish()]
        return self._runs[0], list(places)


def sorted_and_placed(
    storage: Storage, texts: Iterable[str], strings: GrowingStrings | None = None
) -> tuple[StringTable, Ints]:
    """Return texts sorted and distinct, and the place of each there.

    Args:
        storage: What is needed on the way to it.
        texts: Any number of them.
        strings: Where they go when they are sorted; None to have them among what is needed on the way.
    """
    runs: list[Ints] = []
    known, ahead = SortedTexts(storage), iter(texts)
    while not runs or len(runs[-1]):
        numbers = known.numbers
        column = np.fromiter(map(numbers.__getitem__, islice(ahead, storage.room.texts)), dtype=np.int32)
        runs.append(known.end_run()[column])
    table, places = known.merged(strings)
    columns = (run if new is None else new[run] for run, new in zip(runs, places, strict=True))
    return table, np.concatenate((np.zeros(0, dtype=np.int32), *columns))


def copied_table(table: StringTable, strings: GrowingStrings) -> StringTable:
    """Write the strings of a table once more."""
    for first in range(0, len(table), _COPIED):
        offsets = table.offsets[first : first + _COPIED + 1]
        strings.append(np.diff(offsets), table.text[offsets[0] : offsets[-1]].tobytes())
    return strings.finish()


def sorted_table(texts: Sequence[str], strings: GrowingStrings) -> StringTable:
    """Write a few texts, sorted by code point."""
    strings.extend([text.encode() for text in sorted(texts)])
    return strings.finish()


def merge_tables(tables: Sequence[StringTable], strings: GrowingStrings, most_bytes: int) -> list[Ints]:
    """Write the distinct strings of sorted tables, sorted, and return for each table their places there.

    Raises:
        InvalidSource: There are more than can be numbered.
    """
    ranks = [np.empty(len(table), dtype=np.int32) for table in tables]
    count = 0
    for bounds in _bounds(tables, most_bytes):
        parts = [encoded(table, first, last) for table, (first, last) in zip(tables, bounds, strict=True)]
        texts = sorted(set(chain.from_iterable(parts)))
        if count + len(texts) > _MOST_TEXTS:
            raise InvalidSource(f"The graph has more than {_MOST_TEXTS:,} different names or texts, too many for one.")
        strings.extend(texts)
        places = dict(zip(texts, range(count, count + len(texts)), strict=True))
        for own, part, (first, last) in zip(ranks, parts, bounds, strict=True):
            own[first:last] = np.fromiter(map(places.__getitem__, part), dtype=np.int32, count=len(part))
        count += len(texts)
    return ranks


def encoded(table: StringTable, first: int, last: int) -> list[bytes]:
    """Return some strings of a table that stand one behind the other, in UTF-8."""
    offsets = table.offsets[first : last + 1]
    text = table.text[offsets[0] : offsets[-1]].tobytes()
    bounds: list[int] = (offsets - offsets[0]).tolist()
    return [text[start:end] for start, end in pairwise(bounds)]


def _bounds(tables: Sequence[StringTable], most_bytes: int) -> Iterator[list[tuple[int, int]]]:
    """Yield which strings of each table belong together, so few of all tables that they can be merged in memory."""
    sampled = [
        table.text[table.offsets[at] : table.offsets[at + 1]].tobytes() for table, at in _samples(tables, most_bytes)
    ]
    pivots = sorted(set(sorted(sampled)[:: 2 * len(tables)]))
    firsts = [0] * len(tables)
    for pivot in pivots:
        lasts = [table.lower_bound(pivot) for table in tables]
        if lasts != firsts:
            yield list(zip(firsts, lasts, strict=True))
        firsts = lasts
    yield [(first, len(table)) for first, table in zip(firsts, tables, strict=True)]


def _samples(tables: Sequence[StringTable], most_bytes: int) -> Iterator[tuple[StringTable, int]]:
    """Yield strings of every table that are so far apart that few of them have much between them."""
    apart = max(1, most_bytes // (4 * len(tables)))
    for table in tables:
        weights: Longs = table.offsets[:-1] + _TEXT_BYTES * np.arange(len(table))
        for at in np.unique(
            np.searchsorted(weights, np.arange(apart, weights[-1] if len(weights) else 0, apart))
        ).tolist():
            yield table, at
