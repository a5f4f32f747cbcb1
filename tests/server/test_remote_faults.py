"""A remote graph that fails in every way: calls end with a cause and a next step, others go on, and it passes."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client

from calls import Reply, reply_of, rows
from fault_endpoint import (
    FaultEndpoint,
    Script,
    dropping,
    refusing,
    serving,
    stalling,
    streaming,
)
from served_graphs import CITIES, answering_from, failing_about, quiet, tools_over

HEALTHY = answering_from(CITIES)
SHORT_S = 1.5
LATE = (
    "The endpoint {host} gave no answer within 1.5 s; time ran out while connecting or waiting for its answer. "
    "To wait longer, raise the setting timeout_s (KG_SEXTANT_TIMEOUT_S). Or ask for less: a single relation, a lower "
    "limit."
)
DROPPED = (
    "The endpoint {host} dropped the connection before its answer was complete. Ask again; if it repeats, ask for less."
)
FAILED = (
    "The endpoint {host} failed (HTTP 500): boom. Ask for less, or again later; if every query fails, its owner can "
    "find the reason in its log."
)
FAULTS: Mapping[str, tuple[Script, str]] = {
    "a stall before headers": (stalling, LATE),
    "a dropped connection": (dropping, DROPPED),
    "500": (refusing(500, "boom"), FAILED),
    "200 MB": (
        streaming(200_000_000),
        "The answer of the endpoint {host} is larger than 1 MB and was not read further. Ask for less (a smaller "
        "LIMIT), or raise the setting endpoint.max_mb.",
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
    country = {"kyoto": "ex:japan", "paris": "ex:france"}[city]
    return [f"ex:{city}", "ex:country", country] in rows((await neighbors(client, city)).data.get("triples", []))


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
        assert [(reply.is_error, reply.plain.text) for reply in replies] == [(True, message.format(host=server.host))]
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
    assert reply.plain.text.startswith(f"The endpoint {server.host} gave no answer within 1.")


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
