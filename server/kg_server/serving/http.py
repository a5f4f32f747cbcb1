"""The application behind HTTP: requests by this server's names, of callers who may call, with one bounded message."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.types import INVALID_REQUEST, JSONRPCError, JSONRPCMessage
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg_server.serving.messages import NotAMessage, read_message, refusal
from kg_server.settings import HostingSettings

if TYPE_CHECKING:
    from kg_server.serving.login import Login

MCP_PATH: Final = "/mcp"
WELL_KNOWN: Final = "/.well-known/"
"""Where metadata is that anybody may read."""

_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_MAX_PORT: Final = 65_535
_FROM_PAGES: Final = (
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
)
"""Headers that a client in a browser sends."""


@dataclass(frozen=True, slots=True)
class ServerNames:
    """By what names a server is called, and which pages may call it, beside those of this machine.

    Args:
        hosts: Values of `Host` in lower case; one without a port is accepted with any.
        origins: Values of `Origin` in lower case.
        own_page: Whether the server's own page alone may call, not other pages of this machine.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    own_page: bool = False

    @classmethod
    def of(cls, hosting: HostingSettings, *, own_page: bool = False) -> "ServerNames":
        """Return the names in the settings; those of the public URL are among them."""
        public = urlsplit(hosting.url or "")
        hosts = {*hosting.hosts, *([public.netloc] if public.netloc else [])}
        origins = {*hosting.origins, *([f"{public.scheme}://{public.netloc}"] if public.netloc else [])}
        return cls(frozenset(map(str.lower, hosts)), frozenset(map(str.lower, origins)), own_page)

    def is_called(self, headers: Headers, own_address: str) -> bool:
        """Return whether a request is for this server: for one of its names, or the address that it arrived at."""
        hosts = headers.getlist("host")
        found = _AUTHORITY.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if found is None or int(found[2] or 0) > _MAX_PORT:
            return False
        # An address cannot be made to mean another machine, as a name can by whoever owns it.
        name = found[1].strip("[]")
        return is_loopback(name) or name == own_address or not self.hosts.isdisjoint({found[0], found[1]})

    def may_ask(self, headers: Headers) -> bool:
        """Return whether every page that sent a request may; names of others may resolve to this machine as well."""
        known = partial(_is_of_page, host=headers.get("host", "")) if self.own_page else _is_of_loopback
        return all(origin.lower() in self.origins or known(origin) for origin in headers.getlist("origin"))


class CheckedRequests:
    """An application that receives only requests that it should answer; others are refused with the reason.

    Args:
        app: The application.
        max_bytes: The most bytes of one message.
        names: What a request may name in `Host` and `Origin`.
        login: Who may call; None for everybody who reaches this server.
        on_forbidden: Called with each message that its caller may not send.
        limited: Puts limits for each caller before an application; they hold while a message is still arriving.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int,
        names: ServerNames = ServerNames(),
        login: "Login | None" = None,
        on_forbidden: Callable[[JSONRPCMessage], None] = lambda _: None,
        limited: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    ) -> None:
        self._app = app
        self._names = names
        self._login = login
        self._on_forbidden = on_forbidden
        messages = limited(RequestBodyLimitMiddleware(self._checked, max_bytes))
        # Nothing of a request is read before its caller is known, and hardly anything of one beyond a limit.
        self._messages = messages if login is None else login.before(messages)
        self._routed: ASGIApp = self._by_path
        if names.origins:
            self._routed = CORSMiddleware(
                self._by_path,
                allow_origins=sorted(names.origins),
                allow_methods=["GET", "POST"],
                allow_headers=_FROM_PAGES,
                expose_headers=["Retry-After", "WWW-Authenticate"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # The SDK compares only how an Origin begins, and takes `http://localhost:80.evil.example` for this machine.
        if not self._names.is_called(headers, (scope.get("server") or ("",))[0]):
            reason = "This Host is not known here. Set hosting.url to the URL of clients, or add it to hosting.hosts."
            await _refuse(421, reason)(scope, receive, send)
        elif not self._names.may_ask(headers):
            reason = "Web pages of this origin may not call. Add it to the setting hosting.origins to allow it."
            await _refuse(403, reason)(scope, receive, send)
        else:
            await self._routed(scope, receive, send)

    async def _by_path(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Routes are compared here, since a pattern may match more, such as a path that ends in a line break.
        path = scope["path"]
        if path.rstrip("/") == MCP_PATH:
            await self._messages({**scope, "path": MCP_PATH}, receive, send)
        elif path.startswith(WELL_KNOWN):
            await self._app(scope, receive, send)
        else:
            await _refuse(404, f"There is nothing here; messages go to {MCP_PATH}.")(scope, receive, send)

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a message on, or refuse it; its body arrives in one piece."""
        if scope["method"] == "GET":
            # Nothing is kept between requests, so such a stream would only stay open.
            response = _refuse(405, "There is no stream to open by GET here; POST a message.")
            response.headers["allow"] = "POST"
            await response(scope, receive, send)
            return
        first = await receive()
        if first["type"] != "http.request" or first["more_body"]:
            return  # The client left before its request was complete.
        if scope["method"] == "POST":
            try:
                message = read_message(first["body"])
            except NotAMessage as error:
                await _refused(400, error.answer)(scope, receive, send)
                return
            if self._login is not None and (refused := self._login.refusal(scope, message)) is not None:
                self._on_forbidden(message)
                await refused(scope, receive, send)
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


def _is_of_page(origin: str, host: str) -> bool:
    return origin.lower() in {f"http://{host.lower()}", f"https://{host.lower()}"}


def _is_of_loopback(origin: str) -> bool:
    scheme, mark, authority = origin.partition("://")
    found = _AUTHORITY.fullmatch(authority)
    local = found is not None and is_loopback(found[1].strip("[]")) and int(found[2] or 0) <= _MAX_PORT
    return scheme.lower() == "http" and bool(mark) and local


def _refuse(status: int, reason: str) -> Response:
    return _refused(status, refusal(None, INVALID_REQUEST, reason))


def _refused(status: int, answer: JSONRPCError) -> Response:
    text = answer.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(text, status, media_type="application/json", headers={"connection": "close"})
