"""The files that a graph is made of."""

from collections.abc import Collection, Sequence
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
# Their names do not say that they hold a graph: taken when named, passed over in a folder.
_ONLY_BY_NAME: Final = frozenset({".xml", GRAPH_JSON})


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read; `name` is what people call it, unique among the sources of one import."""

    path: Path
    name: str

    @property
    def ending(self) -> str:
        """The ending that tells the format, without `.gz`."""
        return _ending(self.path)

    @property
    def gzipped(self) -> bool:
        """Whether the file is compressed."""
        return self.path.suffix.lower() == ".gz"


def find_sources(paths: Sequence[Path]) -> list[Source]:
    """Return the files to read: each path itself, or every RDF file under it, sorted, none twice.

    Raises:
        InvalidSource: A path does not exist, a file's ending is unknown, or a folder holds no RDF file.
    """
    found: dict[Path, str] = {}
    for path in paths:
        for file in _files(path):
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            found.setdefault(file.resolve(), name.encode(errors="replace").decode())
    names = list(found.values())
    return [
        Source(file, name if names.count(name) == 1 else f"{number}/{name}")
        for number, (file, name) in enumerate(found.items(), start=1)
    ]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        wanted = RDF_FORMATS.keys() - _ONLY_BY_NAME
        shown = (file for file in path.rglob("*") if not _is_hidden(file.relative_to(path)))
        files = sorted(file for file in shown if file.is_file() and _ending(file) in wanted)
        if not files:
            raise InvalidSource(f"{path} holds no RDF file. Expected names that end in {_endings(wanted)}.")
        return files
    if not path.exists():
        raise InvalidSource(f"There is no file or folder {path}. Check the spelling; paths start at {Path.cwd()}.")
    if not path.is_file():
        raise InvalidSource(f"{path} is neither a file nor a folder. Write what it gives into a file first.")
    if _ending(path) not in {*RDF_FORMATS, GRAPH_JSON}:
        raise InvalidSource(f"{path} has an ending that is not known. Expected {_endings({*RDF_FORMATS, GRAPH_JSON})}.")
    return [path]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _ending(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _endings(endings: Collection[str]) -> str:
    return f"{', '.join(sorted(endings))}, each also with .gz"
