"""What a server offers where its settings leave tools out."""

import pytest
from mcp import Client, MCPError

from calls import several_graphs, unhurried
from kg_adapters.errors import InvalidRequest
from kg_adapters.local.adapter import LocalAdapter
from kg_server.app import build_server
from kg_server.settings import HostingSettings
from kg_server.view import VIEW_URI


async def offered(graph: LocalAdapter, hosting: HostingSettings) -> tuple[set[str], set[str], set[str], str]:
    """Return the tools, the resources, the prompts and the instructions of a server."""
    async with Client(build_server(graph, unhurried(hosting=hosting))) as client:
        tools = {each.name for each in (await client.list_tools()).tools}
        resources = {str(each.uri) for each in (await client.list_resources()).resources}
        templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
        prompts = {each.name for each in (await client.list_prompts()).prompts}
        return tools, resources | templates, prompts, client.instructions or ""


async def test_only_the_tools_that_are_set_are_offered_with_the_resources_and_prompts_that_need_no_other(
    tokyo: LocalAdapter,
) -> None:
    hosting = HostingSettings(tools=("Retrieve", "GetNeighbor"))
    tools, resources, prompts, instructions = await offered(tokyo, hosting)
    assert (tools, resources, prompts) == ({"Retrieve", "GetNeighbor"}, {"kg://entity/{+id}"}, set())
    assert "By question: a fact or a list, GetNeighbor or Retrieve by name.\n" in instructions
    assert "Schema" not in instructions
    async with Client(build_server(tokyo, unhurried(hosting=hosting))) as client:
        with pytest.raises(MCPError, match="Its tools are GetNeighbor, Retrieve"):
            await client.call_tool("Degree", {"entity": "Q1490"})
        with pytest.raises(MCPError, match="There is no resource"):
            await client.read_resource("kg://schema")
        assert {each.name for each in (await client.list_tools()).tools if each.meta} == {"GetNeighbor"}
        assert len((await client.read_resource(VIEW_URI)).contents) == 1
        with pytest.raises(MCPError, match="no prompt"):
            await client.get_prompt("oda", {"question": "Who?"})
    async with Client(build_server(tokyo, unhurried(hosting=HostingSettings(tools=("Retrieve",))))) as client:
        with pytest.raises(MCPError, match=r"There is no resource 'kg://schema'. This caller may read none."):
            await client.read_resource("kg://schema")
        with pytest.raises(MCPError, match="There is no resource"):
            await client.read_resource(VIEW_URI)


@pytest.mark.parametrize("graph", ["japan", "JAPAN", "Japan", "j%61pan"])
async def test_an_address_shows_only_what_the_caller_may_call_however_it_names_a_graph(
    tokyo: LocalAdapter, graph: str
) -> None:
    shown = {"schema": "Schema", "entity/Q17": "GetNeighbor"}
    for tool in shown.values():
        settings = unhurried(hosting=HostingSettings(tools=("Degree", tool)))
        graphs = several_graphs({"japan": tokyo, "other": tokyo}, settings)
        async with Client(build_server(graphs, settings)) as client:
            for rest, needed in {**shown, "schem%61": ""}.items():
                if needed == tool:
                    assert (await client.read_resource(f"kg://{graph}/{rest}")).contents
                else:
                    with pytest.raises(MCPError, match="There is no resource"):
                        await client.read_resource(f"kg://{graph}/{rest}")
            if tool == "GetNeighbor":
                # An id may begin as the address of a schema does.
                with pytest.raises(MCPError, match="'schema:Person'"):
                    await client.read_resource("kg://entity/schema:Person")


async def test_a_server_that_only_reads_keeps_no_memories_and_does_not_speak_of_them(tokyo: LocalAdapter) -> None:
    every, _, _, _ = await offered(tokyo, HostingSettings())
    tools, resources, prompts, instructions = await offered(tokyo, HostingSettings(read_only=True))
    assert every - tools == {"memory-append", "memory-read"}
    assert not any(each.startswith("kg-memory") for each in resources)
    assert (prompts, "memory" in instructions) == ({"graph-counselor"}, False)


@pytest.mark.parametrize(
    ("hosting", "reason"),
    [
        (HostingSettings(tools=("GetNeighbour",)), "Did you mean GetNeighbor?"),
        (HostingSettings(tools=("memory-read",), read_only=True), "no tool .memory-read"),
    ],
)
async def test_a_tool_that_a_server_does_not_have_cannot_be_set(
    tokyo: LocalAdapter, hosting: HostingSettings, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        build_server(tokyo, unhurried(hosting=hosting))
