"""A look at every byte of a store."""

from dataclasses import dataclass
from pathlib import Path

from kg_adapters.local.seal import (
    SEAL_FILE,
    Damage,
    SealedFile,
    find_changed,
    find_changed_oxigraph,
    find_cut,
    read_seal,
)
from kg_adapters.local.store import INDEX_FOLDER, OXIGRAPH_FOLDER, LocalStore, StoreInfo, damaged, open_store
from kg_adapters.local.vectors.labels import FOLDER as VECTORS_FOLDER


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
        store.check.run()
    except Damage as problem:
        raise store.damaged(problem) from problem
    return sum(file.size for file in store.info.files if file.path.startswith(f"{INDEX_FOLDER}/"))


def verify_store(folder: Path) -> Verified:
    """Compare every file of a store with the hashes that were noted of it, those of vectors and for SPARQL as well.

    Raises:
        InvalidSource: It cannot be opened, or a file is missing or has another content.
    """
    store = open_store(folder)
    verify_index(store)
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
