"""What hosts read of the tools: schemas that every service takes, titles and hints, and what all of it costs."""

import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import Tool

from calls import UNHURRIED, reply_of, several_graphs
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_agents.tools.client import connect_tools
from kg_agents.tools.functions import ANSWER, offered
from kg_server.answers.results import token_count
from kg_server.app import build_server
from kg_server.graphs import GraphSet
from kg_server.settings import Settings
from tool_schemas import CALLS, NAMES, faults_of, filled


def served(graph: KGAdapter, names: tuple[str, ...]) -> KGAdapter | GraphSet:
    return several_graphs(dict.fromkeys(names, graph)) if names else graph


@pytest.fixture(params=[(), NAMES], ids=["one graph", "five graphs"])
def graphs(request: pytest.FixtureRequest, tokyo: LocalAdapter) -> KGAdapter | GraphSet:
    return served(tokyo, request.param)


async def tools_of(graphs: KGAdapter | GraphSet) -> list[Tool]:
    async with Client(build_server(graphs, UNHURRIED)) as client:
        return (await client.list_tools()).tools


def written(tool: Tool) -> dict[str, object]:
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True)


async def test_no_schema_holds_what_a_service_of_models_refuses(graphs: KGAdapter | GraphSet) -> None:
    tools = await tools_of(graphs)
    assert [fault for tool in tools for fault in faults_of(written(tool), tool.name)] == []
    taken = {tool.name: tool.input_schema["properties"].get("graph") for tool in tools}
    if isinstance(graphs, GraphSet):
        one = {"type": "string", "enum": list(NAMES)}
        assert {name for name, argument in taken.items() if argument is None} == {"memory-read"}
        assert taken["Retrieve"] == one
        assert taken["GetPath"] == {"anyOf": [one, {"type": "array", "items": {"type": "string"}}]}
    else:
        assert not any(taken.values())


def test_the_rules_find_what_services_refuse() -> None:
    wrong = {
        "a": {"type": ["string", "array"]},
        "b": {"type": "array"},
        "c": {"type": "array", "items": {"anyOf": [{"enum": ["x"]}, {"type": "ARRAY"}]}},
        "type": {"type": "string", "enum": ["fine"]},
    }
    assert list(faults_of({"properties": wrong})) == [
        ".properties.a: a list of types",
        ".properties.b: an array without items",
        ".properties.c.items.anyOf[0]: an enum without a type",
        ".properties.c.items.anyOf[1]: an array without items",
    ]


async def test_what_the_agent_sends_to_a_model_holds_nothing_that_a_service_refuses(
    graphs: KGAdapter | GraphSet,
) -> None:
    async with connect_tools(build_server(graphs, UNHURRIED)) as toolbox:
        functions = (*offered((await toolbox.offer()).tools, "all"), ANSWER)
    assert len(functions) > 10
    assert [fault for each in functions for fault in faults_of(dict(each.parameters), each.name)] == []
    retrieve = next(each for each in functions if each.name == "Retrieve").parameters
    assert '"text": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}' in json.dumps(
        retrieve
    )


async def test_every_tool_has_a_title_and_all_hints_and_begins_with_what_it_is_for(
    graphs: KGAdapter | GraphSet,
) -> None:
    tools = await tools_of(graphs)
    for tool in tools:
        assert tool.annotations is not None
        assert tool.title
        assert tool.annotations.title == tool.title
        reads = tool.name != "memory-append"
        hints = tool.annotations
        assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (reads, False, False)
        # Claude Code cuts longer ones.
        assert 0 < len(tool.description or "") <= 2_048
        assert (tool.description or "").partition("\n")[0].endswith(".")
    assert len({tool.title for tool in tools}) == len(tools)


async def test_the_fields_of_answers_have_types(tokyo: LocalAdapter) -> None:
    listed = {tool.name: (tool.output_schema or {})["properties"] for tool in await tools_of(tokyo)}
    for name, fields in listed.items():
        assert [field for field, schema in fields.items() if not schema.get("type")] == [], name
    rows = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
    assert listed["GetNeighbor"]["triples"] == {**rows, "description": "[head, relation, tail]"}
    assert listed["GetNeighbor"]["labels"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert (listed["GetPath"]["total"], listed["GetPath"]["exhaustive"]) == ({"type": "integer"}, {"type": "boolean"})


@pytest.mark.parametrize(("names", "most"), [((), 4_000), (NAMES, 4_350)], ids=["one graph", "five graphs"])
async def test_the_whole_list_is_small(tokyo: LocalAdapter, names: tuple[str, ...], most: int) -> None:
    listed = [written(tool) for tool in await tools_of(served(tokyo, names))]
    read = [{name: tool[name] for name in ("name", "title", "description", "inputSchema")} for tool in listed]
    assert token_count(json.dumps(read, separators=(",", ":"))) <= 3_000
    assert token_count(json.dumps(listed, separators=(",", ":"))) <= most


@pytest.mark.parametrize("absent", [None, "", " ", 0], ids=repr)
async def test_null_and_blank_and_zero_stand_for_an_optional_argument_that_is_absent(
    graphs: KGAdapter | GraphSet, absent: object
) -> None:
    async with Client(build_server(graphs, UNHURRIED)) as client:
        optional = {
            tool.name: set(tool.input_schema["properties"]) - set(tool.input_schema.get("required", ()))
            for tool in (await client.list_tools()).tools
        }
        assert {name for name, each in optional.items() if each} - {"memory-read"} == set(CALLS)
        for name, given in CALLS.items():
            plain = reply_of(await client.call_tool(name, dict(given)))
            assert not plain.is_error, plain.text
            if "entity" in given and absent != 0:
                node = reply_of(await client.call_tool(name, {"node": given["entity"], "entity": absent}))
                assert node.text == plain.text
            for argument in optional[name]:
                reply = reply_of(await client.call_tool(name, {**given, argument: absent}))
                # Each append without a handle gives a new one.
                assert reply.text.replace(str(reply.data.get("memory")), "") == plain.text.replace(
                    str(plain.data.get("memory")), ""
                ), argument
        handle = reply_of(await client.call_tool("memory-append", dict(CALLS["memory-append"]))).data["memory"]
        read = reply_of(await client.call_tool("memory-read", {"memory": handle, "cursor": absent}))
        assert not read.is_error, read.text
        of_text = reply_of(await client.call_tool("GetNeighbor", {"entity": "Tokyo", "limit": "0", "max_tokens": "0"}))
        assert of_text.text == reply_of(await client.call_tool("GetNeighbor", {"entity": "Tokyo"})).text


async def test_a_list_may_come_as_json_text_as_lines_or_as_its_only_item(tokyo: LocalAdapter) -> None:
    async with Client(build_server(tokyo, UNHURRIED)) as client:
        for tool, given, argument, forms in (
            ("observe", {"question": "Where is it?"}, "entities", (["Tokyo"], '["Tokyo"]', "Tokyo", "\nTokyo\n \n")),
            ("observe", {"question": "Where is it?"}, "entities", (["Tokyo", "Japan"], "Tokyo\r\n\r\nJapan")),
            (
                "memory-append",
                {},
                "triples",
                (
                    [["Tokyo", "country", "Japan"]],
                    '[["Tokyo", "country", "Japan"]]',
                    ["Tokyo", "country", "Japan"],
                    '["Tokyo", "country", "Japan"]',
                    ["Tokyo | country | Japan"],
                    "Tokyo | country | Japan",
                ),
            ),
            (
                "memory-append",
                {},
                "triples",
                (
                    ["Tokyo | country | Japan", "Tokyo | capital | Shinjuku"],
                    "Tokyo | country | Japan\nTokyo | capital | Shinjuku",
                ),
            ),
            ("Retrieve", {}, "text", (["Tokyo", "Japan"], '["Tokyo", "Japan"]')),
        ):
            replies = [reply_of(await client.call_tool(tool, {**given, argument: form})) for form in forms]
            assert not any(reply.is_error for reply in replies), [reply.text for reply in replies]
            assert len({reply.text.replace(str(reply.data.get("memory")), "") for reply in replies}) == 1
        many = reply_of(await client.call_tool("memory-append", {"triples": "Tokyo | country | Japan\nTokyo | x"}))
        assert "Tokyo | x" in many.text


async def test_a_required_argument_that_is_null_or_blank_is_missing(tokyo: LocalAdapter) -> None:
    async with Client(build_server(tokyo, UNHURRIED)) as client:
        for tool, argument in (("memory-read", "memory"), ("Degree", "entity")):
            for absent in (None, "", " "):
                reply = reply_of(await client.call_tool(tool, {argument: absent}))
                assert (reply.is_error, reply.text) == (
                    True,
                    f"{tool} was called with wrong arguments: {argument} is missing.",
                )


async def test_a_call_succeeds_whose_host_fills_in_every_argument(graphs: KGAdapter | GraphSet) -> None:
    async with Client(build_server(graphs, UNHURRIED)) as client:
        for tool in (await client.list_tools()).tools:
            if tool.name not in CALLS:
                continue
            strict = {**tool.input_schema, "required": list(tool.input_schema["properties"])}
            arguments = filled(strict, tool.input_schema, CALLS[tool.name])
            assert set(arguments) == set(tool.input_schema["properties"])
            reply = reply_of(await client.call_tool(tool.name, arguments))
            assert not reply.is_error, (arguments, reply.text)


@pytest.mark.parametrize("number", [0, 5, 60])
async def test_instructions_fit_where_hosts_cut_them_and_begin_with_the_tool_for_each_kind_of_question(
    tokyo: LocalAdapter, tmp_path: Path, number: int
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("## About\n" + "Cities, their countries and what is known of them. " * 50)
    names = tuple(f"graph-{each}" for each in range(number))
    settings = Settings(notes=None if names else notes)
    server = build_server(served(tokyo, names), settings, None if names else await tokyo.profile())
    async with Client(server) as client:
        lines = str(client.instructions).splitlines()
    assert len("\n".join(lines)) <= 2_048
    assert [line.partition(":")[0] for line in lines[1:3]] == ["By question", "graph-0" if names else "Ids"]
    told = sum(line.startswith("graph-") for line in lines)
    assert (told < number, f"and {number - told} more graphs" in lines) == (number == 60, number == 60)


async def test_lists_may_be_cached_for_an_hour_by_anyone_where_nobody_logs_in(tokyo: LocalAdapter) -> None:
    async with Client(build_server(tokyo, Settings())) as client:
        lists = (
            await client.list_tools(),
            await client.list_prompts(),
            await client.list_resources(),
            await client.list_resource_templates(),
        )
        assert {(each.ttl_ms, each.cache_scope) for each in lists} == {(3_600_000, "public")}
        called = await client.read_resource("kg://schema")
    assert called.ttl_ms == 0
