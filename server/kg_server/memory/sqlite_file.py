"""One private SQLite file with tables of a known version; each transaction opens whatever file has its name then."""

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidSource
from kg_boundary.private_files import private_database, private_folder

BUSY_S: Final = 5.0

_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SqliteFile:
    """A file for its owner alone, which is made by the first transaction, and so is the folder around it.

    Nothing stays open between transactions: a file that was removed, moved or restored is never written to by its old
    handle. Several processes may use it at once.

    Args:
        path: The file.
        kind: What messages call it, as in `memory file`.
        version: The version of its tables.
        tables: The statements that make them.
        upgrades: For each earlier version that is read, the statements that make it this one.
        busy_s: How many seconds to wait for other processes.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        version: int,
        tables: Sequence[str],
        *,
        upgrades: Mapping[int, Sequence[str]] | None = None,
        busy_s: float = BUSY_S,
    ) -> None:
        self.path = path
        self._name = f"{kind} {path.name}"
        self._version = version
        self._tables = tables
        self._upgrades = upgrades or {}
        self._busy_s = busy_s

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[sqlite3.Connection]:
        """Run the block in one transaction: all of it happens, or the block fails.

        Raises:
            InvalidSource: The file is damaged, of another version, or of another program; nothing was deleted.
            BackendTimeout: Others kept it busy for too long.
            BackendUnavailable: It cannot be opened, read or written.
        """
        with self._translated_errors(), closing(self._connected()) as connection:
            # Only an empty file, or one of an earlier version, is written to by a transaction that reads.
            writes = write or self._is_empty() or _version(connection) in self._upgrades
            connection.execute(f"BEGIN {'IMMEDIATE' if writes else 'DEFERRED'}")
            try:
                self._prepare(connection)
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def damaged(self, reason: str) -> InvalidSource:
        """Return the error for a file that is damaged as a whole."""
        name = self.path.name
        return InvalidSource(
            f"The {self._name} is damaged ({reason}). Nothing was deleted. Stop the servers that use it and move it "
            f"out of the data folder to start again; `sqlite3 {name} .recover` saves what can be read."
        )

    def _is_empty(self) -> bool:
        return not self.path.stat().st_size

    def _connected(self) -> sqlite3.Connection:
        private_folder(self.path.parent)
        # SQLite gives its journal the mode of this file.
        private_database(self.path)
        connection = sqlite3.connect(self.path, timeout=self._busy_s, isolation_level=None)
        # Text that was damaged is no UTF-8: it has to be read to be recognized by its checksum.
        connection.text_factory = _text
        connection.row_factory = sqlite3.Row
        if self._is_empty():
            # Deleted rows leave no holes in the file.
            connection.execute("PRAGMA auto_vacuum = FULL")
        # What was answered outlives a power cut.
        connection.execute("PRAGMA synchronous = EXTRA")
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = _version(connection)
        page: int = connection.execute("PRAGMA page_size").fetchone()[0]
        if self.path.stat().st_size % page:
            # SQLite takes what is missing of the last page for zeros.
            raise self.damaged("its end is missing")
        if version == self._version:
            return
        statements = self._upgrades.get(version, self._tables)
        if version and version not in self._upgrades:
            raise InvalidSource(
                f"The {self._name} has format {version}; this version reads {self._version}. Nothing was changed. Use "
                "the version of kg-sextant that wrote it, or set another data_folder."
            )
        if not version and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise InvalidSource(
                f"{self.path.name} in the data folder is a database of another program. Nothing was changed. Set "
                "another data_folder, or move it away."
            )
        for statement in (*statements, f"PRAGMA user_version = {self._version}"):
            connection.execute(statement)

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in _DAMAGE:
                raise self.damaged(str(error)) from error
            if code in _BUSY:
                raise BackendTimeout(
                    f"The {self._name} is busy with other writers. Call again: writing the same again is harmless."
                ) from error
            raise self._unusable(str(error)) from error
        except UnicodeDecodeError as error:
            # SQLite names what is wrong by words of the damaged file.
            raise self.damaged("it holds bytes that are not text") from error
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error

    def _unusable(self, reason: str) -> BackendUnavailable:
        return BackendUnavailable(
            f"The {self._name} cannot be used: {reason}. The data folder has to be writable, with room on the disk; "
            "the setting data_folder names another. The other tools still work."
        )


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _text(content: bytes) -> str:
    return content.decode(errors="surrogateescape")
