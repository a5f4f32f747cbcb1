"""Embedders for tests: what they were asked is on record, and they can fail or wait."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from kg_adapters.embedding import CachedEmbedder, Embedder, LexicalEmbedder, Vectors
from kg_adapters.embedding.protocol import pack, unpack
from kg_adapters.errors import BackendUnavailable
from kg_server.settings import EmbeddingSettings

# Every kind of text that has broken something before.
HOSTILE_TEXTS = (
    "",
    " \n\t",
    "\x00",
    "\ud800 half a pair",
    "東京 の 首都",
    "عاصمة اليابان",
    "🪐🪐🪐",
    "!?…",
    "x" * 1_000_000,
    "word " * 200_000,
)


class RecordingEmbedder:
    """Vectors of letters, with a record of the calls.

    Args:
        fingerprint: What it calls itself.
        fails_after: How many calls succeed; all when None.
    """

    def __init__(
        self, fingerprint: str = "recording-1", *, fails_after: int | None = None, dimensions: int = 64
    ) -> None:
        self.fingerprint = fingerprint
        self.dimensions = dimensions
        self.calls: list[list[str]] = []
        self.asked = anyio.Event()
        self.may_answer = anyio.Event()
        self.may_answer.set()
        self._fails_after = fails_after
        self._inner = LexicalEmbedder(dimensions)

    @property
    def texts(self) -> list[str]:
        """All texts that it was asked for, in order."""
        return [text for call in self.calls for text in call]

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self._fails_after is not None and len(self.calls) >= self._fails_after:
            raise BackendUnavailable("The model is away.")
        if texts:
            self.calls.append(list(texts))
        self.asked.set()
        await self.may_answer.wait()
        return await self._inner.embed(texts)


@asynccontextmanager
async def caching(
    inner: Embedder, path: Path | None = None, *, memory_rows: int = 100, file_rows: int = 1_000
) -> AsyncGenerator[CachedEmbedder]:
    """Remember what `inner` says, and close the file at the end."""
    async with aclosing(CachedEmbedder(inner, memory_rows=memory_rows, path=path, file_rows=file_rows)) as cached:
        yield cached


async def rounded(texts: Sequence[str]) -> Vectors:
    """Return what a `RecordingEmbedder` says, rounded as what is kept is."""
    return unpack(pack(await RecordingEmbedder().embed(texts)))


LEXICAL: Final = EmbeddingSettings(embedder="lexical")
"""Settings with which texts are compared by their letters."""
