"""What opens a graph is given, and what it must be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from kg_adapters.chosen_relations import ChosenRelations
from kg_adapters.progress import OnProgress, ignore_progress
from kg_adapters.protocol import KGAdapter
from kg_adapters.reading_limits import ReadingLimits

if TYPE_CHECKING:
    from kg_adapters.local.sparql.pool import SparqlLimits
    from kg_adapters.sparql.options import EndpointOptions
    from kg_adapters.wikidata.options import WikidataOptions

SAMPLE: Final = "sample"
SAMPLES: Final = (SAMPLE, f"{SAMPLE}:world")


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """What an adapter may need to open its graph.

    Args:
        cache_folder: Where an adapter may keep what it built; it need not exist yet.
        languages: The languages to choose labels in, the preferred first; the adapter's own choice when None. A store
            that was imported before keeps those of its import.
        graphs: IRIs of the named graphs to read; everything when empty.
        progress: Told about long work before the graph is open.
        imports: Whether files are imported that are not in the cache, or have changed since; otherwise they are
            answered from as they were imported last, and refused where they never were.
        endpoint: How the SPARQL endpoint is reached that the graph's name is the URL of; openly, and as plain SPARQL
            1.1, when None.
        wikidata: How Wikidata is reached; without a contact when None.
        answers_kept_s: How many seconds the answers of a remote graph are remembered; 0 for not at all.
        sparql: How much of the machine SPARQL over files on it may take; what suits the machine when None.
        prepares_sparql: Whether what SPARQL over files needs is made beside the answering of everything else, where a
            store came without it; files are imported without it then. Otherwise the first query waits for it.
        reading: What a file may ask for while it is read.
        chosen: Relations that name, describe and type entities, before the usual ones; of files and endpoints. A store
            that was imported before keeps those of its import.
        prefixes: What prefixes stand for in this graph; of files and endpoints.
    """

    cache_folder: Path
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
