"""Logins of MCP clients from nothing but the URL of a server, against an authorization server on loopback."""

from collections.abc import Generator

import httpx2
import pytest

from authorization_server import AuthorizationServer, ClientRecord, authorizing
from signing_in import CALLBACK

CLIENT = ClientRecord(client_id="known", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
VERIFIER = "v" * 43
CHALLENGE = "7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM"
RESOURCE = "https://kg.example.org/mcp"


@pytest.fixture
def authority() -> Generator[AuthorizationServer]:
    with authorizing() as server:
        server.add_client(CLIENT)
        yield server


REFUSED: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "nothing": ({}, {}, ""),
    "a challenge that is the verifier itself": ({"code_challenge_method": "plain"}, {}, "invalid_request"),
    "no challenge": ({"code_challenge": ""}, {}, "invalid_request"),
    "an address of somebody else": ({"redirect_uri": "https://evil.example/"}, {}, "invalid_request"),
    "an unknown client": ({"client_id": "unknown"}, {}, "invalid_client"),
    "another verifier": ({}, {"code_verifier": "w" * 43}, "invalid_grant"),
    "another address": ({}, {"redirect_uri": "http://127.0.0.1:1/callback"}, "invalid_grant"),
    "another resource": ({}, {"resource": "https://other.example/mcp"}, "invalid_target"),
    "a secret that it has not": ({}, {"client_secret": "guess"}, "invalid_client"),
    "more scopes than were granted": ({}, {"scope": "read memory"}, "invalid_scope"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_the_authorization_server_of_these_tests_refuses_what_oauth_forbids(
    authority: AuthorizationServer, wrong: str
) -> None:
    asking, exchanging, expected = REFUSED[wrong]
    common = {"client_id": "known", "redirect_uri": CALLBACK, "resource": RESOURCE}
    challenge = {"response_type": "code", "code_challenge": CHALLENGE, "code_challenge_method": "S256"}
    reply = httpx2.get(f"{authority.issuer}/authorize", params={**common, **challenge, **asking})
    back = dict(httpx2.URL(reply.headers["location"]).params) if reply.status_code == 302 else reply.json()
    if "code" not in back:
        assert back["error"] == expected
        return
    form = {**common, "grant_type": "authorization_code", "code": back["code"], "code_verifier": VERIFIER, **exchanging}
    reply = httpx2.post(f"{authority.issuer}/token", data=form)
    assert reply.json().get("error", "") == expected
    assert httpx2.post(f"{authority.issuer}/token", data=form).json()["error"].startswith("invalid_")
