"""Who may call over HTTP: bearer tokens, and the answers to requests that bring none, a wrong one or too little."""

import json
import logging
import time
from collections.abc import Sequence
from typing import Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.types import JSONRPCMessage, JSONRPCRequest
from starlette.authentication import AuthenticationError
from starlette.datastructures import Headers
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kg_adapters.errors import InvalidRequest, KGError
from kg_server.callers import MEMORY_TOOLS, Caller, access_of
from kg_server.serving.jwts import JwtVerifier, SigningKeys, cannot_be_changed
from kg_server.serving.page import PageLogin
from kg_server.serving.tokens import PREFIX, TokenFile
from kg_server.settings import HostingSettings

READ: Final = "read"
MEMORY: Final = "memory"
SCOPES: Final = (READ, MEMORY)
MAX_TOKEN: Final = 16_000
"""The most characters of an Authorization header; those of large companies' JWTs have some 8,000."""
RETRY_S: Final = 5
LOGGED_S: Final = 10.0
"""How many seconds the same is not logged again that anybody can cause."""
METADATA_PATH: Final = "/.well-known/oauth-protected-resource"
_MEMORY_RESOURCES: Final = "kg-memory:"

logger = logging.getLogger(__name__)


class Unverifiable(AuthenticationError):
    """Whether a token is valid cannot be found out now; the message is for the log and the caller."""


class Verifier(TokenVerifier):
    """Verifies bearer tokens.

    Args:
        tokens: The file of static tokens; None where none are accepted.
        jwts: Verifies those of an authorization server; None where there is none.
    """

    def __init__(self, tokens: TokenFile | None, jwts: JwtVerifier | None = None) -> None:
        self._tokens = tokens
        self._jwts = jwts
        self._silent_until = -LOGGED_S

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who a token stands for; None for one that is not valid.

        Raises:
            Unverifiable: What it is compared with cannot be read now.
        """
        if len(token) > MAX_TOKEN:
            return None
        try:
            if token.startswith(PREFIX):
                return self._static(token)
            found = None if self._jwts is None else await self._jwts.verify(token)
        except KGError as error:
            if (now := time.monotonic()) >= self._silent_until:
                self._silent_until = now + LOGGED_S
                logger.error("%s", error)  # noqa: TRY400 - the message has the reason
            raise Unverifiable("Whether the token is valid cannot be found out now. Try again later.") from error
        return None if found is None else access_of(found[0], token, expires_at=found[1])

    def _static(self, token: str) -> AccessToken | None:
        found = None if self._tokens is None else self._tokens.find(token)
        if found is None:
            return None
        tools = None if found.tools is None else frozenset(found.tools)
        caller = Caller(f"token:{found.name}", found.name, frozenset(found.scopes), tools)
        return access_of(caller, token, expires_at=found.expires)


class Login:
    """Lets only callers with a valid token of enough scope through.

    Args:
        verifier: Decides whether a token is valid.
        resource: The URL of the endpoint, and the issuer of its authorization server; None where there is none.
        scopes: What a client that has no token should ask for.
        page: How the page logs in at the authorization server.

    Attributes:
        routes: Where clients read which authorization server to ask (RFC 9728).
        page: How the page logs in there; None where it cannot.
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        resource: AuthSettings | None = None,
        scopes: Sequence[str] = SCOPES,
        page: PageLogin | None = None,
    ) -> None:
        self.page = page
        self._backend = BearerAuthBackend(verifier)
        self._scopes = scopes
        self._metadata_url: str | None = None
        self.routes: Sequence[Route] = ()
        if resource is not None and resource.resource_server_url is not None:
            self._metadata_url = str(build_resource_metadata_url(resource.resource_server_url))
            [own] = create_protected_resource_routes(
                resource.resource_server_url, [resource.issuer_url], list(scopes), resource_name="KG Sextant"
            )
            self.routes = (own, Route(METADATA_PATH, endpoint=own.endpoint, methods=["GET", "OPTIONS"]))

    def before(self, app: ASGIApp) -> ASGIApp:
        """Return an application that passes on only requests of callers with a valid token."""

        async def admit(scope: Scope, receive: Receive, send: Send) -> None:
            if isinstance(scope["user"], AuthenticatedUser):
                await app(scope, receive, send)
            else:
                await self._refuse(scope, "invalid_token", "The token is not valid.")(scope, receive, send)

        checked = AuthenticationMiddleware(AuthContextMiddleware(admit), backend=self._backend, on_error=_unverifiable)

        async def single(scope: Scope, receive: Receive, send: Send) -> None:
            given = Headers(scope=scope).getlist("authorization")
            if len(given) == 1:
                await checked(scope, receive, send)
            elif given:
                await self._refuse(scope, "invalid_token", "Send one Authorization header.")(scope, receive, send)
            else:
                await self._refuse(scope, None, "Send a token as Authorization: Bearer.")(scope, receive, send)

        return single

    def refusal(self, scope: Scope, message: JSONRPCMessage) -> Response | None:
        """Return the answer to a message that needs a scope which the caller lacks; None where it may pass."""
        needed = needed_scopes(message)
        if all(each in scope["auth"].scopes for each in needed):
            return None
        return self._refuse(scope, "insufficient_scope", f"This needs the scope {' and '.join(needed)}.", needed)

    def _refuse(self, scope: Scope, error: str | None, description: str, scopes: Sequence[str] = ()) -> Response:
        """Return a refusal with what a client needs to get a token that suffices (RFC 6750, RFC 9728)."""
        status = 403 if error == "insufficient_scope" else 401
        logger.info("Refused a request of %s with %d: %s", (scope.get("client") or ("?",))[0], status, description)
        parts = {"error": error, "error_description": description if error else None}
        parts |= {"scope": " ".join(scopes or self._scopes), "resource_metadata": self._metadata_url}
        header = ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)
        body = json.dumps({"error": error or "invalid_request", "error_description": description})
        # What is left of the body is not read, so the connection cannot be used again.
        headers = {"www-authenticate": f"Bearer {header}", "connection": "close"}
        return Response(body, status, media_type="application/json", headers=headers)


def jwt_login(hosting: HostingSettings, issuer: str, tokens: TokenFile | None, url: str) -> Login:
    """Return the login of callers with tokens of an authorization server, whose keys begin to be read.

    Args:
        hosting: Where the server's keys are, and for whom its tokens must be.
        issuer: The server.
        tokens: The file of static tokens, which let callers in as well; None for none.
        url: The URL of the endpoint.

    Raises:
        InvalidRequest: What the authorization server says could be changed on its way.
    """
    for name, value in (("issuer", issuer), ("jwks_url", hosting.jwks_url)):
        if value is not None and not cannot_be_changed(value):
            raise InvalidRequest(f"hosting.{name} must begin with https://, unless it is on this machine.")
    keys = SigningKeys(issuer, hosting.jwks_url)
    keys.read()
    verifier = Verifier(tokens, JwtVerifier(keys, issuer, hosting.audience or url))
    # Built from texts, the URLs stay as they are written: clients compare them with what the server says.
    resource = AuthSettings.model_validate(
        {"issuer_url": issuer, "resource_server_url": url, "validate_token_resource": False}
    )
    page = PageLogin(url, hosting.page_client_id, keys.asked)
    return Login(verifier, resource, needed_by(hosting), page)


def needed_by(hosting: HostingSettings) -> Sequence[str]:
    """Return the scopes that callers need for all that a server offers."""
    return (READ,) if hosting.read_only else SCOPES


def needed_scopes(message: JSONRPCMessage) -> tuple[str, ...]:
    """Return the scopes that a caller needs for a message."""
    if isinstance(message, JSONRPCRequest):
        params = message.params or {}
        if message.method == "tools/call" and str(params.get("name")) in MEMORY_TOOLS:
            return SCOPES
        if message.method.startswith("resources/") and str(params.get("uri", "")).lower().startswith(_MEMORY_RESOURCES):
            return SCOPES
    return (READ,)


def _unverifiable(_: HTTPConnection, error: Exception) -> Response:
    body = json.dumps({"error": "temporarily_unavailable", "error_description": str(error)})
    return Response(body, 503, media_type="application/json", headers={"retry-after": str(RETRY_S)})
