"""Arrays and string tables that grow in memory or in files, and the external merge sort that numbers texts."""

import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import BinaryIO, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kg_adapters.errors import InvalidSource
from kg_adapters.index.graph_index import Ints, Longs, StringTable

Number = TypeVar("Number", bound=np.generic)
# What numpy writes before the numbers of an array of one dimension, whatever its length.
_HEADER_BYTES: Final = 128


class GrowingArray(Generic[Number]):
    """An array of one dimension.

    Args:
        kind: The type of its numbers.
        path: The file that it is written to, as `np.save` would; None to keep it in memory.
        storage: Closes the file if it is never whole, and knows it as it is mapped when it is.
    """

    def __init__(self, kind: type[Number], path: Path | None, storage: "IndexStorage | None" = None) -> None:
        self._kind = kind
        self._path = path
        self._storage = storage
        self._pieces: list[npt.NDArray[Number]] = []
        self._file: BinaryIO | None = None
        self._length = 0
        if path is not None:
            self._file = path.open("wb")
            if storage is not None:
                storage.files.callback(self._file.close)
            self._file.write(bytes(_HEADER_BYTES))

    def __len__(self) -> int:
        return self._length

    def append(self, piece: npt.NDArray[np.generic]) -> None:
        """Add numbers at its end."""
        numbers = np.ascontiguousarray(piece, dtype=self._kind)
        self._length += len(numbers)
        if self._file is None:
            self._pieces.append(numbers)
        else:
            self._file.write(numbers.data)

    def finish(self) -> npt.NDArray[Number]:
        """Return the whole array; nothing can be added to it."""
        if self._path is None or self._file is None:
            pieces, self._pieces = self._pieces, []
            return pieces[0] if len(pieces) == 1 else np.concatenate((np.zeros(0, dtype=self._kind), *pieces))
        with self._file as file:
            file.seek(0)
            form = {"descr": np.dtype(self._kind).str, "fortran_order": False, "shape": (self._length,)}
            np.lib.format.write_array_header_1_0(file, form)
        if not self._length:
            return np.zeros(0, dtype=self._kind)
        with self._path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._storage is not None:
            self._storage.maps.append(content)
        return np.frombuffer(content, dtype=self._kind, offset=_HEADER_BYTES)


class GrowingStrings:
    """A table of strings.

    Args:
        offsets: Where its offsets go.
        text: Where its bytes go.
    """

    def __init__(self, offsets: GrowingArray[np.int64], text: GrowingArray[np.uint8]) -> None:
        self._offsets = offsets
        self._text = text
        offsets.append(np.zeros(1, dtype=np.int64))

    def extend(self, texts: Sequence[bytes]) -> None:
        """Add strings at its end, in UTF-8."""
        sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        self.append(sizes, b"".join(texts))

    def append(self, sizes: npt.NDArray[np.int64], text: bytes) -> None:
        """Add strings that stand one behind the other, of these bytes each."""
        self._offsets.append(np.cumsum(sizes) + len(self._text))
        self._text.append(np.frombuffer(text, dtype=np.uint8))

    def finish(self) -> StringTable:
        """Return the whole table; nothing can be added to it."""
        return StringTable(self._offsets.finish(), self._text.finish())


@dataclass(frozen=True, slots=True)
class Room:
    """How much is in memory at once while an index is written.

    Args:
        texts: How many texts are numbered; some 250 bytes each.
        rows: How many statements are sorted; some 60 bytes each.
        merged_bytes: How many bytes of sorted texts are merged.
    """

    texts: int = 2_000_000
    rows: int = 4_000_000
    merged_bytes: int = 1 << 26


class IndexStorage(AbstractContextManager["IndexStorage"]):
    """Where the arrays of an index are written, and what is needed on the way to them.

    As a context, it closes the files that were begun and are not whole, as when the writing is interrupted.

    Args:
        folder: The folder of the arrays; None to keep all of them in memory.
        scratch: The folder of what is needed on the way; None to keep it in memory.
        room: How much memory may be taken where there is a folder instead.
    """

    def __init__(self, folder: Path | None = None, scratch: Path | None = None, room: Room | None = None) -> None:
        self._folder = folder
        self._scratch = scratch
        self.room = room or Room()
        self._made = 0
        self.files = ExitStack()
        self.maps: list[mmap.mmap] = []

    def __exit__(self, *error: object) -> None:
        self.files.close()

    @property
    def bounded(self) -> bool:
        """Whether what is needed on the way is kept out of memory."""
        return self._scratch is not None

    def array(self, name: str, kind: type[Number]) -> GrowingArray[Number]:
        """Begin an array of the index, as `out.neighbors`."""
        return GrowingArray(kind, None if self._folder is None else self._folder / f"{name}.npy", self)

    def whole(self, name: str, numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Write an array of the index that is there already."""
        array = self.array(name, numbers.dtype.type)
        array.append(numbers)
        return array.finish()

    def let_go(self) -> None:
        """Give back the memory that whole arrays take because they were read; they are read again where needed."""
        for content in self.maps:
            release(content)

    def strings(self, name: str) -> GrowingStrings:
        """Begin a table of strings of the index, as `features.values`."""
        return GrowingStrings(self.array(f"{name}.offsets", np.int64), self.array(f"{name}.text", np.uint8))

    def passing(self, kind: type[Number]) -> GrowingArray[Number]:
        """Begin an array that is needed on the way."""
        self._made += 1
        return GrowingArray(kind, None if self._scratch is None else self._scratch / f"{self._made}.npy", self)

    def passing_strings(self) -> GrowingStrings:
        """Begin a table of strings that is needed on the way."""
        return GrowingStrings(self.passing(np.int64), self.passing(np.uint8))


_MOST_TEXTS: Final = np.iinfo(np.int32).max
# What a text takes in memory beside its own bytes.
_TEXT_BYTES: Final = 100
_COPIED: Final = 500_000


class TextNumbers(dict[str, int]):
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

    def __init__(self, storage: IndexStorage) -> None:
        self._storage = storage
        self._runs: list[StringTable] = []
        self.numbers = TextNumbers()

    def end_run(self) -> Ints:
        """Begin another run, and return the place that each number of this one has in its order.

        Raises:
            UnicodeEncodeError: A text holds half a surrogate pair, which UTF-8 cannot say.
        """
        numbers, self.numbers = self.numbers, TextNumbers()
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
    storage: IndexStorage, texts: Iterable[str], strings: GrowingStrings | None = None
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


def keep_freed_memory() -> None:
    """Have glibc use the memory of freed arrays again, instead of asking the system for fresh memory each time.

    It does so once an array of almost 32 MiB was freed. Fresh memory costs a page fault every 4 KiB, and path search
    takes 1.7 times as long. Other allocators do not change.
    """
    np.empty(31 << 20, dtype=np.uint8)


def release(mapped: mmap.mmap) -> None:
    """Give back the memory of a mapped file, which the system keeps as long as it has room."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
