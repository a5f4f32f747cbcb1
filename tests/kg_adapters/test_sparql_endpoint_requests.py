"""What is sent to an endpoint, over which connections, and what comes back."""

import base64
import gzip
import json
import logging
import zlib
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

import anyio
import anyio.to_thread
import pytest
from SPARQLWrapper import JSON, POST, QueryResult, SPARQLWrapper

from fault_endpoint import (
    JSON_RESULTS,
    Asked,
    Script,
    Wire,
    answering,
    opened,
    redirecting,
    refusing,
    results,
    serving,
    stalling,
    uri,
)
from kg_adapters.errors import BackendError, BackendUnavailable, InvalidRequest, KGError
from kg_adapters.http.client import EndpointClient
from kg_adapters.http.messages import HttpReply, HttpRequest
from kg_adapters.http.options import (
    EndpointOptions,
)
from kg_adapters.sparql.endpoint import PooledWrapper
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Iri, Literal

A = Iri("http://example.org/a")
ONE_ROW = answering(results(["x"], {"x": uri(A.value)}))
ONE = Solutions(("x",), ((A,),))
QUERY = "SELECT ?x { ?x ?y ?z }"


async def test_a_short_query_is_sent_by_get_and_asks_for_plain_json() -> None:
    async with serving(ONE_ROW) as server, opened(server, user_agent="tests/1 (ada@example.org)") as endpoint:
        assert await endpoint.query(QUERY) == ONE
    (asked,) = server.requests
    assert asked == Asked(
        "GET",
        "/sparql",
        {"query": [QUERY]},
        {
            "host": server.host,
            "accept": "application/sparql-results+json, application/json;q=0.8",
            "accept-encoding": "identity",
            "connection": "keep-alive",
            "user-agent": "tests/1 (ada@example.org)",
        },
        1,
    )


async def test_a_long_query_is_sent_by_post() -> None:
    long_query = QUERY + " # " + "Ä" * 2_000
    async with serving(ONE_ROW) as server, opened(server) as endpoint:
        assert await endpoint.query(long_query) == ONE
    (asked,) = server.requests
    assert (asked.method, asked.parameters) == ("POST", {"query": [long_query]})
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"


async def test_graphs_and_more_parameters_and_headers_are_sent_with_every_query() -> None:
    async with (
        serving(ONE_ROW) as server,
        opened(
            server,
            default_graphs=("http://example.org/g1", "http://example.org/g2"),
            named_graphs=("http://example.org/g3",),
            parameters={"infer": "false", "timeout": "9000"},
            headers={"X-Key": "hunter2"},
        ) as endpoint,
    ):
        await endpoint.query(QUERY, parameters={"timeout": "500"})
    (asked,) = server.requests
    assert asked.headers["x-key"] == "hunter2"
    assert asked.parameters == {
        "query": [QUERY],
        "infer": ["false"],
        "timeout": ["500"],
        "default-graph-uri": ["http://example.org/g1", "http://example.org/g2"],
        "named-graph-uri": ["http://example.org/g3"],
    }


async def test_asking_gives_a_truth_value() -> None:
    yes = answering('{"head":{},"boolean":true}', media_type="application/json")
    async with serving(yes) as server, opened(server) as endpoint:
        assert await endpoint.query("ASK { ?s ?p ?o }") == Solutions((), (), truth=True)


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (
            "application/n-triples; charset=utf-8",
            "<http://example.org/a> <http://example.org/a> <http://example.org/a> .",
        ),
        ("Text/Turtle", "@prefix e: <http://example.org/> . e:a e:a e:a ."),
    ],
)
async def test_constructing_asks_for_triples_and_gives_rows(media_type: str, body: str) -> None:
    async with serving(answering(body, media_type=media_type)) as server, opened(server) as endpoint:
        found = await endpoint.query("CONSTRUCT WHERE { ?s ?p ?o }")
    assert found == Solutions(("subject", "predicate", "object"), ((A, A, A),))
    assert server.requests[0].headers["accept"] == "application/n-triples, text/turtle;q=0.8"


async def test_a_partial_answer_of_virtuoso_is_truncated() -> None:
    partial = answering(results(["x"], {"x": uri(A.value)}), headers={"X-SQL-State": "S1TAT"})
    async with serving(partial) as server, opened(server) as endpoint:
        assert await endpoint.query(QUERY) == replace(ONE, truncated=True)


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)]
)
async def test_an_answer_that_is_compressed_unasked_is_read_all_the_same(
    encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(results(["x"], {"x": uri(A.value)}).encode())
    script = answering(packed, headers={"Content-Encoding": encoding})
    async with serving(script) as server, opened(server) as endpoint:
        assert await endpoint.query(QUERY) == ONE


async def test_nothing_is_opened_before_the_first_query_and_one_connection_serves_those_that_follow() -> None:
    async with serving(ONE_ROW) as server, opened(server) as endpoint:
        assert server.connections == 0
        for _ in range(5):
            await endpoint.query(QUERY)
        assert (server.connections, len(server.requests)) == (1, 5)


async def test_no_more_requests_run_at_once_than_allowed() -> None:
    release = anyio.Event()

    async def wait_then_answer(asked: Asked, wire: Wire) -> None:
        await release.wait()
        await ONE_ROW(asked, wire)

    async with (
        serving(wait_then_answer) as server,
        opened(server, max_concurrency=3) as endpoint,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(10):
            tasks.start_soon(endpoint.query, QUERY)
        await server.until(lambda: len(server.requests) == 3)
        release.set()
    assert (server.most_at_once, server.connections, len(server.requests)) == (3, 3, 10)


async def test_a_query_that_is_cancelled_hangs_up_and_frees_its_place() -> None:
    async with serving(stalling, ONE_ROW) as server, opened(server, max_concurrency=1) as endpoint:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(endpoint.query, QUERY)
            await server.until(lambda: len(server.requests) == 1)
            tasks.cancel_scope.cancel()
        await server.until(lambda: server.open_connections == 0)
        assert await endpoint.query(QUERY) == ONE


async def test_closing_closes_the_connections_and_ends_the_answers() -> None:
    async with serving(ONE_ROW) as server, opened(server) as endpoint:
        await endpoint.query(QUERY)
        await endpoint.aclose()
        await endpoint.aclose()
        await server.until(lambda: server.open_connections == 0)
        with pytest.raises(BackendUnavailable, match=r"was closed\. Open the graph again\."):
            await endpoint.query(QUERY)
    assert len(server.requests) == 1


async def test_what_is_no_query_is_refused_before_anything_is_sent() -> None:
    async with serving(ONE_ROW) as server, opened(server) as endpoint:
        with pytest.raises(InvalidRequest, match="not a query that reads"):
            await endpoint.query("DELETE WHERE { ?s ?p ?o }")
    assert server.connections == 0


async def test_the_wrapper_answers_like_the_original_one() -> None:
    body = results(["x"], {"x": uri("http://example.org/a")})
    async with serving(answering(body)) as server:
        original = SPARQLWrapper(server.url, returnFormat=JSON)
        original.setQuery(QUERY)
        client = EndpointClient(EndpointOptions(url=server.url))

        async def send(request: HttpRequest) -> HttpReply:
            return await client.ask(request, lambda reply: reply, timeout_s=5)

        ours = PooledWrapper(server.url, send, max_url_length=2_000)
        ours.ask_for(QUERY)
        theirs_result, ours_result = [await anyio.to_thread.run_sync(each.query) for each in (original, ours)]
        ours.setMethod(POST)
        in_loop = await ours.query_in_loop()
        await client.aclose()
    assert seen(ours_result) == seen(theirs_result) == seen(in_loop) == (200, JSON_RESULTS, "json", json.loads(body))
    assert [asked.method for asked in server.requests] == ["GET", "GET", "POST"]
    assert ours_result.geturl() == f"{server.url}?query=SELECT+%3Fx+%7B+%3Fx+%3Fy+%3Fz+%7D"


def seen(result: QueryResult) -> tuple[object, ...]:
    return result.response.status, result.info()["content-type"], result.requestedFormat, result.convert()


async def test_the_wrapper_cannot_block_the_event_loop() -> None:
    async def send(request: HttpRequest) -> HttpReply:
        raise AssertionError(request)

    wrapper = PooledWrapper("http://127.0.0.1:1/", send, max_url_length=2_000)
    wrapper.ask_for(QUERY)
    with pytest.raises(RuntimeError):
        wrapper.query()


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
