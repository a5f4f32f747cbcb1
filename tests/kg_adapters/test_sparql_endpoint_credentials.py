"""How a client proves who it is, and keeps its secrets."""

import base64
import json
import logging
from urllib.parse import quote

import pytest

from fault_endpoint import (
    Asked,
    Script,
    Wire,
    answering,
    opened,
    redirecting,
    refusing,
    results,
    serving,
    uri,
)
from kg_adapters.errors import BackendError, BackendUnavailable, KGError
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Iri, Literal

ONE_ROW = answering(results(["x"], {"x": uri("http://example.org/a")}))
ONE = Solutions(("x",), ((Iri("http://example.org/a"),),))
QUERY = "SELECT ?x { ?x ?y ?z }"


def challenging(then: Script) -> Script:
    """Ask for digest authentication, with a body that has no end where one is read."""

    async def answer(asked: Asked, wire: Wire) -> None:
        if "authorization" in asked.headers:
            await then(asked, wire)
        else:
            challenge = 'Digest realm="sparql", qop="auth", nonce="abc", algorithm=SHA-256'
            headers = {"WWW-Authenticate": challenge, "Content-Length": "999999999"}
            await answering("who?", status=401, headers=headers)(asked, wire)
            await wire.wait_until_gone()

    return answer


async def test_a_digest_answers_the_challenge_and_never_sends_the_password() -> None:
    async with (
        serving(challenging(ONE_ROW)) as server,
        opened(server, user="ada", password="hunter2", digest=True) as endpoint,
    ):
        assert [await endpoint.query(QUERY) for _ in range(2)] == [ONE, ONE]
    sent = [asked.headers.get("authorization", "") for asked in server.requests]
    assert [text.partition(",")[0] for text in sent] == ["", 'Digest username="ada"', 'Digest username="ada"']
    assert "hunter2" not in "".join(sent)


@pytest.mark.parametrize(
    "challenge", ['Digest realm="x"', "Digest nonsense", 'Digest realm="x", nonce="y", algorithm=X']
)
async def test_a_challenge_that_makes_no_sense_is_an_error(challenge: str) -> None:
    refusal = refusing(401, "", WWW_Authenticate=challenge)
    async with serving(refusal) as server, opened(server, user="ada", password="hunter2", digest=True) as endpoint:
        with pytest.raises(BackendUnavailable, match="answered what HTTP does not allow"):
            await endpoint.query(QUERY)
        await server.until(lambda: server.open_connections == 0)


@pytest.mark.parametrize(
    ("authentication", "sent"),
    [
        ({"user": "ada", "password": "hunter2"}, "Basic YWRhOmh1bnRlcjI="),
        ({"token": "hunter2"}, "Bearer hunter2"),
        ({}, None),
    ],
)
async def test_credentials_go_with_every_request_and_into_no_log(
    authentication: dict[str, object], sent: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(ONE_ROW) as server, opened(server, None, **authentication) as endpoint:
        assert await endpoint.query(QUERY) == ONE
    assert server.requests[0].headers.get("authorization") == sent
    assert "hunter2" not in caplog.text
    assert "YWRhOmh1bnRlcjI=" not in caplog.text


async def test_an_endpoint_that_echoes_a_secret_does_not_spread_it() -> None:
    text = "x" * 295 + "hunter2 and swordfish"
    async with (
        serving(refusing(403, text)) as server,
        opened(server, token="hunter2", headers={"X-Key": "swordfish"}) as endpoint,
    ):
        with pytest.raises(BackendError) as caught:
            await endpoint.query(QUERY)
    assert "hunt" not in str(caught.value)
    assert "sword" not in str(caught.value)


PASSWORD = "correct-horse-battery"
BASIC = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()


@pytest.mark.parametrize(
    "echo",
    [
        refusing(401, f"Got Authorization: Basic {BASIC}"),
        refusing(500, f"<html><body>Got &quot;{PASSWORD}&quot;</body></html>"),
        refusing(400, json.dumps({"message": f"Got {quote(PASSWORD)} and {BASIC}"})),
        refusing(400, " " * 7_980 + f"Got {BASIC}"),
        answering(f"Got {BASIC}", media_type=f"text/{PASSWORD}"),
        answering(f"Got {BASIC}", headers={"Content-Encoding": PASSWORD}),
        answering(json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": [{"x": PASSWORD}]}})),
        redirecting(f"http://ada:{PASSWORD}@{PASSWORD}.example.org/?key={PASSWORD}"),
    ],
)
async def test_an_endpoint_that_echoes_what_it_was_sent_shows_it_to_nobody(echo: Script) -> None:
    async with serving(echo) as server, opened(server, user="ada", password=PASSWORD) as endpoint:
        with pytest.raises(KGError) as caught:
            await endpoint.query(QUERY)
    assert [each for each in (PASSWORD[:4], BASIC[8:12]) if each in str(caught.value)] == []


async def test_a_password_among_results_is_taken_out_before_anyone_reads_them() -> None:
    rows = results(["x"], {"x": uri(f"http://example.org/{PASSWORD}")}, {"x": {"type": "literal", "value": BASIC}})
    async with serving(answering(rows)) as server, opened(server, user="ada", password=PASSWORD) as endpoint:
        found = await endpoint.query(QUERY)
    assert found == Solutions(("x",), ((Iri("http://example.org/…"),), (Literal("…"),)))
