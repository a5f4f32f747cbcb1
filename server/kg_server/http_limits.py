"""What one HTTP request must be for, and may cost: the size of its body, the time that this takes, and a place."""

import ipaddress
import logging
import re
from dataclasses import dataclass
from typing import Final

import anyio
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST, JSONRPCError, JSONRPCRequest, RequestId
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg_server.messages import LISTEN, NotAMessage, read_message, refusal

logger = logging.getLogger(__name__)

MCP_PATH: Final = "/mcp"
_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::([0-9]{1,5}))?", re.IGNORECASE)
_NAMING: Final = (b"host", b"origin")
_MAX_PORT: Final = 65_535
LINGER_S: Final = 1.0
"""How long what a refused client still sends is read, so that it gets to read the refusal."""


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
    """A request is not passed on.

    Args:
        status: The HTTP status.
        answer: What its sender is told.
        header: One more header.
    """

    def __init__(self, status: int, answer: JSONRPCError, header: tuple[bytes, bytes] | None = None) -> None:
        super().__init__(answer.error.message)
        self.status = status
        self.answer = answer
        self.header = header


class Gone(Exception):
    """The client left before it had said what it wanted."""


class LimitedRequests:
    """An application behind limits, which gets its requests whole.

    Args:
        app: What answers.
        limits: The limits.
    """

    def __init__(self, app: ASGIApp, limits: RequestLimits) -> None:
        self._app = app
        self._limits = limits
        self._requests = 0
        self._streams = 0
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say why not."""
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
        """Take what arrives next, and return how many bytes it has.

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
        """Give an application the body, and then what else the client does."""
        if self._given:
            return await self._receive()
        self._given = True
        return {"type": "http.request", "body": bytes(self.content), "more_body": False}

    async def skip(self) -> None:
        """Read the rest, and keep nothing of it."""
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
    """Refuse what a page in a browser sends, unless it comes from this machine: a name of its own may lead here too.

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
