"""Arrays in files whose blocks are verified one by one, each before it is first used.

Opening such an array costs the same at any size, and a block that was damaged is reported by the first reader of it.
"""

import mmap
import os
import sys
import threading
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from kg_boundary.regular_files import open_handle

BLOCK_BYTES: Final = 1 << 14
"""A query reads a few numbers in a block that was not read before, so small blocks make it fast."""
DIGEST_BYTES: Final = 4
"""A block's digest is its CRC-32: it finds damage, not what somebody forges, and takes 3 µs where SHA-256 takes 9."""
_SHIFT: Final = BLOCK_BYTES.bit_length() - 1
# Where so few blocks of a file are left, they are verified too, in 3 ms: then nothing needs to be looked up any more.
_REST: Final = 512
_moving: Final = threading.Lock()
Number = TypeVar("Number", bound=np.generic)
_State: TypeAlias = tuple[int, int, int]
_Key: TypeAlias = int | slice | Sequence[int] | npt.NDArray[np.integer] | npt.NDArray[np.bool_]


class Damage(ValueError):
    """A file of a store is not what the import wrote; the message begins with its path inside the store."""


class BlockFile:
    """A file that is held open whatever becomes of its folder, and which of its blocks are still to be verified.

    Args:
        path: Where it is.
        name: What errors call it.
        digests: Those of its blocks, one behind the other; empty to trust what is there.

    Attributes:
        handle: Its open descriptor.
        unverified: 1 for each block that is to be verified before it is used, otherwise 0.
        left: How many of them there are.

    Raises:
        OSError: There is no such file.
    """

    def __init__(self, path: Path, name: str, digests: bytes) -> None:
        self.name = name
        self._digests = digests
        self.handle = open_handle(path)
        weakref.finalize(self, os.close, self.handle)
        self._state = _state(self.handle)
        self._verifying = threading.Lock()
        self.unverified = bytearray(b"\x01" * (len(digests) // DIGEST_BYTES))
        self.left = len(self.unverified)

    def map(self) -> mmap.mmap:
        """Map the file; nothing of what is read there is verified.

        Raises:
            Damage: It is empty.
        """
        try:
            return mmap.mmap(self.handle, self._state[0], access=mmap.ACCESS_READ)
        except ValueError as error:
            raise Damage(f"{self.name} was cut off while it was opened") from error

    def require(self, blocks: Iterable[int], *, rest: bool = True) -> None:
        """Verify some blocks, where that was not done yet.

        Args:
            blocks: Their numbers.
            rest: Whether to verify the whole file where few blocks are left.

        Raises:
            Damage: The content of one has changed.
        """
        with self._verifying:
            wanted = [block for block in blocks if self.unverified[block]]
            if not self._verify(wanted):
                raise Damage(f"the content of {self.name} has changed")
            if rest and self.left <= _REST:
                self._verify([block for block, due in enumerate(self.unverified) if due])

    def require_all(self) -> None:
        """Verify the whole file; see `require`."""
        self.require(range(len(self.unverified)))

    def _verify(self, blocks: Sequence[int]) -> bool:
        """Return whether blocks are as they were written, and note those that are."""
        intact = True
        for block, found in zip(blocks, block_digests(self.handle, blocks), strict=True):
            if found == self._digests[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES]:
                self.unverified[block] = 0
                self.left -= 1
            else:
                intact = False
        return intact

    def notice_change(self) -> bool:
        """Return whether the file was written to since it was opened; what was verified of it counts no longer.

        A file that is cut off while it is mapped ends the process that reads beyond its end (SIGBUS), which no Python
        code can catch, so call this before files are read that somebody may have written to.

        Raises:
            Damage: It was cut off.
        """
        state = _state(self.handle)
        if state == self._state:
            return False
        if state[0] < self._state[0]:
            raise Damage(f"{self.name} was cut off to {state[0]:,} bytes while it was open")
        with self._verifying:
            self._state = state
            self.unverified[:] = b"\x01" * len(self.unverified)
            self.left = len(self.unverified)
        return True


class BlockArray(NDArrayOperatorsMixin, Generic[Number]):
    """Stands for an array in a file, and verifies the blocks of what is read of it.

    Single numbers, slices and selections are read block by block. Anything else that numpy does with an array verifies
    the whole of it.

    Args:
        file: The file.
        values: The array in it.
        offset: Where in the file it begins.
    """

    def __init__(self, file: BlockFile, values: npt.NDArray[Number], offset: int) -> None:
        self._file = file
        self._values = values
        self._offset = offset
        self._row = values.strides[0]
        # Rows of several numbers may lie in two blocks.
        self._wide = values.ndim > 1

    def __len__(self) -> int:
        return len(self._values)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows there are, and numbers in each."""
        return self._values.shape

    def __iter__(self) -> Iterator[object]:
        return iter(np.asarray(self))

    def __getitem__(self, key: _Key) -> object:
        file = self._file
        if file.left:
            # What is read again and again is short: nothing is called where its blocks were verified before.
            if isinstance(key, int) and key >= 0 and not self._wide:
                due = bool(file.unverified[(self._offset + key * self._row) >> _SHIFT])
            elif isinstance(key, slice) and key.step is None and 0 <= (key.start or 0) < (key.stop or 0):
                first = (self._offset + (key.start or 0) * self._row) >> _SHIFT
                due = file.unverified.find(1, first, ((self._offset + key.stop * self._row - 1) >> _SHIFT) + 1) >= 0
            else:
                due = True
            if due:
                self._require(key)
        return self._values[key]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[np.generic]:
        if self._file.left:
            self._file.require_all()
        return np.array(self._values, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> object:
        plain = (each.__array__() if isinstance(each, BlockArray) else each for each in inputs)
        return getattr(ufunc, method)(*plain, **kwargs)

    def __getattr__(self, name: str) -> object:
        # numpy looks for other ways to read an array before it uses `__array__`.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def _require(self, key: _Key) -> None:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self._values))
            if step < 0:
                start, stop = stop + 1, start + 1
            self._require_range(start, stop)
        elif isinstance(key, int | np.integer):
            place = int(key) % len(self._values)
            self._require_range(place, place + 1)
        else:
            self._require_rows(np.asarray(key))

    def _require_range(self, start: int, stop: int) -> None:
        first, end = (self._offset + start * self._row) >> _SHIFT, ((self._offset + stop * self._row - 1) >> _SHIFT) + 1
        if start < stop and self._file.unverified.find(1, first, end) >= 0:
            self._file.require(range(first, end))

    def _require_rows(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> None:
        if rows.dtype == np.bool_:
            self._file.require_all()
        elif rows.size:
            if rows.min() < 0:
                rows = rows % len(self._values)
            starts = np.multiply(rows, self._row, dtype=np.int64) + self._offset
            unverified = np.frombuffer(self._file.unverified, dtype=np.bool_)
            steps = (*range(0, self._row, BLOCK_BYTES), self._row - 1) if self._wide else (0,)
            for step in steps:
                blocks = (starts + step) >> _SHIFT
                if (due := unverified[blocks]).any():
                    self._file.require(np.unique(blocks[due]).tolist())


def block_digests(content: int | bytes, blocks: Sequence[int] | None = None) -> Iterator[bytes]:
    """Return the digests of blocks of an open file, or of what was read of one; of all its blocks when None.

    A file is read and not mapped, as that survives it being cut off meanwhile.
    """
    if blocks is None:
        size = len(content) if isinstance(content, bytes) else os.fstat(content).st_size
        blocks = range(-(-size // BLOCK_BYTES))
    return map(partial(_digest, content), blocks)


def _digest(content: int | bytes, block: int) -> bytes:
    first = block * BLOCK_BYTES
    part = content[first : first + BLOCK_BYTES] if isinstance(content, bytes) else _read(content, first)
    return zlib.crc32(part).to_bytes(DIGEST_BYTES)


def _read(handle: int, first: int) -> bytes:
    if sys.platform == "win32":  # pragma: no cover - it cannot read at a place without moving there
        with _moving:
            os.lseek(handle, first, os.SEEK_SET)
            return os.read(handle, BLOCK_BYTES)
    return os.pread(handle, BLOCK_BYTES, first)


def _state(handle: int) -> _State:
    now = os.fstat(handle)
    return now.st_size, now.st_mtime_ns, now.st_ctime_ns
