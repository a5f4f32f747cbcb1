"""An embedder that remembers."""

import logging
import sqlite3
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Final

import anyio
import anyio.to_thread
import numpy as np

from kg_adapters.embedding.packing import PackedRows, pack, unpack
from kg_adapters.embedding.protocol import Embedder, Vectors
from kg_adapters.embedding.vector_file import VectorFile
from kg_adapters.embedding.vector_memory import VectorMemory

MEMORY_ROWS: Final = 65_536
FILE_ROWS: Final = 2_000_000
_LONGEST_NAME: Final = 256
# One works on the file while the others wait for it in their threads: the next begins however busy the event loop is.
_CALLS_AT_ONCE: Final = 4

_log = logging.getLogger(__name__)


class CachedEmbedder:
    """Wraps an embedder: vectors of texts that were met before come from memory, or else from a file.

    Vectors are rounded to 16 bits wherever they come from, so that an answer does not depend on what was asked before.
    A text is embedded once, however often it stands in one call or in several at the same time. Where the file is
    damaged, locked or cannot be written to, a warning is logged and memory alone serves on.

    Args:
        embedder: What embeds the texts that are new.
        memory_rows: The most vectors in memory, two bytes a dimension each.
        path: The file that is shared with other processes; None for memory alone.
        file_rows: The most vectors in the file.
    """

    def __init__(
        self, embedder: Embedder, *, memory_rows: int = MEMORY_ROWS, path: Path | None, file_rows: int = FILE_ROWS
    ) -> None:
        self._embedder = embedder
        self._memory = VectorMemory(memory_rows, embedder.dimensions)
        self._path = path
        self._file_rows = file_rows
        self._file: VectorFile | None = None
        self._turn = Lock()
        self._calls = anyio.CapacityLimiter(_CALLS_AT_ONCE)
        self._pending: dict[str, anyio.Event] = {}

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        return self._embedder.fingerprint

    @property
    def dimensions(self) -> int:
        """See `Embedder`."""
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        known = self._memory.find(texts)
        if known is not None:
            return unpack(known)
        names = [_name(text) for text in texts]
        rows = await self._rows(dict(zip(names, texts, strict=True)))
        return unpack(np.stack([rows[name] for name in names]))

    async def aclose(self) -> None:
        """Close the file; calling it twice is harmless. The embedder inside is its owner's to close."""
        await anyio.to_thread.run_sync(self._close_file, limiter=self._calls)

    async def _rows(self, wanted: Mapping[str, str]) -> dict[str, PackedRows]:
        """Return the row of each text, given the texts by name."""
        rows: dict[str, PackedRows] = {}
        while missing := [name for name in wanted if name not in rows]:
            rows.update(self._remembered(missing))
            missing = [name for name in missing if name not in rows]
            mine = {name: wanted[name] for name in missing if name not in self._pending}
            if mine:
                rows.update(await self._obtain(mine))
            elif missing:
                # Who does its own work before it waits for another's can never wait in a circle.
                await self._pending[missing[0]].wait()
        return rows

    def _remembered(self, names: Sequence[str]) -> dict[str, PackedRows]:
        here = [name for name in names if name in self._memory]
        found = self._memory.find(here)
        return {} if found is None else dict(zip(here, found, strict=True))

    async def _obtain(self, wanted: Mapping[str, str]) -> dict[str, PackedRows]:
        """Read what the file knows and embed the rest, while other callers that want the same wait."""
        done = anyio.Event()
        self._pending.update(dict.fromkeys(wanted, done))
        try:
            rows = await anyio.to_thread.run_sync(self._read, list(wanted), limiter=self._calls)
            new = [name for name in wanted if name not in rows]
            fresh = await self._embed([wanted[name] for name in new])
            rows.update(zip(new, fresh, strict=True))
            self._memory.put(list(rows), list(rows.values()))
        finally:
            for name in wanted:
                del self._pending[name]
            done.set()
        if new:
            await anyio.to_thread.run_sync(self._write, new, fresh, limiter=self._calls)
        return rows

    async def _embed(self, texts: Sequence[str]) -> PackedRows:
        # A model that is away is not missed where everything is known.
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.int16)
        return pack(await self._embedder.embed(texts))

    def _read(self, names: Sequence[str]) -> dict[str, PackedRows]:
        try:
            with self._turn:
                file = self._open_file()
                return {} if file is None else file.read(names)
        except (sqlite3.Error, OSError) as error:
            self._give_up_file(error)
            return {}

    def _write(self, names: Sequence[str], rows: PackedRows) -> None:
        try:
            with self._turn:
                file = self._open_file()
                if file is not None:
                    file.write(names, rows)
        except (sqlite3.Error, OSError) as error:
            self._give_up_file(error)

    def _open_file(self) -> VectorFile | None:
        if self._file is None and self._path is not None:
            self._file = VectorFile(
                self._path, fingerprint=self.fingerprint, dimensions=self.dimensions, max_rows=self._file_rows
            )
        return self._file

    def _give_up_file(self, error: Exception) -> None:
        _log.warning("Vectors are kept in memory only: %s cannot be used (%s). It may be deleted.", self._path, error)
        self._close_file()

    def _close_file(self) -> None:
        with self._turn:
            file, self._file, self._path = self._file, None, None
            if file is not None:
                file.close()


def _name(text: str) -> str:
    """Return what a text is remembered under: itself, or a digest where it is long."""
    if len(text) <= _LONGEST_NAME:
        return text
    return "\0" + blake2b(text.encode(errors="surrogatepass"), digest_size=32).hexdigest()
