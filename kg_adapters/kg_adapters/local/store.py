"""A store: the folder that an import leaves behind, and how it is opened."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.labels import Vocabulary
from kg_adapters.local.index import GraphIndex, open_index
from kg_adapters.local.seal import SealedFile, find_changed, find_cut, read_seal, sealed_files
from kg_adapters.local.swap import recover
from kg_adapters.prefixes import Prefixes

FORMAT: Final = 1
STORE_FILE: Final = "store.json"
INDEX_FOLDER: Final = "index"
OXIGRAPH_FOLDER: Final = "oxigraph"
_FIRST_ARRAY: Final = f"{INDEX_FOLDER}/nodes.text.npy"
_AGAIN: Final = "Import the files again: kg-sextant import FILE… --to"

Stamp: TypeAlias = tuple[int, int, int]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceFile(_Stored):
    """A file that was imported: its name, its bytes and their SHA-256."""

    name: str
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
    files: tuple[SealedFile, ...]


class _Version(BaseModel):
    format: int


@dataclass(frozen=True, slots=True)
class LocalStore:
    """An open store: its folder, what it says about itself, and its memory-mapped index.

    Args:
        folder: Where it is.
        info: What `store.json` says.
        index: The graph.
        stamp: What tells the store from another one that takes its place.
    """

    folder: Path
    info: StoreInfo
    index: GraphIndex
    stamp: Stamp | None

    def require_current(self) -> None:
        """Make sure that what is read from the folder now belongs to the index that was opened before.

        Raises:
            InvalidSource: The folder holds another store by now.
        """
        if _stamp(self.folder) != self.stamp:
            raise InvalidSource(
                f"The store {self.folder} was imported anew or removed after it was opened here. "
                "Start the server again to read what is there now."
            )

    def require_intact(self, start: str) -> None:
        """Make sure that the files whose paths begin with `start` are as the import wrote them.

        Raises:
            OSError: One of them is missing.
            ValueError: The content of one has changed.
        """
        files = (file for file in self.info.files if file.path.startswith(start))
        if (problem := find_changed(self.folder, files)) is not None:
            raise ValueError(problem)


def is_store(folder: Path) -> bool:
    """Say whether a folder is a store, whatever its version or state."""
    return any((folder / name).is_file() for name in (STORE_FILE, _FIRST_ARRAY))


def open_store(folder: Path) -> LocalStore:
    """Open a store for reading; any number of processes may do so at once, even while it is replaced by another one.

    Raises:
        InvalidSource: It is no store, of another format version, or a file is missing or cut off.
    """
    while True:
        if not folder.exists():
            recover(folder)
        stamp = _stamp(folder)
        try:
            store = _open(folder, stamp)
        except InvalidSource:
            if stamp == _stamp(folder):
                raise
        else:
            if stamp == _stamp(folder):
                return store


def _open(folder: Path, stamp: Stamp | None) -> LocalStore:
    info = read_store_info(folder)
    if (problem := find_cut(folder, info.files)) is not None:
        raise _damaged(folder, problem)
    try:
        index = open_index(folder / INDEX_FOLDER)
    except (OSError, ValueError) as error:
        raise _damaged(folder, f"{INDEX_FOLDER}/{error}") from error
    return LocalStore(folder, info, index, stamp)


def _stamp(folder: Path) -> Stamp | None:
    try:
        at = (folder / STORE_FILE).stat()
    except OSError:
        return None
    return at.st_dev, at.st_ino, at.st_mtime_ns


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
    """Compare every file of a store with the SHA-256 that was noted of it, and return what the store says.

    Raises:
        InvalidSource: It cannot be opened, or the content of a file has changed.
    """
    info = open_store(folder).info
    if (problem := find_changed(folder, info.files)) is not None:
        raise _damaged(folder, problem)
    oxigraph = folder / OXIGRAPH_FOLDER
    sealed = read_seal(oxigraph) or ()
    if (problem := find_cut(oxigraph, sealed) or find_changed(oxigraph, sealed)) is not None:
        raise _damaged(folder, f"in {OXIGRAPH_FOLDER}, {problem}")
    return info


def write_store_info(folder: Path, info: StoreInfo) -> None:
    """Write `store.json`, which makes a folder a store."""
    text = json.dumps(info.model_dump(mode="json"), ensure_ascii=False, indent=1)
    (folder / STORE_FILE).write_text(text + "\n", encoding="utf-8")


def stored_files(folder: Path) -> tuple[SealedFile, ...]:
    """Return the files below a folder with their fingerprints, but Oxigraph's, which have a seal of their own."""
    return sealed_files(folder, _lasting_files(folder))


def _lasting_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.is_file() and place.parts[0] not in {OXIGRAPH_FOLDER, STORE_FILE} and not path.name.endswith(".lock"):
            yield path


def _damaged(folder: Path, reason: str) -> InvalidSource:
    return InvalidSource(f"The store {folder} is damaged: {reason}. {_AGAIN} {folder}")
