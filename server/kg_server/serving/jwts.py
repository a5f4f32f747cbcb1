"""JSON web tokens of one authorization server: its keys, read again when they change, and what a token must claim."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Final, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2
import jwt
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from kg_adapters.errors import BackendUnavailable
from kg_boundary.bodies import ASKED_FOR, AnswerBounds, UnreadableBody
from kg_server.callers import EVERY_SCOPE, Caller
from kg_server.serving.http import is_loopback

READ_S: Final = 10.0
"""How many seconds reading the keys may take, with all that leads to them."""
FRESH_S: Final = 600.0
"""After how many seconds keys are read again, so that withdrawn ones are no longer accepted."""
PAUSE_S: Final = 10.0
"""How many seconds keys are not read again after that was in vain: anybody can name keys that do not exist."""
LEEWAY_S: Final = 30
"""How many seconds the authorization server's clock may be ahead."""
_MAX_BYTES: Final = 500_000
_TYPES: Final = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
_ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC P-256": ("ES256",),
    "EC P-384": ("ES384",),
    "EC P-521": ("ES512",),
    "OKP Ed25519": ("EdDSA",),
}
"""The algorithms of each kind of key. Others, such as HS256 and none, are accepted from nobody."""
_ACCEPTED: Final = frozenset(each for fitting in _ALGORITHMS.values() for each in fitting)

_M = TypeVar("_M", bound=BaseModel)

logger = logging.getLogger(__name__)
_MALFORMED: Final = "A key of the authorization server is malformed, and left out."


def cannot_be_changed(url: str) -> bool:
    """Return whether what is read at a URL cannot be changed on its way: by HTTPS, or on this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:  # it is no URL
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


class _Metadata(BaseModel):
    issuer: str
    jwks_uri: str
    token_endpoint: str | None = None


class _Key(BaseModel, extra="allow"):
    kty: str
    crv: str | None = None
    kid: str | None = None
    alg: str | None = None
    use: str | None = None
    key_ops: list[str] | None = None

    def usable(self) -> dict[tuple[str | None, str], jwt.PyJWK]:
        """Return the key by its id and each algorithm that it is for; nothing where it verifies no signatures."""
        kind = self.kty if self.crv is None else f"{self.kty} {self.crv}"
        verifies = self.use in {None, "sig"} and (self.key_ops is None or "verify" in self.key_ops)
        fitting = _ALGORITHMS.get(kind, ()) if verifies else ()
        named = [each for each in fitting if self.alg in {None, each}]
        try:
            return {(self.kid, each): jwt.PyJWK(self.model_dump(exclude_none=True), each) for each in named}
        except jwt.PyJWTError:
            logger.warning(_MALFORMED)
            return {}


class _KeySet(BaseModel):
    keys: list[object]

    def readable(self) -> list[_Key]:
        """Return the keys without malformed ones, which are logged and verify nothing."""
        found: list[_Key] = []
        for each in self.keys:
            try:
                found.append(_Key.model_validate(each))
            except ValidationError:
                logger.warning(_MALFORMED)
        if self.keys and not found:
            raise UnreadableBody("all of them are malformed")
        return found


def _words(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


class _Claims(BaseModel):
    """What is read in a token, once it is known to be valid."""

    exp: int
    sub: Annotated[str, Field(min_length=1)] | None = None
    client_id: Annotated[str, Field(min_length=1)] | None = None
    azp: Annotated[str, Field(min_length=1)] | None = None
    scope: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    scp: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()


class SigningKeys:
    """The keys of an authorization server.

    Args:
        issuer: Its issuer, whose metadata names where the keys are.
        jwks_url: Where they are, where that is known.
        clock: Seconds that never go back.
    """

    def __init__(self, issuer: str, jwks_url: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._token_url: str | None = None
        self._clock = clock
        self._keys: Mapping[tuple[str | None, str], jwt.PyJWK] = {}
        self._read_at = -FRESH_S
        self._paused_until = -PAUSE_S
        self._problem: str | None = None
        self._reading: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the key of an id, or the only one where a token names none; None where there is no such key.

        While keys cannot be read, known ones go on.

        Raises:
            BackendUnavailable: It is not known, and the keys cannot be read now.
        """
        found = self._known(kid, algorithm)
        if found is not None:
            if self._clock() <= max(self._read_at + FRESH_S, self._paused_until):
                return found
            reading = self.read()
            if self._problem is None:
                # The key may have been withdrawn; only while the authorization server is away, callers do not wait.
                await asyncio.shield(reading)
            return self._known(kid, algorithm)
        if self._reading is not None or self._clock() >= self._paused_until:
            await asyncio.shield(self.read())
            found = self._known(kid, algorithm)
            if found is None:
                self._paused_until = self._clock() + PAUSE_S
        if found is None and self._problem is not None:
            raise BackendUnavailable("The keys of the authorization server cannot be read now.")
        return found

    def read(self) -> asyncio.Task[None]:
        """Begin to read the keys, unless that is under way; the task never fails."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        return self._reading

    def asked(self) -> tuple[str, ...]:
        """Return the URLs at the authorization server that a page calls; start another read if the last one failed."""
        if self._problem is not None and self._clock() >= self._paused_until:
            self.read()
        return (self._issuer,) if self._token_url is None else (self._issuer, self._token_url)

    def _known(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        if kid is not None:
            return self._keys.get((kid, algorithm))
        fitting = [key for (_, each), key in self._keys.items() if each == algorithm]
        return fitting[0] if len(fitting) == 1 else None

    async def _read(self) -> None:
        try:
            with anyio.fail_after(READ_S):
                keys = await self._fetched()
        except (httpx2.HTTPError, httpx2.InvalidURL, UnreadableBody, ValidationError, TimeoutError, OSError) as error:
            reason = "they are malformed" if isinstance(error, ValidationError) else str(error) or "no answer in time"
            self._problem, self._paused_until = reason, self._clock() + PAUSE_S
            logger.warning("The keys of %s cannot be read: %s", self._issuer, reason)
        else:
            self._keys = {place: key for each in keys for place, key in each.usable().items()}
            self._problem, self._read_at = None, self._clock()
            logger.info("Read %d keys of %s", len(keys), self._issuer)
        finally:
            self._reading = None

    async def _fetched(self) -> list[_Key]:
        bounds = AnswerBounds(READ_S, _MAX_BYTES)
        making = partial(httpx2.AsyncClient, timeout=READ_S, headers=ASKED_FOR, event_hooks={"response": [bounds]})
        # Loading certificates takes some 30 ms, which other calls need not wait for.
        async with await anyio.to_thread.run_sync(making) as http:
            url = self._jwks_url or await self._discovered(http)
            return (await _read_json(http, url, _KeySet)).readable()

    async def _discovered(self, http: httpx2.AsyncClient) -> str:
        """Return where the keys are by the metadata of the issuer (RFC 8414, OpenID Connect Discovery)."""
        problem: httpx2.HTTPError | ValidationError | UnreadableBody = UnreadableBody("it has no metadata")
        for url in build_oauth_authorization_server_metadata_discovery_urls(self._issuer, self._issuer):
            try:
                metadata = await _read_json(http, url, _Metadata)
            except (httpx2.HTTPStatusError, ValidationError) as error:
                logger.info("There is no metadata of the authorization server at %s", url)
                problem = error
                continue
            if metadata.issuer == self._issuer:
                logger.info("The keys of %s are at %s by %s", self._issuer, metadata.jwks_uri, url)
                if metadata.token_endpoint is not None and cannot_be_changed(metadata.token_endpoint):
                    self._token_url = metadata.token_endpoint
                return metadata.jwks_uri
            problem = UnreadableBody(
                f"the metadata at {url} is of {metadata.issuer}; set hosting.issuer to exactly that"
            )
        raise problem


class JwtVerifier:
    """Verifies tokens of one authorization server for this server alone.

    Args:
        keys: Its keys.
        issuer: Its issuer, exactly as tokens claim it.
        audience: Whom tokens must be for.
    """

    def __init__(self, keys: SigningKeys, issuer: str, audience: str) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience

    async def verify(self, token: str) -> tuple[Caller, int] | None:
        """Return who a token stands for, and when it expires in seconds since 1970; None for an invalid one.

        Raises:
            BackendUnavailable: The key that it names is not known, and cannot be read now.
        """
        try:
            header = jwt.get_unverified_header(token)
            kind, kid, algorithm = header.get("typ"), header.get("kid"), header.get("alg")
            if not isinstance(algorithm, str) or not isinstance(kind, str | None) or (kind or "").lower() not in _TYPES:
                return None
            # Whatever else a header says of keys (jwk, jku, x5u, x5c) is the caller's word, and ignored.
            key = await self._keys.find(kid, algorithm) if algorithm in _ACCEPTED else None
            if key is None:
                logger.info("A token names a key or algorithm that the authorization server does not have.")
                return None
            claims = _Claims.model_validate(
                jwt.decode(
                    token,
                    key,
                    algorithms=[key.algorithm_name],
                    audience=self._audience,
                    issuer=self._issuer,
                    leeway=LEEWAY_S,
                    options={"require": ["aud", "exp", "iss"], "enforce_minimum_key_length": True},
                )
            )
        except (jwt.PyJWTError, ValidationError) as error:
            logger.info(
                "A token is refused: %s", "a claim is malformed" if isinstance(error, ValidationError) else error
            )
            return None
        return self._caller(claims)

    def _caller(self, claims: _Claims) -> tuple[Caller, int] | None:
        client = claims.client_id or claims.azp
        if claims.sub is None and client is None:
            return None
        principal = f"client:{client}" if claims.sub is None else f"sub:{claims.sub}"
        scopes = EVERY_SCOPE.intersection({*claims.scope, *claims.scp})
        return Caller(f"{self._issuer} {principal}", client or claims.sub or "", scopes), claims.exp


async def _read_json(http: httpx2.AsyncClient, url: str, model: type[_M]) -> _M:
    if not cannot_be_changed(url):
        raise UnreadableBody(f"{url} must begin with https://, unless it is on this machine")
    answer = await http.get(url)
    answer.raise_for_status()
    return model.model_validate_json(answer.content)
