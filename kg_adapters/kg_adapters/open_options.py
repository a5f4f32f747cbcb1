"""Options for opening a graph: where to cache, what to read, how to report progress."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable
from typing import Literal as Choice

from kg_adapters.labels import ChosenRelations
from kg_adapters.protocol import KGAdapter
from kg_boundary.machine import memory_bytes

if TYPE_CHECKING:
    from kg_adapters.http.options import EndpointOptions
    from kg_adapters.local.sparql.pool import SparqlLimits
    from kg_adapters.wikidata.options import WikidataOptions


MAX_DEPTH: Final = 256
"""How deep elements, objects, lists, blank nodes and triple terms may be nested."""
_MB: Final = 1_000_000
_LEAST_MEMORY_MB: Final = 64
_MOST_MEMORY_MB: Final = 2_048


class Refused(Exception):
    """A file asks for more than it may; the message names the place, the limit and the setting, without a stop."""


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What one file may ask for while it is read.

    Args:
        memory_mb: The most megabytes of memory that the process takes which parses; a quarter of the machine's, at most
            2,048, when None. Linux only.
        stall_s: Seconds after which parsing that does not get ahead is ended.
        literal_mb: The most megabytes of one literal or IRI.
        inflate_ratio: How many times its own size a compressed file may inflate to.
        inflate_mb: How many megabytes a compressed file may inflate to.
    """

    memory_mb: int | None = None
    stall_s: float = 60.0
    literal_mb: int = 64
    inflate_ratio: int = 100
    inflate_mb: int = 32_768

    @property
    def memory(self) -> int:
        """The most memory of the process that parses, megabytes."""
        return memory_of_the_machine_mb() if self.memory_mb is None else self.memory_mb

    @property
    def literal_bytes(self) -> int:
        """The most bytes of one literal or IRI."""
        return self.literal_mb * _MB

    @property
    def inflate_bytes(self) -> int:
        """The most bytes that a compressed file may inflate to, whatever its size."""
        return self.inflate_mb * _MB


def setting(name: str) -> str:
    """Return how a message names a setting that lifts a limit."""
    return f"the setting {name} (KG_SEXTANT_{name.upper().replace('.', '__')})"


def memory_of_the_machine_mb() -> int:
    """Return how much memory parsing takes at most unless it is set: a quarter of what there is, at most 2,048 MB."""
    return max(min(memory_bytes() // 4 // _MB, _MOST_MEMORY_MB), _LEAST_MEMORY_MB)


Stage: TypeAlias = Choice["waiting", "surveying", "reading", "indexing", "searching", "saving"]
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
    """Do nothing."""


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
    """Do nothing."""


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
    """Do nothing."""


SAMPLE: Final = "sample"
SAMPLES: Final = (SAMPLE, f"{SAMPLE}:world")


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """What an adapter may need to open its graph.

    Args:
        cache_folder: Where an adapter may keep what it built; it need not exist yet.
        name: What the graph is called, where it is one of several; as its adapter calls it when None.
        languages: The languages to choose labels in, the preferred first; the adapter's own choice when None. A store
            that was imported before keeps those of its import.
        graphs: IRIs of the named graphs to read; everything when empty.
        progress: Called during long work before the graph is open.
        imports: Whether files are imported that are not in the cache, or have changed since; otherwise they are
            answered from as they were imported last, and refused where they never were.
        endpoint: How the SPARQL endpoint is reached that the graph's name is the URL of; openly, and as plain SPARQL
            1.1, when None.
        wikidata: How Wikidata is reached; without a contact when None.
        answers_kept_s: How many seconds the answers of a remote graph are cached; 0 for not at all.
        sparql: How much of the machine SPARQL over files on it may take; what suits the machine when None.
        prepares_sparql: Whether what SPARQL over files needs is made beside the answering of everything else, where a
            store came without it; files are imported without it then. Otherwise the first query waits for it.
        reading: What a file may ask for while it is read.
        chosen: Relations that name, describe and type entities, before the usual ones; of files and endpoints. A store
            that was imported before keeps those of its import.
        prefixes: What prefixes stand for in this graph; of files and endpoints.
    """

    cache_folder: Path
    name: str | None = None
    languages: tuple[str, ...] | None = None
    graphs: tuple[str, ...] = ()
    progress: OnProgress = ignore_progress
    imports: bool = True
    endpoint: "EndpointOptions | None" = None
    wikidata: "WikidataOptions | None" = None
    answers_kept_s: float = 600.0
    sparql: "SparqlLimits | None" = None
    prepares_sparql: bool = False
    reading: ReadingLimits = field(default_factory=ReadingLimits)
    chosen: ChosenRelations = field(default_factory=ChosenRelations)
    prefixes: Mapping[str, str] = field(default_factory=dict[str, str])


@runtime_checkable
class AdapterFactory(Protocol):
    """What an entry point of the group `kg_sextant.adapters` names: an async function that opens a graph."""

    async def __call__(self, rest: str, options: OpenOptions) -> KGAdapter:
        """Open the graph that `rest` names, which is what follows the entry point's own name and a colon.

        Raises:
            KGError: It cannot be opened.
        """
        ...
