"""Connections over HTTP that are closed when a request does not arrive in time."""

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedConnection(H11Protocol):
    """A connection whose next request must be there as a whole within some time, so that nobody holds idle ones.

    uvicorn ends only those that send nothing after an answer. Its other implementation of HTTP does not limit how long
    the head of a request may be, as h11 does.

    Attributes:
        request_s: How many seconds a request may take to arrive, from the connection or the last answer on.
    """

    request_s: ClassVar[float] = 30.0

    _overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._expect_nothing()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._expect_request()
        super().on_response_complete()

    def _expect_request(self) -> None:
        self._expect_nothing()
        self._overdue = self.loop.call_later(self.request_s, self._close_if_incomplete)

    def _expect_nothing(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()

    def _close_if_incomplete(self) -> None:
        if self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
            self.transport.close()
