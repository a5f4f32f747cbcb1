"""Embedders for many callers at once: they queue, and do not wait long for a model that is unavailable."""

from collections.abc import Sequence
from typing import Final

import anyio

from kg_adapters.embedding.protocol import Embedder, Vectors, WrappedEmbedder
from kg_adapters.errors import RETRY_S, BackendError, ModelBusy, ModelUnavailable
from kg_adapters.http.pacing import CircuitBreaker, Timing

_WHO: Final = "The embedding service"


class GuardedEmbedder(WrappedEmbedder):
    """Wraps an embedder whose model is elsewhere, so that callers who can do without it never wait long.

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
        super().__init__(embedder)
        self._timeout_s = timeout_s
        self._breaker = CircuitBreaker(_WHO, failures_until_pause=1, pause_s=pause_s, timing=timing or Timing())

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`.

        Raises:
            ModelUnavailable: It failed, took too long, or has failed a moment ago.
        """
        try:
            with self._breaker.admitted() as admission:
                try:
                    late = BackendError(f"{_WHO} gave no answer within {self._timeout_s:g} s.")
                    vectors = await _in_time(self._embedder, texts, self._timeout_s, late)
                except BackendError as error:
                    admission.failing(str(error))
                    raise
                admission.health = "alive"
                return vectors
        except BackendError as error:
            raise ModelUnavailable(str(error)) from error


_BUSY: Final = "The embedding model is busy with others. Ask again in a moment."
SHORT: Final = 16
"""How many texts a short call has at most: one batch of the shipped model."""


class QueuedEmbedder(WrappedEmbedder):
    """Wraps an embedder that computes here, where more may be asked than the processors can do.

    Short calls pass at once. Longer ones are done one after the other, so that those that are begun are finished; were
    they all done together, all would be too late. A call that waits too long fails, since the model is busy.

    Args:
        embedder: The embedder.
        wait_s: How many seconds a longer call waits for its turn.
        timeout_s: How many seconds any call may take, with its turn or without one.
    """

    def __init__(self, embedder: Embedder, *, wait_s: float, timeout_s: float) -> None:
        super().__init__(embedder)
        self._wait_s = wait_s
        self._timeout_s = timeout_s
        self._turn = anyio.Lock()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`.

        Raises:
            ModelBusy: Others had their turn for too long.
        """
        if len(texts) <= SHORT:
            return await _in_time(self._embedder, texts, self._timeout_s, ModelBusy(_BUSY))
        with anyio.move_on_after(self._wait_s) as waiting:
            await self._turn.acquire()
        if waiting.cancelled_caught:
            raise ModelBusy(_BUSY)
        try:
            return await _in_time(self._embedder, texts, self._timeout_s, ModelBusy(_BUSY))
        finally:
            self._turn.release()


async def _in_time(embedder: Embedder, texts: Sequence[str], timeout_s: float, late: BackendError) -> Vectors:
    """Return vectors; raise `late` where there are none within so many seconds."""
    with anyio.move_on_after(timeout_s):
        return await embedder.embed(texts)
    raise late
