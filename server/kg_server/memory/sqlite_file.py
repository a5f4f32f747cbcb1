"""The SQLite file of memories: its schema, and what to do if it is damaged, locked or replaced."""

import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from filelock import FileLock, Timeout

from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidSource
from kg_boundary.private_files import FILE_MODE, private_database, private_folder
from kg_server.memory.file_watch import Change, FileWatch, Moved, commits_of, count_commit, first_commits

VERSION: Final = 2
_MEMORIES: Final = """
    CREATE TABLE memories (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        graph TEXT NOT NULL,
        client TEXT NOT NULL,
        created REAL NOT NULL,
        touched REAL NOT NULL,
        used REAL NOT NULL,
        appends INTEGER NOT NULL,
        facts INTEGER NOT NULL,
        paths INTEGER NOT NULL,
        unverified INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        checksum BLOB NOT NULL
    )
"""
_FACTS: Final = """
    CREATE TABLE facts (
        memory INTEGER NOT NULL REFERENCES memories (number) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        path INTEGER NOT NULL,
        step INTEGER NOT NULL,
        head TEXT NOT NULL,
        relation TEXT NOT NULL,
        tail TEXT NOT NULL,
        datatype TEXT NOT NULL,
        language TEXT NOT NULL,
        verified INTEGER NOT NULL,
        statement BLOB NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (memory, position)
    ) WITHOUT ROWID
"""
# One row for each path that may go on, by the node that it ends in.
_ENDS: Final = """
    CREATE TABLE ends (
        memory INTEGER NOT NULL REFERENCES memories (number) ON DELETE CASCADE,
        tail BLOB NOT NULL,
        path INTEGER NOT NULL,
        step INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (memory, tail, path)
    ) WITHOUT ROWID
"""
_TABLES: Final = (
    _MEMORIES,
    "CREATE INDEX memories_by_age ON memories (touched)",
    "CREATE INDEX memories_by_client ON memories (client, created)",
    "CREATE INDEX memories_used_once ON memories (used) WHERE appends <= 1",
    _FACTS,
    "CREATE UNIQUE INDEX facts_by_statement ON facts (memory, statement)",
    _ENDS,
    f"PRAGMA user_version = {VERSION}",
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables within a transaction."""
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {first_commits()}")


Kind: TypeAlias = Literal["DEFERRED", "IMMEDIATE"]

_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_LOG_BYTES: Final = 16_000_000
"""How large the log stays once it was written back."""

_SPARE_PAGES: Final = 64
"""How many free pages are kept for what comes next."""

_VACUUM_PAGES: Final = 2_000
"""How many free pages are given back to the disk at once."""

_HAPPENED: Final[dict[Change, str]] = {
    "replaced": "was removed or replaced",
    "overwritten": "was overwritten by another program",
    "set back": "was set back to an older state",
    "log": "lost its log (the file beside it that ends in -wal or -shm)",
}


class MemoryFile:
    """One memory file, opened when it is first needed, and again when another one has taken its place.

    Its connection may move between threads, which take turns; texts come from it as bytes.

    Args:
        path: The file; it is made for its owner alone, and so is the folder around it.
        busy_s: How many seconds to wait for other processes.
    """

    def __init__(self, path: Path, busy_s: float) -> None:
        self._path = path
        self._busy_s = busy_s
        # Two processes that switch a new file to WAL at once would fail without waiting for each other.
        self._opening = FileLock(path.with_name(f".{path.name}.lock"), timeout=busy_s, mode=FILE_MODE)
        self._open: tuple[sqlite3.Connection, FileWatch] | None = None
        self.replaced = False
        """Whether the file was once found to be another one than before."""

    @contextmanager
    def transaction(self, kind: Kind) -> Generator[sqlite3.Connection]:
        """Run the block in one transaction: all of it happens in the file under the name, or the block fails.

        Raises:
            InvalidSource: The file is damaged, of another version, or not one of ours; nothing was deleted.
            BackendTimeout: Others kept it busy for too long.
            BackendUnavailable: It cannot be opened, read or written, or was removed, replaced or set back since it was
                opened; the next transaction opens what is there then.
        """
        with failures_of(self._path):
            connection, watch = self._open = self._open or self._opened()
            try:
                watch.check_names()
                with _transaction(connection, kind):
                    watch.check_content()
                    yield connection
                    if kind == "IMMEDIATE":
                        count_commit(connection)
                    commits = commits_of(connection)
                watch.note(commits)
                watch.check_names()
            except Moved as moved:
                self._let_go(watch, moved.change)
                raise _moved(self._path, moved.change) from moved

    def shrink(self) -> None:
        """Give back to the disk some of what was deleted."""
        with failures_of(self._path):
            if self._open is not None:
                connection = self._open[0]
                if connection.execute("PRAGMA freelist_count").fetchone()[0] >= _SPARE_PAGES:
                    # As a script, since it goes a page at each step and a cursor stops at the first.
                    connection.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        if self._open is None:
            return
        connection, watch = self._open
        try:
            watch.check_names()
        except Moved as moved:
            with failures_of(self._path):
                self._let_go(watch, moved.change)
        else:
            self._open = None
            connection.close()

    def _let_go(self, watch: FileWatch, change: Change) -> None:
        self._open, self.replaced = None, True
        with ExitStack() as locked:
            # The folder may be gone too.
            with suppress(OSError):
                locked.enter_context(self._opening)
            watch.let_go(change)

    def _opened(self) -> tuple[sqlite3.Connection, FileWatch]:
        path = self._path
        private_folder(path.parent)
        with self._opening, ExitStack() as failing:
            # SQLite gives its other files the mode of this one.
            private_database(path)
            connection = sqlite3.connect(path, timeout=self._busy_s, isolation_level=None, check_same_thread=False)
            failing.callback(connection.close)
            connection.text_factory = bytes
            _prepare(connection, path)
            watch = FileWatch(path, connection)
            failing.pop_all()
        return connection, watch


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
            raise damaged(path, str(error)) from error
        if code in _BUSY:
            raise _busy() from error
        raise _unusable(path, str(error)) from error
    except UnicodeDecodeError as error:
        # SQLite names what is wrong by words of the damaged file.
        raise damaged(path, "it holds bytes that are not text") from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: Kind) -> Generator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in {0, VERSION}:
        raise InvalidSource(
            f"The memory file {path.name} has format {version}; this version reads {VERSION}. Nothing was "
            "changed. Use the version of kg-sextant that wrote it, or set another data_folder."
        )
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise InvalidSource(
            f"{path.name} in the data folder is a database of another program. Nothing was changed. Set another "
            "data_folder, or move it away."
        )
    # Both come before the first table, so that what is deleted can be given back to the disk.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    # FULL syncs the log at every commit, so that what was answered outlives a power cut too; a process that is killed
    # loses nothing in any mode.
    connection.execute("PRAGMA synchronous = FULL")
    if version != VERSION:
        with _transaction(connection, "IMMEDIATE"):
            create_tables(connection)
        # From now on the file itself shows how many commits are in it.
        connection.execute("PRAGMA wal_checkpoint").fetchall()
    connection.execute("PRAGMA foreign_keys = ON")


def damaged(path: Path, reason: str) -> InvalidSource:
    """Return the error for a file that is damaged as a whole."""
    return InvalidSource(
        f"The memory file {path.name} is damaged ({reason}). Nothing was deleted. Stop the servers that use it and "
        f"move it out of the data folder together with {path.name}-wal to start again; `sqlite3 {path.name} .recover` "
        "saves what can be read."
    )


def _busy() -> BackendTimeout:
    return BackendTimeout("The memory is busy with other writers. Call again: appending the same triples is harmless.")


def _unusable(path: Path, reason: str) -> BackendUnavailable:
    return BackendUnavailable(
        f"The memory file {path.name} cannot be used: {reason}. The data folder has to be writable, with room on the "
        "disk; the setting data_folder names another. The other tools still work."
    )


def _moved(path: Path, change: Change) -> BackendUnavailable:
    after = (
        "What was acknowledged is in the file as far as the log could be written back: see with memory-read whether "
        "the last facts are there."
        if change == "log"
        else "What was kept before is where that file is now, and handles open only what the present one holds."
    )
    return BackendUnavailable(
        f"The memory file {path.name} in the data folder {_HAPPENED[change]} while this server had it open, so that "
        f"this call kept nothing for sure. {after} Call again: the server opens the file that is there, or begins a "
        "new one. Stop the servers before a memory file is moved or restored."
    )
