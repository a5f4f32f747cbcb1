"""An embedder with a cache: in memory, and in a file that several processes share."""

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

from kg_adapters.embedding.protocol import Embedder, PackedRows, Vectors, WrappedEmbedder, pack, unpack
from kg_adapters.http.reply_file import open_shared

_FIRST_ROWS: Final = 1_024
# So much is given up at once when the memory is full, because finding what was used least takes a while.
_GIVEN_UP: Final = 8


class VectorMemory:
    """A bounded table of 16-bit rows by text; it grows as needed and evicts the least recently used.

    Args:
        capacity: The most rows, at least 1.
        dimensions: The length of a row.
    """

    def __init__(self, capacity: int, dimensions: int) -> None:
        self._capacity = capacity
        self._slots: dict[str, int] = {}
        self._texts = [""] * capacity
        self._free = list(range(capacity - 1, -1, -1))
        self._rows: PackedRows = np.empty((min(_FIRST_ROWS, capacity), dimensions), dtype=np.int16)
        self._used = np.zeros(capacity, dtype=np.int64)
        self._clock = 0

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, text: str) -> bool:
        return text in self._slots

    def find(self, texts: Sequence[str]) -> PackedRows | None:
        """Return the rows of texts, shape [texts, dimensions]; None where one of them is not here."""
        get = self._slots.get
        slots = [get(text, -1) for text in texts]
        if -1 in slots:
            return None
        places = np.array(slots, dtype=np.int64)
        self._clock += 1
        self._used[places] = self._clock
        return self._rows.take(places, axis=0)

    def put(self, texts: Sequence[str], rows: Sequence[PackedRows]) -> None:
        """Add the rows of texts, each of shape [dimensions]; of more than there is room for, the last ones."""
        self._clock += 1
        for text, row in zip(texts[-self._capacity :], rows[-self._capacity :], strict=True):
            slot = self._slots.get(text)
            if slot is None:
                slot = self._new_slot(text)
            self._rows[slot] = row
            self._used[slot] = self._clock

    def _new_slot(self, text: str) -> int:
        if not self._free:
            self._give_up()
        slot = self._free.pop()
        self._slots[text] = slot
        self._texts[slot] = text
        if slot >= len(self._rows):
            more = np.empty((min(2 * len(self._rows), self._capacity), self._rows.shape[1]), dtype=np.int16)
            more[: len(self._rows)] = self._rows
            self._rows = more
        return slot

    def _give_up(self) -> None:
        count = max(self._capacity // _GIVEN_UP, 1)
        self._free = np.argpartition(self._used, count - 1)[:count].tolist()
        for slot in self._free:
            del self._slots[self._texts[slot]]
            self._texts[slot] = ""


_KEYS_AT_ONCE: Final = 500
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS vectors (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL)
"""
_SET_UP: Final = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _SCHEMA)
_KEEP_NEWEST: Final = "DELETE FROM vectors WHERE number <= (SELECT max(number) FROM vectors) - ?"


class VectorFile:
    """An SQLite file of 16-bit rows by model and text; any number of processes may read and write it at once.

    A power cut may take the last rows with it, and leaves the file whole.

    Args:
        path: The file; it is made where it is missing, with the folder around it.
        fingerprint: The model; rows of another one are never found.
        dimensions: The length of a row.
        max_rows: The most rows to keep, of all models together; the oldest go first.

    Raises:
        sqlite3.Error: The file is damaged, or something else than a file of vectors.
        OSError: It cannot be made or opened, or another process has been making it for too long.
    """

    def __init__(self, path: Path, *, fingerprint: str, dimensions: int, max_rows: int) -> None:
        self._model = fingerprint.encode()
        self._dimensions = dimensions
        self._max_rows = max_rows
        self._connection = open_shared(path, _SET_UP)

    def read(self, texts: Sequence[str]) -> dict[str, PackedRows]:
        """Return the rows of those texts that the file knows; shape [dimensions] each.

        Raises:
            sqlite3.Error: The file is damaged or cannot be read.
        """
        found: dict[str, PackedRows] = {}
        keys = {self._key(text): text for text in texts}
        every = list(keys)
        for first in range(0, len(every), _KEYS_AT_ONCE):
            part = every[first : first + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(part))
            query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608 - question marks alone
            rows: list[tuple[bytes, bytes]] = self._connection.execute(query, part).fetchall()
            found.update(
                (keys[key], np.frombuffer(row, dtype="<i2").astype(np.int16, copy=False))
                for key, row in rows
                if len(row) == 2 * self._dimensions
            )
        return found

    def write(self, texts: Sequence[str], rows: PackedRows) -> None:
        """Keep the rows of texts, all of them or none; shape [texts, dimensions].

        Raises:
            sqlite3.Error: The file is damaged, full or cannot be written to.
        """
        entries = [
            (self._key(text), row.astype("<i2", copy=False).tobytes()) for text, row in zip(texts, rows, strict=True)
        ]
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany("INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)", entries)
            connection.execute(_KEEP_NEWEST, (self._max_rows,))
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file; calling it twice is harmless."""
        self._connection.close()

    def _key(self, text: str) -> bytes:
        # No fingerprint holds a zero, so model and text cannot run into each other.
        return blake2b(self._model + b"\0" + text.encode(errors="surrogatepass"), digest_size=16).digest()


MEMORY_ROWS: Final = 65_536
FILE_ROWS: Final = 2_000_000
_LONGEST_NAME: Final = 256
# One works on the file while the others wait for it in their threads: the next begins however busy the event loop is.
_CALLS_AT_ONCE: Final = 4
_log = logging.getLogger(__name__)


class CachedEmbedder(WrappedEmbedder):
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
        super().__init__(embedder)
        self._memory = VectorMemory(memory_rows, embedder.dimensions)
        self._path = path
        self._file_rows = file_rows
        self._file: VectorFile | None = None
        self._turn = Lock()
        self._calls = anyio.CapacityLimiter(_CALLS_AT_ONCE)
        self._pending: dict[str, anyio.Event] = {}

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
    """Return the key of a text in the cache: itself, or a digest where it is long."""
    if len(text) <= _LONGEST_NAME:
        return text
    return "\0" + blake2b(text.encode(errors="surrogatepass"), digest_size=32).hexdigest()
