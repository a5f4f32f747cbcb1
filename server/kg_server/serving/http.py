"""The application behind HTTP: messages of this machine alone, of a bounded size."""

import ipaddress
import re
from typing import Final

from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.types import INVALID_REQUEST, JSONRPCError
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg_server.serving.messages import NotAMessage, read_message, refusal

MCP_PATH: Final = "/mcp"

_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::([0-9]{1,5}))?", re.IGNORECASE)

_MAX_PORT: Final = 65_535


class LocalMessages:
    """An application that receives only JSON-RPC messages from this machine; others are refused with the reason.

    Args:
        app: The application.
        max_bytes: The most bytes of one message.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._bounded = RequestBodyLimitMiddleware(self._checked, max_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # The SDK compares only how an Origin begins, and takes `http://localhost:80.evil.example` for this machine.
        if not _is_for_loopback(headers):
            await _refuse(421, "The Host of a request must be localhost or a loopback address.")(scope, receive, send)
        elif not _is_from_loopback(headers):
            await _refuse(403, "Requests of pages from other hosts are not answered.")(scope, receive, send)
        elif scope["path"] == MCP_PATH and scope["method"] == "GET":
            # Nothing is kept between requests, so such a stream would only stay open.
            response = _refuse(405, "There is no stream to open by GET here; POST a message.")
            response.headers["allow"] = "POST"
            await response(scope, receive, send)
        else:
            await self._bounded(scope, receive, send)

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse one whose body is not a message; the body arrives in one piece."""
        first = await receive()
        if first["type"] != "http.request" or first["more_body"]:
            return  # The client left before its request was complete.
        if scope["path"] == MCP_PATH and scope["method"] == "POST":
            try:
                read_message(first["body"])
            except NotAMessage as error:
                await _refused(400, error.answer)(scope, receive, send)
                return
        given = [first]

        async def again() -> Message:
            return given.pop() if given else await receive()

        await self._app(scope, again, send)


def is_loopback(host: str) -> bool:
    """Return whether a name or address, without brackets, is this machine's own, whatever a name server says."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_for_loopback(headers: Headers) -> bool:
    hosts = headers.getlist("host")
    return len(hosts) == 1 and _names_loopback(hosts[0])


def _is_from_loopback(headers: Headers) -> bool:
    """Return whether every page that sent a request is this machine's; names of others may resolve to it as well."""
    parts = (origin.partition("://") for origin in headers.getlist("origin"))
    return all(scheme.lower() == "http" and mark and _names_loopback(host) for scheme, mark, host in parts)


def _names_loopback(authority: str) -> bool:
    found = _AUTHORITY.fullmatch(authority)
    return found is not None and is_loopback(found[1] or found[2]) and int(found[3] or 0) <= _MAX_PORT


def _refuse(status: int, reason: str) -> Response:
    return _refused(status, refusal(None, INVALID_REQUEST, reason))


def _refused(status: int, answer: JSONRPCError) -> Response:
    text = answer.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(text, status, media_type="application/json", headers={"connection": "close"})
