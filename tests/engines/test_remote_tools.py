"""Every tool of the server answers from a real endpoint what it answers from the same graph at hand."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path

import pytest
from benchmarks.engines.weather import weathered
from mcp import Client

from calls import UNHURRIED, Reply, call, counts, reply_of, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore
from kg_adapters.profile import GraphProfile, unknown_profile
from kg_adapters.protocol import KGAdapter
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_server.app import build_server
from remote_graphs import Engine

pytestmark = pytest.mark.xdist_group("engines")


class UncountedSample(LocalAdapter):
    """The sample as an endpoint knows it: without counts of its classes, and without vectors.

    The vectors of the sample were computed on another processor, which rounds otherwise than this one may.
    """

    async def profile(self) -> GraphProfile:
        return unknown_profile()

    async def label_vectors(self, fingerprint: str) -> None:
        del fingerprint


@pytest.fixture
async def sample(sample_files: LocalStore) -> AsyncIterator[LocalAdapter]:
    """The sample, read locally."""
    async with aclosing(UncountedSample(sample_files)) as graph:
        yield graph


CAPITAL = "What is the capital of Japan?"
UPDATE = "DELETE WHERE { ?s ?p ?o }"
CALLS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "neighbours": ("GetNeighbor", {"entity": "Q1490"}),
    "neighbours over one relation": ("GetNeighbor", {"entity": "Q17", "relation": "P36"}),
    "neighbours both ways": ("GetNeighbor", {"entity": "Q179645", "direction": "both", "limit": 5}),
    "nothing over this relation": ("GetNeighbor", {"entity": "Q1490", "relation": "P27"}),
    "an unknown relation": ("GetNeighbor", {"entity": "Q1490", "relation": "P99999"}),
    "an unknown entity": ("GetNeighbor", {"entity": "Q99999999"}),
    "an unknown entity, incoming": ("GetNeighbor", {"entity": "Q99999999", "direction": "in"}),
    "paths": ("GetPath", {"source": "Q1490", "target": "Q90"}),
    "paths for a question": ("GetPath", {"source": "Q1490", "target": "Q90", "max_hops": 2, "question": CAPITAL}),
    "paths from nowhere": ("GetPath", {"source": "Q99999999", "target": "Q90"}),
    "features": ("Feature", {"entity": "Q1490"}),
    "one feature": ("Feature", {"entity": "Q1490", "feature": "skos:altLabel"}),
    "degrees": ("Degree", {"entity": "Q1490"}),
    "the degree of a hub": ("Degree", {"entity": "Q30", "relation": "P27"}),
    "an observation": ("observe", {"question": "Where was he born?", "entities": ["Q937"], "hops": 1}),
    "a count": ("Compose", {"expression": "Count[Neighbor[Q17, P36]], Degree[Q1490, P17]"}),
    "a set": ("Compose", {"expression": "Intersect[Neighbor[Q1490, -P36], Neighbor[Q1490, P17]]"}),
    "relations by label": ("Compose", {"expression": "Neighbor[Retrieve[Tokyo], country]"}),
    "a fact that is not there": ("memory-append", {"triples": [["Q17", "P36", "Q30"]]}),
    "a schema about nothing": ("Schema", {"about": "qwrtzpsdf"}),
    "rows": ("Sparql", {"query": "SELECT ?x ?l { wd:Q17 wdt:P36 ?x . ?x rdfs:label ?l }"}),
    "a truth": ("Sparql", {"query": "ASK { wd:Q17 wdt:P36 wd:Q1490 }"}),
    "statements": ("Sparql", {"query": "CONSTRUCT { ?x wdt:P17 ?y } { VALUES ?y { wd:Q17 } ?y wdt:P36 ?x }"}),
    "an update": ("Sparql", {"query": UPDATE}),
    "a query that is none": ("Sparql", {"query": "SELECT ?x {"}),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_has_the_same_answer(sample: LocalAdapter, remote_sample: SparqlAdapter, name: str) -> None:
    tool, arguments = CALLS[name]
    mine, theirs = [await call(graph, tool, **arguments) for graph in (sample, remote_sample)]
    # What leads to an entity is counted beside its own facts only where that is at hand.
    short = [reply.text.replace(incoming(reply), "") for reply in (mine, theirs)]
    assert short[0] == short[1]
    assert {**mine.data, "summary": ""} == {**theirs.data, "summary": ""}


def incoming(reply: Reply) -> str:
    """Return the end of a first line that tells how much leads to the entity, or how to see it."""
    return reply.summary.partition("all here; ")[2] or "\n\n"


async def test_a_hub_is_paged_through_the_same_triples(sample: LocalAdapter, remote_sample: SparqlAdapter) -> None:
    mine, theirs = [await three_pages(graph) for graph in (sample, remote_sample)]
    assert len(mine) > 40
    assert theirs == mine


async def test_a_name_finds_its_entity_first(remote_sample: SparqlAdapter) -> None:
    for text in ("Tokyo", " tOKYO ", "Tokio"):
        reply = await call(remote_sample, "Retrieve", text=text)
        assert reply.lines[0].startswith("Tokyo (Q1490)"), reply.text


async def test_a_word_of_a_name_finds_it(remote_sample: SparqlAdapter) -> None:
    reply = await call(remote_sample, "Retrieve", text="Yakult Swallows")
    assert reply.lines[0].startswith("Tokyo Yakult Swallows (Q1324392)"), reply.text


@pytest.mark.parametrize("what", ["classes", "relations", "features"])
async def test_the_schema_counts_the_same(sample: LocalAdapter, remote_sample: SparqlAdapter, what: str) -> None:
    mine, theirs = [await call(graph, "Schema", max_tokens=20_000) for graph in (sample, remote_sample)]
    assert theirs.summary.partition("': ")[2] == mine.summary.partition("': ")[2]
    # How many classes fit depends on the length of the prefixes, which are each graph's own.
    first = [list(counts(reply.data[what]).items())[:150] for reply in (mine, theirs)]
    assert first[1] == first[0]
    assert first[0]


async def test_facts_are_checked_against_the_endpoint_and_remembered(remote_sample: SparqlAdapter) -> None:
    async with Client(build_server(remote_sample, UNHURRIED)) as client:
        facts = [["Q17", "P36", "Q1490"], ["Q1490", "P17", "Q17"]]
        kept = reply_of(await client.call_tool("memory-append", {"triples": facts}))
        read = reply_of(await client.call_tool("memory-read", {"memory": kept.data["memory"]}))
    assert not kept.is_error
    assert read.lines == ["Japan (Q17) -[capital (P36)]-> Tokyo (Q1490) -[country (P17)]-> Japan (Q17)"]


LABEL_SERVICE = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "en" }'


async def test_names_stand_for_ids_in_queries_to_the_endpoint(remote_sample: SparqlAdapter) -> None:
    queries = {
        'SELECT ?x { @"Japan" @"capital" ?x }': ["?x", "Tokyo (Q1490)"],
        f'SELECT ?x ?xLabel {{ @"Jappan" @"capital" ?x {LABEL_SERVICE} }}': ["?x", "Tokyo (Q1490)"],
        'SELECT ?x { ?x @"capital" @"Japan" }': [],
    }
    async with Client(build_server(remote_sample, UNHURRIED)) as client:
        for query, lines in queries.items():
            reply = reply_of(await client.call_tool("Sparql", {"query": query, "timeout_s": 60}))
            assert reply.lines == lines, reply.text
            assert lines or "The other way round it has matches" in reply.text
        unknown = reply_of(await client.call_tool("Sparql", {"query": 'ASK { @"Zochdaaru Telecom" ?p ?o }'}))
    assert unknown.is_error
    assert unknown.text.startswith("No entity matches 'Zochdaaru Telecom'.")


@pytest.mark.parametrize("hops", [1, 2, 3])
async def test_observe_asks_at_most_once_per_hop_and_once_more(engine: Engine, tmp_path: Path, hops: int) -> None:
    with weathered(engine.running.url) as proxy:
        async with (
            engine.opened(engine.sample, tmp_path, url=proxy.url) as graph,
            Client(build_server(graph, UNHURRIED)) as client,
        ):
            for seeds in (["Q1490"], ["Q17", "Q30", "Q90", "Q1490", "Q183"]):
                before = proxy.happened["fair"]
                arguments = {"question": CAPITAL, "entities": seeds, "hops": hops}
                reply = reply_of(await client.call_tool("observe", arguments))
                assert not reply.is_error
                assert proxy.happened["fair"] - before <= 1 + hops
                assert {row[5] for row in rows(reply.data["groups"]) if len(row) > 5} <= {
                    str(n + 1) for n in range(hops)
                }


async def three_pages(graph: KGAdapter) -> list[list[str]]:
    """Return what the first three pages of a hub show."""
    shown: list[list[str]] = []
    cursor: object = None
    async with Client(build_server(graph, UNHURRIED)) as client:
        for _ in range(3):
            arguments = {"entity": "Q30", "direction": "in", "limit": 30, "cursor": cursor}
            reply = reply_of(await client.call_tool("GetNeighbor", arguments))
            shown += rows(reply.data["triples"])
            cursor = reply.data["cursor"]
    return shown


async def test_the_engine_and_its_index_are_found_out_without_a_setting(engine: Engine, tmp_path: Path) -> None:
    told = engine.options(engine.sample)
    async with engine.opened(engine.sample, tmp_path, dialect="auto", text_search="auto") as graph:
        found = graph.engine
    assert found is not None
    assert (found.dialect, found.text_search) == (told.dialect, told.text_search)
