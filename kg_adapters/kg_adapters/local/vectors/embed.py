"""Everything of a store that is embedded ahead, in one call."""

from dataclasses import dataclass

import anyio.to_thread

from kg_adapters.embedding.protocol import Embedder
from kg_adapters.local.seal import Damage
from kg_adapters.local.store import LocalStore
from kg_adapters.local.swap import exclusively
from kg_adapters.local.vectors.entities import MAX_ENTITIES, build_meaning_index
from kg_adapters.local.vectors.labels import (
    MAX_LABELS,
    build_label_vectors,
    vector_folder,
)
from kg_adapters.open_options import OnEmbedding, ignore_embedding


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """How much is embedded ahead.

    Args:
        max_labels: The most distinct labels of nodes, those of the best connected first.
        max_entities: The most entities to be found by meaning, the best connected first; 0 for none.
    """

    max_labels: int = MAX_LABELS
    max_entities: int = MAX_ENTITIES


async def embed_store(
    store: LocalStore,
    embedder: Embedder,
    options: EmbedOptions | None = None,
    progress: OnEmbedding = ignore_embedding,
) -> None:
    """Compute the vectors of a store's relations, labels and entities by one model, where they are not there yet.

    Interrupted work goes on with the next call. Of several processes one works and the others wait, which blocks: this
    is for a command, not for a server.

    Raises:
        InvalidSource: The store is damaged, or cannot be written to.
        OSError: It became so.
        KGError: The embedder failed.
    """
    chosen = options or EmbedOptions()
    vocabulary = store.info.vocabulary
    try:
        await anyio.to_thread.run_sync(store.check.run)
    except Damage as problem:
        raise store.damaged(problem) from problem
    with exclusively(vector_folder(store.folder, embedder.fingerprint)):
        await build_label_vectors(store.folder, store.index, embedder, progress, max_labels=chosen.max_labels)
        if chosen.max_entities:
            await build_meaning_index(
                store.folder, store.index, vocabulary, embedder, progress, max_entities=chosen.max_entities
            )
