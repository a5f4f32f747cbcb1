"""Files with their checksums, so that one that was cut off, lost or changed is found out."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_adapters.index.block_files import Damage, block_digests
from kg_adapters.local.sparql.rounded import ROUNDED_FILE
from kg_boundary.regular_files import open_handle, open_regular, read_regular

SEAL_FILE: Final = "kg-sextant.json"
# What Oxigraph may write when it only reads, and what is empty in a store that was closed.
_UNSEALED: Final = frozenset({"LOCK", "LOG", "IDENTITY", SEAL_FILE})


class SealedFile(BaseModel):
    """A file as it was written.

    Args:
        path: Its path below its folder.
        size: Its bytes.
        sha256: The SHA-256 of the digests of its blocks, in hexadecimal.
        blocks: These digests themselves, where it is an array, which is read block by block.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    size: int
    sha256: str
    blocks: str = ""


class _Seal(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    files: tuple[SealedFile, ...]


def sealed_files(folder: Path, paths: Iterable[Path]) -> tuple[SealedFile, ...]:
    """Return files below a folder with their checksums."""
    return tuple(_sealed(folder, path) for path in paths)


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
    for file in files:
        try:
            found = _sealed(folder, folder / file.path)
        except OSError:
            return f"{file.path} is missing"
        if found != file:
            return find_cut(folder, [file]) or has_changed(file)
    return None


def require_sealed(file: SealedFile, content: int | bytes) -> None:
    """Compare an open file, or what was read of it, with its checksum.

    Raises:
        Damage: It has changed.
    """
    if _sha256(b"".join(block_digests(content))) != file.sha256:
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


def find_changed_oxigraph(folder: Path, most_bytes: float = float("inf")) -> str | None:
    """Return what is missing or has another size or content in a sealed Oxigraph store, or None.

    Args:
        folder: The store.
        most_bytes: Only the content of files that are no larger is read.
    """
    try:
        files = read_seal(folder / SEAL_FILE)
    except Damage as problem:
        return str(problem)
    if files is None:
        return f"{SEAL_FILE} is missing"
    if all(file.path != ROUNDED_FILE for file in files):
        return f"{ROUNDED_FILE} is missing"
    return find_cut(folder, files) or find_changed(folder, (file for file in files if file.size <= most_bytes))


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sealed(folder: Path, path: Path) -> SealedFile:
    handle = open_handle(path)
    try:
        digests = b"".join(block_digests(handle))
        return SealedFile(
            path=path.relative_to(folder).as_posix(),
            size=os.fstat(handle).st_size,
            sha256=_sha256(digests),
            blocks=digests.hex() if path.suffix == ".npy" else "",
        )
    finally:
        os.close(handle)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
