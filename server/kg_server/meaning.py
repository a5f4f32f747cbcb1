"""What compares meanings on a server: one embedder for all its tools, loaded when one of them first needs it."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import numpy as np

from kg_adapters.models import Candidate
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_adapters.vectors import SupportsVectors
from kg_server.concurrency import load
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_server.embedders import Loaded
    from kg_server.observation.scoring import Scorer


@dataclass(frozen=True, slots=True)
class Meant:
    """The entities that are what a text says, best first; `missing` says why they could not be looked for."""

    candidates: Sequence[Candidate] = field(default_factory=tuple[Candidate, ...])
    missing: str = ""


class Meaning:
    """Compares texts with what a graph says, by the embedder that the settings name.

    Args:
        graph: What is compared with.
        settings: Which embedder, and which score.
    """

    def __init__(self, graph: KGAdapter, settings: Settings) -> None:
        self._graph = graph
        self._settings = settings
        self._loading = anyio.Lock()
        self._loaded: Loaded | None = None
        self._closing = AsyncExitStack()

    async def scorer(self) -> "Scorer":
        """Return what ranks triples by one question."""
        loaded, graph, vectors = await self._load(), self._graph, None
        if loaded.embedder is not None and isinstance(graph, SupportsVectors):
            # Asked for each time, as they go with the graph as it is now.
            vectors = await graph.label_vectors(loaded.fingerprint)
        return loaded.scorer(vectors)

    async def candidates(self, text: str, *, limit: int, type: Node | None) -> Meant:
        """Return the entities that are what a text says; none where no vectors of them are there."""
        graph = self._graph
        if not isinstance(graph, SupportsVectors):
            return Meant()
        loaded = await self._load()
        if not loaded.fingerprint or await graph.label_vectors(loaded.fingerprint) is None:
            return Meant()
        vectors = await loaded.embedded([text])
        if isinstance(vectors, str):
            return Meant(missing=vectors)
        return Meant(await graph.search_vectors(vectors[0], fingerprint=loaded.fingerprint, limit=limit, type=type))

    async def nearest(self, text: str, labels: Mapping[Node, str], *, limit: int) -> Meant:
        """Return those whose labels are nearest in meaning to a text, best first; none where no model is wanted."""
        loaded = await self._load()
        if not loaded.fingerprint or not labels:
            return Meant()
        vectors = await loaded.embedded([text, *labels.values()])
        if isinstance(vectors, str):
            return Meant(missing=vectors)
        cosines = np.clip(vectors[1:] @ vectors[0], 0, 1).tolist()
        near = sorted(zip(labels, cosines, strict=True), key=lambda each: -each[1])
        return Meant([Candidate(node, score, "meaning", labels[node]) for node, score in near[:limit]])

    async def aclose(self) -> None:
        """Give back files and connections; what is needed again afterwards is loaded again."""
        async with self._loading:
            self._loaded = None
            closing, self._closing = self._closing, AsyncExitStack()
            await closing.aclose()

    async def _load(self) -> "Loaded":
        if self._loaded is None:
            # Many calls compare nothing.
            await load("kg_server.embedders")
            from kg_server.embedders import load_embedder

            async with self._loading:
                if self._loaded is None:
                    self._loaded = await load_embedder(self._settings, self._closing)
        return self._loaded
