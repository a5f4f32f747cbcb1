"""Memories in a PostgreSQL database, which several servers share."""

import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Timer
from typing import Any, Final, Self, TypeAlias

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidSource
from kg_server.memory.rows import TABLES, UPGRADES, VERSION, Column, Row, RowTransaction

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

SCHEMA: Final = "kg_sextant"
"""The schema of the database that holds the tables."""

_LOCK: Final = int.from_bytes(b"kg-sxtnt")
"""The advisory lock of whoever writes; nothing else in a database should use this number."""

_TYPES: Final = {"INTEGER": "BIGINT", "BLOB": "BYTEA", "REAL": "DOUBLE PRECISION", " WITHOUT ROWID": ""}
_TYPE: Final = re.compile("|".join(_TYPES))
_ESCAPE: Final = re.compile(r"\\(.)")

_BUSY: Final = (errors.LockNotAvailable, errors.QueryCanceled)

AGAIN: Final = "Call again: what was answered is kept, and a triple that is appended twice is kept once."

logger = logging.getLogger(__name__)


class PostgresStorage:
    """A `Storage` in the tables of one schema, which the first transaction makes.

    One transaction writes at a time, whichever server runs it; it reads what those before it wrote. What a server
    waits for is bounded, so that a database that is gone costs a call no more than an error. A transaction that fails
    leaves nothing behind, and the next one connects anew.

    Args:
        url: The address of the database, as libpq reads it.
        wait_s: How many seconds each step of a transaction may wait: to connect, for other writers, for a statement.
            Twice as long after it began, a transaction fails in any case.
        now: Returns the time, in seconds since 1970; None for the clock of the database, which all servers share.
    """

    at_once = 4

    def __init__(self, url: str, *, wait_s: float = 5.0, now: Callable[[], float] | None = None) -> None:
        self._url = url
        self._wait_s = wait_s
        self._now = now
        # A pool of psycopg would let every call wait for its timeout while the database is gone, and then reconnect
        # after pauses of up to minutes; here a call fails at once, and the next one tries.
        self._idle: list[Connection] = []

    @contextmanager
    def transaction(self, *, write: bool) -> "Generator[PostgresTransaction]":  # noqa: D102 - as the protocol says
        with _Deadline(2 * self._wait_s) as deadline, _translated_errors(deadline):
            connection, now = self._begun(deadline, write=write)
            try:
                yield PostgresTransaction(connection, now if self._now is None else float(self._now()))
                connection.execute("COMMIT")
            finally:
                self._release(connection)

    def close(self) -> None:  # noqa: D102 - as the protocol says
        while (connection := self._next_idle()) is not None:
            connection.close()

    def _next_idle(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _begun(self, deadline: "_Deadline", *, write: bool) -> tuple[Connection, float]:
        """Return a connection in a transaction that has the tables, and the time; idle ones may be dead."""
        while True:
            idle = self._next_idle()
            connection = self._connected() if idle is None else idle
            deadline.watch(connection)
            with ExitStack() as failed:
                failed.callback(self._release, connection)
                try:
                    now = self._begin(connection, write=write)
                except psycopg.Error:
                    if idle is None or deadline.is_over or not connection.closed:
                        raise
                    continue
                failed.pop_all()
                return connection, now

    def _release(self, connection: Connection) -> None:
        """Keep a connection for the next transaction, undoing one that did not end; close it where that fails."""
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        else:
            self._idle.append(connection)

    def _connected(self) -> Connection:
        wait_s = max(1, int(self._wait_s))
        return psycopg.connect(
            self._url,
            autocommit=True,
            # Where others pool connections, a prepared statement may be on another one.
            prepare_threshold=None,
            connect_timeout=wait_s,
            keepalives_idle=wait_s,
            keepalives_interval=1,
            keepalives_count=2,
            tcp_user_timeout=wait_s * 1_000,
            application_name="kg-sextant",
            client_encoding="utf8",
        )

    def _begin(self, connection: Connection, *, write: bool) -> float:
        """Begin a transaction that has the tables, and return the time."""
        self._open(connection, write=write)
        try:
            version, now = _version_and_time(connection)
        except errors.UndefinedTable:
            version, now = 0, 0.0
        if version != VERSION:
            connection.execute("ROLLBACK")
            self._open(connection, write=True)
            _bring_up(connection)
            connection.execute("COMMIT")
            self._open(connection, write=write)
            _, now = _version_and_time(connection)
        return now

    def _open(self, connection: Connection, *, write: bool) -> None:
        wait = f"'{int(self._wait_s * 1_000)}ms'"
        # What a reader sees must not change under it; a writer must see what was written while it waited for its turn.
        mode, turn = ("READ COMMITTED READ WRITE", f"; SELECT pg_advisory_xact_lock({_LOCK})")
        if not write:
            mode, turn = "REPEATABLE READ READ ONLY", ""
        begin = (
            f"BEGIN ISOLATION LEVEL {mode}; SET LOCAL search_path TO {SCHEMA}; SET LOCAL lock_timeout TO {wait}; "
            f"SET LOCAL statement_timeout TO {wait}; SET LOCAL idle_in_transaction_session_timeout TO {wait}{turn}"
        )
        connection.execute(begin.encode())


class _Deadline:
    """Cuts the connection of a transaction when its time is over: a server that hangs would never end it.

    Args:
        limit_s: How many seconds it has.
    """

    def __init__(self, limit_s: float) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = Timer(limit_s, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._unwatch()

    def watch(self, connection: Connection) -> None:
        """Make this the connection that is cut."""
        self._unwatch()
        if sys.platform != "win32":
            # Its descriptor may belong to another file by then, so this is a copy of it.
            self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        if self.is_over:
            self._end()

    def _unwatch(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _end(self) -> None:
        self.is_over = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


class PostgresTransaction(RowTransaction):
    """A `Transaction` on a connection to PostgreSQL."""

    def __init__(self, connection: Connection, now: float) -> None:
        def execute(statement: str, values: Sequence[Column]) -> Sequence[Row]:
            cursor = connection.execute(_dialect(statement), [_escaped(value) for value in values])
            return [tuple(map(_plain, row)) for row in cursor] if cursor.description else ()

        super().__init__(execute, now, "memory database", _damaged)


def _version_and_time(connection: Connection) -> tuple[int, float]:
    found = connection.execute("SELECT number, extract(epoch FROM clock_timestamp())::float8 FROM version").fetchall()
    ((version, now),) = found
    return version, now


def _bring_up(connection: Connection) -> None:
    """Make the tables, or bring those of an earlier version up to this one, while no other server writes.

    Raises:
        InvalidSource: They are of a version that cannot be read.
    """
    ((has_schema, has_tables),) = connection.execute(
        "SELECT to_regnamespace(%s) IS NOT NULL, to_regclass('version') IS NOT NULL", (SCHEMA,)
    ).fetchall()
    version = _version_and_time(connection)[0] if has_tables else 0
    if version == VERSION:
        return  # Another server did it in the meantime.
    if version and version not in UPGRADES:
        raise InvalidSource(
            f"The memory database has format {version}; this version reads {VERSION}. Nothing was changed. Use the "
            "version of kg-sextant that wrote it, or set another memory.database."
        )
    if not has_schema:
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
    if not has_tables:
        connection.execute("CREATE TABLE version (number BIGINT NOT NULL)")
        connection.execute("INSERT INTO version VALUES (0)")
    for statement in UPGRADES.get(version, TABLES):
        connection.execute(_dialect(statement))
    connection.execute("UPDATE version SET number = %s", (VERSION,))


def _dialect(statement: str) -> bytes:
    """Return a statement of SQLite as PostgreSQL reads it."""
    return _TYPE.sub(lambda found: _TYPES[found[0]], statement).replace("?", "%s").encode()


def _escaped(value: Column) -> Column:
    """Return a value as it is kept: PostgreSQL has no text with the character 0."""
    return value.replace("\\", "\\\\").replace("\0", "\\0") if isinstance(value, str) else value


def _plain(value: object) -> object:
    if not isinstance(value, str):
        return value
    return _ESCAPE.sub(lambda found: "\0" if found[1] == "0" else found[1], value) if "\\" in value else value


def _damaged(reason: str) -> InvalidSource:
    return InvalidSource(f"The memory database is damaged ({reason}). Nothing was deleted. Restore it from a backup.")


@contextmanager
def _translated_errors(deadline: _Deadline) -> Generator[None]:
    """Translate what psycopg raises; its words name hosts and users, so that only the log repeats them."""
    try:
        yield
    except _BUSY as error:
        raise BackendTimeout(f"The memory database is busy. {AGAIN}") from error
    except psycopg.Error as error:
        if deadline.is_over:
            raise BackendTimeout(f"The memory database does not answer. {AGAIN}") from error
        logger.warning("The memory database failed: %s", error)
        raise BackendUnavailable(
            f"The memory database cannot be used; the server's log has the reason. {AGAIN} The other tools still work."
        ) from error
