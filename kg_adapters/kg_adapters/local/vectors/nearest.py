"""The graph of near vectors that finds the nearest ones without a look at every row; made and read by usearch."""

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import anyio.to_thread
import numpy as np
import numpy.typing as npt

ByteRows: TypeAlias = npt.NDArray[np.int8]

# On 16,000 entities of Wikidata these find 98 of the 100 that a full scan finds.
_LINKS, _WIDTH_AT_BUILD, _WIDTH_AT_SEARCH = 16, 128, 256
_AT_ONCE: Final = 10_000


class _Matches(Protocol):
    @property
    def keys(self) -> npt.NDArray[np.uint64]: ...


class _Index(Protocol):
    """What is used of usearch's `Index`, whose own types are not complete."""

    def __len__(self) -> int: ...

    def add(self, keys: npt.NDArray[np.int64], vectors: ByteRows, *, threads: int) -> object: ...

    def search(self, vectors: ByteRows, count: int, *, threads: int) -> _Matches: ...

    def save(self, path: str, /) -> None: ...

    def view(self, path: str, /) -> None: ...


class NearestRows:
    """Finds the rows of a matrix that point nearly the same way as a vector; mapped from a file.

    Args:
        path: A file that `link_rows` wrote.
        rows: The matrix that it was written for.

    Raises:
        ImportError: usearch does not work on this machine.
        RuntimeError: The file is damaged.
        ValueError: It is about another matrix.
    """

    def __init__(self, path: Path, rows: ByteRows) -> None:
        self._index = _new_index(rows.shape[1])
        self._index.view(os.fspath(path))
        if len(self._index) != len(rows):
            raise ValueError(f"it links {len(self._index):,} rows instead of {len(rows):,}")

    def find(self, row: ByteRows, count: int) -> npt.NDArray[np.int64]:
        """Return the numbers of about the `count` nearest rows, in no order."""
        return self._index.search(row, count, threads=1).keys.astype(np.int64)


async def link_rows(path: Path, rows: ByteRows, on_rows: Callable[[int], None]) -> None:
    """Write the graph of a matrix to a file, and call `on_rows` with how many rows are in it, now and then.

    Raises:
        ImportError: usearch does not work on this machine.
        OSError: The file cannot be written.
    """
    index = await anyio.to_thread.run_sync(_new_index, rows.shape[1])
    on_rows(0)
    for first in range(0, len(rows), _AT_ONCE):
        part = rows[first : first + _AT_ONCE]
        numbers = np.arange(first, first + len(part), dtype=np.int64)
        await anyio.to_thread.run_sync(partial(index.add, numbers, part, threads=0))
        on_rows(first + len(part))
    fresh = path.with_suffix(".part")
    index.save(os.fspath(fresh))
    fresh.replace(path)


def _new_index(dimensions: int) -> _Index:
    index: _Index = import_module("usearch.index").Index(
        ndim=dimensions,
        metric="cos",
        dtype="i8",
        connectivity=_LINKS,
        expansion_add=_WIDTH_AT_BUILD,
        expansion_search=_WIDTH_AT_SEARCH,
    )
    return index
