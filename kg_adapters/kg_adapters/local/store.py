"""A store: the folder that an import leaves behind, how it is opened, and how all of it is verified."""

import hashlib
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from kg_adapters.errors import GraphReplaced, InvalidRequest, InvalidSource, StoreDamaged
from kg_adapters.index.block_files import Damage
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.index.storage import keep_freed_memory
from kg_adapters.labels import Vocabulary
from kg_adapters.local.array_files import ArrayFiles, open_index
from kg_adapters.local.checksums import (
    SEAL_FILE,
    SealedFile,
    find_changed,
    find_changed_oxigraph,
    find_cut,
    read_seal,
    require_sealed,
    sealed_files,
)
from kg_adapters.local.swap import NOTES_FILE, recover
from kg_adapters.prefixes import Prefixes
from kg_boundary.regular_files import read_regular

FORMAT: Final = 7
_IN_PROFILE: Final = {"vocabulary": {"standard_inverses"}}
"""What a store does not keep, but its profile follows from."""
STORE_FILE: Final = "store.json"
INDEX_FOLDER: Final = "index"
OXIGRAPH_FOLDER: Final = "oxigraph"
VECTORS_FOLDER: Final = "vectors"
_INDEX: Final = f"{INDEX_FOLDER}/"
_FIRST_ARRAY: Final = f"{_INDEX}nodes.text.npy"
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

    entities: NonNegativeInt
    relations: NonNegativeInt
    triples: NonNegativeInt
    features: NonNegativeInt


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


class _StoreFile(_Stored):
    """The content of `store.json`: the manifest, and the SHA-256 of what it says."""

    format: int
    sha256: str
    store: StoreInfo


@dataclass(frozen=True, slots=True)
class LocalStore:
    """An open store: its folder, what it says about itself, and its index.

    Args:
        folder: Where it is.
        info: What `store.json` says.
        index: The graph; what is read of it is verified, or raises `Damage`.
        files: The files of the index, to be watched while it is used.
        stamp: What tells the store from another one that takes its place.
    """

    folder: Path
    info: StoreInfo
    index: GraphIndex
    files: ArrayFiles
    stamp: Stamp | None

    @property
    def content(self) -> str:
        """What tells the graph in the index from every other one, whenever it was imported."""
        parts = (f"{file.path} {file.sha256}" for file in self.info.files if file.path.startswith(_INDEX))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def require_current(self) -> None:
        """Make sure that what is read from the folder now belongs to the index that was opened before.

        Raises:
            GraphReplaced: The folder holds another store by now.
        """
        if store_stamp(self.folder) != self.stamp:
            raise GraphReplaced(
                f"The store {self.folder} was imported again or removed after it was opened here. "
                "Ask again; if that does not help, start the server again."
            )

    @contextmanager
    def reading(self, path: str) -> Generator[None]:
        """Turn the failures of what reads a file of the folder into `Damage`, and check that it is this store's.

        Raises:
            Damage: The file cannot be read, or is not what the import wrote.
            GraphReplaced: The folder holds another store by now.
        """
        self.require_current()
        try:
            yield
        except Damage:
            self.require_current()
            raise
        except (OSError, ValueError, EOFError) as error:
            self.require_current()
            raise Damage(f"{path} cannot be read ({error})") from error
        self.require_current()

    def files_of(self, folder: str) -> ArrayFiles:
        """Return the files of one of its folders, which are verified as they are read."""
        return ArrayFiles(self.folder, folder, self.info.files)

    def read(self, path: str) -> bytes:
        """Return the content of a small file.

        Raises:
            OSError: It cannot be read.
            Damage: It is not what the import wrote.
        """
        sealed = next((file for file in self.info.files if file.path == path), None)
        if sealed is None:
            raise Damage(f"{path} is not in the manifest")
        content = read_regular(self.folder / path, sealed.size)
        require_sealed(sealed, content)
        return content

    def damaged(self, problem: Exception) -> StoreDamaged:
        """Return the error that says what is wrong with the store, and what to do."""
        return damaged(self.folder, str(problem))


def is_store(folder: Path) -> bool:
    """Say whether a folder is a store, whatever its version or state."""
    return any((folder / name).is_file() for name in (STORE_FILE, _FIRST_ARRAY))


def open_store(folder: Path) -> LocalStore:
    """Open a store for reading; any number of processes may do so at once, even while it is replaced by another one.

    This takes the same time at any size; the index is verified as it is read.

    Raises:
        InvalidSource: It is no store, of another format version, or a file is missing or cut off.
    """
    keep_freed_memory()
    while True:
        if not folder.exists():
            recover(folder)
        stamp = store_stamp(folder)
        try:
            store = _open(folder, stamp)
        except InvalidSource:
            if stamp == store_stamp(folder):
                raise
        else:
            if stamp == store_stamp(folder):
                return store


def _open(folder: Path, stamp: Stamp | None) -> LocalStore:
    info = read_store_info(folder)
    if (problem := find_cut(folder, info.files)) is not None:
        raise damaged(folder, problem)
    try:
        files = ArrayFiles(folder, INDEX_FOLDER, info.files)
        index = open_index(files)
    except (OSError, Damage) as error:
        raise damaged(folder, str(error)) from error
    return LocalStore(folder, info, index, files, stamp)


def store_stamp(folder: Path) -> Stamp | None:
    """Return what tells the store in a folder from another one that takes its place; None where there is none."""
    try:
        # Looked at before every call, and three times as fast as by a `Path`.
        at = os.stat(f"{folder}/{STORE_FILE}")  # noqa: PTH116
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
        text = read_regular(folder / STORE_FILE)
        version = _Version.model_validate_json(text).format
        if version != FORMAT:
            age = "an older" if version < FORMAT else "a newer"
            message = f"{folder} was built by {age} version (format {version}; this one reads {FORMAT})"
            raise InvalidSource(f"{message}. {_AGAIN} {folder}")
        content = _StoreFile.model_validate_json(text)
        if content.sha256 != _digest(content.store):
            raise damaged(folder, f"the content of {STORE_FILE} has changed")
    except (OSError, ValidationError, InvalidRequest) as error:
        raise damaged(folder, f"{STORE_FILE} cannot be read") from error
    return content.store


def write_store_info(folder: Path, info: StoreInfo) -> None:
    """Write `store.json`, which makes a folder a store."""
    content = _StoreFile(format=info.format, sha256=_digest(info), store=info)
    text = content.model_dump_json(indent=1, exclude={"store": _IN_PROFILE})
    (folder / STORE_FILE).write_text(f"{text}\n", encoding="utf-8")


def stored_files(folder: Path) -> tuple[SealedFile, ...]:
    """Return the files below a folder with their fingerprints, but Oxigraph's, which have their own, and notes."""
    return sealed_files(folder, _lasting_files(folder))


def _digest(info: StoreInfo) -> str:
    return hashlib.sha256(info.model_dump_json(exclude=_IN_PROFILE).encode()).hexdigest()


def _lasting_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        left_out = place.parts[0] in {OXIGRAPH_FOLDER, STORE_FILE, NOTES_FILE} or path.name.endswith(".lock")
        if path.is_file() and not left_out:
            yield path


def damaged(folder: Path, reason: str) -> StoreDamaged:
    """Return the error that says what is wrong with a store, and what to do."""
    return StoreDamaged(f"The store {folder} is damaged: {reason}. {_AGAIN} {folder}")


@dataclass(frozen=True, slots=True)
class Verified:
    """What was compared with the hashes that were noted of it.

    Args:
        info: What the store says.
        files: How many files were compared.
        size: How many bytes they have.
        unsealed: Folders of vectors, as paths inside the store, whose making was interrupted: nothing reads them yet.
    """

    info: StoreInfo
    files: int
    size: int
    unsealed: tuple[str, ...]


def verify_index(store: LocalStore) -> int:
    """Compare the index of an open store with the hashes that were noted of it, and return how many bytes it has.

    Raises:
        InvalidSource: A file has another content.
    """
    try:
        store.files.verify_all()
    except Damage as problem:
        raise store.damaged(problem) from problem
    return sum(file.size for file in store.info.files if file.path.startswith(_INDEX))


def verify_store(folder: Path) -> Verified:
    """Compare every file of a store with the hashes that were noted of it, those of vectors and for SPARQL as well.

    Raises:
        InvalidSource: It cannot be opened, or a file is missing or has another content.
    """
    store = open_store(folder)
    try:
        vectors, unsealed = _vectors(folder)
        files = (*_compared(folder, (*store.info.files, *vectors)), *_oxigraph(store))
    except Damage as problem:
        raise damaged(folder, str(problem)) from problem
    return Verified(store.info, len(files), sum(file.size for file in files), unsealed)


def _compared(folder: Path, files: tuple[SealedFile, ...]) -> tuple[SealedFile, ...]:
    if (problem := find_cut(folder, files) or find_changed(folder, files)) is not None:
        raise Damage(problem)
    return files


def _vectors(folder: Path) -> tuple[tuple[SealedFile, ...], tuple[str, ...]]:
    """Return the sealed files of all vectors, and the folders that have an array but no seal."""
    files: tuple[SealedFile, ...] = ()
    unsealed: list[str] = []
    for model in sorted(path for path in (folder / VECTORS_FOLDER).glob("*") if path.is_dir()):
        seals = [read_seal(path) or () for path in sorted(model.glob("*.seal.json"))]
        sealed = {file.path for seal in seals for file in seal}
        files += tuple(file for seal in seals for file in seal)
        arrays = (path.relative_to(folder).as_posix() for path in model.glob("*.npy"))
        if not sealed.issuperset(arrays):
            unsealed.append(model.relative_to(folder).as_posix())
    return files, tuple(unsealed)


def _oxigraph(store: LocalStore) -> tuple[SealedFile, ...]:
    oxigraph = store.folder / OXIGRAPH_FOLDER
    if not oxigraph.exists():
        return ()
    if (problem := find_changed_oxigraph(oxigraph)) is not None:
        raise Damage(f"in {OXIGRAPH_FOLDER}, {problem}")
    return read_seal(oxigraph / SEAL_FILE) or ()
