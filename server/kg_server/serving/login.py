"""Who may call over HTTP: bearer tokens, and the answers to requests that bring none, a wrong one or too little."""

import json
import logging
from collections.abc import Sequence
from typing import Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.types import JSONRPCMessage, JSONRPCRequest
from starlette.authentication import AuthenticationError
from starlette.datastructures import Headers
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kg_adapters.errors import InvalidRequest
from kg_server.callers import Caller, access_of
from kg_server.serving.tokens import PREFIX, TokenFile

READ: Final = "read"
MEMORY: Final = "memory"
SCOPES: Final = (READ, MEMORY)
MAX_TOKEN: Final = 16_000
"""The most characters of an Authorization header; those of large companies' JWTs have some 8,000."""
RETRY_S: Final = 5
_MEMORY_TOOLS: Final = frozenset({"memory-append", "memory-read"})
_MEMORY_RESOURCES: Final = "kg-memory:"

logger = logging.getLogger(__name__)


class Unverifiable(AuthenticationError):
    """Whether a token is valid cannot be found out now; the message is for the log and the caller."""


class Verifier(TokenVerifier):
    """Verifies bearer tokens.

    Args:
        tokens: The file of static tokens; None where none are accepted.
    """

    def __init__(self, tokens: TokenFile | None) -> None:
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who a token stands for; None for one that is not valid.

        Raises:
            Unverifiable: What it is compared with cannot be read now.
        """
        if len(token) > MAX_TOKEN:
            return None
        return self._static(token) if token.startswith(PREFIX) else None

    def _static(self, token: str) -> AccessToken | None:
        if self._tokens is None:
            return None
        try:
            found = self._tokens.find(token)
        except InvalidRequest as error:
            logger.error("%s", error)  # noqa: TRY400 - the message has the reason
            raise Unverifiable("The server's file of tokens cannot be read now.") from error
        if found is None:
            return None
        tools = None if found.tools is None else frozenset(found.tools)
        caller = Caller(f"token:{found.name}", found.name, frozenset(found.scopes), tools)
        return access_of(caller, token, expires_at=found.expires)


class Login:
    """Lets only callers with a valid token of enough scope through.

    Args:
        verifier: Decides whether a token is valid.
        scopes: What a client that has no token should ask for.
        metadata_url: Where clients find the authorization server; None where there is none.
    """

    def __init__(
        self, verifier: TokenVerifier, *, scopes: Sequence[str] = SCOPES, metadata_url: str | None = None
    ) -> None:
        self._backend = BearerAuthBackend(verifier)
        self._scopes = scopes
        self._metadata_url = metadata_url

    def before(self, app: ASGIApp) -> ASGIApp:
        """Return an application that passes on only requests of callers with a valid token."""

        async def admit(scope: Scope, receive: Receive, send: Send) -> None:
            known = isinstance(scope["user"], AuthenticatedUser)
            await (app if known else self._challenge(401, "invalid_token", "The token is not valid."))(
                scope, receive, send
            )

        checked = AuthenticationMiddleware(AuthContextMiddleware(admit), backend=self._backend, on_error=_unverifiable)

        async def single(scope: Scope, receive: Receive, send: Send) -> None:
            given = Headers(scope=scope).getlist("authorization")
            if len(given) == 1:
                await checked(scope, receive, send)
            elif given:
                await self._challenge(401, "invalid_token", "Send one Authorization header.")(scope, receive, send)
            else:
                await self._challenge(401, None, "Send a token as Authorization: Bearer.")(scope, receive, send)

        return single

    def refusal(self, scope: Scope, message: JSONRPCMessage) -> Response | None:
        """Return the answer to a message that needs a scope which the caller lacks; None where it may pass."""
        needed = needed_scopes(message)
        if all(each in scope["auth"].scopes for each in needed):
            return None
        return self._challenge(403, "insufficient_scope", f"This needs the scope {' '.join(needed)}.", needed)

    def _challenge(self, status: int, error: str | None, description: str, scopes: Sequence[str] = ()) -> Response:
        """Return a refusal with what a client needs to get a token that suffices (RFC 6750, RFC 9728)."""
        parts = {"error": error, "error_description": description if error else None}
        parts |= {"scope": " ".join(scopes or self._scopes), "resource_metadata": self._metadata_url}
        header = ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)
        body = json.dumps({"error": error or "invalid_request", "error_description": description})
        # What is left of the body is not read, so the connection cannot be used again.
        headers = {"www-authenticate": f"Bearer {header}", "connection": "close"}
        return Response(body, status, media_type="application/json", headers=headers)


def needed_scopes(message: JSONRPCMessage) -> tuple[str, ...]:
    """Return the scopes that a caller needs for a message."""
    if isinstance(message, JSONRPCRequest):
        params = message.params or {}
        if message.method == "tools/call" and params.get("name") in _MEMORY_TOOLS:
            return SCOPES
        if message.method.startswith("resources/") and str(params.get("uri", "")).lower().startswith(_MEMORY_RESOURCES):
            return SCOPES
    return (READ,)


def _unverifiable(_: HTTPConnection, error: Exception) -> Response:
    body = json.dumps({"error": "temporarily_unavailable", "error_description": str(error)})
    return Response(body, 503, media_type="application/json", headers={"retry-after": str(RETRY_S)})
