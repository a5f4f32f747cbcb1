"""Several graphs in one server: each call asks the graph that it names, and one graph's trouble is its own."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from benchmarks.world.questions import GRAPH
from mcp import Client, MCPError
from mcp.types import PromptReference

from calls import UNHURRIED, Reply, reply_of, rows
from cli_runs import write_graph
from fault_endpoint import FaultEndpoint, refusing, serving, stalling
from kg_adapters.errors import BackendUnavailable, KGError
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.open_options import OnProgress
from kg_adapters.protocol import KGAdapter
from kg_server.app import build_server
from kg_server.commands.graphs import opening
from kg_server.graphs import GraphSet, Opener, ServedGraph
from kg_server.naming.meaning import SharedEmbedder
from kg_server.serving.audit import CallRecord, Watcher
from kg_server.settings import Settings
from kg_server.view import VIEW_URI
from patience import PATIENCE_S
from remote_graphs import CITIES, answering_from, quiet
from wikidata_stand_in import WikidataStandIn, graph, running

WIKIDATA = """
wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P17 wd:Q17 ; wdt:P31 wd:Q515 .
wd:Q17 rdfs:label "Japan"@en ; wdt:P36 wd:Q1490 . wd:Q515 rdfs:label "city"@en .
wd:P17 rdfs:label "country"@en ; wikibase:directClaim wdt:P17 ; wikibase:propertyType wikibase:WikibaseItem .
wd:P31 rdfs:label "instance of"@en ; wikibase:directClaim wdt:P31 ; wikibase:propertyType wikibase:WikibaseItem .
wd:P36 rdfs:label "capital"@en ; wikibase:directClaim wdt:P36 ; wikibase:propertyType wikibase:WikibaseItem .
"""


@dataclass(frozen=True)
class Served:
    """A client of a server of three graphs: files, an endpoint whose answers a test decides, and Wikidata."""

    client: Client
    cities: FaultEndpoint

    async def call(self, tool: str, **arguments: object) -> Reply:
        return reply_of(await self.client.call_tool(tool, arguments))


@asynccontextmanager
async def three(folder: Path, cities_s: float = PATIENCE_S, watchers: Sequence[Watcher] = ()) -> AsyncGenerator[Served]:
    """Serve `japan`, `cities` and `wikidata`; a call of `cities` may take so many seconds."""
    stand_in = WikidataStandIn(graph(WIKIDATA))
    async with serving(answering_from(CITIES)) as cities, running(stand_in):
        of_wikidata = stand_in.options().model_dump(include={"contact", "query_url", "scholarly_url", "api_url"})
        own: Mapping[str, Mapping[str, object]] = {
            "japan": {"graph": str(write_graph(folder))},
            "cities": {"graph": cities.url, "timeout_s": cities_s, "endpoint": {"max_retries": 0}},
            "wikidata": {"graph": "wikidata", "wikidata": {**of_wikidata, "requests_per_minute": 100_000}},
        }
        graphs = {name: {"timeout_s": PATIENCE_S, **each} for name, each in own.items()}
        settings = quiet(folder, graphs=graphs)
        async with (
            opening(settings, patience_s=PATIENCE_S) as served,
            Client(build_server(served, settings, watchers=watchers)) as client,
        ):
            yield Served(client, cities)


def set_of(settings: Settings, *named: tuple[str, Opener]) -> GraphSet:
    """Return graphs by their names, to be opened when they are first asked."""
    embedder = SharedEmbedder(settings)
    return GraphSet([ServedGraph(settings, embedder, opener, name=name) for name, opener in named], settings, embedder)


async def test_each_call_asks_the_graph_that_it_names_or_the_first(tmp_path: Path) -> None:
    async with three(tmp_path) as served:
        first = await served.call("GetNeighbor", entity="Tokyo")
        cities = await served.call("GetNeighbor", entity="Kyoto", graph="cities")
        wikidata = await served.call("Degree", entity="Q17", direction="in", graph="wikidata")
        counted = await served.call("Compose", expression="Count[Neighbor[Japan, -country]]", graph="cities")
        queried = await served.call("Sparql", query='SELECT ?x { @"Kyoto" @"country" ?x }', graph="cities")
    assert first.plain.lines == ["country | Japan"]
    assert "country | Japan" in cities.plain.text
    assert "in | country | 1" in wikidata.plain.text
    assert "1" in counted.plain.text
    assert queried.plain.text.endswith("Japan")


async def test_an_expression_goes_over_files_an_endpoint_and_wikidata_together(tmp_path: Path) -> None:
    async with three(tmp_path) as served:
        found = await served.call(
            "Compose", expression="Neighbor[Japan, -country]", graph=["cities", "japan", "wikidata"]
        )
        path = await served.call("GetPath", source="Tokyo", target="Q17", graph=["wikidata", "japan"])
        written = [
            await served.call("GetPath", source="Tokyo", target="Q17", graph=graph)
            for graph in ('["wikidata", "japan"]', "[wikidata,japan]", "WIKIDATA, Japan")
        ]
        alone = await served.call("Degree", entity="Q17", graph=["Wikidata"])
    assert [row[3] for row in rows(found.data["results"])] == ["example:kyoto", "Q1490"]
    assert path.lines[0].startswith("Tokyo (Q1490) -[country (P17) [wikidata]]-> Japan (Q17)")
    assert written == [path] * 3
    assert not alone.is_error


async def test_a_graph_that_hangs_holds_up_no_call_of_another(tmp_path: Path) -> None:
    async with three(tmp_path) as served, anyio.create_task_group() as tasks:
        await served.call("GetNeighbor", entity="Kyoto", graph="cities")
        served.cities.follow(stalling)
        asked = len(served.cities.requests)

        async def hang() -> None:
            await served.call("Sparql", query="SELECT ?x { ?x ?p 1 }", graph="cities", timeout_s=3_600)

        for _ in range(20):
            tasks.start_soon(hang)
        await served.cities.until(lambda: len(served.cities.requests) > asked)
        for name in ("japan", "wikidata"):
            assert not (await served.call("GetNeighbor", entity="Tokyo", graph=name)).is_error
        assert served.cities.open_connections
        tasks.cancel_scope.cancel()


async def test_retrieve_without_a_graph_asks_all_and_names_the_one_that_does_not_answer(tmp_path: Path) -> None:
    async with three(tmp_path, cities_s=0.2) as served:
        served.cities.follow(stalling)
        japan = await served.call("Retrieve", text="Japan")
        one = await served.call("Retrieve", text="Japan", graph="wikidata")
        nothing = await served.call("Retrieve", text="Japan", type="no such class", graph="japan")
        near = await served.call("Retrieve", text="Japan Tokyo", graph=None)
    assert [row[0] for row in rows(japan.data["candidates"])] == ["Q17", "Q17"]
    assert [row[-1] for row in rows(japan.data["candidates"])] == ["japan", "wikidata"]
    assert (japan.data["status"], japan.data["match"]) == ("truncated", "exact")
    assert japan.summary.startswith("japan: Exact: 'Japan' names one thing. cities: ")
    assert [line for line in japan.plain.lines if line.startswith("In ")] == ["In japan:", "In wikidata:"]
    assert [len(row) for row in rows(one.data["candidates"])] == [9]
    assert nothing.text.startswith("There is no type 'no such class' here. ")
    assert ":" not in near.summary.removeprefix("japan: ").partition(" cities: ")[0]


async def test_a_graph_that_is_still_imported_does_not_hold_up_those_that_are_open(tmp_path: Path) -> None:
    graphs = {"world": {"graph": str(GRAPH)}, "japan": {"graph": str(write_graph(tmp_path)), "timeout_s": PATIENCE_S}}
    settings = quiet(tmp_path, graphs=graphs)
    async with opening(settings, patience_s=0.7) as served, Client(build_server(served, settings)) as client:
        assert not reply_of(await client.call_tool("Degree", {"entity": "Japan", "graph": "japan"})).is_error


async def test_graphs_that_cannot_be_opened_are_named_without_their_folders_and_the_others_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, missing = tmp_path / "broken.ttl", tmp_path / "missing.ttl"
    broken.write_text("<a")
    own = {"graph": str(write_graph(tmp_path)), "notes": tmp_path / "nope.md", "timeout_s": PATIENCE_S}
    others = {each.stem: {"graph": str(each), "timeout_s": PATIENCE_S} for each in (broken, missing)}
    settings = quiet(tmp_path, graphs={"japan": own, **others})
    async with opening(settings, patience_s=PATIENCE_S) as served, Client(build_server(served, settings)) as client:
        found = reply_of(await client.call_tool("Retrieve", {"text": "Tokyo"}))
        schema = reply_of(await client.call_tool("Schema", {}))
    warned = capsys.readouterr().err
    for name in ("japan", "broken", "missing"):
        assert f"The graph {name}: " in warned
    assert str(broken) in warned
    assert [row[-1] for row in rows(found.data["candidates"])] == ["japan"]
    assert "broken.ttl, line 1" in found.summary
    assert str(tmp_path) not in json.dumps(found.data) + found.text + schema.text
    assert [line.partition(":")[0] for line in schema.lines[:3]] == ["japan", "broken", "missing"]
    assert schema.lines[1].startswith("broken: cannot be opened: ")


async def test_an_unknown_graph_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    async with three(tmp_path) as served:
        wrong = await served.call("Retrieve", text="Japan", graph="citis")
        none = await served.call("Compose", expression="Neighbor[Japan]", graph=[])
        several = await served.call("Schema", graph=["japan", "cities"])
    assert [wrong.is_error, none.is_error, several.is_error] == [True] * 3
    assert none.text == "graph holds no name. Leave it out, or give it one of japan, cities, wikidata."
    assert several.text.startswith("Schema asks one graph at a time: give graph one of japan, cities. Retrieve without")
    assert (
        wrong.text == "This server has no graph 'citis'. Did you mean cities? Its graphs are cities, japan, wikidata."
    )


async def test_instructions_and_the_schema_begin_with_a_line_for_each_graph(tmp_path: Path) -> None:
    async with three(tmp_path) as served:
        instructions = str(served.client.instructions)
        schema = await served.call("Schema")
        of_one = await served.call("Schema", graph="cities")
    lines = instructions.splitlines()
    assert "`graph`" in lines[0]
    assert lines[1].startswith("By question: ")
    assert lines[2].startswith("japan: 2 things")
    assert [line.partition(":")[0] for line in lines[2:5]] == ["japan", "cities", "wikidata"]
    assert schema.lines[:3] == lines[2:5]
    assert "wikidata: " not in of_one.text
    assert [each.summary.partition(":")[0] for each in (schema, of_one)] == ["Graph 'japan'", "Graph 'cities'"]


async def test_resources_and_prompts_are_of_one_graph_by_its_name(tmp_path: Path) -> None:
    async with three(tmp_path) as served:
        texts = [
            str((await served.client.read_resource(uri)).contents)
            for uri in ("kg://schema", "kg://JAPAN/schema", "kg://Cities/entity/Kyoto", "kg://entity/Tokyo")
        ]
        with pytest.raises(MCPError, match="This server has no graph 'citis'"):
            await served.client.read_resource("kg://citis/schema")
        templates = {each.uri_template for each in (await served.client.list_resource_templates()).resource_templates}
        prompt = await served.client.get_prompt("oda", {"question": "Where is Kyoto?", "graph": "cities"})
        with pytest.raises(MCPError, match="Did you mean cities"):
            await served.client.get_prompt("oda", {"question": "Where is Kyoto?", "graph": "citis"})
        reference = PromptReference(name="oda")
        names = await served.client.complete(reference, {"name": "graph", "value": "c"})
        found = await served.client.complete(
            reference, {"name": "entities", "value": "Kyo"}, context_arguments={"graph": "cities"}
        )
    assert texts[0] == texts[1].replace("kg://JAPAN/schema", "kg://schema")
    assert "example:population" in texts[2]
    assert "Tokyo (Q1490)" in texts[3]
    assert {"kg://{graph}/schema", "kg://{graph}/entity/{+id}"} <= templates
    assert 'graph="cities"' in str(prompt.messages)
    assert (names.completion.values, found.completion.values) == (["cities"], ["Kyoto (example:kyoto)"])


async def test_records_of_calls_name_the_graphs_that_they_were_about(tmp_path: Path) -> None:
    records = list[CallRecord]()
    async with three(tmp_path, watchers=[records.append]) as served:
        await served.call("Degree", entity="Kyoto", graph="cities")
        await served.call("Degree", entity="Tokyo")
        await served.call("Retrieve", text="Japan")
        await served.call("Degree", entity="Tokyo", graph="made up")
        await served.client.read_resource("kg://wikidata/entity/Q17")
        await served.client.read_resource("kg://CITIES/entity/Kyoto")
        await served.client.read_resource(VIEW_URI)
    made = [record.graph for record in records if record.method in {"tools/call", "resources/read"}]
    assert made == ["cities", "japan", "japan, cities, wikidata", "", "wikidata", "cities", ""]


async def test_one_graph_takes_no_argument_that_names_it(tokyo: LocalAdapter) -> None:
    async with Client(build_server(tokyo, UNHURRIED)) as client:
        tools = (await client.list_tools()).tools
        refused = reply_of(await client.call_tool("Degree", {"entity": "Q17", "graph": "tokyo"}))
    assert not [tool.name for tool in tools if "graph" in tool.input_schema["properties"]]
    assert (refused.is_error, refused.text.split(".")[0]) == (True, "Degree has no argument 'graph'")


async def test_a_graph_that_could_not_be_opened_is_tried_again_after_a_pause() -> None:
    tried, clock, refusal = list[float](), [100.0], "It cannot be reached."
    settings = UNHURRIED

    async def opener(_: OnProgress) -> KGAdapter:
        tried.append(clock[0])
        raise BackendUnavailable(refusal)

    served = ServedGraph(settings, SharedEmbedder(settings), opener, clock=lambda: clock[0])
    for pause_s in (0, 4, 2, 9, 2, 1_000):
        clock[0] += pause_s
        with pytest.raises(KGError, match=refusal):
            await served.opened()
    assert tried == [100.0, 106.0, 117.0, 1_117.0]
    await served.aclose()


async def test_an_endpoint_that_refuses_at_first_is_reported_and_answers_later_calls_and_no_other_graph_waits(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as served:
        served.cities.follow(refusing(503, "starting"))
        assert (await served.call("GetNeighbor", entity="Kyoto", graph="cities")).is_error
        assert not (await served.call("GetNeighbor", entity="Tokyo")).is_error
        down = (await served.call("Schema")).lines[1]
        served.cities.follow(answering_from(CITIES))
        assert not (await served.call("Degree", entity="Kyoto", graph="cities")).is_error
        up = (await served.call("Schema")).lines[1]
    assert down == "cities: could not be reached when it was last asked"
    assert up == "cities: elsewhere, Schema tells what it knows"
