"""How far a long piece of work has come."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as Choice
from typing import TypeAlias

Stage: TypeAlias = Choice["waiting", "reading", "indexing", "searching", "saving"]
ExtractionStage: TypeAlias = Choice["walking", "typing", "valuing", "describing"]
EmbeddingStage: TypeAlias = Choice["relations", "labels", "entities", "linking"]


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


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """One step of computing vectors ahead.

    Args:
        stage: What is being done: vectors of relation labels, of node labels, of entities with their descriptions, or
            the index that finds the nearest of those.
        done: How many texts are done.
        total: How many there are.
    """

    stage: EmbeddingStage
    done: int
    total: int


OnEmbedding: TypeAlias = Callable[[EmbeddingProgress], None]


def ignore_embedding(progress: EmbeddingProgress) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class ExtractionProgress:
    """One step of taking a subgraph out of a graph.

    Args:
        stage: What is being asked for: neighbours, types of the outermost, literals, or labels and descriptions.
        hop: Which hop that is of `walking`, from 1; 0 in other stages.
        done: How many terms were asked about in this stage, or hop.
        total: How many there are.
        triples: How many triples were found so far.
    """

    stage: ExtractionStage
    hop: int
    done: int
    total: int
    triples: int


OnExtraction: TypeAlias = Callable[[Progress | ExtractionProgress], None]


def ignore_extraction(progress: Progress | ExtractionProgress) -> None:
    """Tell nobody."""
