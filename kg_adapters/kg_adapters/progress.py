"""How far a long piece of work has come."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as Choice
from typing import TypeAlias

Stage: TypeAlias = Choice["waiting", "reading", "indexing", "searching", "saving"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of an import.

    Args:
        stage: What is being done: waiting for another import of the same store, reading the sources, building the
            adjacency index, building the full-text search, writing to disk.
        done: Bytes of the sources that were read; the total once reading is over.
        total: Bytes of all sources.
        statements: How many statements were read so far.
    """

    stage: Stage
    done: int
    total: int
    statements: int


OnProgress: TypeAlias = Callable[[Progress], None]


def ignore_progress(progress: Progress) -> None:
    """Tell nobody."""
