"""Computes the vectors of a store ahead, for `import --embed`."""

from pathlib import Path

import anyio

from kg_adapters.embedding import LexicalEmbedder, OpenAiEmbedder
from kg_adapters.errors import InvalidRequest, Unsupported
from kg_adapters.local.store import open_store
from kg_adapters.local.vectors.embed import embed_store
from kg_adapters.progress import OnEmbedding
from kg_server.embedders import embedder_of
from kg_server.settings import Settings


def embed(folder: Path, settings: Settings, progress: OnEmbedding) -> str:
    """Compute what is missing of a store's vectors, and return in words what it cost, or nothing.

    Raises:
        InvalidRequest: The settings name no model.
        Unsupported: The model cannot run on this machine.
        KGError: The store or the model failed; what was computed stays.
    """
    if settings.embedder == "lexical":
        raise InvalidRequest("--embed needs a model. Set embedder to minilm or openai (KG_SEXTANT_EMBEDDER).")
    return anyio.run(_embed, folder, settings, progress)


async def _embed(folder: Path, settings: Settings, progress: OnEmbedding) -> str:
    available = await embedder_of(settings)
    embedder = available.embedder
    if isinstance(embedder, LexicalEmbedder):
        raise Unsupported(f"{available.fallback_reason} The import itself is complete.")
    try:
        await embed_store(open_store(folder), embedder, progress=progress)
        if not isinstance(embedder, OpenAiEmbedder):
            return ""
        usage = embedder.usage
        return f"{usage.texts:,} texts, {usage.tokens:,} tokens, cost {usage.cost:.4f}."
    finally:
        if isinstance(embedder, OpenAiEmbedder):
            await embedder.aclose()
