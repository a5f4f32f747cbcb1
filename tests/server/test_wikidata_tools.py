"""All tools answer from Wikidata, with as few queries as they promise."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pyoxigraph
import pytest
from mcp import Client

from calls import Reply, reply_of, rows
from kg_adapters.http.pacing import Rates
from kg_adapters.local.cache import open_sample
from kg_adapters.local.sparql.store import statements
from kg_adapters.registry import OpenOptions
from kg_adapters.wikidata.opening import open_wikidata
from kg_server.app import build_server
from remote_graphs import quiet
from wikidata_stand_in import QUERY, SCHOLARLY, WikidataStandIn, as_wikidata, graph, running

NAMES = {
    "P17": ("country", "WikibaseItem"),
    "P27": ("citizenship", "WikibaseItem"),
    "P31": ("instance of", "WikibaseItem"),
    "P36": ("capital", "WikibaseItem"),
    "P856": ("official website", "Url"),
    "P1376": ("capital of", "WikibaseItem"),
}
TURTLE = (
    """
wd:Q1490 rdfs:label "Tokyo"@en ; schema:description "capital of Japan"@en ; skos:altLabel "Edo"@en ;
  wdt:P17 wd:Q17 ; wdt:P31 wd:Q515 ; wdt:P1376 wd:Q17 ; wdt:P856 <https://www.metro.tokyo.lg.jp/> .
wd:Q17 rdfs:label "Japan"@en ; wdt:P36 wd:Q1490 ; wdt:P31 wd:Q6256 .
wd:Q515 rdfs:label "city"@mul . wd:Q6256 rdfs:label "country"@en . wd:Q404 owl:sameAs wd:Q1490 .
"""
    + "".join(f'wd:Q{2_000 + n} rdfs:label "citizen {n:02}"@en ; wdt:P27 wd:Q17 .\n' for n in range(40))
    + "".join(
        f'wd:{each} rdfs:label "{label}"@en ; wikibase:directClaim wdt:{each} ; '
        f"wikibase:propertyType wikibase:{kind} .\n"
        for each, (label, kind) in NAMES.items()
    )
)
STATEMENTS = """
wd:Q1490 p:P17 <http://www.wikidata.org/entity/statement/a> .
<http://www.wikidata.org/entity/statement/a> ps:P17 wd:Q17 ; wikibase:rank wikibase:PreferredRank ;
  pq:P580 "1868-10-23"^^xsd:date ; <http://www.w3.org/ns/prov#wasDerivedFrom> <http://www.wikidata.org/reference/r> .
<http://www.wikidata.org/reference/r> <http://www.wikidata.org/prop/reference/P856> <https://www.mofa.go.jp/> .
"""
ARTICLES = 'wd:Q999 rdfs:label "On Tokyo"@en ; wdt:P17 wd:Q17 .'
COUNTRY = "Tokyo | country | Japan"
SAID: Mapping[str, tuple[str, Mapping[str, object], str]] = {
    "a name": ("Retrieve", {"text": "tokyo"}, "Tokyo | capital of Japan | city"),
    "another name": ("Retrieve", {"text": "Edo", "type": "Q515"}, "Tokyo | capital of Japan | city"),
    "an observation": ("observe", {"question": "Which country?", "entities": ["Q1490"], "hops": 1}, COUNTRY),
    "neighbours": ("GetNeighbor", {"entity": "Q1490", "relation": "country"}, f"{COUNTRY}."),
    "details": (
        "GetNeighbor",
        {"entity": "Q1490", "relation": "country", "details": True},
        f"{COUNTRY}.\n    · rank: preferred; P580: 1868-10-23; reference: official website: ",
    ),
    "neighbours of what was merged": (
        "GetNeighbor",
        {"entity": "Q404", "relation": "P17"},
        "Tokyo | country | Japan",
    ),
    "neighbours of an article": ("GetNeighbor", {"entity": "Q999"}, 'all here; direction="in" shows what leads to it.'),
    "paths": (
        "GetPath",
        {"source": "Q2001", "target": "Q1490", "max_hops": 2},
        "citizen 01 -[citizenship]-> Japan -[capital]-> Tokyo",
    ),
    "features": (
        "Feature",
        {"entity": "Q1490"},
        'official website | "https://www.metro.tokyo.lg.jp/"^^xsd:anyURI',
    ),
    "one feature": ("Feature", {"entity": "Q1490", "feature": "skos:altLabel"}, 'skos:altLabel | "Edo"@en'),
    "degrees": ("Degree", {"entity": "Q17"}, "in | citizenship | 40"),
    "a compound call": ("Compose", {"expression": "Neighbor[Retrieve[Tokyo], country]"}, "Japan."),
    "a fact": ("memory-append", {"triples": [["Q1490", "P17", "Q17"]]}, "Tokyo -[country]-> Japan"),
    "the schema": ("Schema", {}, "relation | citizenship | 40"),
    "rows by names": (
        "Sparql",
        {"query": 'SELECT ?x ?xLabel { @"Edo" @"country" ?x SERVICE wikibase:label { bd:serviceParam a "en" } }'},
        "'Edo' is an alias of Tokyo. The label service is not needed: ids come with their labels. "
        "?xLabel is shown beside the id in ?x. 1 row, all here.\n?x\nJapan",
    ),
    "no rows, and why": (
        "Sparql",
        {"query": 'SELECT ?x { ?x @"country" @"Tokyo" }', "timeout_s": 60},
        'The other way round it has matches: @"Tokyo" @"country" ?x.',
    ),
    "rows": ("Sparql", {"query": "SELECT ?x { wd:Q1490 wdt:P17 ?x }"}, "Japan"),
}


@asynccontextmanager
async def tools(
    folder: Path, wikidata: WikidataStandIn | None = None
) -> AsyncGenerator[tuple[Client, WikidataStandIn]]:
    small = WikidataStandIn(graph(TURTLE + STATEMENTS), graph(ARTICLES), merged={"Q404": "Q1490"})
    async with running(wikidata or small) as stand_in:
        options = OpenOptions(folder, wikidata=stand_in.options(timeout_s=60))
        async with (
            aclosing(await open_wikidata("", options, rates=Rates())) as opened,
            Client(build_server(opened, quiet(folder, timeout_s=60))) as client,
        ):
            yield client, stand_in


async def call(client: Client, tool: str, arguments: Mapping[str, object]) -> Reply:
    return reply_of(await client.call_tool(tool, dict(arguments)))


@pytest.mark.parametrize("name", SAID)
async def test_a_tool_answers_from_wikidata(tmp_path: Path, name: str) -> None:
    tool, arguments, said = SAID[name]
    async with tools(tmp_path) as (client, _):
        reply = await call(client, tool, arguments)
        assert (reply.is_error, said in reply.plain.text) == (False, True), reply.plain.text


async def test_every_tool_is_offered_and_tried_in_one_session_whatever_went_before(tmp_path: Path) -> None:
    async with tools(tmp_path) as (client, _):
        replies = {name: await call(client, tool, arguments) for name, (tool, arguments, _) in SAID.items()}
        read = await call(client, "memory-read", {"memory": replies["a fact"].data["memory"]})
        assert {name for name, (_, _, said) in SAID.items() if said not in replies[name].plain.text} == set()
        assert read.plain.lines == ["Tokyo -[country]-> Japan"]
        offered = {tool.name for tool in (await client.list_tools()).tools}
        assert offered == {tool for tool, _, _ in SAID.values()} | {"memory-read"}


async def test_what_is_neither_here_nor_there_is_unknown(tmp_path: Path) -> None:
    async with tools(tmp_path) as (client, _):
        for entity in ("Q77", "Q2147483647"):
            reply = await call(client, "GetNeighbor", {"entity": entity})
            assert reply.is_error
            assert f"no entity {entity!r}" in reply.text
        refused = await call(client, "GetNeighbor", {"entity": "Q1490", "relation": "P99999"})
        assert (refused.is_error, "no relation 'P99999'" in refused.text) == (True, True)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> pyoxigraph.Store:
    """The shipped slice of Wikidata, in the form of the query service."""
    return as_wikidata(statements(open_sample(tmp_path_factory.mktemp("cache")).index))


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("seeds", [["Q1490"], ["Q17", "Q30", "Q90", "Q1490", "Q183"]])
async def test_observe_asks_at_most_once_per_hop_and_once_more(
    tmp_path: Path, sample: pyoxigraph.Store, seeds: list[str], hops: int
) -> None:
    async with tools(tmp_path, WikidataStandIn(sample)) as (client, stand_in):
        arguments = {"question": "What is the capital of Japan?", "entities": seeds, "hops": hops}
        reply = await call(client, "observe", arguments)
        assert {row[5] for row in rows(reply.data["groups"]) if len(row) > 5} <= {str(n + 1) for n in range(hops)}
        assert len(rows(reply.data["groups"])) > len(seeds)
        assert len(stand_in.asked(QUERY)) <= 1 + hops
        assert stand_in.asked(SCHOLARLY) == []
