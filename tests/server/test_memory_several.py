"""Memories of a server of two graphs, which call different things by the same ids and link two that are the same."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from mcp import Client

from calls import several_graphs
from kg_adapters.errors import BackendUnavailable
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.open_options import OnProgress
from kg_adapters.protocol import KGAdapter
from kg_server.app import build_server
from kg_server.graphs import GraphSet, Opener
from kg_server.settings import Settings
from memories import Memory, facts_of, memory_server, remembering, stored_in, stores_in
from postgres_server import PostgresServer

LABEL = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
PEOPLE = f"""{LABEL} @prefix ex: <http://people.example/> .
ex:x1 rdfs:label "Ann Lee"@en ; ex:r ex:x2 . ex:x2 rdfs:label "Ulm"@en . ex:r rdfs:label "born in"@en .
"""
FILMS = f"""{LABEL} @prefix ex: <http://films.example/> .
ex:x1 rdfs:label "Sand"@en ; ex:r ex:x2 . ex:x2 rdfs:label "A. Lee"@en . ex:r rdfs:label "directed by"@en .
ex:x2 owl:sameAs <http://people.example/x1> .
@prefix f: <http://studios.example/> .
f:s rdfs:label "Nova" ; f:made f:m . f:m rdfs:label "Dune" . f:made rdfs:label "made [films]" .
f:s f:cm 4 . f:cm rdfs:label "size [cm]" .
"""
IDS = ["ex:x1", "ex:r", "ex:x2"]
BORN, DIRECTED = (
    "Ann Lee (ex:x1) -[born in (ex:r) [people]]-> Ulm (ex:x2)",
    "Sand (ex:x1) -[directed by (ex:r) [films]]-> ",
)


@pytest.fixture
def people(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    return graph_of(PEOPLE)


@pytest.fixture
def both(people: LocalAdapter, graph_of: Callable[[str], LocalAdapter]) -> GraphSet:
    return several_graphs({"people": people, "films": graph_of(FILMS)})


async def down(_: OnProgress) -> KGAdapter:
    raise BackendUnavailable("The endpoint is down.")


async def hanging(_: OnProgress) -> KGAdapter:
    await anyio.sleep_forever()
    raise AssertionError


async def test_a_triple_is_kept_with_the_graph_that_holds_it_and_shown_as_that_graph_shows_it(
    both: GraphSet, tmp_path: Path
) -> None:
    async with remembering(both, tmp_path) as memory:
        kept = await memory.append("Ann Lee | born in | Ulm", ["Sand", "directed by", "A. Lee"])
        handle = str(kept.data["memory"])
        rows = [["1", *IDS, "verified", "people"], ["2", *IDS, "verified", "films"]]
        assert facts_of(kept) == rows
        assert kept.lines == [BORN, f"{DIRECTED}A. Lee (ex:x2)"]
        marked = ["ex:x1", "ex:r [films]", "ex:x2"]
        for again in ((IDS, marked), tuple(kept.lines)):
            assert (await memory.append(*again, memory=handle)).data["added"] == 0
        assert (await memory.append(IDS, memory=handle, graph="films")).data["added"] == 0
        assert facts_of(await memory.read(handle)) == rows


async def test_what_retrieve_shows_of_all_graphs_is_kept_word_for_word(both: GraphSet, tmp_path: Path) -> None:
    async with Client(build_server(both, Settings(data_folder=tmp_path, timeout_s=120))) as client:
        memory = Memory(client)
        shown = await memory.call("Retrieve", {"text": ["Ann Lee", "Sand"]})
        kept = await memory.append(*shown.lines)
    assert sorted(row[1:] for row in facts_of(kept)) == [[*IDS, "verified", "films"], [*IDS, "verified", "people"]]


async def test_a_fact_of_what_another_graph_calls_otherwise_is_kept_as_it_was_shown(
    both: GraphSet, tmp_path: Path
) -> None:
    async with remembering(both, tmp_path) as memory:
        kept = await memory.append(
            ["Sand (ex:x1)", "directed by (ex:r) [films]", "Ann Lee (<http://people.example/x1>)"],
            "Ann Lee | born in | Ulm",
        )
    assert [row[0::4] for row in facts_of(kept)] == [["1", "verified"], ["1", "verified"]]
    assert kept.lines == [f"{DIRECTED}Ann Lee (<http://people.example/x1>) -[born in (ex:r) [people]]-> Ulm (ex:x2)"]


@pytest.mark.parametrize(
    "directed",
    [
        "Sand (ex:x1) | directed by (ex:r) [films] | Ann Lee (<http://people.example/x1>)",
        "Sand | directed by [films] | A. Lee",
    ],
)
async def test_the_first_call_of_all_keeps_what_links_graphs_that_nobody_has_opened(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path, directed: str
) -> None:
    def unopened(graph: LocalAdapter) -> Opener:
        async def opener(_: OnProgress) -> KGAdapter:
            return graph

        return opener

    link = "ex:x2 owl:sameAs <http://people.example/x1> ."
    stated = "<http://people.example/x1> owl:sameAs <http://films.example/x2> ."
    parts = FILMS.replace(link, ""), PEOPLE + stated
    graphs = {"people": unopened(graph_of(parts[1])), "films": unopened(graph_of(parts[0]))}
    async with remembering(several_graphs(graphs), tmp_path) as memory:
        kept = await memory.append(directed)
    assert facts_of(kept) == [["1", "ex:x1", "ex:r", "<http://people.example/x1>", "verified", "films"]], kept.text


async def test_what_no_graph_holds_is_refused_by_each_or_kept_as_of_the_first_that_reads_it(
    both: GraphSet, tmp_path: Path
) -> None:
    async with remembering(both, tmp_path) as memory:
        refused = await memory.append(["ex:x2", "ex:r", "ex:x1"], ["Sand", "directed by [people]", "A. Lee"])
        kept = await memory.append(["ex:x2", "ex:r", "ex:x1"], ["Sand", "directed by", '"x"'], allow_unverified=True)
    assert refused.is_error
    first, second = refused.text.splitlines()[1:]
    assert "people: the graph has it only the other way round" in first
    assert "films: the graph has it only the other way round" in first
    assert "people: No entity matches 'Sand'" in second
    assert "films:" not in second
    assert [row[4:] for row in facts_of(kept)] == [["unverified", "people"], ["unverified", "films"]]
    assert "directed by (ex:r) [films], unverified]->" in kept.text


async def test_a_name_in_evidence_over_several_graphs_is_kept_as_the_one_thing_that_it_was_there(
    both: GraphSet, tmp_path: Path
) -> None:
    async with remembering(both, tmp_path) as memory:
        kept = await memory.append("because Sand | directed by [films] | A. Lee", "Ann Lee | born in | Ulm")
        false = ["Sand (ex:x1)", "directed by (ex:r) [films]", "Ulm (<http://people.example/x2>)"]
        linked = ["Ann Lee (<http://people.example/x1>)", "directed by (ex:r) [films]", "Sand (ex:x1)"]
        refused = await memory.append(false, linked)
        marked = await memory.append(linked, allow_unverified=True)
    assert kept.lines == [f"{DIRECTED}Ann Lee (<http://people.example/x1>) -[born in (ex:r) [people]]-> Ulm (ex:x2)"]
    assert "films: the graph has it only the other way round, Sand (ex:x1)" in refused.text
    assert facts_of(marked) == [["1", "<http://people.example/x1>", "ex:r", "ex:x1", "unverified", "films"]]


async def test_an_id_of_no_graph_that_is_asked_is_refused_and_else_filed_under_the_graph_that_knows_it(
    both: GraphSet, tmp_path: Path
) -> None:
    turned = ["f:m", "f:made", "f:s"], [f"<http://studios.example/{each}>" for each in ("m", "made", "m")]
    strange = ["zz:a", "ex:r", "ex:x2"]
    async with remembering(both, tmp_path) as memory:
        kept = await memory.append(*turned, allow_unverified=True)
        refused = await memory.append(strange, allow_unverified=True)
    assert [row[1:] for row in facts_of(kept)] == [
        ["f:m", "f:made", end, "unverified", "films"] for end in ("f:s", "f:m")
    ]
    assert "'zz:a' has a prefix that this graph does not have. It has" in refused.text


async def test_a_mark_may_be_part_of_a_name_or_that_of_the_only_graph_or_of_none(
    people: LocalAdapter, both: GraphSet, tmp_path: Path
) -> None:
    async with remembering(both, tmp_path) as memory:
        named = await memory.append(["Nova", "made [films]", "Dune"])
        unknown = await memory.append(["Ann Lee", "born in [mars]", "Ulm"])
        misspelt = await memory.append(["Nova", "sizze [cm]", "4"])
        false = await memory.append(["Nova", "size [cm]", "5"], ["Novva", "size [cm]", "4"])
    assert false.is_error
    assert "no graph 'cm'" not in false.text
    assert facts_of(named) == [["1", "f:s", "f:made", "f:m", "verified", "films"]]
    assert unknown.lines == [
        "triple 1 (Ann Lee | born in [mars] | Ulm): This server has no graph 'mars'. Its graphs are films, people."
    ]
    assert '"size [cm]" (f:cm)' in misspelt.text
    async with remembering(people, tmp_path) as memory:
        own = await memory.append(["Ann Lee (ex:x1)", f"born in (ex:r) [{people.name}]", "Ulm (ex:x2)"])
        unknown = await memory.append(["Ann Lee", "born in [mars]", "Ulm"])
    assert facts_of(own) == [["1", *IDS, "verified"]]
    assert unknown.text.endswith(f"): This server has no graph 'mars'. Its graphs are {people.name}.")


async def test_a_graph_that_is_down_or_hangs_leaves_the_facts_of_others_alone(
    people: LocalAdapter, both: GraphSet, tmp_path: Path
) -> None:
    async with remembering(both, tmp_path) as memory:
        handle = await memory.begin(IDS, ["ex:x1", "ex:r [films]", "ex:x2"])
    async with remembering(several_graphs({"people": people, "films": down}), tmp_path) as memory:
        kept = await memory.append(IDS, "Sand | directed by | A. Lee")
        read = await memory.read(handle)
    assert facts_of(kept) == [["1", *IDS, "verified", "people"]]
    assert "films: The endpoint is down. Call again." in kept.text
    assert read.lines == [
        BORN,
        "x1 (<http://films.example/x1>) -[r (<http://films.example/r>) [films]]-> x2 (<http://films.example/x2>)",
    ]
    assert "Labels of films are missing: The endpoint is down." in read.text
    async with remembering(several_graphs({"films": hanging, "people": people}), tmp_path) as memory:
        kept = await memory.append(["ex:x1", "ex:r [people]", "ex:x2"])
        assert facts_of(await memory.read(str(kept.data["memory"]))) == [["1", *IDS, "verified", "people"]]
        assert BORN in await memory.resource(str(kept.data["memory"]))


async def test_a_memory_is_refused_where_a_graph_of_its_facts_is_not_served(
    people: LocalAdapter, both: GraphSet, tmp_path: Path
) -> None:
    async with remembering(both, tmp_path) as memory:
        alone, mixed = [await memory.begin(*triples) for triples in ([IDS], [IDS, ["ex:x1", "ex:r [films]", "ex:x2"]])]
    async with remembering(several_graphs({"people": people, "dbpedia": people}), tmp_path) as memory:
        assert facts_of(await memory.read(alone)) == [["1", *IDS, "verified", "people"]]
        refused = await memory.read(mixed)
    assert "belongs to the graph 'films'; this server answers from 'people', 'dbpedia'" in refused.text


class Remote(LocalAdapter):
    """A graph behind a network."""

    @property
    def remote(self) -> bool:
        return True


@pytest.mark.xdist_group("postgres")
async def test_what_a_graph_of_that_name_does_not_hold_any_more_is_unverified(
    people: LocalAdapter, graph_of: Callable[[str], LocalAdapter], tmp_path: Path, postgres: PostgresServer
) -> None:
    films, moved = graph_of(FILMS), graph_of(PEOPLE.replace("ex:r ex:x2 .", "ex:r ex:x3 ."))
    linked = ["Sand (ex:x1)", "directed by (ex:r) [films]", "Ann Lee (<http://people.example/x1>)"]
    with stores_in(postgres) as stored:
        for store in (stored_in(tmp_path), stored()):
            async with Client(memory_server(several_graphs({"people": people, "films": films}), store)) as client:
                handle = await Memory(client).begin(linked, IDS)
                own = await Memory(client).begin(IDS)
            async with Client(memory_server(several_graphs({"people": moved, "films": films}), store)) as client:
                reads = [await Memory(client).read(handle), await Memory(client).append(linked, memory=handle)]
            for reply in reads:
                assert [row[4:] for row in facts_of(reply)] == [["verified", "films"], ["unverified", "people"]]
                assert "1 of those here is no longer in the graph: unverified." in reply.summary
            async with Client(memory_server(several_graphs({"people": Remote(people.store)}), store)) as client:
                reply = await Memory(client).read(own)
                assert "Facts of people were verified when they were appended, up to 20" in reply.summary
                assert facts_of(reply) == [["1", *IDS, "verified"]]
