"""No tool asks a host that the settings do not name, whatever the graph, the endpoint or the caller says."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
from mcp import Client

from calls import Reply, reply_of
from fault_endpoint import FaultEndpoint, answering, redirecting, serving
from served_graphs import answering_from, tools_over

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
