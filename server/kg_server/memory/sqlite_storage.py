"""Memories in a SQLite file."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection

from kg_server.memory.rows import MEMORIES, TABLES, UPGRADES, VERSION, Column, Row, RowTransaction
from kg_server.memory.sqlite_file import BUSY_S, SqliteFile
from kg_server.memory.store import MemoryRecord


class SqliteStorage:
    """A `Storage` in a file that is opened anew for each transaction.

    Args:
        path: The file; it is made with the first memory, for its owner alone.
        busy_s: How many seconds to wait for other writers.
        now: Returns the time, in seconds since 1970.
    """

    at_once = 1

    def __init__(self, path: Path, *, busy_s: float = BUSY_S, now: Callable[[], float] = time.time) -> None:
        self.file = SqliteFile(path, "memory file", VERSION, TABLES, upgrades=UPGRADES, busy_s=busy_s)
        self._now = now

    @contextmanager
    def transaction(self, *, write: bool) -> "Generator[SqliteTransaction]":  # noqa: D102 - documented on the protocol
        with self.file.transaction(write=write) as connection:
            yield SqliteTransaction(connection, self.file, float(self._now()))

    def close(self) -> None:  # noqa: D102 - documented on the protocol
        pass


class SqliteTransaction(RowTransaction):
    """A `Transaction` on an open SQLite file."""

    def __init__(self, connection: Connection, file: SqliteFile, now: float) -> None:
        def execute(statement: str, values: Sequence[Column]) -> Sequence[Row]:
            return connection.execute(statement, values).fetchall()

        super().__init__(execute, now, "memory file", file.damaged)

    def find(self, digest: bytes, owner: str) -> MemoryRecord | None:  # noqa: D102 - documented on the protocol
        found = super().find(digest, owner)
        if found is not None:
            return found
        # It may be there without being found, where the index or its own row is damaged.
        key = (digest, owner)
        return next((memory for memory in self._found(MEMORIES) if (memory.digest, memory.owner) == key), None)
