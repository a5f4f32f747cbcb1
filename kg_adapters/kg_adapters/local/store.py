"""A store: the folder that an import leaves behind, and how it is opened."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.labels import Vocabulary
from kg_adapters.local.index import GraphIndex, open_index
from kg_adapters.local.swap import recover
from kg_adapters.prefixes import Prefixes

FORMAT: Final = 1
STORE_FILE: Final = "store.json"
INDEX_FOLDER: Final = "index"
OXIGRAPH_FOLDER: Final = "oxigraph"
_AGAIN: Final = "Import the files again: kg-sextant import FILE… --to"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceFile(_Stored):
    """A file that was imported: its name, its bytes and their SHA-256."""

    name: str
    size: int
    sha256: str


class StoredFile(_Stored):
    """A file of the store: its path below the folder, its bytes and their SHA-256."""

    path: str
    size: int
    sha256: str


class Counts(_Stored):
    """How much a graph holds: `triples` between entities over `relations`, `features` with literals."""

    entities: int
    relations: int
    triples: int
    features: int


class StoreInfo(_Stored):
    """What `store.json` says about its folder.

    Args:
        format: The version of the folder's layout.
        name: What people call the graph.
        created_by: The program's version that built it.
        sources: The files it was built from.
        skipped: How many statements could not be read and were left out.
        counts: How much it holds.
        prefixes: The short forms of its IRIs.
        vocabulary: The relations that name, describe and type its entities.
        files: Every file that the import wrote, but those of Oxigraph.
    """

    format: int
    name: str
    created_by: str
    sources: tuple[SourceFile, ...]
    skipped: int
    counts: Counts
    prefixes: Prefixes
    vocabulary: Vocabulary
    files: tuple[StoredFile, ...]


class _Version(BaseModel):
    format: int


@dataclass(frozen=True, slots=True)
class LocalStore:
    """An open store: its folder, what it says about itself, and its memory-mapped index."""

    folder: Path
    info: StoreInfo
    index: GraphIndex


def is_store(folder: Path) -> bool:
    """Say whether a folder is a store, whatever its version or state."""
    return (folder / STORE_FILE).is_file()


def open_store(folder: Path) -> LocalStore:
    """Open a store for reading; any number of processes may do so at once.

    Raises:
        InvalidSource: It is no store, of another format version, or a file is missing or cut off.
    """
    if not folder.exists():
        recover(folder)
    info = read_store_info(folder)
    for file in info.files:
        path = folder / file.path
        size = path.stat().st_size if path.is_file() else None
        if size != file.size:
            found = "is missing" if size is None else f"has {size:,} bytes instead of {file.size:,}"
            raise _damaged(folder, f"{file.path} {found}")
    try:
        index = open_index(folder / INDEX_FOLDER)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(folder, str(error)) from error
    return LocalStore(folder, info, index)


def read_store_info(folder: Path) -> StoreInfo:
    """Return what a store says about itself, without a look at its other files.

    Raises:
        InvalidSource: It is no store, of another format version, or `store.json` is damaged.
    """
    if not is_store(folder):
        raise InvalidSource(f"{folder} is not a store of kg-sextant. Build one: kg-sextant import FILE… --to {folder}")
    try:
        text = (folder / STORE_FILE).read_bytes()
        version = _Version.model_validate_json(text).format
        if version != FORMAT:
            age = "an older" if version < FORMAT else "a newer"
            message = f"{folder} was built by {age} version (format {version}; this one reads {FORMAT})"
            raise InvalidSource(f"{message}. {_AGAIN} {folder}")
        return StoreInfo.model_validate_json(text)
    except (OSError, ValidationError, InvalidRequest) as error:
        raise _damaged(folder, f"{STORE_FILE} cannot be read") from error


def verify_store(folder: Path) -> StoreInfo:
    """Compare every file of a store with the SHA-256 that the import noted, and return what the store says.

    Raises:
        InvalidSource: It cannot be opened, or the content of a file has changed.
    """
    info = open_store(folder).info
    for file in info.files:
        if file_sha256(folder / file.path) != file.sha256:
            raise _damaged(folder, f"the content of {file.path} has changed")
    return info


def write_store_info(folder: Path, info: StoreInfo) -> None:
    """Write `store.json`, which makes a folder a store."""
    text = json.dumps(info.model_dump(mode="json"), ensure_ascii=False, indent=1)
    (folder / STORE_FILE).write_text(text + "\n", encoding="utf-8")


def stored_files(folder: Path) -> tuple[StoredFile, ...]:
    """Return the files below a folder with their fingerprints, but Oxigraph's, which change when it is opened."""
    return tuple(
        StoredFile(path=path.relative_to(folder).as_posix(), size=path.stat().st_size, sha256=file_sha256(path))
        for path in _lasting_files(folder)
    )


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lasting_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.is_file() and place.parts[0] not in {OXIGRAPH_FOLDER, STORE_FILE} and not path.name.endswith(".lock"):
            yield path


def _damaged(folder: Path, reason: str) -> InvalidSource:
    return InvalidSource(f"The store {folder} is damaged: {reason}. {_AGAIN} {folder}")
