"""Folders and files that only their owner may read, made whole at once and through no link.

What others could guess is never followed: where a link stands at the name of such a file, opening it fails, and a new
file is made under a name that is not there. A folder or file that is there already is tightened where it is ours:
owned by this user, and made by us or kept where we keep things by default. A folder that people name, such as `/tmp`,
stays as it is.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

import platformdirs

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_APP: Final = "kg-sextant"
_OTHERS: Final = 0o077
_NOT_THROUGH_LINKS: Final = getattr(os, "O_NOFOLLOW", 0)
_BESIDE_SQLITE: Final = ("-wal", "-shm", "-journal")


def private_folder(folder: Path, *, ours: bool = False) -> None:
    """Make a folder, and those missing around it, for their owner alone.

    Args:
        folder: The folder.
        ours: Whether its name is ours, inside a folder that people may have named: it is tightened where it is there.

    Raises:
        OSError: It cannot be made, or is no folder.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if ours:
        _tighten(folder)
    for each in {folder, folder.parent} & _default_folders():
        _tighten(each)


def private_file(path: Path) -> None:
    """Make a file for its owner alone where there is none, and tighten one that is there.

    Raises:
        OSError: It cannot be made, or is a link.
    """
    try:
        os.close(_opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        _tighten_file(path)


def private_database(path: Path) -> None:
    """Make or tighten a file of SQLite, with what SQLite keeps beside it.

    Raises:
        OSError: It cannot be made, or is a link.
    """
    private_file(path)
    for beside in (path.with_name(path.name + ending) for ending in _BESIDE_SQLITE):
        # Another process may delete it at any moment, and SQLite makes a new one with the rights of the database.
        with suppress(FileNotFoundError):
            _tighten_file(beside)


def open_private(path: Path, *, new: bool = False) -> int:
    """Open a file for writing from its beginning, for its owner alone, and return its descriptor.

    Args:
        path: The file.
        new: Whether it must not be there yet.

    Raises:
        FileExistsError: It must not be there and is.
        OSError: It cannot be opened, or is a link.
    """
    descriptor = _opened(path, os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.ftruncate(descriptor, 0)
    return descriptor


def write_private(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file for its owner alone, as a whole or not at all; what stands at its name is replaced, even a link.

    Args:
        path: The file.
        content: What it is to hold.
        durable: Whether it must outlast a crash of the machine from here on, which takes some milliseconds.

    Raises:
        OSError: It cannot be written.
    """
    building = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        with os.fdopen(open_private(building, new=True), "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        building.replace(path)
        if durable and os.name != "nt":
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError:
        with suppress(OSError):
            building.unlink()
        raise


def _opened(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags | _NOT_THROUGH_LINKS, FILE_MODE)
    _restrict(descriptor)
    return descriptor


def _tighten_file(path: Path) -> None:
    # Opening and closing a file that is there would give up the locks that this process has on it. Should it be
    # exchanged for a link in between, a file of this user is tightened, and nothing else.
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if os.name != "nt" and _is_loose(status):
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _tighten(folder: Path) -> None:
    if os.name == "nt":  # pragma: no cover - Windows keeps the folders of users private by itself
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NOT_THROUGH_LINKS)
    try:
        _restrict(descriptor)
    finally:
        os.close(descriptor)


def _restrict(descriptor: int) -> None:
    """Take others' rights from a folder or a plain file of this user."""
    if os.name == "nt":  # pragma: no cover - see above
        return
    status = os.fstat(descriptor)
    if _is_loose(status):
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _is_loose(status: os.stat_result) -> bool:
    """Return whether others have rights to a folder or a plain file of this user."""
    mine = status.st_uid == os.geteuid() and (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode))
    return mine and status.st_mode & _OTHERS != 0


def _default_folders() -> set[Path]:
    return {platformdirs.user_cache_path(_APP, appauthor=False), platformdirs.user_data_path(_APP, appauthor=False)}
