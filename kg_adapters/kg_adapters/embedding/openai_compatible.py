"""Embedding models behind an OpenAI-compatible service."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias
from typing import Literal as Choice
from urllib.parse import urlsplit

import numpy as np
from pydantic import BaseModel, SecretStr, ValidationError

from kg_adapters.embedding.protocol import Vectors, encodable, is_blank, unit_rows
from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.http.client import EndpointClient
from kg_adapters.http.failures import Failure
from kg_adapters.http.messages import HttpReply, HttpRequest
from kg_adapters.http.options import EndpointOptions
from kg_boundary.addresses import base_url_problem, credentials_in
from kg_boundary.secrets import Redactor

EncodingFormat: TypeAlias = Choice["float", "base64"]

OPENAI_URL: Final = "https://api.openai.com/v1"
# The models read 8,191 tokens, and a character may be three.
_MAX_CHARACTERS: Final = 2_000
# A number has some twenty characters, and what is around the vectors fits into the rest.
_BYTES_PER_NUMBER: Final = 32
_BYTES_BESIDE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """What was asked of a service so far: answered requests, texts, tokens as it counted them, and their price."""

    requests: int = 0
    texts: int = 0
    tokens: int = 0
    cost: float = 0.0


class OpenAiEmbedder:
    """Embeds through `/embeddings` of a service; failed requests are repeated with pauses, as it asks.

    Args:
        model: The model's name.
        dimensions: The length of its vectors.
        api_key: The key; None for a service that needs none.
        base_url: Where the service is, with its `/v1`.
        batch_size: The most texts in one request.
        timeout_s: The most seconds that one request may take; with repetitions, as many times that.
        max_retries: How often a request is repeated.
        encoding_format: How vectors are sent; some services know only `float`, and `base64` is a quarter of the size.
        price_per_million_tokens: What a million tokens cost, for `usage`.
        redactor: Removes other secrets than the key and those in the URL.

    Raises:
        InvalidRequest: The URL cannot have paths appended.
    """

    def __init__(
        self,
        *,
        model: str,
        dimensions: int,
        api_key: SecretStr | None = None,
        base_url: str = OPENAI_URL,
        batch_size: int = 256,
        timeout_s: float = 30.0,
        max_retries: int = 3,
        encoding_format: EncodingFormat = "float",
        price_per_million_tokens: float = 0.0,
        redactor: Redactor | None = None,
    ) -> None:
        if problem := base_url_problem(base_url):
            raise InvalidRequest(f"The base URL of the embedding service cannot be used: {problem}.")
        self._model = model
        self._dimensions = dimensions
        self._base_url = base_url.rstrip("/")
        self._batch_size = batch_size
        self._timeout_s = timeout_s * (1 + max_retries)
        self._encoding_format: EncodingFormat = encoding_format
        self._price = price_per_million_tokens
        parts = urlsplit(self._base_url)
        key = api_key if api_key and api_key.get_secret_value() else None
        # The key, or the credentials in the URL.
        user, password = next(iter(() if key else credentials_in(base_url)), (None, None))
        try:
            self._options = EndpointOptions(
                url=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}/embeddings",
                service="embedding service",
                token=key,
                user=user,
                password=None if password is None else SecretStr(password),
                max_mb=(batch_size * dimensions * _BYTES_PER_NUMBER + _BYTES_BESIDE) / 1e6,
                max_retries=max_retries,
                use_environment_proxies=True,
                redactor=(redactor or Redactor()).also_in(base_url),
            )
        except ValidationError as error:
            problem = error.errors(include_input=False)[0]["msg"]
            raise InvalidRequest(f"The base URL of the embedding service cannot be used: {problem}.") from None
        self._client = EndpointClient(self._options)
        self.usage = EmbeddingUsage()

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        identity = f"{self._base_url}\0{self._model}\0{_MAX_CHARACTERS}"
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self._model)[:60]
        return f"openai-{name}-{self._dimensions}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"

    @property
    def dimensions(self) -> int:
        """See `Embedder`."""
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        places = [place for place, text in enumerate(texts) if not is_blank(text)]
        for first in range(0, len(places), self._batch_size):
            batch = places[first : first + self._batch_size]
            vectors[batch] = await self._request([encodable(texts[place][:_MAX_CHARACTERS]) for place in batch])
        return vectors

    async def aclose(self) -> None:
        """Close the connections; calling it twice is harmless."""
        await self._client.aclose()

    async def _request(self, texts: list[str]) -> Vectors:
        content = {"model": self._model, "input": texts, "encoding_format": self._encoding_format}
        headers = {"Content-Type": "application/json"}
        request = HttpRequest(
            "POST", self._options.url, ("application/json",), headers, json.dumps(content, allow_nan=False).encode()
        )
        try:
            read = partial(self._read, len(texts))
            vectors, tokens = await self._client.ask(request, read, timeout_s=self._timeout_s)
        except InvalidRequest as error:
            # The caller cannot change the texts.
            raise BackendError(str(error)) from error
        self._count(tokens, len(texts))
        return vectors

    def _read(self, count: int, reply: HttpReply) -> tuple[Vectors, int] | Failure:
        """Return the vectors of a reply, each of length 1, and the tokens that the service counted."""
        try:
            said = _Reply.model_validate_json(reply.body)
            vectors = unit_rows(_rows(said, count, self._dimensions))
        except ValueError as error:
            return Failure(BackendError(f"{self._options.who} gave no embeddings: {_reason(error)}"), cause=error)
        return vectors, said.usage.total_tokens if said.usage else 0

    def _count(self, tokens: int, texts: int) -> None:
        used = self.usage
        self.usage = EmbeddingUsage(
            requests=used.requests + 1,
            texts=used.texts + texts,
            tokens=used.tokens + tokens,
            cost=(used.tokens + tokens) * self._price / 1_000_000,
        )


class _Item(BaseModel):
    index: int
    embedding: list[float] | str


class _Usage(BaseModel):
    total_tokens: int = 0


class _Reply(BaseModel):
    data: list[_Item]
    usage: _Usage | None = None


def _rows(reply: _Reply, count: int, dimensions: int) -> Vectors:
    """Return the vectors of a reply in the order of the texts; shape [count, dimensions].

    Raises:
        ValueError: A vector is missing, too many, or not what it should be.
    """
    items = sorted(reply.data, key=lambda item: item.index)
    if [item.index for item in items] != list(range(count)):
        raise ValueError(f"there are {len(items)} vectors for {count} texts.")
    rows = [_row(item.embedding) for item in items]
    lengths = {len(row) for row in rows} - {dimensions}
    if lengths:
        raise ValueError(f"a vector has {min(lengths)} dimensions, and {dimensions} were set.")
    vectors = np.stack(rows)
    if not np.isfinite(vectors).all():
        raise ValueError("a vector holds what is not a number.")
    return vectors


def _row(embedding: list[float] | str) -> Vectors:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float32)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        return np.asarray(embedding, dtype=np.float64).astype(np.float32)


def _reason(error: ValueError) -> str:
    return "the answer has an unexpected form." if isinstance(error, ValidationError) else str(error)
