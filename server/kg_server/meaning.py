"""What compares meanings on a server: one embedder for all its tools, loaded when one of them first needs it."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.to_thread
import numpy as np

from kg_adapters.embedding import (
    AvailableEmbedder,
    CachedEmbedder,
    Embedder,
    GuardedEmbedder,
    MiniLmEmbedder,
    OpenAiEmbedder,
    QueuedEmbedder,
    Vectors,
    best_available,
)
from kg_adapters.errors import ModelBusy, ModelUnavailable
from kg_adapters.models import Candidate
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_adapters.vectors import SupportsVectors
from kg_boundary.private_files import private_folder
from kg_server.observation.scoring import (
    AWAY,
    BUSY,
    HurriedScorer,
    PaperScorer,
    RelationFirstScorer,
    Scorer,
    SpellingScorer,
)
from kg_server.settings import Settings

VECTORS_FOLDER: Final = "vectors"
_SHORT_REASON: Final = "the embedding model does not run here; kg-sextant doctor says why"

_SHARE: Final = 0.6
"""What part of a call's time a model may have, so that letters can still stand in for it."""

_MODEL_SHARE: Final = 0.4
"""What part of it all hops of `observe` together may spend on scores by the model here. Whatever else keeps them from
being ready in time, letters then have as long, on a machine that has too much to do."""

_WAITING_SHARE: Final = 0.05
"""What part of it one hop of `observe` may wait while others have the model here: where processors have too much to do,
all that follows takes longer as well, and letters need time too."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What is there once it was needed; without an embedder, letters have to do.

    Args:
        scorer: What ranks triples without an embedder.
        embedder: What embeds texts; None where it does not run, or none is wanted.
        fingerprint: What vectors it gives, or would give; empty if none is wanted.
        reason: Why it does not run.
    """

    scorer: Scorer
    embedder: Embedder | None = None
    fingerprint: str = ""
    reason: str = ""


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
        self._loaded: _Loaded | None = None
        self._closing = AsyncExitStack()

    async def scorer(self) -> Scorer:
        """Return what ranks triples by one question."""
        loaded, graph = await self._load(), self._graph
        if loaded.embedder is None:
            return loaded.scorer
        if self._settings.observe_score == "paper":
            return PaperScorer(loaded.embedder)
        # Asked for each time, as they go with the graph as it is now.
        vectors = await graph.label_vectors(loaded.fingerprint) if isinstance(graph, SupportsVectors) else None
        scorer = RelationFirstScorer(loaded.embedder, vectors=vectors)
        return scorer if self._settings.embedder == "openai" else hurried(scorer, self._settings)

    async def candidates(self, text: str, *, limit: int, type: Node | None) -> Meant:
        """Return the entities that are what a text says; none where no vectors of them are there."""
        graph = self._graph
        if not isinstance(graph, SupportsVectors):
            return Meant()
        loaded = await self._load()
        if not loaded.fingerprint or await graph.label_vectors(loaded.fingerprint) is None:
            return Meant()
        vectors = await _embedded(loaded, [text])
        if isinstance(vectors, str):
            return Meant(missing=vectors)
        return Meant(await graph.search_vectors(vectors[0], fingerprint=loaded.fingerprint, limit=limit, type=type))

    async def nearest(self, text: str, labels: Mapping[Node, str], *, limit: int) -> Meant:
        """Return those whose labels are nearest in meaning to a text, best first; none where no model is wanted."""
        loaded = await self._load()
        if not loaded.fingerprint or not labels:
            return Meant()
        vectors = await _embedded(loaded, [text, *labels.values()])
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

    async def _load(self) -> _Loaded:
        if self._loaded is None:
            async with self._loading:
                if self._loaded is None:
                    self._loaded = await self._open()
        return self._loaded

    async def _open(self) -> _Loaded:
        if self._settings.embedder == "lexical":
            return _Loaded(SpellingScorer())
        available = await embedder_of(self._settings)
        if available.fallback_reason is not None:
            _log.warning("%s", available.fallback_reason)
            fingerprint = MiniLmEmbedder().fingerprint
            return _Loaded(SpellingScorer(_SHORT_REASON), fingerprint=fingerprint, reason=_SHORT_REASON)
        inner = available.embedder
        if isinstance(inner, OpenAiEmbedder):
            self._closing.push_async_callback(inner.aclose)
        inner = shared(inner, self._settings)
        folder = self._settings.cache_folder / VECTORS_FOLDER
        with suppress(OSError):  # a folder that cannot be written costs time, and nothing else
            private_folder(folder, ours=True)
        path = folder / f"{inner.fingerprint}.sqlite3"
        embedder = CachedEmbedder(inner, path=path)
        self._closing.push_async_callback(embedder.aclose)
        return _Loaded(SpellingScorer(), embedder, embedder.fingerprint)


async def _embedded(loaded: _Loaded, texts: Sequence[str]) -> Vectors | str:
    """Return the vectors of texts, or why there are none."""
    if loaded.embedder is None:
        return loaded.reason
    try:
        return await loaded.embedder.embed(texts)
    except ModelBusy:
        return BUSY
    except ModelUnavailable as error:
        _log.warning("%s", error)
        return AWAY


def guarded(embedder: Embedder, settings: Settings) -> GuardedEmbedder:
    """Return an embedder that is given up early enough for letters to stand in for it."""
    timeout_s = min(settings.embedding_timeout_s, _SHARE * settings.timeout_s)
    return GuardedEmbedder(embedder, timeout_s=timeout_s)


def shared(embedder: Embedder, settings: Settings) -> Embedder:
    """Return an embedder that many calls may use at once, so that letters stand in early where it cannot serve all."""
    if isinstance(embedder, OpenAiEmbedder):
        return guarded(embedder, settings)
    shares = _WAITING_SHARE * settings.timeout_s, _MODEL_SHARE * settings.timeout_s
    return QueuedEmbedder(embedder, wait_s=shares[0], timeout_s=shares[1])


def hurried(scorer: Scorer, settings: Settings) -> Scorer:
    """Return a scorer whose model is here with the time that it may have for one question."""
    return HurriedScorer(scorer, _MODEL_SHARE * settings.timeout_s)


async def embedder_of(settings: Settings) -> AvailableEmbedder:
    """Return the embedder that settings other than `lexical` name, or what takes its place and why."""
    if settings.embedder == "openai":
        return AvailableEmbedder(
            OpenAiEmbedder(
                model=settings.embedding_model,
                dimensions=settings.embedding_dimensions,
                api_key=settings.embedding_api_key,
                base_url=settings.embedding_base_url,
                encoding_format=settings.embedding_format,
                price_per_million_tokens=settings.embedding_price,
                redactor=settings.redactor,
            )
        )
    return await anyio.to_thread.run_sync(best_available)
