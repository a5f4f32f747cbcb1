"""Embedding models behind an OpenAI-compatible service."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias
from typing import Literal as Choice

import anyio.to_thread
import numpy as np
from pydantic import BaseModel, SecretStr, ValidationError

from kg_adapters.embedding.protocol import Vectors, encodable, is_blank, unit_rows
from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable, InvalidRequest, KGError
from kg_boundary.addresses import base_url_problem, masked
from kg_boundary.bodies import ASKED_FOR, AnswerBounds, UnreadableBody
from kg_boundary.secrets import Redactor

if TYPE_CHECKING:
    from openai import AsyncOpenAI

EncodingFormat: TypeAlias = Choice["float", "base64"]

OPENAI_URL: Final = "https://api.openai.com/v1"
# The models read 8,191 tokens, and a character may be three.
_MAX_CHARACTERS: Final = 2_000
_MAX_QUOTED: Final = 200
# A number has some twenty characters, and what is around the vectors fits into the rest.
_BYTES_PER_NUMBER: Final = 32
_BYTES_BESIDE: Final = 1_000_000
_ADVICE: Final = {
    401: "Check the API key.",
    403: "Check what the API key allows.",
    404: "Check the model's name and the base URL.",
    429: "Too many requests, or no credit left: wait, or check the account.",
}


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
        timeout_s: The most seconds that one request may take.
        max_retries: How often a request is repeated.
        encoding_format: How vectors are sent; some services know only `float`, and `base64` is a quarter of the size.
        price_per_million_tokens: What a million tokens cost, for `usage`.
        redactor: What nobody must be shown, beside the key and what the URL holds.

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
        key = api_key.get_secret_value() if api_key else ""
        self._redactor = (redactor or Redactor()).also_in(base_url, key=key)
        self._model = model
        self._dimensions = dimensions
        self._api_key = api_key
        self._base_url = base_url.rstrip("/")
        self._batch_size = batch_size
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._encoding_format: EncodingFormat = encoding_format
        self._price = price_per_million_tokens
        self._client: AsyncOpenAI | None = None
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
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _request(self, texts: list[str]) -> Vectors:
        if self._client is None:
            self._client = await anyio.to_thread.run_sync(self._connect)
        content = await self._post(self._client, texts)
        try:
            reply = _Reply.model_validate_json(content)
            vectors = _rows(reply, len(texts), self._dimensions)
        except ValueError as error:
            raise BackendError(f"{self._service} gave no embeddings: {self._brief(_reason(error))}") from error
        self._count(reply.usage.total_tokens if reply.usage else 0, len(texts))
        return unit_rows(vectors)

    async def _post(self, client: "AsyncOpenAI", texts: list[str]) -> bytes:
        from openai import OpenAIError  # noqa: PLC0415 - loaded with the client

        try:
            response = await client.embeddings.with_raw_response.create(
                model=self._model, input=texts, encoding_format=self._encoding_format
            )
        except (OpenAIError, UnreadableBody) as error:
            raise self._translated(error) from error
        return response.content

    def _connect(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, DefaultAsyncHttpx2Client  # noqa: PLC0415 - half a second, for those who use it

        most = self._batch_size * self._dimensions * _BYTES_PER_NUMBER + _BYTES_BESIDE
        bounds = AnswerBounds(self._timeout_s, most)
        return AsyncOpenAI(
            # Without one, the client would look for a key by itself.
            api_key=self._api_key.get_secret_value() if self._api_key else "none",
            base_url=self._base_url,
            timeout=self._timeout_s,
            max_retries=self._max_retries,
            default_headers=ASKED_FOR,
            http_client=DefaultAsyncHttpx2Client(timeout=self._timeout_s, event_hooks={"response": [bounds]}),
        )

    def _translated(self, error: Exception) -> KGError:
        from openai import APIConnectionError, APIStatusError, APITimeoutError  # noqa: PLC0415 - loaded by now

        match error:
            case APITimeoutError():
                return BackendTimeout(f"{self._service} did not answer within {self._timeout_s:g} s.")
            case APIConnectionError(__cause__=UnreadableBody() as cause) | (UnreadableBody() as cause):
                return BackendError(f"{self._service} gave an answer that cannot be read: {self._brief(str(cause))}.")
            case APIConnectionError():
                return BackendUnavailable(f"{self._service} cannot be reached. Check the base URL.")
            case APIStatusError():
                advice = _ADVICE.get(error.status_code, "")
                said = self._brief(_said(error.body) or error.message)
                return BackendError(f"{self._service} answered {error.status_code}: {said} {advice}".rstrip())
            case _:
                return BackendError(f"{self._service} failed: {type(error).__name__}.")

    def _brief(self, text: str) -> str:
        return self._redactor.message(text)[:_MAX_QUOTED]

    @property
    def _service(self) -> str:
        return f"The embedding service {masked(self._base_url)} (model {self._model})"

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


class _Refusal(BaseModel):
    message: str


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


def _said(body: object) -> str:
    """Return the service's own words about what is wrong, or none."""
    try:
        return _Refusal.model_validate(body).message
    except ValidationError:
        return ""


def _reason(error: ValueError) -> str:
    return "the answer has an unexpected form." if isinstance(error, ValidationError) else str(error)
