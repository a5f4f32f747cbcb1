"""A client of the SDK that logs in by itself, with a browser whose person agrees, and writes down every request."""

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import ConnectMode
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from patience import PATIENCE_S

CALLBACK: Final = "http://127.0.0.1:33418/callback"


@dataclass
class Wallet:
    """What a client keeps between its runs."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class SigningIn:
    """A client that knows the URL of a server and nothing else.

    Args:
        url: The server.
        document: The address of the document that describes the client, if it has one.
        method: How it wants to prove itself; None leaves that to the authorization server.
        wallet: What it keeps.
        steps: Every request that it or its browser sent, with the host's name, and how it was answered.
        names: What hosts are called in these steps.
        trusts: Whose certificates it trusts; None for those of this machine.
    """

    url: str
    document: str | None = None
    redirect: str = CALLBACK
    method: str | None = "none"
    wallet: Wallet = field(default_factory=Wallet)
    steps: list[str] = field(default_factory=list[str])
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    trusts: ssl.SSLContext | None = None
    _back: str = ""
    _provider: OAuthClientProvider | None = None

    @asynccontextmanager
    async def connected(self, mode: ConnectMode = "auto") -> AsyncGenerator[Client]:
        """Open a session; it logs in when it has to."""
        described = {
            "client_name": "Connector",
            "redirect_uris": [self.redirect],
            "token_endpoint_auth_method": self.method,
        }
        self._provider = OAuthClientProvider(
            self.url,
            OAuthClientMetadata.model_validate(described),
            self.wallet,
            self._open,
            self._come_back,
            self.document,
        )
        async with (
            self.http(self._provider) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client

    def taken(self) -> list[str]:
        """Return the steps since the last time; older clients also ask for a stream, at any moment."""
        steps, self.steps = self.steps, []
        return [each for each in steps if each != "server GET /mcp 405"]

    def expire(self) -> None:
        """Let the token expire by the client's clock."""
        assert self._provider is not None
        self._provider.context.token_expiry_time = 1.0

    def http(self, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
        """Return what sends requests and writes them down."""
        return httpx2.AsyncClient(
            auth=auth, timeout=PATIENCE_S, verify=self.trusts or True, event_hooks={"response": [self._log]}
        )

    async def _log(self, response: httpx2.Response) -> None:
        request = response.request
        host = f"{request.url.scheme}://{request.url.netloc.decode()}"
        self.steps.append(f"{self.names.get(host, host)} {request.method} {request.url.path} {response.status_code}")

    async def _open(self, address: str) -> None:
        async with self.http() as browser:
            self._back = (await browser.get(address)).headers["location"]

    async def _come_back(self) -> AuthorizationCodeResult:
        given = {name: values[0] for name, values in parse_qs(urlsplit(self._back).query).items()}
        return AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))
