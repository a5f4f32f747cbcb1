"""The files that a graph is made of."""

import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource

RDF_FORMATS: Final = {
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".nq": ox.RdfFormat.N_QUADS,
    ".ttl": ox.RdfFormat.TURTLE,
    ".trig": ox.RdfFormat.TRIG,
    ".n3": ox.RdfFormat.N3,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".owl": ox.RdfFormat.RDF_XML,
    ".xml": ox.RdfFormat.RDF_XML,
    ".jsonld": ox.RdfFormat.JSON_LD,
}
GRAPH_JSON: Final = ".json"
ENTITY_JSON: Final = ".wikidata"
"""Wikidata's entities; no file has this ending, its content is recognised."""
KGDATA: Final = ".kgdata"
"""Triples by topic; no file has this ending, its content is recognised."""
SQLITE: Final = frozenset({".sqlite", ".sqlite3", ".db"})
"""Endings of databases; the first is the form of them all."""
JSON_LINES: Final = frozenset({".jsonl", ".ndjson"})
RECORDS: Final = ".records"
"""JSON with objects in lists; no file has this ending, its content is recognised."""
PARQUET: Final = ".parquet"
ENTRIES: Final = ".entries"
"""JSON with an object for each key; no file has this ending, its content is recognised."""
TABLES: Final = frozenset({".csv", ".tsv", PARQUET, *SQLITE, *JSON_LINES, RECORDS, ENTRIES})
FORMATS: Final = frozenset({*RDF_FORMATS, GRAPH_JSON, *TABLES} - {RECORDS, ENTRIES})
"""Endings that tell what a file holds, or about what."""
READ_WHOLE: Final = frozenset({GRAPH_JSON, ENTITY_JSON, KGDATA, *TABLES})
"""What is no RDF."""
PACKINGS: Final = (".gz", ".bz2", ".xz", ".zst", ".zip")
_FOLLOW: Final = "kg-sextant import --follow-links"
# Their names do not say that they hold a graph: taken when named, passed over in a folder.
_STORE: Final = "store.json"
_ONLY_BY_NAME: Final = frozenset({".xml", ".db", GRAPH_JSON})


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read.

    Args:
        path: Where it is.
        name: What people call it, unique among the sources of one import.
        form: The ending that its content deserves; empty where nobody has looked.
        packing: How it is compressed, as an ending; empty where it is not.
        member: What is read of a zip archive; empty for the whole file.
    """

    path: Path
    name: str
    form: str = ""
    packing: str = ""
    member: str = ""

    def __post_init__(self) -> None:
        packing = Path(self.name).suffix.lower()
        if not self.packing and not self.member and packing in PACKINGS:
            object.__setattr__(self, "packing", packing)

    @property
    def ending(self) -> str:
        """The ending that tells the format, without that of a compression."""
        return self.form or _ending(Path(self.name))


@dataclass(frozen=True, slots=True)
class Sources:
    """The files to read.

    Args:
        files: Each of them once.
        outside: Links in given folders that lead outside of them, and were not followed.
        by_name: Files in given folders that may hold no graph, and are read only where they are named.
        name: What people call all of it: the first folder, or the first file without its endings.
    """

    files: tuple[Source, ...]
    outside: tuple[Path, ...]
    by_name: tuple[Path, ...]
    name: str


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells a file from the same one after a change."""

    inode: int
    size: int
    modified_ns: int


def look(path: Path) -> FileState:
    """Return the state of a file.

    Raises:
        InvalidSource: It is not there any more.
    """
    try:
        at = path.stat()
    except OSError as error:
        raise InvalidSource(f"{path} cannot be read: {error.strerror or error}. Was it moved or deleted?") from error
    return FileState(at.st_ino, at.st_size, at.st_mtime_ns)


def gather_sources(paths: Sequence[Path], *, follow_links: bool = False) -> Sources:
    """Return the files to read: each path itself, or every RDF file and table under it, sorted, none twice.

    Args:
        paths: Files and folders; where they are links, those that they stand for.
        follow_links: Whether links in a folder are followed that lead outside of it.

    Raises:
        InvalidSource: A path does not exist, or a folder holds neither.
    """
    found: dict[Path, str] = {}
    outside: list[Path] = []
    by_name: list[Path] = []
    for path in paths:
        folder = _folder(path, follow_links=follow_links) if path.is_dir() else _Folder([_file(path)], [], [])
        outside.extend(folder.outside)
        by_name.extend(folder.by_name)
        for file in folder.files:
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            found.setdefault(file.resolve(), name.encode(errors="replace").decode())
    names = list(found.values())
    sources = (
        Source(file, name if names.count(name) == 1 else f"{number}/{name}")
        for number, (file, name) in enumerate(found.items(), start=1)
    )
    first = paths[0].resolve().name.encode(errors="replace").decode() if paths[0].is_dir() else ""
    left = tuple(file for file in by_name if file.resolve() not in found)
    return Sources(tuple(sources), tuple(outside), left, first or Path(names[0]).name.partition(".")[0])


def _file(path: Path) -> Path:
    if not path.exists():
        raise InvalidSource(f"There is no file or folder {path}. Check the spelling; paths start at {Path.cwd()}.")
    if not path.is_file():
        raise InvalidSource(f"{path} is neither a file nor a folder. Write what it gives into a file first.")
    return path


@dataclass(frozen=True, slots=True)
class _Folder:
    """The RDF files and tables under a folder, the links that are not followed, and the files that must be named."""

    files: Sequence[Path]
    outside: Sequence[Path]
    by_name: Sequence[Path]


def _folder(path: Path, *, follow_links: bool) -> _Folder:
    """Return what is under a folder, each sorted."""
    wanted = FORMATS - _ONLY_BY_NAME
    files: list[Path] = []
    outside: list[Path] = []
    by_name: list[Path] = []
    for file, leads_outside in _below(path, follow_links=follow_links):
        if leads_outside and (file.is_dir() or _ending(file) in wanted):
            outside.append(file)
        elif not leads_outside and _ending(file) in wanted and file.is_file():
            files.append(file)
        elif not leads_outside and _ending(file) in _ONLY_BY_NAME and file.is_file():
            by_name.append(file)
    if not files:
        links = f" Links that lead outside of it, such as {outside[0]}, are read with {_FOLLOW}." if outside else ""
        named = f" Files such as {by_name[0]} are read if you name them." if by_name else ""
        raise InvalidSource(
            f"{path} holds no RDF file and no table. Expected names that end in {_endings(wanted)}.{named}{links}"
        )
    return _Folder(sorted(files), sorted(outside), sorted(by_name))


def _below(folder: Path, *, follow_links: bool) -> Iterator[tuple[Path, bool]]:
    """Yield what is below a folder and not hidden, and whether it is a link that is not to be followed."""
    root = folder.resolve()
    walked: set[Path] = set()
    # Folders come before links to folders, so that each goes by its own name; no folder comes twice.
    folders, links = deque([folder]), deque[Path]()
    while folders or links:
        current = folders.popleft() if folders else links.popleft()
        if (real := current.resolve()) in walked:
            continue
        walked.add(real)
        if (current / _STORE).is_file():
            # What an import has written is no source.
            continue
        for path in _entries(current):
            leads_outside = path.is_symlink() and not follow_links and not _real(path).is_relative_to(root)
            if leads_outside or not path.is_dir():
                yield path, leads_outside
            else:
                (links if path.is_symlink() else folders).append(path)


def _entries(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        # It may not be read, or is gone.
        return []


def _real(path: Path) -> Path:
    # A link to itself leads nowhere, which is for whoever opens it to find out.
    return Path(os.path.realpath(path))


def _ending(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes[-1:] and suffixes[-1] in PACKINGS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _endings(endings: Collection[str]) -> str:
    return f"{', '.join(sorted(endings))}, each also with .gz, .bz2, .xz or .zst"


def expected_endings() -> str:
    """Return how messages name the endings that are known."""
    return f"{_endings(FORMATS)}, or a .zip of them"
