"""Requests, replies and the pooled connections that carry them."""

import ssl
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Final

import anyio.to_thread
import httpx2

from kg_adapters.errors import InvalidSource
from kg_adapters.http.options import EndpointOptions
from kg_boundary.regular_files import read_regular
from kg_boundary.secrets import Redactor

_PARTIAL: Final = "S1TAT"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it is to be sent; who sends it adds what is the same for all.

    Args:
        method: The HTTP method.
        url: Where it goes, with its parameters.
        accepted: The media types that the answer may have, the preferred first.
        headers: More headers.
        body: What is sent behind them.
        may_be_cut: Whether the beginning of an answer will do that is larger than allowed.
    """

    method: str
    url: str
    accepted: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    may_be_cut: bool = False


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A successful answer: its headers have lower-case names, its body is unpacked.

    Args:
        url: Where it came from.
        status: The HTTP status.
        headers: Its headers.
        body: All of it, or its beginning.
        cut: Whether there was more than allowed.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False

    @property
    def media_type(self) -> str:
        """The media type of the body, in lower case and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def whole(self) -> bool:
        """Whether nothing is missing: neither because of a limit of ours nor of a time limit of Virtuoso."""
        return not self.cut and not self.late

    @property
    def late(self) -> bool:
        """Whether Virtuoso's own time limit has cut the rows."""
        return self.headers.get("x-sql-state") == _PARTIAL


class _Bearer(httpx2.Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        """Send the token."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def authentication_of(options: EndpointOptions) -> httpx2.Auth:
    """Return what adds an endpoint's credentials to a request."""
    if options.token is not None:
        return _Bearer(options.token.get_secret_value())
    if options.user is None or options.password is None:
        return httpx2.Auth()
    kind = httpx2.DigestAuth if options.digest else httpx2.BasicAuth
    return kind(options.user, options.password.get_secret_value())


def redactor_of(options: EndpointOptions) -> Redactor:
    """Return the redactor that removes an endpoint's credentials from its answers, should it repeat them."""
    secrets = (*options.headers.values(), options.password, options.token)
    told = [secret.get_secret_value() for secret in secrets if secret is not None]
    return options.redactor.also(told, [options.user] if options.user else [])


async def connect(options: EndpointOptions) -> httpx2.AsyncClient:
    """Return a client for an endpoint; it connects when it sends.

    Raises:
        InvalidSource: The file of authorities cannot be read.
    """
    # Loading certificates takes some 30 ms, which other tasks need not wait for.
    return await anyio.to_thread.run_sync(_client, options)


def _client(options: EndpointOptions) -> httpx2.AsyncClient:
    headers = {name: value.get_secret_value() for name, value in options.headers.items()}
    return httpx2.AsyncClient(
        # Virtuoso closes the connection behind every compressed answer.
        headers={"User-Agent": options.user_agent, "Accept-Encoding": "identity", **headers},
        verify=_trusted(options),
        # The caller's deadline covers everything, whatever the endpoint does in between.
        timeout=None,
        follow_redirects=False,
        limits=httpx2.Limits(
            max_connections=options.max_concurrency,
            max_keepalive_connections=options.max_concurrency,
            keepalive_expiry=30.0,
        ),
        trust_env=options.use_environment_proxies,
    )


def _trusted(options: EndpointOptions) -> ssl.SSLContext:
    if options.ca_file is None:
        return httpx2.create_ssl_context(trust_env=False)
    try:
        # What has no end, or keeps its readers waiting, is refused before the library opens it.
        read_regular(options.ca_file)
        return ssl.create_default_context(cafile=options.ca_file)
    except OSError as error:
        raise InvalidSource(
            f"The file of authorities cannot be read: {error.strerror or error}. "
            "The setting ca_file names a file of certificates in PEM."
        ) from error
