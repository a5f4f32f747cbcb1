"""Replies that outlive the process: what was asked yesterday need not be asked again today."""

import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Final

import anyio.to_thread
from filelock import FileLock

from kg_adapters.http.messages import HttpReply, HttpRequest
from kg_boundary.private_files import FILE_MODE, private_database, private_folder

_BUSY_S: Final = 1.0
MAX_BODY_BYTES: Final = 2_000_000
MAX_FILE_BYTES: Final = 200_000_000
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS replies (
        number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, time REAL NOT NULL, head TEXT NOT NULL, body BLOB NOT NULL
    )
"""
_SET_UP: Final = ("PRAGMA auto_vacuum = FULL", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _SCHEMA)
_FIND: Final = "SELECT head, body FROM replies WHERE key = ? AND time BETWEEN ? AND ?"
_KEEP: Final = "INSERT OR REPLACE INTO replies (key, time, head, body) VALUES (?, ?, ?, ?)"
_SIZE: Final = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
_DROP_OLDER_HALF: Final = "DELETE FROM replies WHERE number <= (SELECT (min(number) + max(number)) / 2 FROM replies)"
_KEPT_HEADERS: Final = ("content-type",)


class ReplyFile:
    """An SQLite file of replies that any number of processes may share; it is opened with the first request.

    A file that cannot be opened, read or written costs the time to ask again, and nothing else.

    Args:
        path: The file; it is made where it is missing, with the folder around it.
        expiry_s: After how many seconds a reply expires.
        max_bytes: When the file is larger, the older half of the replies is dropped.
        clock: Returns the time, in seconds since 1970.
    """

    def __init__(
        self,
        path: Path,
        *,
        expiry_s: float,
        max_bytes: int = MAX_FILE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._expiry_s = expiry_s
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._usable = True

    async def recall(self, request: HttpRequest) -> HttpReply | None:
        """Return the reply to the same request, if there was one lately."""
        return await anyio.to_thread.run_sync(self._recall, request)

    async def keep(self, request: HttpRequest, reply: HttpReply) -> None:
        """Keep a reply, which must have turned out to be readable; replies of more than two megabytes are not kept."""
        if len(reply.body) <= MAX_BODY_BYTES:
            await anyio.to_thread.run_sync(self._keep, request, reply)

    async def aclose(self) -> None:
        """Close the file; calling it twice is harmless; afterwards nothing is cached."""
        with self._lock:
            self._usable = False
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _recall(self, request: HttpRequest) -> HttpReply | None:
        now = self._clock()
        with self._lock:
            connection = self._opened()
            if connection is None:
                return None
            try:
                row = connection.execute(_FIND, (_key(request), now - self._expiry_s, now)).fetchone()
                return None if row is None else _reply(row[0], row[1])
            except (sqlite3.Error, zlib.error, ValueError):
                self._give_up()
                return None

    def _keep(self, request: HttpRequest, reply: HttpReply) -> None:
        headers = {name: reply.headers[name] for name in _KEPT_HEADERS if name in reply.headers}
        head = json.dumps([reply.url, reply.status, headers])
        with self._lock:
            connection = self._opened()
            if connection is None:
                return
            try:
                connection.execute(_KEEP, (_key(request), self._clock(), head, zlib.compress(reply.body, 1)))
                if connection.execute(_SIZE).fetchone()[0] > self._max_bytes:
                    connection.execute(_DROP_OLDER_HALF)
            except sqlite3.Error:
                self._give_up()

    def _opened(self) -> sqlite3.Connection | None:
        if self._connection is None and self._usable:
            try:
                self._connection = open_shared(self.path, _SET_UP)
            except (sqlite3.Error, OSError):
                self._usable = False
        return self._connection

    def _give_up(self) -> None:
        self._usable = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _key(request: HttpRequest) -> bytes:
    asked = json.dumps([request.method, request.url, request.accepted]).encode()
    return blake2b(asked + b"\0" + (request.body or b""), digest_size=16).digest()


def _reply(head: str, body: bytes) -> HttpReply:
    url, status, headers = json.loads(head)
    return HttpReply(
        str(url), int(status), {str(name): str(value) for name, value in dict(headers).items()}, zlib.decompress(body)
    )


def open_shared(path: Path, set_up: Iterable[str]) -> sqlite3.Connection:
    """Open an SQLite file that any number of processes and threads may use at once, for its owner alone.

    Args:
        path: The file; it is made where it is missing, with the folder around it.
        set_up: What is executed first.

    Raises:
        sqlite3.Error: The file is damaged, or something else.
        OSError: It cannot be made or opened, or another process has been making it for too long.
    """
    private_folder(path.parent)
    # Two processes that switch a new file to WAL at once would not wait for each other.
    with FileLock(path.with_name(f".{path.name}.lock"), timeout=_BUSY_S, mode=FILE_MODE):
        private_database(path)
        connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            for statement in set_up:
                connection.execute(statement)
        except sqlite3.Error:
            connection.close()
            raise
        return connection
