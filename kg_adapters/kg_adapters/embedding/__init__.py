"""Texts as vectors: the model that ships with the package, others, and what needs no model.

Importing this package loads no model and none of the libraries that run one.
"""

from kg_adapters.embedding.cached import CachedEmbedder
from kg_adapters.embedding.lexical import LexicalEmbedder, LexicalScorer, lexical_scores
from kg_adapters.embedding.minilm import AvailableEmbedder, MiniLmEmbedder, best_available
from kg_adapters.embedding.openai_compatible import EmbeddingUsage, OpenAiEmbedder
from kg_adapters.embedding.protocol import Embedder, Vectors
from kg_adapters.embedding.queued import GuardedEmbedder, QueuedEmbedder

__all__ = [
    "AvailableEmbedder",
    "CachedEmbedder",
    "Embedder",
    "EmbeddingUsage",
    "GuardedEmbedder",
    "LexicalEmbedder",
    "LexicalScorer",
    "MiniLmEmbedder",
    "OpenAiEmbedder",
    "QueuedEmbedder",
    "Vectors",
    "best_available",
    "lexical_scores",
]
