"""Which embedder works on this machine."""

from dataclasses import dataclass
from pathlib import Path

from kg_adapters.embedding.lexical import LexicalEmbedder
from kg_adapters.embedding.minilm import MODEL_FOLDER, MiniLmEmbedder
from kg_adapters.embedding.protocol import Embedder
from kg_adapters.errors import Unsupported


@dataclass(frozen=True, slots=True)
class AvailableEmbedder:
    """An embedder that works, and why it is not the shipped model, in a sentence; None where it is."""

    embedder: Embedder
    fallback_reason: str | None = None


def best_available(*, folder: Path = MODEL_FOLDER, threads: int | None = None) -> AvailableEmbedder:
    """Return the shipped model, or the lexical embedder where it cannot run.

    Finding out means loading the model: this blocks for a quarter of a second, so call it in a thread.

    Args:
        folder: Where the two files of the model lie.
        threads: How many processor cores the model may use; None for all.
    """
    minilm = MiniLmEmbedder(folder=folder, threads=threads)
    try:
        minilm.load()
    except Unsupported as error:
        return AvailableEmbedder(LexicalEmbedder(), f"{error} Texts are compared by their letters instead.")
    return AvailableEmbedder(minilm)
