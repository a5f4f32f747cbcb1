"""Whether the file that is open is still the one under its name.

SQLite goes on reading and writing a file that was removed, replaced or overwritten, and none of that is ever found
again. Its name, and the names of the log and the index beside it, must lead to the files that are open; and the main
file must stand between the state that the log begins with and the one that the log gives. For that each commit adds one
to a number in the header of the file, the `application_id`, which begins at random so that no two files are alike.
"""

import os
import secrets
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

Change: TypeAlias = Literal["replaced", "overwritten", "set back", "log"]
"""What happened to a file: another or none has its name, other bytes were written into it, an older state was
committed to it, or its log was removed or replaced."""

_LOG: Final = "-wal"
_SIDES: Final = (_LOG, "-shm")
_OPEN_FILES: Final = Path("/dev/fd")
_HEADER: Final = 72
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_COMMITS_AT: Final = 68
_FIRST_COMMITS: Final = 2**30

_Inode: TypeAlias = tuple[int, int]


class Moved(Exception):
    """The file that is open is not, or not as it was, the one under its name."""

    def __init__(self, change: Change) -> None:
        self.change: Change = change
        super().__init__(change)


def first_commits() -> int:
    """Return where the number of commits of a new file begins."""
    return 1 + secrets.randbelow(_FIRST_COMMITS)


def commits_of(connection: sqlite3.Connection) -> int:
    """Return the number of commits in what a transaction sees."""
    number: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return number


def count_commit(connection: sqlite3.Connection) -> None:
    """Count the commit that ends this transaction."""
    connection.execute(f"PRAGMA application_id = {commits_of(connection) + 1}")


def side_files(path: Path) -> list[Path]:
    """Return the log of a file and the index of the log."""
    return [path.with_name(path.name + ending) for ending in _SIDES]


@dataclass(slots=True)
class _Seen:
    """What was seen last: the numbers of commits through SQLite and in the main file, and when that was written."""

    commits: int
    in_file: int | None
    written: _Inode | None


class FileWatch:
    """Compares an open file with what stands under its name.

    Args:
        path: The file.
        connection: What it was just opened with.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        # SQLite makes the log and its index as it first reads the file.
        commits = commits_of(connection)
        self._path = path
        self._inode = _inode(path)
        self._sides = [(side, _inode(side)) for side in side_files(path)]
        self._descriptor = self._open_descriptor()
        self._connection = connection
        self._seen = _Seen(commits, self._commits_in_file(), _written(path))

    def check_names(self) -> None:
        """See that all names lead to what is open, before a transaction and after it.

        Raises:
            Moved: One does not.
        """
        if _inode(self._path) != self._inode:
            raise Moved("replaced")
        if any(_inode(side) != inode for side, inode in self._sides):
            raise Moved("log")
        if _written(self._path) != self._seen.written:
            # What SQLite remembers of the file may not be in it any more.
            self._connection.execute("PRAGMA shrink_memory")

    def check_content(self) -> None:
        """See within a transaction that nobody has set the file back or written into it past SQLite.

        Raises:
            Moved: Somebody has.
        """
        seen, commits, written = self._seen, commits_of(self._connection), _written(self._path)
        if commits < seen.commits:
            raise Moved("set back")
        if written == seen.written:
            seen.commits = commits
            return
        in_file = self._commits_in_file()
        if in_file is not None:
            least = max(seen.in_file or 0, (_commits_in_log(self._sides[0][0]) or 1) - 1)
            if not least <= in_file <= commits:
                raise Moved("overwritten")
        self._seen = _Seen(commits, in_file, written)

    def note(self, commits: int) -> None:
        """Remember the number of commits after a transaction."""
        self._seen.commits = commits

    def let_go(self, change: Change) -> None:
        """Close the file so that none of it gets into another one; the caller keeps others from opening it.

        SQLite writes the log back as it closes, unless the name of the file leads elsewhere by then. That is right only
        where nobody has written to the file since. A log that was not removed with its file is removed after it: read
        together with another file it would damage that one.
        """
        connection, in_place = self._connection, _inode(self._path) == self._inode
        if change == "set back" or (change == "replaced" and in_place):
            connection.close()
            return
        written_back = change == "log" and self._commits_in_file() == self._seen.in_file and _write_back(connection)
        with self._aside() if in_place and not written_back else nullcontext():
            connection.close()
        for side, inode in self._sides:
            needed = change == "log" and not written_back and side.name.endswith(_LOG)
            if inode is not None and _inode(side) == inode and not needed:
                side.unlink(missing_ok=True)

    @contextmanager
    def _aside(self) -> Generator[None]:
        aside = self._path.with_name(f".{self._path.name}.aside")
        self._path.rename(aside)
        try:
            yield
        finally:
            aside.rename(self._path)

    def _commits_in_file(self) -> int | None:
        """Return the number of commits in the main file, or None where the system does not let it be read.

        It is read through the descriptor that SQLite has: closing another one would give up the locks of the process.
        """
        if self._descriptor is not None and _inode_of(self._descriptor) != self._inode:
            self._descriptor = self._open_descriptor()
        if self._descriptor is None:
            return None
        header = os.pread(self._descriptor, _HEADER, 0)
        return int.from_bytes(header[_COMMITS_AT:], signed=True) if len(header) == _HEADER else -1

    def _open_descriptor(self) -> int | None:
        if not _OPEN_FILES.is_dir():
            return None
        numbers = (int(each.name) for each in _OPEN_FILES.iterdir())
        return next((number for number in numbers if _inode_of(number) == self._inode), None)


def _written(path: Path) -> tuple[int, int] | None:
    """Return when a file was written to, and how long it is."""
    with suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    return None


def _commits_in_log(log: Path) -> int | None:
    """Return the number after the first commit in a log (https://sqlite.org/walformat.html), or None if it has none.

    Each commit writes the first page, which holds the number, and before all others. SQLite does not lock the log, so
    that opening it once more does no harm.
    """
    with log.open("rb") as file:
        header, frame = file.read(_LOG_HEADER), file.read(_FRAME_HEADER + _HEADER)
    salts, first_page = header[16:24], frame[:4] == b"\0\0\0\1"
    if len(frame) < _FRAME_HEADER + _HEADER or frame[8:16] != salts or not first_page:
        return None
    return int.from_bytes(frame[_FRAME_HEADER + _COMMITS_AT :], signed=True)


def _inode(path: Path) -> _Inode | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _inode_of(descriptor: int) -> _Inode | None:
    with suppress(OSError):
        found = os.fstat(descriptor)
        return found.st_dev, found.st_ino
    return None


def _write_back(connection: sqlite3.Connection) -> bool:
    """Write the log that is open into the file, and say whether all of it is there."""
    with suppress(sqlite3.Error):
        busy, logged, written = connection.execute("PRAGMA wal_checkpoint").fetchone()
        return not busy and logged == written
    return False
