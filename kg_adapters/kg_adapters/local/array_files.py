"""The arrays of a store's folder as they are opened."""

import io
import threading
import time
from collections.abc import Iterable
from dataclasses import is_dataclass
from functools import partial
from mmap import mmap
from pathlib import Path
from typing import Final, TypeVar, get_type_hints

import numpy as np

from kg_adapters.index.block_files import BlockArray, BlockFile, Damage
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.index.storage import release
from kg_adapters.local.checksums import SealedFile, require_sealed
from kg_boundary.regular_files import read_regular

# Comparing the states of forty files takes as long as a small answer, so many answers share one comparison.
_WATCH_S: Final = 0.001
_LONGEST_HEADER: Final = 4_096
# A file of so many bytes is read at once, and takes no descriptors.
_SMALL_BYTES: Final = 1 << 16
T = TypeVar("T")


class ArrayFiles:
    """The files of one folder of a store, held open whatever becomes of the folder.

    Args:
        store: The store's folder.
        folder: The folder's path inside it, as in `index`.
        sealed: What the files were when they were written, by paths inside the store; None to believe what is there,
            as whoever has just written it may.
    """

    def __init__(self, store: Path, folder: str, sealed: Iterable[SealedFile] | None = None) -> None:
        self._store = store
        self._folder = folder
        self._sealed = None if sealed is None else {file.path: file for file in sealed}
        self._files: list[BlockFile] = []
        self._whole: dict[BlockFile, SealedFile] = {}
        self._due: set[BlockFile] = set()
        self._maps: list[mmap] = []
        self._watched_s = 0.0
        self._watching = threading.Lock()

    def array(self, name: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.generic]] | BlockArray[np.generic]":
        """Open the array in a file; it cannot be written to.

        Args:
            name: The file's name in the folder, as in `nodes.text.npy`.

        Raises:
            OSError: There is no such file.
            Damage: Its beginning is not what was written.
        """
        content, file = self._content(name)
        head = io.BytesIO(content[:_LONGEST_HEADER])
        np.lib.format.read_magic(head)
        shape, _, kind = np.lib.format.read_array_header_1_0(head)
        if 0 in shape:
            return np.empty(shape, kind)
        values = np.frombuffer(content, kind, offset=head.tell()).reshape(shape)
        return values if file is None or not file.unverified else BlockArray(file, values, head.tell())

    def verify(self, name: str) -> None:
        """Verify the whole of a file that others read, now and whenever it has changed.

        Raises:
            OSError: There is no such file.
            Damage: It is not what was written.
        """
        file = self._opened(name)
        if (sealed := self._sealed_file(name)) is not None:
            self._whole[file] = sealed
            require_sealed(sealed, file.handle)

    def verify_all(self) -> None:
        """Verify the whole of every array that was opened.

        Raises:
            Damage: One is not what was written.
        """
        self._watched_s = 0.0
        self.watch()
        for file in self._files:
            file.require_all()

    def watch(self) -> None:
        """Have files that were written to since they were opened verified again; call this before they are read.

        Raises:
            Damage: A file was cut off, or one that others read has changed.
        """
        if (now := time.monotonic()) - self._watched_s < _WATCH_S:
            return
        with self._watching:
            self._due.update(file for file in self._files if file.notice_change() and file in self._whole)
            for file in tuple(self._due):
                require_sealed(self._whole[file], file.handle)
                self._due.discard(file)
            self._watched_s = now

    def let_go(self) -> None:
        """Release the memory that mapped files take because they were read; they are read again where needed."""
        for content in self._maps:
            release(content)

    def _content(self, name: str) -> tuple[bytes | mmap, BlockFile | None]:
        """Return the content of a small file, or map a larger one, which is held open to be verified."""
        sealed = self._sealed_file(name)
        if sealed is not None and sealed.size <= _SMALL_BYTES:
            content = read_regular(self._store / sealed.path, sealed.size)
            require_sealed(sealed, content)
            return content, None
        file = self._opened(name)
        if file.left:
            file.require([0], rest=False)
        self._maps.append(file.map())
        return self._maps[-1], file

    def _opened(self, name: str) -> BlockFile:
        sealed, path = self._sealed_file(name), f"{self._folder}/{name}"
        file = BlockFile(self._store / path, path, b"" if sealed is None else bytes.fromhex(sealed.blocks))
        self._files.append(file)
        return file

    def _sealed_file(self, name: str) -> SealedFile | None:
        if self._sealed is None:
            return None
        if (sealed := self._sealed.get(f"{self._folder}/{name}")) is None:
            raise Damage(f"{self._folder}/{name} is not in the manifest")
        return sealed


def open_tables(kind: type[T], files: ArrayFiles, prefix: str = "") -> T:
    """Open a dataclass of arrays that was written into files called by its fields, `out.neighbors.npy` and so on.

    Raises:
        OSError: A file is missing.
        Damage: A file does not begin as it was written.
    """
    values: dict[str, object] = {}
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            values[name] = open_tables(hint if isinstance(hint, type) else type(hint), files, f"{prefix}{name}.")
        else:
            values[name] = files.array(f"{prefix}{name}.npy")
    return kind(**values)


open_index = partial(open_tables, GraphIndex)
