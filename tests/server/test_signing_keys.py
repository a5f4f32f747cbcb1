"""Keys of an authorization server that change, are withdrawn, or cannot be read for a while."""

from collections.abc import Generator
from dataclasses import dataclass

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from authorization_server import AuthorizationServer, authorizing
from kg_adapters.errors import BackendUnavailable
from kg_server.serving.jwts import FRESH_S, PAUSE_S, JwtVerifier, SigningKeys
from loopback_service import Reply, answering
from patience import PATIENCE_S
from played_time import PlayedTime

AUDIENCE = "https://kg.example.org/mcp"
READ = "GET /keys 200"


@dataclass(frozen=True)
class Trust:
    """A verifier and the authorization server that it trusts, with a clock that the test moves."""

    authority: AuthorizationServer
    verifier: JwtVerifier
    time: PlayedTime

    async def accepts(self, token: str) -> bool:
        return await self.verifier.verify(token) is not None

    def token(self) -> str:
        return self.authority.access_token(aud=AUDIENCE)

    @property
    def reads(self) -> int:
        return self.authority.requests.count(READ)


@pytest.fixture
def trust() -> Generator[Trust]:
    time = PlayedTime()
    with authorizing() as authority:
        keys = SigningKeys(authority.issuer, None, time.timing.clock)
        yield Trust(authority, JwtVerifier(keys, authority.issuer, AUDIENCE), time)


async def test_a_withdrawn_key_is_accepted_no_longer_than_keys_are_fresh(trust: Trust) -> None:
    token = trust.token()
    assert await trust.accepts(token)
    trust.authority.rotate(withdraw=True)
    trust.time.elapsed_s += FRESH_S - 1
    assert (await trust.accepts(token), trust.reads) == (True, 1)
    trust.time.elapsed_s += 2
    assert not await trust.accepts(token)
    assert await trust.accepts(trust.token())


async def test_known_keys_go_on_while_the_authorization_server_is_down_and_new_ones_when_it_is_back(
    trust: Trust,
) -> None:
    known = trust.token()
    assert await trust.accepts(known)
    trust.authority.is_down = True
    trust.authority.rotate()
    trust.time.elapsed_s += 3 * FRESH_S
    assert await trust.accepts(known)
    with pytest.raises(BackendUnavailable):
        await trust.accepts(trust.token())
    trust.authority.is_down = False
    trust.time.elapsed_s += PAUSE_S
    assert await trust.accepts(trust.token())
    assert await trust.accepts(known)


async def test_where_a_page_gets_tokens_is_read_again_once_the_authorization_server_is_back() -> None:
    time = PlayedTime()
    with authorizing() as authority:
        keys, authority.is_down = SigningKeys(authority.issuer, None, time.timing.clock), True
        await keys.read()
        assert keys.asked() == (authority.issuer,)
        authority.is_down = False
        time.elapsed_s += PAUSE_S
        with anyio.fail_after(PATIENCE_S):
            while keys.asked() != (authority.issuer, f"{authority.issuer}/token"):
                await anyio.lowlevel.checkpoint()
    assert authority.requests.count(READ) == 1


async def test_tokens_of_unknown_keys_make_it_read_the_keys_once_in_a_while_at_most(trust: Trust) -> None:
    with authorizing() as foreign:
        foreign.rotate()
        forged = [foreign.access_token(iss=trust.authority.issuer, aud=AUDIENCE) for _ in range(50)]
    async with anyio.create_task_group() as callers:
        for token in forged:
            callers.start_soon(trust.accepts, token)
    assert not await trust.accepts(forged[0])
    assert trust.reads == 1
    assert await trust.accepts(trust.token())
    trust.time.elapsed_s += PAUSE_S
    assert not await trust.accepts(forged[1])
    assert trust.reads == 2


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"keys": "none"}),
        Reply({"keys": [{"kid": "a"}]}),
        Reply(b"{"),
        Reply(b'{"keys": [' + b" " * 1_000_000 + b"]}"),
        Reply("", 302, {"Location": "https://evil.example/keys"}),
        Reply("", 404),
    ],
)
async def test_what_is_no_set_of_keys_is_not_taken_for_one(reply: Reply) -> None:
    with answering(lambda _, __: reply) as url, pytest.raises(BackendUnavailable):
        await SigningKeys("https://login.example", url).find("a", "ES256")


async def test_a_malformed_key_is_left_out_and_the_others_are_accepted() -> None:
    made = ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key(), as_dict=True)
    keys = [7, {"kid": "a"}, {**made, "kid": 5}, {**made, "kid": "b", "key_ops": "verify"}, {**made, "kid": "c"}]
    with answering(lambda _, __: Reply({"keys": keys})) as url:
        read = SigningKeys("https://login.example", url)
        found = [await read.find(kid, "ES256") for kid in ("a", "b", "c")]
    assert [each is not None for each in found] == [False, False, True]


@pytest.mark.parametrize(
    ("issuer", "keys", "trusted"),
    [
        ("{url}", "{url}?keys", True),
        ("{url}/", "{url}?keys", False),
        ("https://evil.example", "{url}?keys", False),
        ("{url}", "{elsewhere}?keys", False),
        ("{url}", "ftp://127.0.0.1/?keys", False),
        ("{url}", "https://[", False),
    ],
    ids=["as it should be", "of an issuer almost ours", "of another", "without HTTPS", "by another protocol", "no URL"],
)
async def test_metadata_that_cannot_be_trusted_leads_to_no_keys(issuer: str, keys: str, trusted: bool) -> None:
    places: dict[str, str] = {}
    made = ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key(), as_dict=True)

    def answer(query: bytes, _: str | None) -> Reply:
        if query == b"keys":
            return Reply({"keys": [{**made, "kid": "a"}]})
        return Reply(
            {"issuer": issuer.format(**places), **dict.fromkeys(("jwks_uri", "token_endpoint"), keys.format(**places))}
        )

    with answering(answer) as url:
        # The same service by an address that is not of loopback.
        places |= {"url": url, "elsewhere": url.replace("127.0.0.1", "0.0.0.0")}  # noqa: S104 - it is called, not bound
        found = SigningKeys(url, None)
        if trusted:
            assert await found.find("a", "ES256") is not None
        else:
            with pytest.raises(BackendUnavailable):
                await found.find("a", "ES256")
        assert found.asked() == ((url, f"{url}?keys") if trusted else (url,))
