"""The arrays of a store as they are opened: small ones read into memory, large ones mapped and watched.

A file that is cut off while it is mapped ends the process that reads beyond its end (SIGBUS), which no Python code can
catch. So small files are copied, and of mapped ones the size and the times of change are compared before each use, a
microsecond a file; a file that changed is hashed again. Between that comparison and the reading a file may still
change; only the copies are safe from that.
"""

import math
import mmap
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from kg_adapters.index.graph_index import Bytes, Damage, GraphIndex, Ints, Longs
from kg_adapters.index.storage import release
from kg_adapters.local.checksums import SealedFile, require_sealed
from kg_boundary.regular_files import open_handle, read_regular

COPIED_BYTES: Final = 32 << 20
"""How much of a folder is copied into memory, the smallest files first: reading it takes some 10 ms."""
# What `np.save` writes before the numbers of one of our arrays. numpy's own reader takes any Python literal.
_HEADER: Final = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)\{'descr': '(?P<kind>[<|]\w\d)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>\d{1,18},(?: \d{1,18})?)\), \} *\n",
    re.DOTALL,
)
_LONGEST_HEADER: Final = 4_096
Number = TypeVar("Number", bound=np.generic)
T = TypeVar("T")
_State: TypeAlias = tuple[int, int, int]


@dataclass(slots=True)
class _Mapped:
    """A mapped file: its open handle, and its size and times of change when its content was last known."""

    path: str
    handle: int
    content: mmap.mmap
    state: _State
    sealed: SealedFile | None


class ArrayFiles:
    """The files of one folder of a store, held open whatever becomes of the folder.

    Nothing is compared with its seal before `check`.

    Args:
        store: The store's folder.
        folder: The folder's path inside it, as in `index`.
        sealed: What the files were when they were written, by paths inside the store; None to believe what is there,
            as whoever has just written it may.
        copied_bytes: How much is copied, the smallest files first.
    """

    def __init__(
        self,
        store: Path,
        folder: str,
        sealed: Iterable[SealedFile] | None = None,
        *,
        copied_bytes: int = COPIED_BYTES,
    ) -> None:
        self._store = store
        self._folder = folder
        self._sealed = None
        self._copied: frozenset[str] = frozenset()
        if sealed is not None:
            self._sealed = {file.path: file for file in sealed if file.path.startswith(f"{folder}/")}
            self._copied = frozenset(_smallest(self._sealed.values(), copied_bytes))
        self._maps: list[_Mapped] = []
        self._unchecked: list[tuple[SealedFile, int | bytes]] = []
        self._also: list[Callable[[], None]] = []
        self._checking = threading.Lock()
        self._problem: Damage | None = None
        weakref.finalize(self, _close, self._maps)

    @property
    def mapped(self) -> bool:
        """Whether a file is mapped: too large to be copied."""
        return bool(self._maps)

    def array(self, name: str, kind: type[Number], dimensions: int = 1) -> npt.NDArray[Number]:
        """Open the array in a file; it cannot be written to.

        Args:
            name: The file's name in the folder, as in `nodes.text.npy`.
            kind: The type of its numbers.
            dimensions: How many it has.

        Raises:
            OSError: There is no such file.
            Damage: It holds something else.
        """
        path = f"{self._folder}/{name}"
        content = self._copy(path) if path in self._copied else self._map(path)
        return _array(path, content, kind, dimensions)

    def watch(self, name: str) -> None:
        """Have a file that others map checked by `check`.

        Raises:
            OSError: There is no such file.
            Damage: It is not sealed.
        """
        self._map(f"{self._folder}/{name}", most=1)

    def also_check(self, check: Callable[[], None]) -> None:
        """Have what was opened checked once as well, after the checksums; `check` raises `Damage`."""
        self._also.append(check)

    @property
    def due(self) -> bool:
        """Whether something is to be checked before the files are used; a microsecond for each mapped file."""
        return bool(self._unchecked or self._also) or self._problem is not None or any(map(_is_changed, self._maps))

    def check(self) -> None:
        """Compare every file with its checksums, once, and again what was written to while it was mapped.

        This may read all of them, so call it in a thread.

        Raises:
            Damage: The content of a file has changed, or it was cut off, now or when this was called before.
        """
        with self._checking:
            if self._problem is not None:
                raise self._problem
            try:
                require_sealed(self._unchecked)
                for check in self._also:
                    check()
                for file in filter(_is_changed, self._maps):
                    _check_again(file)
            except Damage as problem:
                self._problem = problem
                raise
            finally:
                self._unchecked.clear()
                self._also.clear()

    def let_go(self) -> None:
        """Give back the memory that mapped files take because they were read; they are read again where needed."""
        for file in self._maps:
            release(file.content)

    def _copy(self, path: str) -> bytes:
        sealed = self._seal(path)
        content = read_regular(self._store / path, sealed.size)
        self._unchecked.append((sealed, content))
        return content

    def _map(self, path: str, most: int | None = None) -> mmap.mmap | bytes:
        sealed = None if self._sealed is None else self._seal(path)
        handle = open_handle(self._store / path)
        state = _state(handle)
        if not state[0]:
            os.close(handle)
            self._unchecked.extend(() if sealed is None else [(sealed, b"")])
            return b""
        try:
            content = mmap.mmap(handle, min(most or state[0], state[0]), access=mmap.ACCESS_READ)
        except ValueError as error:
            os.close(handle)
            raise Damage(f"{path} was cut off while it was opened") from error
        self._maps.append(_Mapped(path, handle, content, state, sealed))
        self._unchecked.extend(() if sealed is None else [(sealed, handle)])
        return content

    def _seal(self, path: str) -> SealedFile:
        sealed = None if self._sealed is None else self._sealed.get(path)
        if sealed is None:
            raise Damage(f"{path} is not among the files that were sealed")
        return sealed


def _is_changed(file: _Mapped) -> bool:
    return _state(file.handle) != file.state


def _check_again(file: _Mapped) -> None:
    state = _state(file.handle)
    if state[0] < file.state[0]:
        raise Damage(f"{file.path} was cut off to {state[0]:,} bytes while it was open")
    if file.sealed is not None:
        require_sealed([(file.sealed, file.handle)])
    file.state = state


def _close(files: list[_Mapped]) -> None:
    while files:
        os.close(files.pop().handle)


def _state(handle: int) -> _State:
    now = os.fstat(handle)
    return now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _smallest(files: Iterable[SealedFile], room: int) -> Iterable[str]:
    for file in sorted(files, key=lambda file: file.size):
        room -= file.size
        if room < 0:
            return
        yield file.path


def _array(path: str, content: mmap.mmap | bytes, kind: type[Number], dimensions: int) -> npt.NDArray[Number]:
    head = _HEADER.match(content[:_LONGEST_HEADER])
    if head is None or head.end() != 10 + int.from_bytes(head["length"], "little"):
        raise Damage(f"{path} is not an array")
    shape = tuple(int(part) for part in head["shape"].split(b",") if part.strip())
    found = np.dtype(kind)
    if head["kind"].decode() != found.str or len(shape) != dimensions:
        raise Damage(f"{path} holds numbers of another kind")
    count = math.prod(shape)
    if head.end() + count * found.itemsize != len(content):
        raise Damage(f"{path} holds another amount of numbers than it says")
    if not count:
        return np.empty(shape, dtype=kind)
    return np.frombuffer(content, dtype=kind, count=count, offset=head.end()).reshape(shape)


_NUMBERS: Final[dict[object, type[np.generic]]] = {Ints: np.int32, Longs: np.int64, Bytes: np.uint8}


def open_index(files: ArrayFiles) -> GraphIndex:
    """Open an index that was written into files called by its fields, `out.neighbors.npy` and so on.

    Raises:
        OSError: A file is missing.
        Damage: A file is not what it should be.
    """
    return _open(GraphIndex, files, "")


def _open(kind: type[T], files: ArrayFiles, prefix: str) -> T:
    values: dict[str, object] = {}
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            values[name] = _open(hint if isinstance(hint, type) else type(hint), files, f"{prefix}{name}.")
        else:
            values[name] = files.array(f"{prefix}{name}.npy", _NUMBERS[hint])
    return kind(**values)
