"""Limit what HTTP connections and requests may cost, and refuse requests from other hosts."""

import asyncio
import ipaddress
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import anyio
import uvicorn
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST, JSONRPCError, JSONRPCRequest, RequestId
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kg_server.serving.messages import LISTEN, NotAMessage, read_message, refusal

logger = logging.getLogger(__name__)

MCP_PATH: Final = "/mcp"

_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::([0-9]{1,5}))?", re.IGNORECASE)

_NAMING: Final = (b"host", b"origin")

_MAX_PORT: Final = 65_535

LINGER_S: Final = 1.0
"""How long the rest of a refused request is read, so that the client can read the refusal."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What requests may take.

    Args:
        requests: The most that are answered at once.
        streams: The most of them that listen for changes, which has no end.
        body_bytes: The most bytes of a body.
        held_bytes: The most bytes of all bodies together.
        body_s: How many seconds it may take to arrive.
    """

    requests: int
    streams: int
    body_bytes: int
    held_bytes: int
    body_s: float


class Refused(Exception):
    """A request that is refused.

    Args:
        status: The HTTP status.
        answer: The error for its sender.
        header: One more header.
    """

    def __init__(self, status: int, answer: JSONRPCError, header: tuple[bytes, bytes] | None = None) -> None:
        super().__init__(answer.error.message)
        self.status = status
        self.answer = answer
        self.header = header


class Gone(Exception):
    """The client left before its request was complete."""


class LimitedRequests:
    """An application behind limits, which receives complete requests.

    Args:
        app: The application.
        limits: The limits.
    """

    def __init__(self, app: ASGIApp, limits: RequestLimits) -> None:
        self._app = app
        self._limits = limits
        self._requests = 0
        self._streams = 0
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(receive)
        try:
            await self._answer(scope, body, send)
        except Refused as error:
            await _refuse(error, body, send)
        except Gone:
            logger.debug("a client left before its request was complete")

    async def _answer(self, scope: Scope, body: "_Body", send: Send) -> None:
        _require_loopback(scope)
        if self._requests >= self._limits.requests:
            raise _no_place(self._limits.requests, "requests")
        self._requests += 1
        try:
            await self._read(scope, body)
            await self._pass_on(scope, body, send)
        finally:
            self._requests -= 1
            self._held -= len(body.content)

    async def _read(self, scope: Scope, body: "_Body") -> None:
        """Read a body.

        Raises:
            Refused: It is too large, or takes too long.
            Gone: The client left meanwhile.
        """
        most = self._limits.body_bytes
        if _declared(scope) > most:
            raise _too_large(most)
        with anyio.move_on_after(self._limits.body_s):
            while not body.complete:
                self._held += await body.more()
                if len(body.content) > most:
                    raise _too_large(most)
                if self._held > self._limits.held_bytes:
                    raise _no_place(self._limits.held_bytes, "bytes")
            return
        reason = f"The body of the request took longer than {self._limits.body_s:g} seconds."
        raise Refused(408, refusal(None, INVALID_REQUEST, reason))

    async def _pass_on(self, scope: Scope, body: "_Body", send: Send) -> None:
        message = _checked(scope, bytes(body.content))
        if not isinstance(message, JSONRPCRequest) or message.method != LISTEN:
            await self._app(scope, body.again, send)
            return
        if self._streams >= self._limits.streams:
            raise _no_place(self._limits.streams, "streams", message.id)
        self._streams += 1
        try:
            await self._app(scope, body.again, send)
        finally:
            self._streams -= 1


class _Body:
    """The body of a request, as far as it has arrived."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._given = False
        self.content = bytearray()
        self.complete = False

    async def more(self) -> int:
        """Receive the next part, and return its size in bytes.

        Raises:
            Gone: The client left.
        """
        message = await self._receive()
        if message["type"] != "http.request":
            raise Gone
        chunk = message.get("body", b"")
        self.content += chunk
        self.complete = not message.get("more_body", False)
        return len(chunk)

    async def again(self) -> Message:
        """Return the body at the first call, and then further messages of the client."""
        if self._given:
            return await self._receive()
        self._given = True
        return {"type": "http.request", "body": bytes(self.content), "more_body": False}

    async def skip(self) -> None:
        """Read and discard the rest."""
        while not self.complete:
            message = await self._receive()
            self.complete = not message.get("more_body", False)


def _checked(scope: Scope, body: bytes) -> object:
    """Return the message that a body is, or None where none is expected.

    Raises:
        Refused: It is no message, or would open a stream on which nothing could ever be sent.
    """
    if scope["path"] != MCP_PATH:
        return None
    if scope["method"] == "GET":
        # Nothing is kept between requests, so such a stream would only stay open.
        reason = "There is no stream to open by GET here; POST a message."
        raise Refused(405, refusal(None, INVALID_REQUEST, reason), (b"allow", b"POST"))
    if scope["method"] != "POST" or not _header(scope, b"content-type").lower().startswith(b"application/json"):
        return None
    try:
        return read_message(body)
    except NotAMessage as error:
        raise Refused(400, error.answer) from error


def is_loopback(host: str) -> bool:
    """Return whether a name or address, without brackets, is this machine's own, whatever a name server says."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _require_loopback(scope: Scope) -> None:
    """Refuse requests of web pages of other hosts, whose names may resolve to this machine (DNS rebinding).

    Raises:
        Refused: `Host` or `Origin` names another host than this one.
    """
    hosts, origins = ([value.decode("latin-1") for key, value in scope["headers"] if key == name] for name in _NAMING)
    if len(hosts) != 1 or not _names_loopback(hosts[0]):
        raise Refused(
            421, refusal(None, INVALID_REQUEST, "The Host of a request must be localhost or a loopback address.")
        )
    for origin in origins:
        scheme, mark, authority = origin.partition("://")
        if scheme.lower() != "http" or not mark or not _names_loopback(authority):
            raise Refused(403, refusal(None, INVALID_REQUEST, "Requests of pages from other hosts are not answered."))


def _names_loopback(authority: str) -> bool:
    found = _AUTHORITY.fullmatch(authority)
    return found is not None and is_loopback(found[1] or found[2]) and int(found[3] or 0) <= _MAX_PORT


def _header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


def _declared(scope: Scope) -> int:
    length = _header(scope, b"content-length")
    return int(length) if length.isdigit() else 0


def _too_large(most: int) -> Refused:
    return Refused(413, refusal(None, INVALID_REQUEST, f"The body of a request has at most {most:,} bytes."))


def _no_place(most: int, of_what: str, request: RequestId | None = None) -> Refused:
    reason = f"The server takes {most:,} {of_what} at once, and has no place left. Try again later."
    return Refused(503, refusal(request, INTERNAL_ERROR, reason), (b"retry-after", b"1"))


async def _refuse(error: Refused, body: _Body, send: Send) -> None:
    """Send a refusal, and close the connection once the client had time to read it."""
    text = error.answer.model_dump_json(by_alias=True, exclude_unset=True).encode()
    length = (b"content-length", str(len(text)).encode())
    headers = [(b"content-type", b"application/json"), length, (b"connection", b"close")]
    if error.header is not None:
        headers.append(error.header)
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": text, "more_body": True})
    with anyio.move_on_after(LINGER_S):
        await body.skip()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


if sys.platform != "win32":
    import resource

SHUTDOWN_S: Final = 2

BACKLOG: Final = 128
"""How many clients wait to be let in."""

RESERVED_DESCRIPTORS: Final = 256
"""Descriptors that connections leave to everything else: stores, memories, workers, and clients to be refused."""

REFUSED_AT_ONCE: Final = 32
"""How many surplus clients get a refusal at once; further ones are cut off."""

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
        """Accept a client, or refuse it if there are too many."""
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
