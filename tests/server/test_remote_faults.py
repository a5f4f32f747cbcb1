"""Tools over endpoints that fail, and the hosts that they may lead to."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest
from mcp import Client

from calls import Reply, reply_of, rows
from fault_endpoint import (
    FaultEndpoint,
    Script,
    answering,
    dropping,
    redirecting,
    refusing,
    serving,
    stalling,
    streaming,
)
from remote_graphs import CITIES, answering_from, failing_about, quiet, tools_over

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


Argument: TypeAlias = "str | list[Argument]"

LEADS = {
    "Link": '<{url}>; rel="next", <{url}>; rel="describedby"',
    "Location": "{url}",
    "Content-Location": "{url}",
    "Refresh": "0; url={url}",
    "Alt-Svc": 'h2="{host}"',
}
GRAPH = """
<http://{host}/place> <http://{host}/link> <http://{host}/twin> .
<http://{host}/twin> <http://{host}/link> <http://{host}/place> .
<http://{host}/place> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://{host}/Kind> .
<http://{host}/place> <http://www.w3.org/2002/07/owl#sameAs> <http://{host}/twin> .
<http://{host}/place> <http://www.w3.org/2000/01/rdf-schema#seeAlso> <http://{host}/twin> .
<http://{host}/place> <http://www.w3.org/2000/01/rdf-schema#label> "http://{host}/place"@en .
<http://{host}/place> <http://{host}/image> "http://{host}/a.png"^^<http://www.w3.org/2001/XMLSchema#anyURI> .
"""
PLACE, TWIN, LINK = "<http://{host}/place>", "<http://{host}/twin>", "<http://{host}/link>"
CALLS: list[tuple[str, Mapping[str, Argument]]] = [
    ("Retrieve", {"text": "http://{host}/place"}),
    ("Retrieve", {"text": "place", "type": "<http://{host}/Kind>"}),
    ("observe", {"question": "What is http://{host}/place?", "entities": [PLACE]}),
    ("GetNeighbor", {"entity": PLACE}),
    ("GetNeighbor", {"entity": PLACE, "relation": LINK, "direction": "both"}),
    ("GetPath", {"source": PLACE, "target": TWIN, "question": "http://{host}/twin"}),
    ("Feature", {"entity": PLACE}),
    ("Degree", {"entity": PLACE}),
    ("Compose", {"expression": "Neighbor[" + PLACE + ", " + LINK + "], Feature[" + PLACE + ", http://{host}/image]"}),
    ("memory-append", {"triples": [[PLACE, LINK, TWIN]]}),
    ("Schema", {}),
    ("Schema", {"about": "http://{host}/Kind"}),
    ("Sparql", {"query": "SELECT ?x {{ " + PLACE + " ?p ?x }}"}),
    ("Sparql", {"query": "DESCRIBE " + PLACE}),
]


def filled(value: Argument, other: FaultEndpoint) -> Argument:
    """Return arguments that are about the other host."""
    if isinstance(value, str):
        return value.format(host=other.host, url=other.url)
    return [filled(each, other) for each in value]


async def ask(client: Client, tool: str, arguments: Mapping[str, Argument], other: FaultEndpoint) -> Reply:
    return reply_of(await client.call_tool(tool, {name: filled(each, other) for name, each in arguments.items()}))


async def test_a_graph_that_speaks_of_a_host_leads_no_tool_there(tmp_path: Path) -> None:
    async with serving(answering("{}")) as other:
        headers = {name: value.format(url=other.url, host=other.host) for name, value in LEADS.items()}
        async with (
            serving(answering_from(GRAPH.format(host=other.host), headers)) as server,
            tools_over(server, tmp_path) as client,
        ):
            offered = {tool.name for tool in (await client.list_tools()).tools}
            replies = [await ask(client, tool, arguments, other) for tool, arguments in CALLS]
            kept = next(reply for reply in replies if "memory" in reply.data)
            replies.append(await ask(client, "memory-read", {"memory": str(kept.data["memory"])}, other))
            await client.read_resource("kg://schema")
            await client.read_resource(f"kg-memory://{kept.data['memory']}")
            assert [reply.text for reply in replies if reply.is_error] == []
            assert {tool for tool, _ in CALLS} | {"memory-read"} == offered
            assert len(server.requests) >= len(CALLS)
        assert other.connections == 0


@pytest.mark.parametrize("status", [302, 308])
async def test_a_redirect_leads_no_tool_to_another_host(tmp_path: Path, status: int) -> None:
    async with (
        serving(answering("{}")) as other,
        serving(redirecting(other.url, status)) as server,
        tools_over(server, tmp_path, token="secret") as client,
    ):
        replies = {tool: await ask(client, tool, arguments, other) for tool, arguments in CALLS}
        assert {tool: reply.is_error for tool, reply in replies.items()} == dict.fromkeys(replies, True)
        assert all("secret" not in reply.text for reply in replies.values())
        assert len(server.requests) >= len(replies)
        assert other.connections == 0
