"""An embedder that may be away: it is given up in time, and left alone for a while."""

from collections.abc import Sequence
from typing import Final

import anyio

from kg_adapters.calls import RETRY_S
from kg_adapters.embedding.protocol import Embedder, Vectors
from kg_adapters.errors import BackendError, ModelUnavailable
from kg_adapters.http.pacing import CircuitBreaker, Timing

_WHO: Final = "The embedding service"


class GuardedEmbedder:
    """Wraps an embedder whose model is elsewhere, so that whoever can do without it never waits for it long.

    After a failure it fails at once for `pause_s` seconds; then one call tries it again.

    Args:
        embedder: The embedder.
        timeout_s: The most seconds that one call may take, whatever the embedder does.
        pause_s: For how many seconds it is left alone after a failure.
        timing: Where time comes from.
    """

    def __init__(
        self, embedder: Embedder, *, timeout_s: float, pause_s: float = RETRY_S, timing: Timing | None = None
    ) -> None:
        self._embedder = embedder
        self._timeout_s = timeout_s
        self._breaker = CircuitBreaker(_WHO, failures_until_pause=1, pause_s=pause_s, timing=timing or Timing())

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        return self._embedder.fingerprint

    @property
    def dimensions(self) -> int:
        """See `Embedder`."""
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`.

        Raises:
            ModelUnavailable: It failed, took too long, or has failed a moment ago.
        """
        try:
            with self._breaker.admitted() as admission:
                try:
                    vectors = await self._in_time(texts)
                except BackendError as error:
                    admission.failing(str(error))
                    raise
                admission.health = "alive"
                return vectors
        except BackendError as error:
            raise ModelUnavailable(str(error)) from error

    async def _in_time(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors | None = None
        with anyio.move_on_after(self._timeout_s):
            vectors = await self._embedder.embed(texts)
        if vectors is None:
            raise BackendError(f"{_WHO} gave no answer within {self._timeout_s:g} s.")
        return vectors
