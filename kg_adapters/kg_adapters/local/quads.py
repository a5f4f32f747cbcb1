"""What the index of a store cannot hold: which statements are in which named graph, and those about triples."""

import gzip
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from kg_adapters.index.block_files import Damage
from kg_adapters.local.checksums import find_changed
from kg_adapters.local.store import LocalStore
from kg_boundary.shown import counted

QUADS_FILE: Final = "quads.nq.gz"
COUNTS_FILE: Final = "quads.json"
_CHUNK: Final = 10_000
_LEVEL: Final = 1
MERGED: Final = (
    "GRAPH matches nothing that was merged: the import took {merged:,} statements out of their named graphs. "
    "Import the files again without --merge-graphs, or leave GRAPH out."
)
NO_GRAPHS: Final = (
    "This graph has no named graphs, so GRAPH matches nothing: leave GRAPH out. "
    "If its files have some, import them again; older versions merged them."
)


class QuadCounts(BaseModel):
    """How many statements are in named graphs, were in some that an import merged, or have a triple as their object."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    in_graphs: NonNegativeInt = 0
    merged: NonNegativeInt = 0
    triple_terms: NonNegativeInt = 0

    def plus(self, other: "QuadCounts") -> "QuadCounts":
        """Return the counts of both."""
        return QuadCounts(
            in_graphs=self.in_graphs + other.in_graphs,
            merged=self.merged + other.merged,
            triple_terms=self.triple_terms + other.triple_terms,
        )

    @property
    def summary(self) -> str:
        """Sentences for the report of an import; empty where all counts are zero."""
        kept = (
            f"{counted(self.in_graphs, 'statement is', 'statements are')} in named graphs: GRAPH in Sparql shows which."
        )
        merged = f"{counted(self.merged, 'statement was', 'statements were')} in named graphs, which are merged."
        about = counted(self.triple_terms, "statement is", "statements are")
        terms = f"{about} about triples (RDF 1.2), which Sparql and details show."
        told = (kept, self.in_graphs), (merged, self.merged), (terms, self.triple_terms)
        return " ".join(text for text, many in told if many)

    @property
    def about_graphs(self) -> str:
        """A note for answers to queries with GRAPH; empty where all graphs are kept."""
        return MERGED.format(merged=self.merged) if self.merged else "" if self.in_graphs else NO_GRAPHS


def append_quads(folder: Path, lines: Sequence[str]) -> None:
    """Add lines of N-Quads to what the folder of a new store has."""
    if lines:
        with (folder / QUADS_FILE).open("ab") as file, gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
            packed.write("".join(lines).encode())


def write_counts(folder: Path, counts: QuadCounts) -> None:
    """Write the counts into the folder of a new store that has anything to count."""
    if counts != QuadCounts():
        (folder / COUNTS_FILE).write_text(counts.model_dump_json(), encoding="utf-8")


def read_counts(store: LocalStore) -> QuadCounts:
    """Return how many statements of a store are in named graphs, or were.

    Raises:
        Damage: The file is not what the import wrote.
        OSError: It cannot be read.
    """
    if not any(file.path == COUNTS_FILE for file in store.info.files):
        return QuadCounts()
    try:
        return QuadCounts.model_validate_json(store.read(COUNTS_FILE))
    except ValidationError as error:
        raise Damage(f"{COUNTS_FILE} cannot be read") from error


def read_quads(store: LocalStore) -> Iterator[list[str]]:
    """Yield the statements in named graphs, and those about triples, as lines of N-Quads, many at once.

    Raises:
        Damage: The file is not what the import wrote.
        OSError: It cannot be read.
    """
    sealed = tuple(file for file in store.info.files if file.path == QUADS_FILE)
    if (problem := find_changed(store.folder, sealed)) is not None:
        raise Damage(problem)
    for file in sealed:
        with gzip.open(store.folder / file.path, "rt", encoding="utf-8", newline="\n") as lines:
            while chunk := list(islice(lines, _CHUNK)):
                yield chunk
