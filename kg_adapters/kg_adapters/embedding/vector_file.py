"""Vectors of texts in a file that several processes share."""

import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from filelock import FileLock

from kg_adapters.embedding.packing import PackedRows
from kg_boundary.private_files import FILE_MODE, private_database, private_folder

_BUSY_S: Final = 1.0
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
        private_folder(path.parent)
        # Two processes that switch a new file to WAL at once would not wait for each other.
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=_BUSY_S, mode=FILE_MODE):
            private_database(path)
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                for statement in _SET_UP:
                    self._connection.execute(statement)
            except sqlite3.Error:
                self._connection.close()
                raise

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
