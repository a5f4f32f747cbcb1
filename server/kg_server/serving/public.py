"""Pages for everybody over HTTP, without a login: whether the server lives and is ready, its card, and the view."""

import hashlib
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import anyio
from mcp.server import MCPServer
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kg_adapters.errors import KGError
from kg_server.serving.http import MCP_PATH
from kg_server.serving.page import CLIENT_PATH, PAGE_PATH, PageLogin, ViewPage

HEALTHZ: Final = "/healthz"
READYZ: Final = "/readyz"
CARD: Final = f"{MCP_PATH}/server-card"
CHECKED_FOR_S: Final = 1.0
CHECK_S: Final = 2.0
_CARD_TYPE: Final = "application/mcp-server-card+json"
_CARD_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_CARD_HEADERS: Final = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": "Content-Type, If-None-Match",
    "access-control-expose-headers": "ETag",
}
_NAME: Final = "io.github.kg-sextant/kg-sextant"
_DESCRIPTION: Final = "Observe, walk, query and remember a knowledge graph."

Check = Callable[[], Awaitable[None]]

logger = logging.getLogger(__name__)


class Readiness:
    """Whether the server can answer: everything that it needs can be reached, and it does not stop.

    Args:
        needs: What must be reached, by the words that an answer calls it; each check raises `KGError` where it is not.
        clock: Returns the time, in seconds.

    Attributes:
        is_stopping: Whether the server stops.
    """

    def __init__(self, needs: Iterable[tuple[str, Check]], clock: Callable[[], float] = time.monotonic) -> None:
        self.is_stopping = False
        self._clock = clock
        self._needs = tuple(needs)
        self._lock = anyio.Lock()
        self._checked_at = -math.inf
        self._problem = ""

    async def problem(self) -> str:
        """Return in a few words why the server is not ready; nothing where it is. Checks are made once a second."""
        if self.is_stopping:
            return "stopping"
        async with self._lock:
            if self._clock() - self._checked_at >= CHECKED_FOR_S:
                found = [name for name, check in self._needs if not await _holds(check)]
                problem = f"cannot be reached: {', '.join(found)}" if found else ""
                # Logged only when it changes, as load balancers ask every few seconds.
                if problem != self._problem:
                    logger.warning("Readiness: %s", problem or "ready")
                self._problem = problem
                self._checked_at = self._clock()
        return self._problem


async def _holds(check: Check) -> bool:
    try:
        with anyio.fail_after(CHECK_S):
            await check()
    except (KGError, TimeoutError):
        return False
    return True


class PublicPages:
    """An application with pages for load balancers, for clients that look for servers, and for people.

    The rest is passed on.

    Nothing of the graph, its callers or the machine is in them, so no name or page that asks for them is refused.

    Args:
        app: The application.
        readiness: Whether the server can answer.
        card: The server card.
        login: How the page logs in; None where it does not, or only with a token that is typed.
    """

    def __init__(self, app: ASGIApp, readiness: Readiness, card: bytes, login: PageLogin | None = None) -> None:
        self._app = app
        self._readiness = readiness
        self._card = card
        self._view = ViewPage.read(login)
        self._tag = f'"{hashlib.sha256(card).hexdigest()[:32]}"'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a page, or pass it on."""
        response = await self._page(scope) if scope["type"] == "http" else None
        await (self._app if response is None else response)(scope, receive, send)

    async def _page(self, scope: Scope) -> Response | None:
        path = scope["path"]
        if path == CARD and scope["method"] == "OPTIONS":
            return Response(status_code=204, headers=_CARD_HEADERS)
        if scope["method"] not in {"GET", "HEAD"}:
            return None
        if path in {PAGE_PATH, CLIENT_PATH}:
            return self._view.response(path, Headers(scope=scope))
        if path == HEALTHZ:
            return PlainTextResponse("ok\n")
        if path == READYZ:
            problem = await self._readiness.problem()
            return PlainTextResponse(f"{problem or 'ready'}\n", 503 if problem else 200)
        return self._card_for(Headers(scope=scope)) if path == CARD else None

    def _card_for(self, asked: Headers) -> Response:
        headers = {**_CARD_HEADERS, "cache-control": "public, max-age=3600", "etag": self._tag}
        if self._tag in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self._card, media_type=_CARD_TYPE, headers=headers)


def server_card(server: MCPServer[None], url: str | None) -> bytes:
    """Return the card of a server, as the draft of MCP's Server Cards has it.

    Args:
        server: The server.
        url: The public URL of its endpoint; None where it has none.
    """
    card: dict[str, object] = {
        "$schema": _CARD_SCHEMA,
        "name": _NAME,
        "version": server.version,
        "title": server.title,
        "description": _DESCRIPTION,
    }
    if url is not None:
        versions = [*MODERN_PROTOCOL_VERSIONS, *reversed(HANDSHAKE_PROTOCOL_VERSIONS)]
        card["remotes"] = [{"type": "streamable-http", "url": url, "supportedProtocolVersions": versions}]
    return json.dumps(card).encode()
