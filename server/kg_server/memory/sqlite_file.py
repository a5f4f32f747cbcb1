"""The file behind the SQLite store: how it is made and opened, and what its failures mean."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidSource

VERSION: Final = 1
SCHEMA: Final = (
    """
    CREATE TABLE memories (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        graph TEXT NOT NULL,
        touched REAL NOT NULL
    )
    """,
    "CREATE INDEX memories_by_age ON memories (touched)",
    """
    CREATE TABLE facts (
        memory INTEGER NOT NULL REFERENCES memories (number) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        head TEXT NOT NULL,
        relation TEXT NOT NULL,
        tail TEXT NOT NULL,
        datatype TEXT NOT NULL,
        language TEXT NOT NULL,
        verified INTEGER NOT NULL,
        PRIMARY KEY (memory, position),
        UNIQUE (memory, head, relation, tail, datatype, language)
    ) WITHOUT ROWID
    """,
    f"PRAGMA user_version = {VERSION}",
)
_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def open_file(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Open a memory file, made readable for its owner alone where it does not exist yet.

    The connection may move between threads, and begins transactions only where it is told to.

    Args:
        path: The file; the folder around it is made too.
        busy_s: How many seconds to wait for other processes.

    Raises:
        InvalidSource: The file is of another version, or not one of ours.
        sqlite3.Error: It cannot be opened, or is damaged.
        OSError: Its folder cannot be made or written to.
        Timeout: Another process has been opening it for too long.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Two processes that switch a new file to WAL at once would fail without waiting for each other.
    with FileLock(path.with_name(f".{path.name}.lock"), timeout=busy_s, mode=0o600):
        # SQLite gives its other files the mode of this one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with ExitStack() as failing:
            connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
            failing.callback(connection.close)
            _prepare(connection, path)
            failing.pop_all()
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Generator[None]:
    """Run the block in one transaction, `DEFERRED` or `IMMEDIATE`: all of it happens, or nothing."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def failures_of(path: Path) -> Generator[None]:
    """Turn what SQLite and the file system raise into errors that say what to do.

    Raises:
        InvalidSource: The file is damaged; nothing was deleted.
        BackendTimeout: Others kept it busy for too long.
        BackendUnavailable: It cannot be opened, read or written.
    """
    try:
        yield
    except Timeout as error:
        raise _busy() from error
    except sqlite3.Error as error:
        code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _DAMAGE:
            raise _damaged(path, error) from error
        raise _busy() if code in _BUSY else _unusable(path, str(error)) from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in {0, VERSION}:
        raise InvalidSource(
            f"The memory file {path} has format {version}; this version reads {VERSION}. Nothing was changed. "
            "Use the version of kg-sextant that wrote it, or set another data folder."
        )
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise InvalidSource(
            f"{path} is a database of another program. Nothing was changed. Set another data folder, or move it away."
        )
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL syncs the log at every commit, so that what was answered outlives a power cut too; a process that is killed
    # loses nothing in any mode.
    connection.execute("PRAGMA synchronous = FULL")
    if version == 0:
        with transaction(connection, "IMMEDIATE"):
            for statement in SCHEMA:
                connection.execute(statement)


def _damaged(path: Path, error: sqlite3.Error) -> InvalidSource:
    return InvalidSource(
        f"The memory file {path} is damaged ({error}). Nothing was deleted. Stop the servers that use it and move it "
        f"away together with {path.name}-wal to begin anew; `sqlite3 {path.name} .recover` saves what can be read."
    )


def _busy() -> BackendTimeout:
    return BackendTimeout("The memory is busy with other writers. Call again: appending the same triples is harmless.")


def _unusable(path: Path, reason: str) -> BackendUnavailable:
    return BackendUnavailable(
        f"The memory file {path} cannot be used: {reason}. Its folder has to be writable, with room on the disk; "
        "the setting data_folder names another. The other tools still work."
    )
