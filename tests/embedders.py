"""Embedders for tests, in this process or on loopback, which can fail or wait and record what they are asked."""

import base64
import json
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import numpy as np

from kg_adapters.embedding import CachedEmbedder, Embedder, LexicalEmbedder, Vectors
from kg_adapters.embedding.protocol import pack, unpack
from kg_adapters.errors import BackendUnavailable
from kg_server.settings import EmbeddingSettings
from loopback_service import Reply, answering

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


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, and with which `Authorization`; nothing else may stand in it."""

    authorization: str | None
    model: str
    input: list[str]
    encoding_format: str


Script: TypeAlias = Callable[[Asked], Reply]


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: where it is, and every request."""

    url: str
    requests: list[Asked]


@contextmanager
def serving(*scripts: Script) -> Generator[Service]:
    """Run a service that follows each script once, in order, and then the last one again and again."""
    requests: list[Asked] = []
    left = list(scripts)

    def answer_one(body: bytes, authorization: str | None) -> Reply:
        requests.append(Asked(authorization, **json.loads(body)))
        return (left.pop(0) if len(left) > 1 else left[0])(requests[-1])

    with answering(answer_one) as url:
        yield Service(url, requests)


def vector_of(text: str) -> list[float]:
    """Return what the service says about a text: two numbers, far from unit length."""
    return [float(len(text)), 10.0]


def answer(asked: Asked) -> Reply:
    """Answer as OpenAI does, the last text first."""
    rows = [vector_of(text) for text in asked.input]
    as_text = asked.encoding_format == "base64"
    data = [
        {"object": "embedding", "index": place, "embedding": _written(row, as_text=as_text)}
        for place, row in enumerate(rows)
    ]
    usage = {"prompt_tokens": 10 * len(rows), "total_tokens": 10 * len(rows)}
    return Reply({"object": "list", "data": data[::-1], "model": asked.model, "usage": usage})


def failing(status: int, message: str = "Something is wrong.") -> Script:
    """Refuse with a status and a message; a client that tries again need not wait."""
    content = {"error": {"message": message, "type": "error", "code": None}}
    return lambda _: Reply(content, status, {"retry-after-ms": "1"})


def _written(row: Sequence[float], *, as_text: bool) -> object:
    return base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode() if as_text else list(row)
