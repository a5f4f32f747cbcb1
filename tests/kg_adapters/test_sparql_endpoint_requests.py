"""What is sent to an endpoint, over which connections, and what comes back."""

import gzip
import zlib
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest

from fault_endpoint import (
    Asked,
    Wire,
    answering,
    opened,
    results,
    serving,
    stalling,
    uri,
)
from kg_adapters.errors import BackendUnavailable, InvalidRequest
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Iri

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
