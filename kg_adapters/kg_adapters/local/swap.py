"""A folder that appears as a whole or not at all, whatever interrupts its making."""

import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Final

from kg_adapters.errors import InvalidSource

NOTES_FILE: Final = "notes.md"
"""What a graph's owner writes about it, inside a store; people edit it, and an import keeps it."""


@contextmanager
def exclusively(target: Path, on_wait: Callable[[], None] = lambda: None) -> Generator[None]:
    """Be the only process and thread that makes `target`; call `on_wait` before waiting for another one.

    Raises:
        InvalidSource: The folder around `target` cannot be written to.
    """
    # What only reads a store needs no lock.
    from filelock import FileLock, Timeout

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.parent / f".{target.name}.lock"
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            # Where no file can be made, as in /proc, the lock would be waited for without end.
            file.stat()
            on_wait()
            lock.acquire()
    except OSError as error:
        raise InvalidSource(f"{target.parent} cannot be written to: {error.strerror or error}.") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def replacing(target: Path) -> Generator[Path]:
    """Give an empty folder beside `target` that takes its place when the block ends without an error.

    Notes in `target` are copied into the new folder.
    Only for the holder of `exclusively(target)`: what dead holders left beside `target` is cleared away first.
    """
    _restore(target)
    for left_over in _beside(target, "building"):
        shutil.rmtree(left_over)
    building = target.parent / f".{target.name}.building-{token_hex(4)}"
    building.mkdir()
    try:
        yield building
        _sync(building)
        # The last thing, as somebody may be editing them.
        if (notes := target / NOTES_FILE).is_file():
            shutil.copy2(notes, building / NOTES_FILE)
            _sync_one(building / NOTES_FILE)
        _exchange(building, target)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def is_moved_aside(target: Path) -> bool:
    """Say whether an import was about to replace `target` and did not come to its end yet, or ever."""
    return bool(_beside(Path(os.path.realpath(target)), "old"))


def recover(target: Path) -> None:
    """Bring back what stood at `target` when a holder of the lock died between its two renames.

    Raises:
        InvalidSource: The folder around `target` cannot be written to.
    """
    real = Path(os.path.realpath(target))
    if _beside(real, "old"):
        with exclusively(real):
            _restore(real)


def _restore(target: Path) -> None:
    for old in _beside(target, "old"):
        if target.exists():
            shutil.rmtree(old)
        else:
            old.rename(target)


def _exchange(building: Path, target: Path) -> None:
    old = target.parent / f".{target.name}.old-{token_hex(4)}"
    if target.exists():
        target.rename(old)
    building.rename(target)
    _sync_one(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _beside(target: Path, kind: str) -> list[Path]:
    start = f".{target.name}.{kind}-"
    if not target.parent.is_dir():
        return []
    return sorted(path for path in target.parent.iterdir() if path.name.startswith(start))


def _sync(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        _sync_one(path)


def _sync_one(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # pragma: no cover - Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
