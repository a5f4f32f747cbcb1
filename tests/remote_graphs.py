"""Graphs behind real SPARQL engines, and a small one behind an endpoint that can be made to fail."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal as Choice
from typing import Protocol, TypeAlias

import pyoxigraph
from mcp import Client

from calls import unhurried
from fault_endpoint import Asked, FaultEndpoint, Script, Wire, answering, serving
from kg_adapters.http.options import DialectName, EndpointOptions, TextSearch
from kg_adapters.http.pacing import Timing
from kg_adapters.labels import Vocabulary
from kg_adapters.prefixes import Prefixes
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.opening import open_sparql
from kg_adapters.sparql.queries import Queries
from kg_server.app import build_server
from kg_server.serving.audit import Watcher
from kg_server.settings import Settings
from patience import PATIENCE_S

SAMPLE_GRAPH = "http://example.org/graph/sample"
ENGINE_S = 120.0

EngineName: TypeAlias = Choice["oxigraph", "virtuoso", "fuseki"]
ENGINES: tuple[EngineName, ...] = ("oxigraph", "virtuoso")

_NUMBERS = count(1)


class Loading(Protocol):
    """A running engine that can be given graphs."""

    @property
    def url(self) -> str: ...

    def load(self, graph: str, triples: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine with the sample in it, and what a user would have to set for it."""

    name: EngineName
    running: Loading
    dialect: DialectName = "standard"
    text_search: TextSearch = "none"
    sample: str = field(default=SAMPLE_GRAPH)

    def options(self, graph: str, **more: object) -> EndpointOptions:
        """Return how one graph of this engine is reached; patient, for a busy machine."""
        told = {
            "url": self.running.url,
            "default_graphs": (graph,),
            "dialect": self.dialect,
            "text_search": self.text_search,
            "timeout_s": ENGINE_S,
            **more,
        }
        return EndpointOptions.model_validate(told)

    def load_new(self, triples: str) -> str:
        """Load N-Triples as a graph of their own, and return its IRI."""
        graph = f"http://example.org/graph/{next(_NUMBERS)}"
        self.running.load(graph, triples.encode())
        return graph

    async def open(self, graph: str, cache: Path, **more: object) -> SparqlAdapter:
        """Open one graph as its users do, without finding it slow on a busy machine."""
        told = self.options(graph, **more)
        return await open_sparql(told.url, OpenOptions(cache), endpoint=told, clock=lambda: 0.0)

    @asynccontextmanager
    async def opened(self, graph: str, cache: Path, **more: object) -> AsyncGenerator[SparqlAdapter]:
        """Open one graph for the time of a block."""
        async with aclosing(await self.open(graph, cache, **more)) as adapter:
            yield adapter


PREFIXES = Prefixes({"ex": "http://example.org/"}, blank_nodes=False)
CITIES = """
<http://example.org/paris> <http://example.org/country> <http://example.org/france> .
<http://example.org/kyoto> <http://example.org/country> <http://example.org/japan> .
<http://example.org/kyoto> <http://example.org/population> "1463723" .
<http://example.org/paris> <http://www.w3.org/2000/01/rdf-schema#label> "Paris"@en .
<http://example.org/kyoto> <http://www.w3.org/2000/01/rdf-schema#label> "Kyoto"@en .
<http://example.org/japan> <http://www.w3.org/2000/01/rdf-schema#label> "Japan"@en .
<http://example.org/france> <http://www.w3.org/2000/01/rdf-schema#label> "France"@en .
<http://example.org/country> <http://www.w3.org/2000/01/rdf-schema#label> "country"@en .
"""


def answering_from(triples: str, headers: Mapping[str, str] | None = None) -> Script:
    """Answer queries about a graph, given as N-Triples or N-Quads, with more headers."""
    store = pyoxigraph.Store()
    store.load(triples, pyoxigraph.RdfFormat.N_QUADS)

    async def answer(asked: Asked, wire: Wire) -> None:
        found = store.query(asked.query)
        if isinstance(found, pyoxigraph.QueryTriples):
            body = found.serialize(format=pyoxigraph.RdfFormat.N_TRIPLES) or b""
            await answering(body, media_type="application/n-triples", headers=headers)(asked, wire)
        else:
            body = found.serialize(format=pyoxigraph.QueryResultsFormat.JSON) or b""
            await answering(body, headers=headers)(asked, wire)

    return answer


@asynccontextmanager
async def behind_endpoint(stored: pyoxigraph.Store, folder: Path) -> AsyncGenerator[SparqlAdapter]:
    """Open the triples of a store behind an endpoint as its users do, with its cache in a folder."""
    triples = "".join(f"{each.triple} .\n" for each in stored)
    async with (
        serving(answering_from(triples)) as server,
        aclosing(await open_sparql(server.url, OpenOptions(folder))) as graph,
    ):
        yield graph


def failing_about(text: str, fault: Script, otherwise: Script) -> Script:
    """Follow `fault` for queries that hold a text, and another script for the rest."""

    async def answer(asked: Asked, wire: Wire) -> None:
        await (fault if text in asked.query else otherwise)(asked, wire)

    return answer


@asynccontextmanager
async def tools_over(
    server: FaultEndpoint,
    folder: Path,
    *,
    timing: Timing | None = None,
    settings: Settings | None = None,
    watchers: Sequence[Watcher] = (),
    **options: object,
) -> AsyncGenerator[Client]:
    """Connect a client to the tools over an endpoint; by default a failure is not repeated, and none pauses it."""
    told = {"url": server.url, "timeout_s": PATIENCE_S, "max_retries": 0, "failures_until_pause": 100, **options}
    endpoint = SparqlEndpoint(EndpointOptions.model_validate(told), timing=timing)
    queries = Queries.of(DIALECTS["standard"], Vocabulary())
    graph = SparqlAdapter(SparqlParts("cities", endpoint, queries, PREFIXES, timeout_s=endpoint.options.timeout_s))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(aclosing(graph))
        built = build_server(graph, settings or quiet(folder), watchers=watchers)
        yield await stack.enter_async_context(Client(built))


def quiet(folder: Path, **more: object) -> Settings:
    """Return settings of a server that keeps everything in a folder, compares by letters and is never late."""
    return unhurried(cache_folder=folder, data_folder=folder, **{"embedding": {"embedder": "lexical"}, **more})
