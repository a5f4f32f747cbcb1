"""Load the embedder that the settings name, or its substitute where it does not run."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Final

import anyio.to_thread

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
from kg_adapters.surroundings import LabelVectors
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
class Loaded:
    """The loaded embedder; without one, texts are compared by their letters.

    Args:
        settings: Which score is wanted, and how long it may take.
        embedder: What embeds texts; None where it does not run, or none is wanted.
        fingerprint: What vectors it gives, or would give; empty if none is wanted.
        reason: Why it does not run.
    """

    settings: Settings
    embedder: Embedder | None = None
    fingerprint: str = ""
    reason: str = ""

    def scorer(self, vectors: LabelVectors | None) -> Scorer:
        """Return what ranks triples by one question, with the vectors of a graph's labels where they are kept."""
        if self.embedder is None:
            return SpellingScorer(self.reason)
        if self.settings.observe_score == "paper":
            return PaperScorer(self.embedder)
        scorer = RelationFirstScorer(self.embedder, vectors=vectors)
        return scorer if self.settings.embedding.embedder == "openai" else hurried(scorer, self.settings)

    async def embedded(self, texts: Sequence[str]) -> Vectors | str:
        """Return the vectors of texts, or why there are none."""
        if self.embedder is None:
            return self.reason
        try:
            return await self.embedder.embed(texts)
        except ModelBusy:
            return BUSY
        except ModelUnavailable as error:
            _log.warning("%s", error)
            return AWAY


async def load_embedder(settings: Settings, closing: AsyncExitStack) -> Loaded:
    """Load the embedder that settings name.

    Args:
        settings: They name it.
        closing: Closes its files and connections.
    """
    if settings.embedding.embedder == "lexical":
        return Loaded(settings)
    available = await embedder_of(settings)
    if available.fallback_reason is not None:
        _log.warning("%s", available.fallback_reason)
        return Loaded(settings, fingerprint=MiniLmEmbedder().fingerprint, reason=_SHORT_REASON)
    inner = available.embedder
    if isinstance(inner, OpenAiEmbedder):
        closing.push_async_callback(inner.aclose)
    inner = shared(inner, settings)
    folder = settings.cache_folder / VECTORS_FOLDER
    with suppress(OSError):  # a folder that cannot be written costs time, and nothing else
        private_folder(folder, ours=True)
    embedder = CachedEmbedder(inner, path=folder / f"{inner.fingerprint}.sqlite3")
    closing.push_async_callback(embedder.aclose)
    return Loaded(settings, embedder, embedder.fingerprint)


def guarded(embedder: Embedder, settings: Settings) -> GuardedEmbedder:
    """Return an embedder that is given up early enough for letters to stand in for it."""
    timeout_s = min(settings.embedding.timeout_s, _SHARE * settings.timeout_s)
    return GuardedEmbedder(embedder, timeout_s=timeout_s)


def shared(embedder: Embedder, settings: Settings) -> Embedder:
    """Return an embedder that many calls may use at once, so that letters stand in early where it cannot serve all."""
    if isinstance(embedder, OpenAiEmbedder):
        return guarded(embedder, settings)
    shares = _WAITING_SHARE * settings.timeout_s, _MODEL_SHARE * settings.timeout_s
    if settings.observe_score == "paper":  # nothing may stand in for the model
        shares = settings.timeout_s, settings.timeout_s
    return QueuedEmbedder(embedder, wait_s=shares[0], timeout_s=shares[1])


def hurried(scorer: Scorer, settings: Settings) -> Scorer:
    """Return a scorer whose model is here with the time that it may have for one question."""
    return HurriedScorer(scorer, _MODEL_SHARE * settings.timeout_s)


async def embedder_of(settings: Settings) -> AvailableEmbedder:
    """Return the embedder that settings other than `lexical` name, or what takes its place and why."""
    if settings.embedding.embedder == "openai":
        return AvailableEmbedder(
            OpenAiEmbedder(
                model=settings.embedding.model,
                dimensions=settings.embedding.dimensions,
                api_key=settings.embedding.api_key,
                base_url=settings.embedding.base_url,
                redactor=settings.redactor,
            )
        )
    return await anyio.to_thread.run_sync(best_available)
