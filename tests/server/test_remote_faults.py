"""A remote graph that fails in every way: calls end with a cause and a next step, others go on, and it passes."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client

from calls import Reply, reply_of
from certificates import Authority
from fault_endpoint import (
    FaultEndpoint,
    Script,
    answering,
    cutting_the_body,
    dropping,
    redirecting,
    refusing,
    serving,
    stalling,
    stalling_behind_headers,
    streaming,
)
from played_time import PlayedTime
from served_graphs import CITIES, answering_from, failing_about, quiet, tools_over

HEALTHY = answering_from(CITIES)
HTML = "<!DOCTYPE html><html><head><title>x</title></head><body><h1>Down</h1> for repair</body></html>"
SHORT_S = 1.5
LATE = "{host} gave no answer within 1.5 s; time ran out while {doing}. Ask for less at once, or allow more time."
DROPPED = "{host} dropped the connection before its answer was complete. Ask again; if it repeats, ask for less."
NO_ENDPOINT = "Check that the URL is that of the SPARQL endpoint."
FAILED = (
    "The endpoint {host} failed (HTTP 500): boom. Ask for less, or again later; if every query fails, its owner can "
    "find the reason in its log."
)
FAULTS: Mapping[str, tuple[Script, str]] = {
    "a stall before headers": (
        stalling,
        "The endpoint " + LATE.replace("{doing}", "connecting or waiting for its answer"),
    ),
    "a stall behind headers": (
        stalling_behind_headers,
        "The endpoint " + LATE.replace("{doing}", "reading its answer"),
    ),
    "a dropped connection": (dropping, "The endpoint " + DROPPED),
    "a cut body": (cutting_the_body, "The endpoint " + DROPPED),
    "a wrong content type": (
        answering("x,y\r\n1,2", media_type="text/csv"),
        "The endpoint {host} answered with text/csv instead of results: x,y 1,2. " + NO_ENDPOINT,
    ),
    "an HTML error page": (
        answering(HTML, media_type="text/html"),
        "The endpoint {host} answered with text/html instead of results: Down for repair. " + NO_ENDPOINT,
    ),
    "429": (
        refusing(429),
        "The endpoint {host} is asked too often (HTTP 429). Ask again later, and less often.",
    ),
    "500": (refusing(500, "boom"), FAILED),
    "200 MB": (
        streaming(200_000_000),
        "The answer of the endpoint {host} is larger than 1 MB and was not read further. Ask for less (a smaller "
        "LIMIT), or raise the setting endpoint.max_mb.",
    ),
    "invalid JSON": (
        answering('{"head"'),
        "The endpoint {host} sent an answer that cannot be read: it is not a JSON object, or ends in the middle of "
        "one: Expecting ':' delimiter: line 1 column 8 (char 7). Ask again; if it repeats, ask for less, or tell the "
        "endpoint's owner.",
    ),
}
READING: Mapping[str, Mapping[str, object]] = {
    "Retrieve": {"text": "Kyoto"},
    "observe": {"question": "Which country is it in?", "entities": ["ex:kyoto"]},
    "GetNeighbor": {"entity": "ex:kyoto"},
    "GetPath": {"source": "ex:kyoto", "target": "ex:paris"},
    "Feature": {"entity": "ex:kyoto"},
    "Degree": {"entity": "ex:kyoto"},
    "Compose": {"expression": "Neighbor[ex:kyoto, ex:country]"},
    "memory-append": {"triples": [["ex:kyoto", "ex:country", "ex:japan"]]},
    "Schema": {},
    "Sparql": {"query": "SELECT ?x { ?x ?y ?z }"},
}


async def neighbors(client: Client, city: str) -> Reply:
    return reply_of(await client.call_tool("GetNeighbor", {"entity": f"ex:{city}"}))


async def is_healthy(client: Client, city: str = "kyoto") -> bool:
    lines = {"kyoto": "country (ex:country) | Japan (ex:japan)"}
    lines["paris"] = "country (ex:country) | France (ex:france)"
    return (await neighbors(client, city)).lines[:1] == [lines[city]]


@asynccontextmanager
async def asking(client: Client, server: FaultEndpoint, city: str) -> AsyncGenerator[list[Reply]]:
    """Ask about a city while the block runs, from when its request has arrived; the answer is in the list then."""
    replies: list[Reply] = []
    before = len(server.requests)

    async def ask() -> None:
        replies.append(await neighbors(client, city))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await server.until(lambda: len(server.requests) > before)
        yield replies


@pytest.mark.parametrize("name", FAULTS)
async def test_a_call_ends_with_cause_and_next_step_while_others_are_answered_and_later_it_is_too(
    name: str, tmp_path: Path
) -> None:
    fault, message = FAULTS[name]
    timeout_s = SHORT_S if "1.5 s" in message else 60.0
    async with (
        serving(failing_about("/paris>", fault, HEALTHY)) as server,
        tools_over(server, tmp_path, timeout_s=timeout_s, max_mb=1) as client,
    ):
        async with asking(client, server, "paris") as replies:
            assert await is_healthy(client)
        assert [(reply.is_error, reply.text) for reply in replies] == [(True, message.format(host=server.host))]
        server.follow(HEALTHY)
        assert await is_healthy(client, "paris")
    assert server.bytes_sent < 50_000_000


async def test_calls_that_stall_do_not_hold_up_others_of_the_same_endpoint(tmp_path: Path) -> None:
    async with (
        serving(failing_about("/paris>", stalling, HEALTHY)) as server,
        tools_over(server, tmp_path, max_concurrency=6) as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(5):
            tasks.start_soon(neighbors, client, "paris")
        await server.until(lambda: len(server.requests) == 5)
        assert [await is_healthy(client) for _ in range(10)] == [True] * 10
        assert server.open_connections == 6
        tasks.cancel_scope.cancel()


async def test_the_deadline_of_a_call_ends_it_where_the_endpoint_would_be_given_more_time(tmp_path: Path) -> None:
    settings = quiet(tmp_path, timeout_s=SHORT_S)
    async with serving(stalling, HEALTHY) as server, tools_over(server, tmp_path, settings=settings) as client:
        reply = await neighbors(client, "paris")
        assert await is_healthy(client, "paris")
        assert server.most_at_once == 1
    assert reply.text.startswith(f"The endpoint {server.host} gave no answer within 1.")


@pytest.mark.parametrize("tool", READING)
async def test_every_tool_that_reads_the_graph_tells_what_is_wrong_with_it_and_works_again(
    tool: str, tmp_path: Path
) -> None:
    async with serving(refusing(500, "boom")) as server, tools_over(server, tmp_path) as client:
        refused = reply_of(await client.call_tool(tool, dict(READING[tool])))
        server.follow(HEALTHY)
        answered = reply_of(await client.call_tool(tool, dict(READING[tool])))
    assert FAILED.format(host=server.host) in refused.text
    assert refused.is_error
    assert not answered.is_error, answered.text


async def test_a_refused_connection_is_named_and_an_endpoint_that_comes_up_is_reached(tmp_path: Path) -> None:
    async with serving(HEALTHY) as gone:
        port = int(gone.url.rpartition(":")[2].partition("/")[0])
    async with (
        serving(HEALTHY) as other,
        tools_over(gone, tmp_path / "gone") as client,
        tools_over(other, tmp_path / "other") as elsewhere,
    ):
        reply = await neighbors(client, "paris")
        assert await is_healthy(elsewhere)
        async with serving(HEALTHY, port=port):
            assert await is_healthy(client, "paris")
    assert reply.text == (
        f"The endpoint {gone.host} cannot be reached: the connection was refused. Check its URL and that it is "
        "running, then ask again."
    )


async def test_an_expired_certificate_is_named_and_a_renewed_one_is_accepted(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    expired, renewed = authority.server(hours=-1), authority.server(hours=1)
    async with serving(HEALTHY, tls=expired) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(tools_over(server, tmp_path, ca_file=authority.file))
        async with serving(HEALTHY, tls=expired, port=port) as first:
            reply = await neighbors(client, "paris")
            assert first.requests == []
        async with serving(HEALTHY, tls=renewed, port=port):
            assert await is_healthy(client, "paris")
            # A server that ends first would wait for the client to say goodbye.
            await stack.aclose()
    assert reply.text == (
        f"The endpoint {server.host} has a certificate that cannot be trusted: certificate has expired. "
        "Its owner must renew it."
    )


async def test_a_redirect_to_another_host_gets_neither_the_request_nor_the_credentials(tmp_path: Path) -> None:
    async with (
        serving(HEALTHY) as other,
        serving(redirecting(other.url), HEALTHY) as server,
        tools_over(server, tmp_path, user="ada", password="hunter2") as client,
    ):
        reply = await neighbors(client, "paris")
        assert await is_healthy(client, "paris")
        assert other.connections == 0
    assert reply.text == (
        f"The endpoint {server.host} redirects to http://127.0.0.1, and redirects are not followed there. "
        "If that is the endpoint, set its URL."
    )


async def test_an_endpoint_that_asks_for_a_moment_is_given_it_and_the_call_is_answered(tmp_path: Path) -> None:
    time = PlayedTime()
    async with (
        serving(refusing(429, Retry_After="3"), HEALTHY) as server,
        tools_over(server, tmp_path, timing=time.timing, max_retries=1) as client,
    ):
        assert await is_healthy(client)
    assert time.pauses == [3.0]


async def test_an_endpoint_that_asks_to_be_left_alone_is_left_alone_until_then(tmp_path: Path) -> None:
    time = PlayedTime()
    async with (
        serving(refusing(429, "slow down", Retry_After="120"), HEALTHY) as server,
        tools_over(server, tmp_path, timing=time.timing, max_retries=3) as client,
    ):
        first, second = await neighbors(client, "paris"), await neighbors(client, "kyoto")
        assert len(server.requests) == 1
        time.elapsed_s += 120
        assert await is_healthy(client, "paris")
    assert [first.text, second.text] == [
        f"The endpoint {server.host} is asked too often (HTTP 429): slow down. It asks to be left alone for 120 s: "
        "ask again at 12:02:00 UTC.",
        f"The endpoint {server.host} has asked to be left alone for 120 s more. Ask again at 12:02:00 UTC.",
    ]


async def test_a_burst_of_failures_is_waited_out_without_asking_and_ends_by_itself(tmp_path: Path) -> None:
    time = PlayedTime()
    async with (
        serving(refusing(500, "boom")) as server,
        tools_over(server, tmp_path, timing=time.timing, failures_until_pause=2, pause_s=15) as client,
    ):
        replies = [await neighbors(client, "paris") for _ in range(4)]
        assert len(server.requests) == 2
        server.follow(HEALTHY)
        time.elapsed_s += 15
        assert await is_healthy(client, "paris")
    failed = FAILED.format(host=server.host)
    paused = (
        f"The endpoint {server.host} has failed 2 times in a row, so it is left alone for now. "
        f"It is tried again at 12:00:15 UTC: ask again then. Last: {failed}"
    )
    assert [reply.text for reply in replies] == [failed, failed, paused, paused]
