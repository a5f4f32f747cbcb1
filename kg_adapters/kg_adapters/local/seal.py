"""Files with their fingerprints, so that one that was cut off, lost or changed is found out."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

SEAL_FILE: Final = "kg-sextant.json"
# What Oxigraph may write when it only reads, and what is empty in a store that was closed.
_UNSEALED: Final = frozenset({"LOCK", "LOG", "IDENTITY", SEAL_FILE})


class SealedFile(BaseModel):
    """A file: its path below its folder, its bytes and their SHA-256."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    size: int
    sha256: str


class _Seal(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    files: tuple[SealedFile, ...]


def sealed_files(folder: Path, paths: Iterable[Path]) -> tuple[SealedFile, ...]:
    """Return files below a folder with their fingerprints."""
    return tuple(
        SealedFile(path=path.relative_to(folder).as_posix(), size=path.stat().st_size, sha256=file_sha256(path))
        for path in paths
    )


def find_cut(folder: Path, files: Iterable[SealedFile]) -> str | None:
    """Return what is wrong with the first file that is missing or has another size, or None."""
    for file in files:
        size = _size(folder / file.path)
        if size != file.size:
            found = "is missing" if size is None else f"has {size:,} bytes instead of {file.size:,}"
            return f"{file.path} {found}"
    return None


def find_changed(folder: Path, files: Iterable[SealedFile]) -> str | None:
    """Return what is wrong with the first file that has another content, or None."""
    changed = (file for file in files if file_sha256(folder / file.path) != file.sha256)
    return next((f"the content of {file.path} has changed" for file in changed), None)


def seal_oxigraph(folder: Path) -> None:
    """Note in a closed Oxigraph store what its files are."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in _UNSEALED)
    seal = _Seal(files=sealed_files(folder, (path for path in paths if path.suffix != ".log")))
    (folder / SEAL_FILE).write_text(seal.model_dump_json(), encoding="utf-8")


def read_seal(folder: Path) -> tuple[SealedFile, ...] | None:
    """Return the files of an Oxigraph store as they were when it was sealed; None where no seal can be read."""
    try:
        return _Seal.model_validate_json((folder / SEAL_FILE).read_bytes()).files
    except (OSError, ValidationError):
        return None


def is_whole(folder: Path) -> bool:
    """Say whether a sealed Oxigraph store has all its files in full."""
    files = read_seal(folder)
    return files is not None and find_cut(folder, files) is None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
