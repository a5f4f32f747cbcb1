"""What tests of `observe` need: a model of meaning that is easy to foresee, and graphs that keep count."""

import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import anyio
import numpy as np
import rdflib

from embedders import LEXICAL
from kg_adapters.embedding.protocol import Vectors, unit_rows
from kg_adapters.errors import BackendTimeout
from kg_adapters.models import NeighborPage
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Literal as Value
from kg_adapters.terms import Node, Term
from kg_adapters.testing import ntriples
from kg_server.graphs import GraphSet, OpenedGraph, ServedGraph
from kg_server.mcp_server import SextantServer
from kg_server.naming.meaning import Meaning, SharedEmbedder
from kg_server.observation.scoring import Scorer
from kg_server.observation.search import Observation
from kg_server.settings import Settings
from kg_server.tools import Tools
from patience import PATIENCE_S

SYNONYMS: Final = {"born": "birth", "wrote": "author", "wife": "spouse", "city": "town"}
SILENT: Final = frozenset(["the", "of", "a", "an", "is", "was", "in", "it", "who", "where", "what", "does", "inverse"])

Ending: TypeAlias = Literal["silence", "timeout"]


class WordModel:
    """Gives every word a direction of its own, synonyms the same, and a text the sum of its words."""

    fingerprint = "words-1"
    dimensions = 512

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        self.asked.append(list(texts))
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace("?", "").split():
                if word not in SILENT:
                    vectors[row, zlib.crc32(SYNONYMS.get(word, word).encode()) % self.dimensions] += 1
        return unit_rows(vectors)


class CountingGraph(RdflibAdapter):
    """Keeps which entities each request for neighbours was about, and how many requests there were of every kind."""

    def __init__(self, statements: Sequence[str]) -> None:
        super().__init__(rdflib.Graph().parse(data=ntriples(statements), format="nt"))
        self.frontiers: list[list[str]] = []
        self.limits: list[int] = []
        self.requests = 0

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        """See `KGAdapter`."""
        self.frontiers.append(names(request.entities))
        self.limits.append(request.limit)
        self.requests += 1
        return await super().neighbors(request)

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        """See `KGAdapter`."""
        self.requests += 1
        return await super().labels(terms)


class SlowGraph(CountingGraph):
    """Answers once; the second answer never comes, or the backend gives up."""

    def __init__(self, statements: Sequence[str], ending: Ending) -> None:
        super().__init__(statements)
        self.reached = anyio.Event()
        self._ending = ending

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        """See `KGAdapter`."""
        if len(self.frontiers) == 1:
            self.reached.set()
            if self._ending == "timeout":
                raise BackendTimeout("The endpoint did not answer within 1 s.")
            await anyio.sleep_forever()
        return await super().neighbors(request)


def names(nodes: Sequence[Node]) -> list[str]:
    """Return the local parts of nodes."""
    return [node.local_part for node in nodes]


def far_name(term: Term) -> str:
    """Return the local part of a node, or a value in quotes."""
    return f'"{term.value}"' if isinstance(term, Value) else term.local_part


def statements_of(seen: Observation) -> list[tuple[str, int]]:
    """Return what an observation found in the notation of `kg_adapters.testing`, with the hop."""
    return [
        (f"{' '.join(names([each.fact.head, each.fact.relation]))} {far_name(each.fact.tail)}", each.hop)
        for each in seen.found
    ]


class Ranking(Meaning):
    """Ranks by one scorer, and knows no word that is near another."""

    def __init__(self, graph: KGAdapter, scorer: Scorer) -> None:
        super().__init__(graph, SharedEmbedder(Settings(embedding=LEXICAL)))
        self._given = scorer

    async def scorer(self) -> Scorer:
        """Return the scorer."""
        return self._given


def ranking_server(graph: KGAdapter, scorer: Scorer, timeout_s: float = PATIENCE_S) -> SextantServer:
    """Return a server whose `observe` ranks by one scorer."""
    settings = Settings(timeout_s=timeout_s)
    embedder = SharedEmbedder(settings)
    opened = OpenedGraph(graph.name, graph, settings, Ranking(graph, scorer))
    server = SextantServer("test", version="1", timeout_s=timeout_s)
    Tools(GraphSet([ServedGraph.of(opened, embedder)], settings, embedder), settings).provide(server)
    return server
