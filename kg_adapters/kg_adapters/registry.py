"""Opens a graph by what people call it, and finds the adapters that other packages bring."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from kg_adapters.errors import InvalidRequest, Unsupported
from kg_adapters.progress import OnProgress, ignore_progress
from kg_adapters.protocol import KGAdapter
from kg_adapters.reading_limits import ReadingLimits
from kg_boundary.shown import in_quotes

if TYPE_CHECKING:
    from kg_adapters.local.sparql_pool import SparqlLimits
    from kg_adapters.sparql.options import EndpointOptions
    from kg_adapters.wikidata.options import WikidataOptions

ENTRY_POINTS: Final = "kg_sextant.adapters"
SAMPLE: Final = "sample"
SAMPLES: Final = (SAMPLE, f"{SAMPLE}:world")
WIKIDATA: Final = "wikidata"
URLS: Final = ("http://", "https://")
_LONGEST_NAME: Final = 4_096


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """What an adapter may need to open its graph.

    Args:
        cache_folder: Where an adapter may keep what it built; it need not exist yet.
        languages: The languages to choose labels in, the preferred first; the adapter's own choice when None. A store
            that was imported before keeps those of its import.
        graphs: IRIs of the named graphs to read; everything when empty.
        progress: Told about long work before the graph is open.
        endpoint: How the SPARQL endpoint is reached that the graph's name is the URL of; openly, and as plain SPARQL
            1.1, when None.
        wikidata: How Wikidata is reached; without a contact when None.
        answers_kept_s: How many seconds the answers of an endpoint or of Wikidata are remembered; 0 for not at all.
        sparql: How much of the machine SPARQL over files on it may take; what suits the machine when None.
        reading: What a file may ask for while it is read.
    """

    cache_folder: Path
    languages: tuple[str, ...] | None = None
    graphs: tuple[str, ...] = ()
    progress: OnProgress = ignore_progress
    endpoint: "EndpointOptions | None" = None
    wikidata: "WikidataOptions | None" = None
    answers_kept_s: float = 600.0
    sparql: "SparqlLimits | None" = None
    reading: ReadingLimits = field(default_factory=ReadingLimits)


@runtime_checkable
class AdapterFactory(Protocol):
    """What an entry point of the group `kg_sextant.adapters` names: an async function that opens a graph."""

    async def __call__(self, rest: str, options: OpenOptions) -> KGAdapter:
        """Open the graph that `rest` names, which is what follows the entry point's own name and a colon.

        Raises:
            KGError: It cannot be opened.
        """
        ...


async def open_graph(name: str, options: OpenOptions) -> KGAdapter:
    """Open the graph called `name`.

    It is `sample`, `sample:world`, a file, a folder, a store, the URL of a SPARQL endpoint, `wikidata`, `wikidata:URL`
    for a mirror of it, or `SCHEME:REST` of an installed adapter.

    Raises:
        InvalidRequest: The name is none of these.
        InvalidSource: A file or store cannot be read.
        Unsupported: An installed adapter cannot be loaded.
    """
    if name in SAMPLES or _exists(name):
        from kg_adapters.local import open_local  # noqa: PLC0415 - numpy and Oxigraph load only where they are needed

        return await open_local(name, options)
    if name.startswith(URLS):
        return await _endpoint(name, options)
    if name.partition(":")[0] == WIKIDATA:
        return await _wikidata(name.partition(":")[2], options)
    installed = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    scheme, _, rest = name.partition(":")
    if scheme not in installed:
        raise InvalidRequest(_expected(name, installed))
    return await _factory(installed[scheme])(rest, options)


async def _endpoint(url: str, options: OpenOptions) -> KGAdapter:
    from kg_adapters.sparql.opening import open_sparql  # noqa: PLC0415 - SPARQLWrapper and rdflib take their time

    return _remembering(await open_sparql(url, options, endpoint=options.endpoint), options)


async def _wikidata(mirror: str, options: OpenOptions) -> KGAdapter:
    from kg_adapters.wikidata.opening import open_wikidata  # noqa: PLC0415 - as above

    return _remembering(await open_wikidata(mirror, options), options)


def _remembering(graph: KGAdapter, options: OpenOptions) -> KGAdapter:
    from kg_adapters.caching import CacheLimits, cached  # noqa: PLC0415 - rarely needed

    return cached(graph, CacheLimits(expiry_s=options.answers_kept_s)) if options.answers_kept_s else graph


def _exists(name: str) -> bool:
    if not 0 < len(name) <= _LONGEST_NAME or "\0" in name:
        return False
    return Path(name).exists() or _was_moved_aside(Path(name))


def _was_moved_aside(path: Path) -> bool:
    from kg_adapters.local.swap import is_moved_aside  # noqa: PLC0415 - rarely needed

    return is_moved_aside(path)


def _factory(point: EntryPoint) -> AdapterFactory:
    try:
        factory: object = point.load()
    except (ImportError, AttributeError) as error:
        raise Unsupported(
            f"The adapter {in_quotes(point.name)} cannot be loaded from {point.value}: {error}."
        ) from error
    if not isinstance(factory, AdapterFactory):
        raise Unsupported(f"The adapter {in_quotes(point.name)} is broken: {point.value} is no function.")
    return factory


def _expected(name: str, installed: Mapping[str, EntryPoint]) -> str:
    shown = repr(name if len(name) <= 80 else name[:80] + "…")
    schemes = "".join(f", {scheme}:…" for scheme in sorted(installed) if scheme != "local")
    return (
        f"There is no graph {shown}. Expected {', '.join(SAMPLES)}, the path of an RDF file (.ttl .nt .nq .trig .rdf "
        ".jsonld .n3, also .gz), of a folder of such files or of a store that kg-sextant import built, the URL of a "
        f"SPARQL endpoint, {WIKIDATA}{schemes}."
    )
