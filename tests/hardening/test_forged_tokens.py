"""Tokens that nobody issued, or not for this server, or not for now: none of them lets a caller in."""

import base64
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, RSAAlgorithm

from cli_runs import write_graph
from kg_server.serving.jwts import PAUSE_S
from kg_server.serving.tokens import TokenFile
from loopback_service import Reply, answering
from patience import PATIENCE_S
from server_processes import address_of, started

ISSUER: Final = "https://login.example/team"
URL: Final = "https://kg.example.org/mcp"
LIST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HOUR: Final = 3_600
SECRET: Final = b"a shared secret, which no resource server should accept"

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def claims(changed: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the claims of a valid token, with changes; None leaves one out."""
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": URL, "sub": "ada", "scope": "read", "iat": now, "exp": now + HOUR, **(changed or {})}
    return {name: value for name, value in usual.items() if value is not None}


def packed(content: Mapping[str, object] | bytes) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True)
class Issuer:
    """Keys of an authorization server, and those of somebody else."""

    first: rsa.RSAPrivateKey
    second: ec.EllipticCurvePrivateKey
    foreign: rsa.RSAPrivateKey

    @classmethod
    def create(cls) -> "Issuer":
        made = [rsa.generate_private_key(65_537, 2_048) for _ in range(2)]
        return cls(made[0], ec.generate_private_key(ec.SECP256R1()), made[1])

    def published(self) -> dict[str, object]:
        """Return the keys as a set, with three that verify no tokens: two for encryption, and a shared secret."""
        one = json.loads(RSAAlgorithm.to_jwk(self.first.public_key()))
        two = json.loads(ECAlgorithm.to_jwk(self.second.public_key()))
        other = json.loads(RSAAlgorithm.to_jwk(self.foreign.public_key()))
        shared = json.loads(HMACAlgorithm.to_jwk(SECRET))
        return {
            "keys": [
                {**one, "kid": "rsa", "use": "sig", "alg": "RS256"},
                {**two, "kid": "ec"},
                {**other, "kid": "enc", "use": "enc"},
                {**other, "kid": "ops", "key_ops": ["encrypt"]},
                {**shared, "kid": "shared", "alg": "HS256"},
            ]
        }

    def token(
        self,
        header: Mapping[str, object] | None = None,
        key: PrivateKey | None = None,
        changed: Mapping[str, object] | None = None,
    ) -> str:
        """Return a token that is valid but for what is changed; its signature is that of the key."""
        signer = key or self.first
        algorithm = "RS256" if isinstance(signer, rsa.RSAPrivateKey) else "ES256"
        whole = {"typ": "JWT", "alg": algorithm, "kid": "rsa" if algorithm == "RS256" else "ec", **(header or {})}
        return self.signed(whole, claims(changed), signer)

    @staticmethod
    def signed(header: Mapping[str, object], content: Mapping[str, object] | bytes, key: PrivateKey) -> str:
        """Return a token with any header, which the key signs by its own algorithm, whatever the header says."""
        signing = f"{packed({k: v for k, v in header.items() if v is not None})}.{packed(content)}"
        if isinstance(key, rsa.RSAPrivateKey):
            signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(signing.encode(), key)
        else:
            signature = ECAlgorithm(ECAlgorithm.SHA256, ec.SECP256R1).sign(signing.encode(), key)
        return f"{signing}.{packed(signature)}"


def without_a_good_signature(issuer: Issuer) -> Iterator[str]:
    """Yield tokens of nobody: other algorithms, other signatures, other content, other keys."""
    head, body, signature = issuer.token().split(".")
    for name in ("none", "None", "NONE", "nOnE", ""):
        bare = packed({"typ": "JWT", "alg": name, "kid": "rsa"})
        yield from (f"{bare}.{body}.", f"{bare}.{body}.{signature}", f"{packed({'alg': name})}.{body}.{packed(b'x')}")
    public = issuer.first.public_key()
    pem, der = serialization.Encoding.PEM, serialization.Encoding.DER
    spki, pkcs1 = serialization.PublicFormat.SubjectPublicKeyInfo, serialization.PublicFormat.PKCS1
    known = [public.public_bytes(pem, spki), public.public_bytes(pem, pkcs1), public.public_bytes(der, spki)]
    known += [known[0].rstrip(), RSAAlgorithm.to_jwk(public).encode(), b"", b"\0", SECRET]
    for size, digest in (("256", HMACAlgorithm.SHA256), ("384", HMACAlgorithm.SHA384), ("512", HMACAlgorithm.SHA512)):
        for secret in known:
            for kid in ("rsa", "shared"):
                signing = f"{packed({'typ': 'JWT', 'alg': f'HS{size}', 'kid': kid})}.{body}"
                yield f"{signing}.{packed(HMACAlgorithm(digest).sign(signing.encode(), secret))}"
    yield from (
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}..{signature}",
        f".{body}.{signature}",
        f"{head}.{body}.AA",
    )
    yield from (
        f"{head}.{body}.{signature[:-8]}",
        f"{head}.{body}.{'A' * len(signature)}",
        f"{head}.{body}.{packed(b'')}",
    )
    yield f"{head}.{body}.{issuer.token(changed={'sub': 'eve'}).split('.')[2]}"
    for change in ({"sub": "eve"}, {"scope": "read memory"}, {"exp": 2**33}, {"aud": [URL]}, {"iss": ISSUER, "x": 1}):
        yield f"{head}.{packed(claims(change))}.{signature}"
    for name in ("RS384", "RS512", "PS256", "ES256", "ES384", "ES256K", "EdDSA", "HS256", "A128KW", "dir"):
        yield issuer.token({"alg": name})
        if name != "ES256":
            yield issuer.token({"alg": name, "kid": "ec"}, issuer.second)
    own = json.loads(RSAAlgorithm.to_jwk(issuer.foreign.public_key()))
    kids: tuple[object, ...] = (
        "enc",
        "ops",
        "other",
        "",
        "../../dev/null",
        "' or 1=1 --",
        "https://evil.example",
        None,
        0,
        True,
        ["rsa"],
        {"a": 1},
    )
    headers: Sequence[Mapping[str, object]] = [{"jwk": own}, {"jku": "https://evil.example/keys"}, {"x5c": ["MIIB"]}]
    headers = [*headers, {"x5u": "https://evil.example/x"}, *({"kid": each} for each in kids)]
    for header in headers:
        yield issuer.token(header, issuer.foreign)
        yield issuer.token({**header, "alg": None}, issuer.foreign)


def not_for_this_server_or_for_now(issuer: Issuer) -> Iterator[str]:
    """Yield tokens that the authorization server did sign, and that are not valid here and now."""
    now = int(time.time())
    wrong: Mapping[str, tuple[object, ...]] = {
        "exp": (now - 1, now - HOUR, 0, -1, None, "tomorrow", [now + HOUR], {}, *map(float, ("inf", "-inf", "nan"))),
        "nbf": (now + HOUR, 2**40, "now"),
        "iat": (now + HOUR, "now"),
        "iss": (f"{ISSUER}/", ISSUER.upper(), "https://login.example", "", None, [ISSUER], 7),
        "aud": (
            *("https://other.example/mcp", f"{URL}/", URL[:-1], URL.upper(), "", [], None, 7, "*"),
            *(["https://other.example/mcp"], [f"{URL}x", "kg"], {URL: 1}, [[URL]], [None]),
        ),
        "sub": (None, "", 7, ["ada"], {}),
    }
    changes = [{name: value} for name, values in wrong.items() for value in values]
    yield from (issuer.token(changed=change) for change in changes)
    yield from (issuer.token({"kid": "ec"}, issuer.second, change) for change in changes)
    for kind in ("dpop+jwt", "logout+jwt", "secevent+jwt", "openid-configuration", 7, ["JWT"]):
        yield issuer.token({"typ": kind})
    yield from (issuer.token({"crit": each, "exp": 1}) for each in (["exp"], ["b64"], [], "exp"))
    yield issuer.token({"crit": ["b64"], "b64": False})
    for content in (b"", b"null", b"[]", b"7", b"{", b"\xff", b'"text"', b"[" * 5_000):
        yield issuer.signed({"typ": "JWT", "alg": "RS256", "kid": "rsa"}, content, issuer.first)


def garbage(issuer: Issuer) -> Iterator[str]:
    """Yield what is no token, and valid ones with a change of one character."""
    valid, chance = issuer.token(), random.Random(31)  # noqa: S311 - it chooses what is changed
    yield from (
        ".",
        "..",
        "...",
        "....",
        "a.b.c",
        "null",
        "undefined",
        "{}",
        "Bearer",
        f"Bearer {valid}",
        f"{valid}.",
        "é.é.é",
    )
    yield from (
        f" {valid}",
        f"{valid} x",
        f"{valid},{valid}",
        f"{valid}\t{valid}",
        f'"{valid}"',
        valid[::-1],
        valid.lower(),
    )
    yield from ("x" * 15_000, "." * 15_000, f"{valid}{'=' * 10}", f"{valid}{'A' * 30_000}", "\xff\xfe\x80")
    yield f"{packed(b'[' * 10_000)}.{packed(claims())}.{packed(b'x')}"
    yield ".".join(
        [packed({"alg": "RSA-OAEP", "enc": "A256GCM", "kid": "rsa"}), *(packed(b"x" * 16) for _ in range(4))]
    )
    for _ in range(40):
        place = chance.randrange(len(valid))
        if valid[place] != ".":
            yield f"{valid[:place]}{'A' if valid[place] != 'A' else 'B'}{valid[place + 1 :]}"


@dataclass(frozen=True)
class Guarded:
    """A server that accepts tokens of both kinds, and what was asked of where the keys are."""

    url: str
    issuer: Issuer
    tokens: TokenFile
    asked: list[str | None]

    def status(self, http: httpx2.Client, *authorizations: str, query: str = "") -> int:
        accepted = (b"accept", b"application/json, text/event-stream")
        headers = [accepted, *((b"authorization", each.encode("latin-1")) for each in authorizations)]
        return http.post(f"{self.url}{query}", json=LIST, headers=headers).status_code


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    issuer, tokens, asked = Issuer.create(), TokenFile(folder / "tokens.json"), list[str | None]()

    def keys(_: bytes, authorization: str | None) -> Reply:
        asked.append(authorization)
        return Reply(issuer.published())

    with answering(keys) as jwks_url:
        settings = {"ISSUER": ISSUER, "JWKS_URL": jwks_url, "URL": URL, "TOKENS": str(tokens.path)}
        environ = {f"KG_SEXTANT_HOSTING__{name}": value for name, value in settings.items()}
        with started(environ, str(write_graph(folder)), "--cache-folder", str(folder / "cache")) as process:
            yield Guarded(address_of(process), issuer, tokens, asked)


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=PATIENCE_S) as client:
        yield client


def test_none_of_many_forged_tokens_lets_a_caller_in(guarded: Guarded, http: httpx2.Client) -> None:
    issuer, began = guarded.issuer, time.monotonic()
    forged = [*without_a_good_signature(issuer), *not_for_this_server_or_for_now(issuer), *garbage(issuer)]
    assert len(set(forged)) > 200
    passed = {each: status for each in forged if (status := guarded.status(http, f"Bearer {each}")) not in {401, 403}}
    assert passed == {}
    # Unknown keys make the server read the keys again, which nobody can have it do all the time.
    assert len(guarded.asked) <= 3 + (time.monotonic() - began) / PAUSE_S
    changes: Sequence[Mapping[str, object]] = [
        {},
        {"aud": ["https://other.example", URL]},
        {"sub": None, "client_id": "c"},
    ]
    changes = [*changes, {"scope": None, "scp": ["read"]}, {"nbf": int(time.time()) + 5}]
    good = [issuer.token(changed=each) for each in changes] + [issuer.token({"kid": "ec"}, issuer.second)]
    for valid in [*good, *(issuer.token(each) for each in ({"typ": "at+jwt"}, {"typ": None}, {"kid": None}))]:
        assert guarded.status(http, f"Bearer {valid}") == 200
    assert guarded.status(http, f"bearer {issuer.token()}") == 200
    assert guarded.status(http, f"Bearer {issuer.token(changed={'scope': 'write'})}") == 403


def test_a_token_counts_only_where_it_belongs(guarded: Guarded, http: httpx2.Client) -> None:
    for valid in (guarded.issuer.token(), guarded.tokens.add("ann", ("read",), None, None)):
        assert guarded.status(http, f"Bearer {valid}") == 200
        assert guarded.status(http, query=f"?access_token={valid}") == 401
        assert guarded.status(http, f"Bearer {valid}", f"Bearer {valid}") == 401
        basic = base64.b64encode(f"{valid}:{valid}".encode()).decode()
        for wrong in (valid, f"Basic {basic}", f"Token {valid}", f"Bearer{valid}", f"Bearer:{valid}", f"DPoP {valid}"):
            assert guarded.status(http, wrong) == 401
        assert guarded.status(http, f"Bearer {valid}{'A' * 50_000}") == 401
        # So long a header is not even read to its end: the connection is closed, after an answer or before.
        with suppress(httpx2.TransportError):
            assert guarded.status(http, f"Bearer {valid}{'A' * 1_000_000}") == 400


def test_a_static_token_cannot_be_guessed_from_its_file(guarded: Guarded, http: httpx2.Client) -> None:
    token = guarded.tokens.add("bob", ("read",), None, None)
    digest = sha256(token.encode()).hexdigest()
    assert digest in guarded.tokens.path.read_text(encoding="utf-8")
    for forged in (digest, f"kgs_{digest}", token[4:], token[:-1], f"{token}A", f"KGS_{token[4:]}", "kgs_", "kgs_bob"):
        assert guarded.status(http, f"Bearer {forged}") == 401


def test_the_server_asks_where_the_keys_are_without_any_token(guarded: Guarded, http: httpx2.Client) -> None:
    assert guarded.status(http, f"Bearer {guarded.issuer.token()}") == 200
    assert set(guarded.asked) == {None}


def test_while_the_keys_cannot_be_read_static_tokens_go_on(http: httpx2.Client, tmp_path: Path) -> None:
    tokens, issuer = TokenFile(tmp_path / "tokens.json"), Issuer.create()
    settings = {"ISSUER": "http://127.0.0.1:9", "TOKENS": str(tokens.path)}
    environ = {f"KG_SEXTANT_HOSTING__{name}": value for name, value in settings.items()}
    with started(environ, str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache")) as process:
        guarded = Guarded(address_of(process), issuer, tokens, [])
        assert {guarded.status(http, f"Bearer {issuer.token()}") for _ in range(5)} == {503}
        assert guarded.status(http, f"Bearer {tokens.add('ann', ('read',), None, None)}") == 200
        process.terminate()
        # Whoever causes it cannot fill the log.
        assert process.communicate()[1].count("The keys of the authorization server cannot be read now") < 3


def test_the_forger_can_forge() -> None:
    # A reader without care takes what the server must refuse, so that the refusals above mean something.
    issuer = Issuer.create()
    careless = jwt.decode(
        issuer.token(changed={"aud": "x"}), issuer.first.public_key(), ["RS256"], options={"verify_aud": False}
    )
    assert careless["sub"] == "ada"
