"""Files with their checksums, so that one that was cut off, lost or changed is found out."""

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_adapters.index.graph_index import Damage
from kg_boundary.regular_files import open_handle, open_regular, read_regular

SEAL_FILE: Final = "kg-sextant.json"
BLOCK_BYTES: Final = 1 << 20
"""A file is hashed in blocks of so many bytes, so that several processors can work on it: 1.6 GB/s each by SHA-256."""
_MAX_THREADS: Final = 4
_moving: Final = threading.Lock()
# What Oxigraph may write when it only reads, and what is empty in a store that was closed.
_UNSEALED: Final = frozenset({"LOCK", "LOG", "IDENTITY", SEAL_FILE})


class SealedFile(BaseModel):
    """A file: its path below its folder, its bytes and the SHA-256 of each of its blocks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    size: int
    blocks: tuple[str, ...]


class _Seal(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    files: tuple[SealedFile, ...]


def sealed_files(folder: Path, paths: Iterable[Path]) -> tuple[SealedFile, ...]:
    """Return files below a folder with their fingerprints."""
    with ThreadPoolExecutor(_threads()) as pool:
        return tuple(_sealed(folder, path, pool) for path in paths)


def find_cut(folder: Path, files: Iterable[SealedFile]) -> str | None:
    """Return what is wrong with the first file that is missing or has another size, or None."""
    for file in files:
        size = _size(folder / file.path)
        if size != file.size:
            found = "is missing" if size is None else f"has {size:,} bytes instead of {file.size:,}"
            return f"{file.path} {found}"
    return None


def find_changed(folder: Path, files: Iterable[SealedFile]) -> str | None:
    """Return what is wrong with the first file that is missing, or has another size or content, or None."""
    with ThreadPoolExecutor(_threads()) as pool:
        for file in files:
            try:
                handle = open_handle(folder / file.path)
            except OSError:
                return f"{file.path} is missing"
            try:
                if list(_blocks(handle, pool)) != list(file.blocks):
                    return find_cut(folder, [file]) or has_changed(file)
            finally:
                os.close(handle)
    return None


def require_sealed(files: Iterable[tuple[SealedFile, int | bytes]]) -> None:
    """Compare files with their fingerprints; in a thread, as it reads all of them.

    Args:
        files: Each with its handle, or with what was read of it.

    Raises:
        Damage: The content of one has changed.
    """
    with ThreadPoolExecutor(_threads()) as pool:
        for file, content in files:
            if list(_blocks(content, pool)) != list(file.blocks):
                raise Damage(has_changed(file))


def has_changed(file: SealedFile) -> str:
    """Return what is said of a file whose content is another one."""
    return f"the content of {file.path} has changed"


def write_seal(seal: Path, folder: Path, paths: Iterable[Path]) -> None:
    """Note in the file `seal` what files below a folder are; the note is there as a whole or not at all."""
    noted = _Seal(files=sealed_files(folder, sorted(paths)))
    fresh = seal.with_name(f"{seal.name}.part")
    fresh.write_text(noted.model_dump_json(), encoding="utf-8")
    fresh.replace(seal)


def read_seal(seal: Path) -> tuple[SealedFile, ...] | None:
    """Return the files that a seal is about as they were when it was written; None where there is no seal.

    Raises:
        Damage: It cannot be read.
    """
    try:
        return _Seal.model_validate_json(read_regular(seal)).files
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise Damage(f"{seal.parent.name}/{seal.name} cannot be read") from error


def seal_oxigraph(folder: Path) -> None:
    """Note in a closed Oxigraph store what its files are."""
    paths = (path for path in folder.iterdir() if path.is_file() and path.name not in _UNSEALED)
    write_seal(folder / SEAL_FILE, folder, (path for path in paths if path.suffix != ".log"))


def find_cut_oxigraph(folder: Path) -> str | None:
    """Return what is missing or has another size in a sealed Oxigraph store, or None; reads no content."""
    return _find_in_oxigraph(folder, find_cut)


def find_changed_oxigraph(folder: Path, *, small_only: bool = False) -> str | None:
    """Return what is missing or has another size or content in a sealed Oxigraph store, or None.

    Args:
        folder: The store.
        small_only: Only the content of files of one block: the engine compares the blocks of large ones with checksums
            of its own whenever it reads one.
    """

    def find(folder: Path, files: Iterable[SealedFile]) -> str | None:
        listed = tuple(files)
        small = (file for file in listed if not small_only or len(file.blocks) <= 1)
        return find_cut(folder, listed) or find_changed(folder, small)

    return _find_in_oxigraph(folder, find)


def _find_in_oxigraph(folder: Path, find: Callable[[Path, Iterable[SealedFile]], str | None]) -> str | None:
    try:
        files = read_seal(folder / SEAL_FILE)
    except Damage as problem:
        return str(problem)
    return f"{SEAL_FILE} is missing" if files is None else find(folder, files)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sealed(folder: Path, path: Path, pool: ThreadPoolExecutor) -> SealedFile:
    handle = open_handle(path)
    try:
        blocks = tuple(_blocks(handle, pool))
        return SealedFile(path=path.relative_to(folder).as_posix(), size=os.fstat(handle).st_size, blocks=blocks)
    finally:
        os.close(handle)


def _blocks(content: int | bytes, pool: ThreadPoolExecutor) -> Iterator[str]:
    """Yield the SHA-256 of each block of an open file, or of what was read of one.

    A file is read and not mapped, as that survives it being cut off meanwhile.
    """
    size = len(content) if isinstance(content, bytes) else os.fstat(content).st_size
    starts = range(0, size, BLOCK_BYTES)
    if len(starts) == 1:
        yield _block(content, 0)
    else:
        yield from pool.map(partial(_block, content), starts)


def _block(content: int | bytes, first: int) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(memoryview(content)[first : first + BLOCK_BYTES]).hexdigest()
    return hashlib.sha256(_read(content, first)).hexdigest()


def _read(handle: int, first: int) -> bytes:
    if sys.platform == "win32":  # pragma: no cover - it cannot read at a place without moving there
        with _moving:
            os.lseek(handle, first, os.SEEK_SET)
            return os.read(handle, BLOCK_BYTES)
    return os.pread(handle, BLOCK_BYTES, first)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _threads() -> int:
    return min(_MAX_THREADS, os.cpu_count() or 1)
