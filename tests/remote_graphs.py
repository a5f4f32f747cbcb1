"""Graphs behind real SPARQL engines, and how tests open them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal as Choice
from typing import Protocol, TypeAlias

from kg_adapters.http.options import DialectName, EndpointOptions, TextSearch
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.opening import open_sparql

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
        """Open one graph as its users do."""
        told = self.options(graph, **more)
        return await open_sparql(told.url, OpenOptions(cache), endpoint=told)

    @asynccontextmanager
    async def opened(self, graph: str, cache: Path, **more: object) -> AsyncGenerator[SparqlAdapter]:
        """Open one graph for the time of a block."""
        async with aclosing(await self.open(graph, cache, **more)) as adapter:
            yield adapter
