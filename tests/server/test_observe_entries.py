"""Nodes without a name in `observe`, and facts that are stored both ways."""

from collections.abc import Callable
from pathlib import Path

from calls import Reply, call, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.testing import iri
from kg_server.observation.scoring import RelationFirstScorer, inquiry
from kg_server.observation.search import Reach, Seed, search
from kg_server.settings import Settings
from observers import CountingGraph, WordModel

PREFIXES = """
@prefix e: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
"""
ENTRIES = f"""{PREFIXES}
e:town rdfs:label "Bikmouth" . e:ann rdfs:label "Ann" . e:bob rdfs:label "Bob" .
e:at rdfs:label "at organisation" . e:career rdfs:label "career entry" . e:role rdfs:label "role" .
e:start rdfs:label "from" . e:end rdfs:label "until" .
e:bob e:career e:S2 . e:S2 e:at e:town ; e:role "mayor" ; e:start "1984-02-01"^^xsd:date .
e:ann e:career _:first . _:first e:at e:town ; e:role "mayor" ;
  e:start "1978-12-01"^^xsd:date ; e:end "1984-01-31"^^xsd:date .
"""


async def observe(graph: LocalAdapter, folder: Path, question: str, entity: str, hops: int = 3) -> Reply:
    settings = Settings(cache_folder=folder, data_folder=folder, embedder="lexical")
    return await call(graph, "observe", settings, question=question, entities=[entity], hops=hops)


async def test_a_node_without_a_name_stands_with_what_it_holds_the_one_of_the_year_first(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    graph = graph_of(ENTRIES)
    for hops in (1, 3):
        for year, order in ((1979, (0, 1)), (1990, (1, 0))):
            reply = await observe(graph, tmp_path, f"Who was the mayor in {year}?", "e:town", hops)
            line = next(line for line in reply.lines if line.endswith("| Bikmouth (e:town)"))
            held = (
                '[career entry of Ann (e:ann); until 1984-01-31; role "mayor"; from 1978-12-01]',
                'e:S2 [career entry of Bob (e:bob); role "mayor"; from 1984-02-01]',
            )
            places = [line.index(each) for each in held]
            assert sorted((0, 1), key=lambda which: places[which]) == list(order)
            assert ["e:S2", "e:start", '"1984-02-01"^^xsd:date'] in rows(reply.data["held"])


async def test_what_nodes_without_a_name_hold_comes_with_the_next_hop() -> None:
    crowd = [f'entry{number} at town . entry{number} role "mayor"' for number in range(9)]
    statements = [part for each in crowd for part in each.split(" . ")]
    graph = CountingGraph([*statements, 'town label "Bikmouth"@en', "town river thames", "thames sea north"])
    seeds = [Seed(iri("town"), inquiry("who was mayor of it", ""), labelled=True)]
    seen = await search(graph, RelationFirstScorer(WordModel()), seeds, Reach(hops=2), ignore)
    assert graph.requests == 4  # neighbours and labels, twice
    assert {node.local_part for node in seen.held} == {f"entry{number}" for number in range(9)}


async def ignore(hop: int) -> None:
    del hop


async def test_a_fact_that_is_stored_both_ways_stands_once(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    both = f"{PREFIXES} e:child owl:inverseOf e:parent . e:ann e:child e:bob , e:cid . e:bob e:parent e:ann . "
    reply = await observe(graph_of(both), tmp_path, "Who is a child of Ann?", "e:ann")
    assert [line for line in reply.lines if "e:ann" in line] == ["e:ann | e:child | 2: e:bob, e:cid"]
    reply = await observe(graph_of(f"{both} e:dan e:parent e:ann ."), tmp_path, "Who is a child of Ann?", "e:ann")
    assert set(reply.lines) == {"e:ann | e:child | 2: e:bob, e:cid", "e:dan | e:parent | e:ann"}
