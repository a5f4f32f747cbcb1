"""What one HTTP connection may cost: a place, and the time that a client takes to speak and to listen."""

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kg_server.messages import refusal

if sys.platform != "win32":
    import resource

logger = logging.getLogger(__name__)

SHUTDOWN_S: Final = 2
BACKLOG: Final = 128
"""How many clients wait to be let in."""
RESERVED_DESCRIPTORS: Final = 256
"""Descriptors that connections leave to everything else: stores, memories, workers, and clients to be refused."""
REFUSED_AT_ONCE: Final = 32
"""How many clients too many are told so at once; further ones are cut off."""
REFUSAL_S: Final = 1.0
EXHAUSTION_TOLD_S: Final = 60.0
_EXHAUSTED: Final = "socket.accept() out of system resource"
_PHRASES: Final = {408: "Request Timeout", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What connections may take.

    Args:
        connections: The most at once.
        headers_s: How many seconds the headers of a request may take to arrive.
        unread_s: How many seconds a client may leave an answer unread.
        idle_s: How many seconds a connection may stay open between two requests.
    """

    connections: int
    headers_s: float
    unread_s: float
    idle_s: int = 5


class LimitedConfig(uvicorn.Config):
    """How uvicorn serves an application to connections with limits."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits) -> None:
        # uvicorn's own logging would write its access log to standard output; and a client that may name an address of
        # its own (X-Forwarded-For) would get past every limit for one client.
        super().__init__(
            app,
            http=LimitedConnection,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=limits.idle_s,
            timeout_graceful_shutdown=SHUTDOWN_S,
        )
        self.limits = limits
        self.taken: dict[LimitedConnection, None] = {}
        """The connections that are served, that without a request for longest first."""


class LimitedConnection(H11Protocol):
    """A connection that ends when its client is one too many, or keeps it waiting."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(config, LimitedConfig)  # noqa: S101 - nothing else names this class
        self._limits = config.limits
        self._taken = config.taken
        self._headers_due = _Due(self.loop)
        self._reading_due = _Due(self.loop)
        self._answering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Take a client in, or tell it that there are too many."""
        super().connection_made(transport)
        oldest_idle = next((each for each in self._taken if each.is_idle), None)
        if len(self._taken) >= self._limits.connections and oldest_idle is not None:
            oldest_idle.drop()
        if len(self._taken) < self._limits.connections:
            self._taken[self] = None
            self._headers_due.start(self._limits.headers_s, self._too_slow)
            return
        if len(self.connections) > len(self._taken) + REFUSED_AT_ONCE:
            transport.abort()
            return
        self._say(503, INTERNAL_ERROR, f"The server has {self._limits.connections} connections, and takes no more.")
        transport.write_eof()
        self.loop.call_later(REFUSAL_S, transport.abort)

    @property
    def is_idle(self) -> bool:
        """Whether no request is complete or being answered, and no answer is still to be read."""
        return not self._answering and not self.transport.get_write_buffer_size()

    def drop(self) -> None:
        """End the connection in favour of another."""
        del self._taken[self]
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Take what arrived."""
        if self not in self._taken:
            return
        if not self.flow.write_paused:
            self._reading_due.stop()
        if not self._answering:
            self._headers_due.start(self._limits.headers_s, self._too_slow)
        super().data_received(data)

    def handle_events(self) -> None:
        """Act on what is complete."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._headers_due.stop()
            self._answering = not self.cycle.response_complete

    def on_response_complete(self) -> None:
        """Go on with the next request, and do not wait for ever for a client that leaves the answer unread."""
        self._answering = False
        if self in self._taken:
            self._taken[self] = self._taken.pop(self)
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._reading_due.start(self._limits.unread_s, self.transport.abort)

    def pause_writing(self) -> None:
        """Wait until the client has read what was sent, but not for ever."""
        super().pause_writing()
        self._reading_due.start(self._limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, since the client has read."""
        self._reading_due.stop()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._headers_due.stop()
        self._reading_due.stop()
        self._taken.pop(self, None)
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            seconds = f"{self._limits.headers_s:g}"
            self._say(408, INVALID_REQUEST, f"The headers of the request took longer than {seconds} seconds.")
            self.transport.close()

    def _say(self, status: int, code: int, reason: str) -> None:
        """Send an answer to what is no request yet, which uvicorn has no way to do."""
        body = refusal(None, code, reason).model_dump_json(by_alias=True, exclude_unset=True)
        head = f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())


class _Due:
    """Something that has to happen within some seconds, or else."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float, otherwise: Callable[[], None]) -> None:
        """Count from now, unless it is counted already."""
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, otherwise)

    def stop(self) -> None:
        """Note that it happened."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def room_for(connections: int) -> int:
    """Return how many connections the descriptors of this process allow, after it asked for as many as it needs."""
    if sys.platform == "win32":
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVED_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = max(1, min(connections, soft - RESERVED_DESCRIPTORS))
    if room < connections:
        logger.warning("This process may open %d files, so it takes %d connections at most.", soft, room)
    return room


class ExhaustionToldOnce:
    """Handles what fails in an event loop, and is brief about connections for which no descriptor is left.

    asyncio reports each of these with a traceback, thousands a second, and tries again by itself.
    """

    def __init__(self) -> None:
        self._told_at: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what happened."""
        if context.get("message") != _EXHAUSTED:
            loop.default_exception_handler(context)
        elif self._told_at is None or loop.time() - self._told_at > EXHAUSTION_TOLD_S:
            self._told_at = loop.time()
            logger.warning("No connection can be taken until others end: %s.", context.get("exception"))
