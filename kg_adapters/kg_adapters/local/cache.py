"""Stores that are built on first use and kept in the user's cache folder."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_adapters.errors import InvalidSource
from kg_adapters.files.sources import Source, gather_sources, look
from kg_adapters.local.checksums import file_sha256
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import FORMAT, STORE_FILE, LocalStore, is_store, open_store, store_stamp
from kg_adapters.local.swap import exclusively, replacing
from kg_adapters.open_options import SAMPLE, OnProgress, Progress, ignore_progress
from kg_boundary.private_files import private_folder, write_private
from kg_boundary.regular_files import read_regular

_KEY_LENGTH: Final = 16


class _SeenFile(BaseModel):
    """A source as it was when it was imported; while size and time of change stay, its content is taken to stay."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    size: int
    modified_ns: int


class _Seen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    files: tuple[_SeenFile, ...]


def open_cached(
    paths: Sequence[Path], cache_folder: Path, options: ImportOptions, progress: OnProgress = ignore_progress
) -> LocalStore:
    """Open a store of these files, imported now or earlier; it is imported anew when a file has changed.

    Safe under several processes: one imports, the others wait for it.

    Raises:
        InvalidSource: A file cannot be read, or the cache folder cannot be written to.
    """
    sources = gather_sources(paths, follow_links=options.follow_links).files
    folder = cache_folder.absolute() / _key(paths, options)
    _keep_private(folder.parent)
    if (fresh := _fresh(folder, sources)) is not None:
        return fresh
    total = sum(look(source.path).size for source in sources)
    with exclusively(_seen_file(folder), on_wait=lambda: progress(Progress("waiting", 0, total, 0))):
        if _fresh(folder, sources) is None:
            seen = _look(sources)
            if not _same_content(folder, sources):
                from kg_adapters.importing.build import build_store  # noqa: PLC0415 - needed once for a file

                _clear_ruins(folder)
                build_store(paths, folder, options, progress)
            write_private(_seen_file(folder), seen.model_dump_json().encode())
    _keep_private(folder)
    return open_store(folder)


def open_earlier(paths: Sequence[Path], cache_folder: Path, options: ImportOptions) -> LocalStore:
    """Open the store of these files as they were when they were imported last; nothing is imported or written.

    Raises:
        InvalidSource: They were never imported like this.
    """
    store = _opened(cache_folder.absolute() / _key(paths, options))
    if store is None:
        raise InvalidSource(f"{paths[0]} has not been imported yet.")
    return store


def discard(store: LocalStore) -> None:
    """Make a damaged store of the cache count as missing, so that opening its sources makes it again.

    Raises:
        OSError: The cache cannot be written to.
    """
    if store_stamp(store.folder) == store.stamp:
        (store.folder / STORE_FILE).unlink(missing_ok=True)


def sample_file(name: str) -> str:
    """Return the name of the archive that holds one of the graphs that are shipped with the package."""
    return f"{name.replace(':', '-')}.zip"


def open_sample(cache_folder: Path, name: str = SAMPLE) -> LocalStore:
    """Open a graph that is shipped with the package, one of `SAMPLES`, unpacked now or earlier.

    Raises:
        InvalidSource: The cache folder cannot be written to.
    """
    with as_file(files("kg_adapters.local") / sample_file(name)) as path, zipfile.ZipFile(path) as archive:
        folder = cache_folder.absolute() / f"{name.replace(':', '-')}-{_content_key(archive)}"
        _keep_private(folder.parent)
        if (found := _opened(folder)) is not None:
            return found
        with exclusively(folder):
            if _opened(folder) is None:
                with replacing(folder) as unpacked:
                    archive.extractall(unpacked)
    return open_store(folder)


def _content_key(archive: zipfile.ZipFile) -> str:
    """Return a name for what an archive holds, by the checksums in its directory."""
    held = [(member.filename, member.file_size, member.CRC) for member in archive.infolist()]
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()[:_KEY_LENGTH]


def _keep_private(folder: Path) -> None:
    """Keep what was imported from other users, who may read its sources or may not."""
    with suppress(OSError):
        # The folder of a store is ours by its name; that around it may be anybody's.
        private_folder(folder, ours=is_store(folder))


def _key(paths: Sequence[Path], options: ImportOptions) -> str:
    identity: list[object] = [FORMAT, [str(path.resolve()) for path in paths], repr(options)]
    # Under another name a file may be of another format.
    if any(path.is_symlink() for path in paths):
        identity.append([path.name for path in paths])
    if options.follow_links:
        identity.append("links")
    name = paths[0].resolve().name.partition(".")[0][:40] or "graph"
    return f"{name}-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:_KEY_LENGTH]}"


def _seen_file(store: Path) -> Path:
    return store.with_name(f"{store.name}.sources.json")


def _look(sources: Sequence[Source]) -> _Seen:
    looks = [(source.path, look(source.path)) for source in sources]
    return _Seen(files=tuple(_SeenFile(path=str(path), size=at.size, modified_ns=at.modified_ns) for path, at in looks))


def _fresh(folder: Path, sources: Sequence[Source]) -> LocalStore | None:
    try:
        seen = _Seen.model_validate_json(read_regular(_seen_file(folder)))
    except (OSError, ValidationError):
        return None
    return _opened(folder) if seen == _look(sources) else None


def _same_content(folder: Path, sources: Sequence[Source]) -> bool:
    store = _opened(folder)
    if store is None:
        return False
    was = [(file.name, file.size, file.sha256) for file in store.info.sources]
    # A different size settles it without reading anything.
    if [size for _, size, _ in was] != [look(source.path).size for source in sources]:
        return False
    return was == [(source.name, look(source.path).size, file_sha256(source.path)) for source in sources]


def _opened(folder: Path) -> LocalStore | None:
    try:
        return open_store(folder)
    except InvalidSource:
        return None


def _clear_ruins(store: Path) -> None:
    if store.is_dir() and not is_store(store):
        shutil.rmtree(store)
