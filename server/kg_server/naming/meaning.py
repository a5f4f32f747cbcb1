"""Search by meaning: the embedder, and the relations and classes whose definitions are near a word."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import numpy as np

from kg_adapters.models import Candidate, GraphSchema
from kg_adapters.protocol import KGAdapter
from kg_adapters.surroundings import SupportsVectors
from kg_adapters.terms import Iri, Node
from kg_server.concurrency import load
from kg_server.names import names_of
from kg_server.naming.refusals import is_word
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_server.embedders import Loaded
    from kg_server.observation.scoring import Scorer


@dataclass(frozen=True, slots=True)
class Meant:
    """The entities that are what a text says, best first; `missing` says why they could not be looked for."""

    candidates: Sequence[Candidate] = field(default_factory=tuple[Candidate, ...])
    missing: str = ""


class SharedEmbedder:
    """The embedder that the settings name, loaded when it is first needed, once for all graphs.

    Args:
        settings: Which embedder, and which score.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loading = anyio.Lock()
        self._loaded: Loaded | None = None
        self._closing = AsyncExitStack()

    @property
    def is_lexical(self) -> bool:
        """Whether texts are compared by their letters alone."""
        return self._settings.embedding.embedder == "lexical"

    async def load(self) -> "Loaded":
        """Return the embedder."""
        if self._loaded is None:
            # Many calls compare nothing.
            await load("kg_server.embedders")
            from kg_server.embedders import load_embedder

            async with self._loading:
                if self._loaded is None:
                    self._loaded = await load_embedder(self._settings, self._closing)
        return self._loaded

    async def aclose(self) -> None:
        """Give back files and connections; what is needed again afterwards is loaded again."""
        async with self._loading:
            self._loaded = None
            closing, self._closing = self._closing, AsyncExitStack()
            await closing.aclose()


class Meaning:
    """Compares texts with what a graph says.

    Args:
        graph: What is compared with.
        embedder: What compares.
    """

    def __init__(self, graph: KGAdapter, embedder: SharedEmbedder) -> None:
        self._graph = graph
        self._embedder = embedder

    async def scorer(self) -> "Scorer":
        """Return what ranks triples by one question."""
        loaded, graph, vectors = await self._embedder.load(), self._graph, None
        if loaded.embedder is not None and isinstance(graph, SupportsVectors):
            # Asked for each time, as they go with the graph as it is now.
            vectors = await graph.label_vectors(loaded.fingerprint)
        return loaded.scorer(vectors)

    async def candidates(self, text: str, *, limit: int, type: Node | None) -> Meant:
        """Return the entities that are what a text says; none where no vectors of them are there."""
        graph = self._graph
        if not isinstance(graph, SupportsVectors):
            return Meant()
        loaded = await self._embedder.load()
        if not loaded.fingerprint or await graph.label_vectors(loaded.fingerprint) is None:
            return Meant()
        vectors = await loaded.embedded([text])
        if isinstance(vectors, str):
            return Meant(missing=vectors)
        return Meant(await graph.search_vectors(vectors[0], fingerprint=loaded.fingerprint, limit=limit, type=type))

    async def nearest(self, text: str, labels: Mapping[Node, str], *, limit: int) -> Meant:
        """Return those whose labels are nearest in meaning to a text, best first; none where no model is wanted."""
        cosines = await self._cosines(text, list(labels.values()))
        if isinstance(cosines, str):
            return Meant(missing=cosines)
        near = sorted(zip(labels, cosines, strict=True), key=lambda each: -each[1])
        return Meant([Candidate(node, score, "meaning", labels[node]) for node, score in near[:limit]])

    async def likeness(self, text: str, others: Sequence[str]) -> Sequence[float] | None:
        """Return how near in meaning others are to a text, from 0 to 1; None where no model says so."""
        cosines = await self._cosines(text, others)
        return None if isinstance(cosines, str) else cosines

    async def _cosines(self, text: str, others: Sequence[str]) -> Sequence[float] | str:
        """Return the cosine of a text and each of others, or why it is not known; empty where no model is wanted."""
        if self._embedder.is_lexical:
            return ""
        if not others:
            return ()
        vectors = await (await self._embedder.load()).embedded([text, *others])
        if isinstance(vectors, str):
            return vectors
        cosines: list[float] = np.clip(vectors[1:] @ vectors[0], 0, 1).tolist()
        return cosines


MOST_NEAR: Final = 3

_NEAR: Final = 0.55
"""How alike in meaning labels have to be: single words are more alike than what says what an entity is."""

_MOST_COMPARED: Final = 500
"""How many classes, and how many relations and features, are compared: the most frequent ones."""


class _Defined(Protocol):
    """A class, relation or feature of a definition."""

    @property
    def iri(self) -> Node: ...

    @property
    def label(self) -> str | None: ...


async def near_classes(meaning: Meaning, schema: GraphSchema, text: str) -> Sequence[Candidate]:
    """Return the classes that are called like a text in other words, best first."""
    return await _near(meaning, schema.classes, text)


async def near_relations(meaning: Meaning, schema: GraphSchema, text: str) -> Sequence[Candidate]:
    """Return the relations and features that are called like a text in other words, best first."""
    most = _MOST_COMPARED // 2
    return await _near(meaning, chain(schema.relations[:most], schema.features[:most]), text)


async def with_near_relations(graph: KGAdapter, meaning: Meaning, text: str, said: str) -> str:
    """Return the message for a text that names no relation, with relations near in meaning that it lacks so far."""
    near = await near_relations(meaning, await graph.schema(), text)
    relations = [each.entity for each in near if isinstance(each.entity, Iri)]
    names = await names_of(graph, relations)
    shown = [each for each in map(names.relation, relations) if each not in said]
    return f"{said} Near in meaning, not the same: {'; '.join(shown)}." if shown else said


async def _near(meaning: Meaning, defined: Iterable[_Defined], text: str) -> Sequence[Candidate]:
    labels: dict[Node, str] = {}
    for each in defined:
        label = each.label or (each.iri.local_part.replace("_", " ") if is_word(each.iri.local_part) else "")
        if label and len(labels) < _MOST_COMPARED:
            labels[each.iri] = label
    found = await meaning.nearest(text, labels, limit=MOST_NEAR)
    return [each for each in found.candidates if each.score >= _NEAR]
