"""An authorization server on loopback: OAuth 2.1 with PKCE, registration, client documents, and keys that rotate.

One person uses it, who consents to whatever a client asks for until told otherwise. What it signs and how shares no
code with the server that checks its tokens, nor with the SDK that asks for them.
"""

import base64
import hashlib
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar
from urllib.parse import unquote, urlencode, urlsplit

import httpx2
import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from patience import PATIENCE_S

SCOPES: Final = ("read", "memory")
LIFETIME_S: Final = 300
SECRET_METHODS: Final = ("client_secret_basic", "client_secret_post")
OAUTH: Final = "/.well-known/oauth-authorization-server{path}"
OPENID_INSERTED: Final = "/.well-known/openid-configuration{path}"
OPENID_APPENDED: Final = "{path}/.well-known/openid-configuration"
"""Where metadata may lie, by RFC 8414 and by OpenID Connect; `{path}` is that of the issuer."""


class OAuthError(Exception):
    """A request is refused, with the code of OAuth and what is wrong."""

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.status = status
        self.answer = {"error": code, "error_description": description}


class ClientRecord(BaseModel):
    """What a client registers, or says in the document that its id is the address of."""

    client_id: str = ""
    client_secret: str | None = None
    client_name: str = ""
    redirect_uris: list[str] = Field(min_length=1)
    grant_types: list[str] = ["authorization_code"]
    response_types: list[str] = ["code"]
    token_endpoint_auth_method: Literal["none", "client_secret_basic", "client_secret_post"] = "client_secret_basic"

    def redirects_to(self, address: str) -> bool:
        """Whether the client registered the address; of one on loopback the port may differ (RFC 8252, 7.3)."""
        return address in self.redirect_uris or _without_port(address) in map(_without_port, self.redirect_uris)


class AuthorizationRequest(BaseModel):
    """What a client asks the person for; a proof of the later request for the token is a must."""

    response_type: Literal["code"]
    code_challenge: str = Field(pattern=r"^[A-Za-z0-9_-]{43}$")
    code_challenge_method: Literal["S256"]
    scope: str = ""
    resource: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What the person granted to a client."""

    subject: str
    client_id: str
    redirect_uri: str
    challenge: str
    scopes: tuple[str, ...]
    resource: str | None


class AuthorizationServer:
    """Answers as one; what it does may be changed between requests.

    Args:
        origin: Where it is served.
        path: The path of its issuer.
        metadata_at: Where its metadata lies.
        trusted: What it trusts when it fetches a client's document; None: it takes no documents.
        registers: Whether clients can register.
    """

    def __init__(
        self,
        origin: str,
        path: str = "",
        metadata_at: Sequence[str] = (OAUTH, OPENID_APPENDED),
        trusted: ssl.SSLContext | None = None,
        *,
        registers: bool = True,
    ) -> None:
        self.issuer = origin + path
        path = path.rstrip("/")
        self._endpoints = origin + path
        self.subject = "ada"
        self.consents: tuple[str, ...] = SCOPES
        self.is_down = False
        self.requests: list[str] = []
        self.registers = registers
        self._trusted = trusted
        self._keys: list[RSAKey | ECKey] = [_key(0)]
        self._made = 1
        self._clients: dict[str, ClientRecord] = {}
        self._grants: dict[str, Grant] = {}
        self._refreshing: dict[str, Grant] = {}
        routes = [
            *(Route(each.format(path=path), self._metadata) for each in metadata_at),
            Route(f"{path}/keys", self._published),
            Route(f"{path}/register", self._register, methods=["POST"]),
            Route(f"{path}/authorize", self._authorize),
            Route(f"{path}/token", self._token, methods=["POST"]),
        ]
        self._app = Starlette(routes=routes, exception_handlers={OAuthError: _refused})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and log it."""

        async def logged(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.requests.append(f"{scope['method']} {scope['path']} {message['status']}")
            await send(message)

        await (Response(status_code=503) if self.is_down else self._app)(scope, receive, logged)

    def rotate(self, *, withdraw: bool = False) -> None:
        """Sign with a new key of the other kind from now on; the earlier ones are published still, or withdrawn."""
        self._keys = [_key(self._made), *(() if withdraw else self._keys)]
        self._made += 1

    def access_token(self, header: Mapping[str, object] | None = None, **claims: object) -> str:
        """Return a token for the person; claims and members of its header may be given, None leaves one out."""
        now, key = int(time.time()), self._keys[0]
        usual = {"iss": self.issuer, "sub": self.subject, "iat": now, "exp": now + LIFETIME_S, "scope": "read"}
        usual |= {"jti": secrets.token_hex(8), **claims}
        algorithm = "RS256" if isinstance(key, RSAKey) else "ES256"
        whole = {"alg": algorithm, "kid": key.kid, "typ": "at+jwt", **(header or {})}
        return jwt.encode(whole, {name: value for name, value in usual.items() if value is not None}, key)

    def add_client(self, record: ClientRecord) -> None:
        """Know a client that somebody registered by hand."""
        self._clients[record.client_id] = record

    async def _metadata(self, _: Request) -> Response:
        methods = ["none", *SECRET_METHODS]
        told: dict[str, object] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self._endpoints}/authorize",
            "token_endpoint": f"{self._endpoints}/token",
            "jwks_uri": f"{self._endpoints}/keys",
            "scopes_supported": list(SCOPES),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "client_id_metadata_document_supported": self._trusted is not None,
            "authorization_response_iss_parameter_supported": True,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
        }
        if self.registers:
            told["registration_endpoint"] = f"{self._endpoints}/register"
        return JSONResponse(told)

    async def _published(self, _: Request) -> Response:
        return JSONResponse({"keys": [key.as_dict(private=False) for key in self._keys]})

    async def _register(self, request: Request) -> Response:
        if not self.registers:
            raise HTTPException(404)
        asked = _parsed(ClientRecord, await request.body())
        for each in asked.redirect_uris:
            if not _may_be_redirected_to(each):
                raise OAuthError("invalid_redirect_uri", f"{each} is neither HTTPS nor on this machine.")
        secret = secrets.token_urlsafe() if asked.token_endpoint_auth_method in SECRET_METHODS else None
        record = asked.model_copy(update={"client_id": secrets.token_urlsafe(8), "client_secret": secret})
        self.add_client(record)
        return JSONResponse(record.model_dump(exclude_none=True), 201)

    async def _authorize(self, request: Request) -> Response:
        asked = request.query_params
        client = await self._client(asked.get("client_id", ""))
        address = asked.get("redirect_uri", "")
        if not client.redirects_to(address):
            raise OAuthError("invalid_request", f"{address} is not an address of the client.")
        answer = {"iss": self.issuer, **({"state": asked["state"]} if "state" in asked else {})}
        try:
            wanted = _parsed(AuthorizationRequest, dict(asked))
        except OAuthError as error:
            answer |= error.answer
        else:
            scopes = tuple(each for each in wanted.scope.split() if each in self.consents)
            answer["code"] = secrets.token_urlsafe()
            self._grants[answer["code"]] = Grant(
                self.subject, client.client_id, address, wanted.code_challenge, scopes or SCOPES[:1], wanted.resource
            )
        return RedirectResponse(f"{address}{'&' if '?' in address else '?'}{urlencode(answer)}", 302)

    async def _token(self, request: Request) -> Response:
        async with request.form() as form:
            asked = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        client = await self._authenticated(request, asked)
        match asked.get("grant_type"):
            case "authorization_code":
                grant = self._grants.pop(asked.get("code", ""), None)
                digest = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
                proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                good = grant is not None and (grant.challenge, grant.redirect_uri) == (proof, asked.get("redirect_uri"))
            case "refresh_token":
                grant = self._refreshing.pop(asked.get("refresh_token", ""), None)
                good = True
            case _:
                raise OAuthError("unsupported_grant_type", "There are authorization_code and refresh_token.")
        if grant is None or not good or grant.client_id != client.client_id:
            raise OAuthError("invalid_grant", "It was not granted, or was used, or not to this client.")
        if asked.get("resource", grant.resource) != grant.resource:
            raise OAuthError("invalid_target", "It was granted for another resource.")
        return self._issued(replace(grant, scopes=_narrowed(grant.scopes, asked.get("scope"))))

    def _issued(self, grant: Grant) -> Response:
        refresh = secrets.token_urlsafe()
        self._refreshing[refresh] = grant
        scope = " ".join(grant.scopes)
        token = self.access_token(
            sub=grant.subject, aud=grant.resource or grant.client_id, client_id=grant.client_id, scope=scope
        )
        told = {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME_S, "scope": scope}
        return JSONResponse({**told, "refresh_token": refresh}, headers={"cache-control": "no-store"})

    async def _client(self, client_id: str) -> ClientRecord:
        """Return a client that registered, or that the document at the address of its id describes."""
        if client_id in self._clients:
            return self._clients[client_id]
        if self._trusted is None or not client_id.startswith("https://") or urlsplit(client_id).path in {"", "/"}:
            raise OAuthError("invalid_client", "There is no such client.", 401)
        async with httpx2.AsyncClient(verify=self._trusted, timeout=PATIENCE_S) as http:
            answer = await http.get(client_id)
        document = _parsed(ClientRecord, answer.content)
        if answer.status_code != 200 or document.client_id != client_id:
            raise OAuthError("invalid_client", "The document is of another client.", 401)
        if document.token_endpoint_auth_method != "none":
            raise OAuthError("invalid_client", "A client with a document has no secret.", 401)
        return document

    async def _authenticated(self, request: Request, asked: Mapping[str, str]) -> ClientRecord:
        scheme, _, basic = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            method = "client_secret_basic"
            name, _, secret = base64.b64decode(basic).decode().partition(":")
            name, secret = unquote(name), unquote(secret)
        else:
            name, secret = asked.get("client_id", ""), asked.get("client_secret", "")
            method = "client_secret_post" if secret else "none"
        client = await self._client(name)
        if client.token_endpoint_auth_method != method or (client.client_secret or "") != secret:
            raise OAuthError("invalid_client", "The client is not who it says.", 401)
        return client


@contextmanager
def authorizing(
    path: str = "",
    metadata_at: Sequence[str] = (OAUTH, OPENID_APPENDED),
    trusted: ssl.SSLContext | None = None,
    *,
    registers: bool = True,
) -> Generator[AuthorizationServer]:
    """Serve an authorization server on a free port of loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        authority = AuthorizationServer(_origin(listener), path, metadata_at, trusted, registers=registers)
        with serving(authority, listener):
            yield authority


@contextmanager
def serving(application: ASGIApp, listener: socket.socket) -> Generator[str]:
    """Serve an application in a thread, and give its origin."""
    server = uvicorn.Server(uvicorn.Config(application, lifespan="off", ws="none", log_config=None))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield _origin(listener)
    finally:
        server.should_exit = True
        thread.join()


def _origin(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, OAuthError)
    return JSONResponse(error.answer, error.status, headers={"cache-control": "no-store"})


def _key(number: int) -> RSAKey | ECKey:
    name = f"key-{number}"
    if number % 2:
        return ECKey.generate_key("P-256", {"kid": name, "use": "sig"})
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig"})


def _narrowed(granted: tuple[str, ...], asked: str | None) -> tuple[str, ...]:
    wanted = granted if asked is None else tuple(asked.split())
    if not set(wanted) <= set(granted):
        raise OAuthError("invalid_scope", "More than was granted.")
    return wanted


def _without_port(address: str) -> str:
    parts = urlsplit(address)
    local = parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost", "::1"}
    return parts._replace(netloc=parts.hostname or "").geturl() if local else address


def _may_be_redirected_to(address: str) -> bool:
    scheme = urlsplit(address).scheme
    return scheme not in {"", "http", "javascript", "data", "file"} or _without_port(address) != address


_Model = TypeVar("_Model", bound=BaseModel)


def _parsed(model: type[_Model], given: bytes | dict[str, str]) -> _Model:
    try:
        return model.model_validate_json(given) if isinstance(given, bytes) else model.model_validate(given)
    except ValidationError as error:
        raise OAuthError("invalid_request", "; ".join(str(each["loc"]) for each in error.errors())) from error
