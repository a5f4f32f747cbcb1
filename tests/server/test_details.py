"""GetNeighbor with details: what a graph holds about the facts that it shows, in whatever form."""

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path

import pyoxigraph as ox
import pytest
from mcp import Client

from calls import call, reply_of, rows
from fault_endpoint import serving
from kg_adapters.errors import BackendTimeout, InvalidRequest, KGError
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.prefixes import WIKIDATA
from kg_adapters.testing import ntriples
from kg_agents.parameters import ToolsSettings
from kg_agents.running import Question
from kg_agents.tools.client import connect_tools
from kg_server.app import build_server
from kg_server.memory.lines import triples_in
from kg_server.settings import Settings
from oda_runs import answer, answered, calls
from remote_graphs import answering_from, tools_over
from sparql_stand_in import LateEndpoint, adapter_over

# What a full dump of Wikidata holds beside truthy statements, with invented content.
TURTLE = (
    "".join(f"@prefix {prefix}: <{name}> .\n" for prefix, name in WIKIDATA.namespaces.items())
    + """
@prefix wds: <http://www.wikidata.org/entity/statement/> .
@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix pqv: <http://www.wikidata.org/prop/qualifier/value/> .
@prefix r: <http://www.wikidata.org/prop/reference/> . @prefix prov: <http://www.w3.org/ns/prov#> .
wd:Q1 rdfs:label "Tokyo"@en ; wdt:P6 wd:Q2 ; wdt:P1082 "+14000000"^^xsd:decimal ; p:P6 wds:a, wds:old ; p:P1082 wds:b .
wd:Q2 rdfs:label "Yuriko Koike"@en . wd:P580 rdfs:label "start time"@en . wd:P6 rdfs:label "head"@en .
wds:a ps:P6 wd:Q2 ; wikibase:rank wikibase:PreferredRank ; pq:P580 "2016-07-31"^^xsd:date ; pqv:P580 ex:v1 ;
  prov:wasDerivedFrom ex:r1, ex:r2, ex:r3 .
wds:old ps:P6 ex:someone ; wikibase:rank wikibase:DeprecatedRank .
ex:r1 r:P248 ex:paper ; r:P813 "2020-01-01"^^xsd:date . ex:r2 r:P854 ex:page . ex:r3 r:P854 ex:other .
wds:b ps:P1082 "+14000000"^^xsd:decimal ; wikibase:rank wikibase:NormalRank ; pq:P585 "2020"^^xsd:gYear .
ex:ada ex:knows ex:bob {| ex:since 1833 ; ex:source ex:letter |} ; ex:likes "tea"@en ~ ex:claim .
ex:claim ex:certainty 0.5 . ex:plain ex:knows ex:ada .
GRAPH ex:one { ex:ada ex:knows ex:bob . }
GRAPH ex:two { ex:ada ex:knows ex:bob ; ex:likes "tea"@en . }
"""
    + "".join(f"GRAPH ex:one {{ ex:book ex:text '{number} {'word ' * 800}' . }}\n" for number in range(6))
    + f"ex:fall ex:of ex:rome ~ ex:claims . ex:claims ex:cause {', '.join(f'ex:c{n:02}' for n in range(90))} .\n"
)
HEAD = [
    "rank: preferred; start time: 2016-07-31; reference: P248: ex:paper, P813: 2020-01-01; reference: P854: ex:page; "
    "1 more reference"
]
BELOW = {
    ("wd:Q1", "wdt:P6", "out"): HEAD,
    ("wd:Q1", "wdt:P1082", "out"): ["P585: 2020"],
    ("wd:Q2", "wdt:P6", "in"): HEAD,
    ("ex:ada", "ex:knows", "out"): ["in graphs ex:one, ex:two", "ex:since: 1833; ex:source: ex:letter"],
    ("ex:bob", "ex:knows", "in"): ["in graphs ex:one, ex:two", "ex:since: 1833; ex:source: ex:letter"],
    ("ex:ada", "ex:likes", "out"): ["in graph ex:two", "ex:certainty: 0.5"],
    ("ex:book", "ex:text", "out"): ["in graph ex:one"] * 6,
    ("ex:fall", "ex:of", "out"): [f"{'; '.join(f'ex:cause: ex:c{n:02}' for n in range(12))}; and 78 more"],
}


@asynccontextmanager
async def local(folder: Path) -> AsyncGenerator[Client]:
    (folder / "g.trig").write_text(TURTLE, encoding="utf-8")
    build_store([folder / "g.trig"], folder / "store", ImportOptions())
    graph = LocalAdapter(open_store(folder / "store"))
    async with aclosing(graph), Client(build_server(graph, Settings(timeout_s=60))) as client:
        yield client


@asynccontextmanager
async def remote(folder: Path) -> AsyncGenerator[Client]:
    quads = list(ox.parse(TURTLE.encode(), format=ox.RdfFormat.TRIG))
    union = {ox.Quad(quad.subject, quad.predicate, quad.object) for quad in quads}
    text = (ox.serialize([*quads, *union], format=ox.RdfFormat.N_QUADS) or b"").decode()
    async with (
        serving(answering_from(text)) as server,
        tools_over(server, folder, timeout_s=60) as client,
    ):
        yield client


def short(text: str) -> str:
    for prefix in ("wd", "wdt"):
        text = text.replace(f"{prefix}:", WIKIDATA.namespaces[prefix])
    return text if text.startswith("ex:") else f"<{text}>"


@pytest.mark.parametrize("graph", [local, remote])
async def test_each_fact_has_what_the_graph_holds_about_it_below(
    graph: Callable[[Path], AbstractAsyncContextManager[Client]], tmp_path: Path
) -> None:
    async with graph(tmp_path) as client:
        for (entity, relation, direction), expected in BELOW.items():
            asked = {"entity": short(entity), "relation": short(relation), "direction": direction, "details": True}
            reply = reply_of(await client.call_tool("GetNeighbor", asked))
            lines = re.sub(r" \(<[^>]*>\)", "", reply.plain.text).splitlines()
            below = [line.strip().removeprefix("· ") for line in lines if "· " in line]
            assert below == expected, (reply.text, asked)
            assert "no qualifiers" not in reply.summary


async def test_details_are_rows_and_their_lines_state_no_facts_of_their_own(tmp_path: Path) -> None:
    async with local(tmp_path) as client:
        reply = reply_of(await client.call_tool("GetNeighbor", {"entity": "Q1", "details": True}))
        assert rows(reply.data["details"])[:2] == [
            ["Q1", "P1082", "14,000,000", "rank", "1", "", '"normal"'],
            ["Q1", "P1082", "14,000,000", "qualifier", "1", "P585", "2020"],
        ]
        assert ["Q1", "P6", "Q2", "reference", "1.1", "P248", "ex:paper"] in rows(reply.data["details"])
        plain = reply_of(await client.call_tool("GetNeighbor", {"entity": "Q1"}))
        assert triples_in(reply.text.splitlines()) == triples_in(plain.text.splitlines())
        alone = reply_of(await client.call_tool("GetNeighbor", {"entity": "Q1", "relation": "P6", "details": True}))
        assert len(triples_in(alone.text.splitlines())) == 1
        none = reply_of(await client.call_tool("GetNeighbor", {"entity": "ex:plain", "details": True}))
        assert "no qualifiers, references, ranks, annotations or named graphs for these facts." in none.summary
        much = reply_of(await client.call_tool("GetNeighbor", {"entity": "ex:fall", "details": True}))
        assert len(rows(much.data["details"])) == 40
        small = {"entity": "Q1", "details": True, "max_tokens": 500}
        assert len(reply_of(await client.call_tool("GetNeighbor", small)).text) < 1_600


async def test_a_graph_without_details_says_so(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetNeighbor", entity="Q1490", details=True)
    assert "The graph holds no qualifiers" in reply.summary
    assert "details" not in reply.data


@pytest.mark.parametrize("error", [BackendTimeout("No answer came."), InvalidRequest("GRAPH is not known.")])
async def test_facts_are_shown_where_an_endpoint_does_not_answer_for_their_details(error: KGError) -> None:
    endpoint = LateEndpoint(ntriples(["a p b"]), "reifies", error)
    reply = await call(adapter_over(endpoint), "GetNeighbor", entity="ex:a", details=True)
    assert rows(reply.data["triples"]) == [["ex:a", "ex:p", "ex:b"]]
    assert f"Details are missing: {error}" in reply.summary


async def test_an_agent_may_answer_with_a_detail(tmp_path: Path) -> None:
    (tmp_path / "g.trig").write_text(TURTLE, encoding="utf-8")
    build_store([tmp_path / "g.trig"], tmp_path / "store", ImportOptions())
    asked = Question("Since when has ex:ada known ex:bob, and from which source?", settings=ToolsSettings())
    replies = [calls(("GetNeighbor", {"entity": "ex:ada", "details": True})), answer("1833", "ex:letter")]
    async with (
        aclosing(LocalAdapter(open_store(tmp_path / "store"))) as graph,
        connect_tools(build_server(graph, Settings(timeout_s=60))) as tools,
    ):
        found = await answered(asked, tools, tmp_path, *replies)
    fact = ("ex:ada", "ex:knows", "ex:bob")
    assert [(each.text, each.source, each.facts) for each in found.answers] == [
        (text, "computed", (fact,)) for text in ("1833", "ex:letter")
    ]
