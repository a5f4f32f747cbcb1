"""Arrays and tables of strings that are written piece by piece, into memory or into files, and read when whole."""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kg_adapters.local.array_files import release
from kg_adapters.local.index import StringTable

Number = TypeVar("Number", bound=np.generic)

# What numpy writes before the numbers of an array of one dimension, whatever its length.
_HEADER_BYTES: Final = 128


class GrowingArray(Generic[Number]):
    """An array of one dimension.

    Args:
        kind: The type of its numbers.
        path: The file that it is written to, as `np.save` would; None to keep it in memory.
        maps: Takes the file as it is mapped when it is whole.
    """

    def __init__(self, kind: type[Number], path: Path | None, maps: list[mmap.mmap] | None = None) -> None:
        self._kind = kind
        self._path = path
        self._maps = maps
        self._pieces: list[npt.NDArray[Number]] = []
        self._file: BinaryIO | None = None
        self._length = 0
        if path is not None:
            self._file = path.open("wb")
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
        if self._maps is not None:
            self._maps.append(content)
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


class Storage:
    """Where the arrays of an index are written, and what is needed on the way to them.

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
        self._maps: list[mmap.mmap] = []

    @property
    def bounded(self) -> bool:
        """Whether what is needed on the way is kept out of memory."""
        return self._scratch is not None

    def array(self, name: str, kind: type[Number]) -> GrowingArray[Number]:
        """Begin an array of the index, as `out.neighbors`."""
        return GrowingArray(kind, None if self._folder is None else self._folder / f"{name}.npy", self._maps)

    def whole(self, name: str, numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Write an array of the index that is there already."""
        array = self.array(name, numbers.dtype.type)
        array.append(numbers)
        return array.finish()

    def let_go(self) -> None:
        """Give back the memory that whole arrays take because they were read; they are read again where needed."""
        for content in self._maps:
            release(content)

    def strings(self, name: str) -> GrowingStrings:
        """Begin a table of strings of the index, as `features.values`."""
        return GrowingStrings(self.array(f"{name}.offsets", np.int64), self.array(f"{name}.text", np.uint8))

    def passing(self, kind: type[Number]) -> GrowingArray[Number]:
        """Begin an array that is needed on the way."""
        self._made += 1
        return GrowingArray(kind, None if self._scratch is None else self._scratch / f"{self._made}.npy", self._maps)

    def passing_strings(self) -> GrowingStrings:
        """Begin a table of strings that is needed on the way."""
        return GrowingStrings(self.passing(np.int64), self.passing(np.uint8))
