"""Nodes without a name in `observe`, and facts that are stored both ways."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from calls import Reply, call, rows, unhurried
from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.testing import iri
from kg_server.observation.scoring import PaperScorer, RelationFirstScorer, inquiry
from kg_server.observation.search import (
    BEFORE,
    HUB,
    MAX_EXPANDED,
    PER_ENTITY,
    Observation,
    Reach,
    Seed,
    search,
)
from observers import CountingGraph, Ending, SlowGraph, WordModel, statements_of
from patience import PATIENCE_S
from played_time import let_pass_after

GOETHE = [
    "goethe partner lili",
    "goethe citizen weimar",
    "goethe author faust",
    "lili birth offenbach",
    "lili spouse bernhard",
    "faust place leipzig",
    "offenbach country germany",
]

QUESTION = "partner birth"


async def observe(
    graph: CountingGraph, *entities: str, question: str = QUESTION, reach: Reach | None = None
) -> Observation:
    seeds = [Seed(iri(entity), inquiry(question, "")) for entity in entities]
    return await search(graph, PaperScorer(WordModel()), seeds, reach or Reach(), ignore)


async def ignore(hop: int) -> None:
    del hop


async def test_each_turn_goes_on_from_the_tails_of_the_best_triples() -> None:
    graph = CountingGraph(GOETHE)
    seen = await observe(graph, "goethe", reach=Reach(hops=3, top_n=10, top_percent=10))
    assert graph.frontiers == [["goethe"], ["lili"], ["offenbach"]]
    assert statements_of(seen)[:2] == [("goethe partner lili", 1), ("lili birth offenbach", 2)]
    assert set(statements_of(seen)[2:]) == {
        ("lili spouse bernhard", 2),
        ("goethe author faust", 1),
        ("goethe citizen weimar", 1),
        ("offenbach country germany", 3),
    }
    assert (seen.hops, seen.stopped, seen.sampled, seen.edges) == (3, False, (), 8)


async def test_a_turn_keeps_the_best_n_triples_that_are_new() -> None:
    # Seen from lili and offenbach, the edges that led there would take both places of a turn.
    seen = await observe(CountingGraph(GOETHE), "goethe", reach=Reach(hops=3, top_n=1, top_percent=100))
    assert statements_of(seen) == [
        ("goethe partner lili", 1),
        ("lili birth offenbach", 2),
        ("offenbach country germany", 3),
    ]


async def test_no_entity_is_expanded_twice() -> None:
    graph = CountingGraph(["a next b", "b next c", "c next a"])
    seen = await observe(graph, "a", question="next", reach=Reach(hops=4, top_percent=100))
    assert graph.frontiers == [["a"], ["b", "c"]]
    assert {found for found, _ in statements_of(seen)} == {"a next b", "c next a", "b next c"}


async def test_seeds_take_their_turns_in_one_request_each_with_a_frontier_of_its_own() -> None:
    graph = CountingGraph([*GOETHE, "werther author goethe", "werther place wahlheim", "wahlheim near wetzlar"])
    seen = await observe(graph, "goethe", "werther", reach=Reach(hops=3, top_n=10, top_percent=10))
    assert graph.frontiers == [["goethe", "werther"], ["goethe", "lili"], ["lili", "offenbach"]]
    # One for the neighbours and one for the labels of a turn, however many seeds there are.
    assert graph.requests == 6
    assert dict(statements_of(seen))["werther author goethe"] == 1


async def test_a_triple_of_two_seeds_stands_once_with_its_best_score_and_first_hop() -> None:
    alone = await observe(CountingGraph(GOETHE), "lili")
    both = await observe(CountingGraph(GOETHE), "goethe", "lili")
    shared = [each for each in both.found if each.fact.tail == iri("offenbach")]
    assert shared == [each for each in alone.found if each.fact.tail == iri("offenbach")]
    assert (len(shared), shared[0].hop) == (1, 1)


async def test_what_led_to_a_triple_counts_with_it() -> None:
    graph = CountingGraph(["start birth x1", "start same x2", "x1 size small", "x2 size big"])
    seen = await observe(graph, "start", question="birth", reach=Reach(hops=2, top_percent=100))
    scores = {statement: each.score for (statement, _), each in zip(statements_of(seen), seen.found, strict=True)}
    # Neither says anything about birth, but what was born leads to one of them.
    assert scores["x1 size small"] == pytest.approx(BEFORE * scores["start birth x1"], abs=1e-4)
    assert scores["x2 size big"] == 0


async def test_a_way_back_over_the_relation_that_led_there_counts_less() -> None:
    graph = CountingGraph(["book author ann", "ann author poem", "play author ann"])
    seen = await observe(graph, "book", question="author", reach=Reach(hops=2))
    scores = {statement: each.score for (statement, _), each in zip(statements_of(seen), seen.found, strict=True)}
    assert scores["ann author poem"] > scores["play author ann"] > 0


async def test_the_search_goes_on_from_several_groups_before_it_goes_on_from_one_again() -> None:
    graph = CountingGraph([*(f"ann birth town{number}" for number in range(9)), "ann spouse bob", "bob birth oslo"])
    reach = Reach(hops=2, top_n=20, top_percent=10)
    await observe(graph, "ann", question="spouse birth birth", reach=reach)
    assert graph.frontiers[-1] == ["bob", "town0"]
    await observe(graph, "ann", question="spouse birth birth", reach=replace(reach, to_the_letter=True))
    assert graph.frontiers[-1] == ["town0", "town1"]


async def test_a_hub_is_not_walked_through_backwards() -> None:
    crowd = [f"person{number} citizen land" for number in range(HUB)]
    graph = CountingGraph(["ann citizen land", "land capital town", *crowd])
    seen = await observe(graph, "ann", question="citizen", reach=Reach(hops=2))
    assert statements_of(seen) == [("ann citizen land", 1), ("land capital town", 2)]
    paper = await observe(graph, "ann", question="citizen", reach=Reach(hops=2, to_the_letter=True))
    assert len(paper.found) > 20
    # Who asks about the hub itself is shown who leads there.
    own = await observe(graph, "land", question="citizen", reach=Reach(hops=1))
    assert [(group.relation, group.count) for group in own.groups] == [(iri("citizen"), 200), (iri("capital"), 1)]


async def test_every_relation_of_a_seed_is_a_group_however_few_triples_are_kept() -> None:
    seen = await observe(CountingGraph(GOETHE), "goethe", reach=Reach(hops=2, top_n=1))
    assert len(seen.found) == 2
    groups = {(group.near.local_part, group.relation.local_part, group.hop): group.count for group in seen.groups}
    assert groups == {
        ("goethe", "partner", 1): 1,
        ("goethe", "author", 1): 1,
        ("goethe", "citizen", 1): 1,
        ("lili", "birth", 2): 1,
    }


async def test_in_the_paper_a_score_weighs_the_same_at_every_distance() -> None:
    graph = CountingGraph(["start birth x1", "x1 birth x2", "x2 birth x3"])
    seen = await observe(graph, "start", question="birth", reach=Reach(to_the_letter=True))
    assert len(seen.found) == 3
    assert {each.score for each in seen.found} == {seen.found[0].score}


async def test_a_triple_found_again_from_its_other_end_keeps_the_better_score() -> None:
    graph = CountingGraph(["a near b", "a birth c", "c near b"])
    reach = Reach(hops=2, top_n=2, top_percent=100)
    once = await observe(graph, "a", question="b birth", reach=Reach(hops=1))
    twice = await observe(graph, "a", question="a birth near", reach=reach)
    assert len(once.found) == 2
    assert len({each.fact for each in twice.found}) == len(twice.found) == 3
    # From c, "inverse of birth a" names the question's own "a".
    assert max(twice.found, key=lambda each: each.score).fact.tail == iri("c")


async def test_equal_scores_stand_in_the_order_of_their_ids_and_so_do_equal_tails_go_on() -> None:
    statements = [f"hub{side} same n{number}" for side in "ba" for number in (3, 1, 2)]
    graph = CountingGraph(statements)
    seen = await observe(graph, "huba", "hubb", question="nothing alike", reach=Reach(hops=1))
    assert [found for found, _ in statements_of(seen)] == sorted(statements)
    await observe(graph, "hubb", question="nothing alike", reach=Reach(hops=2, top_n=2, top_percent=50))
    assert graph.frontiers[-1] == ["n1"]


async def test_a_wide_frontier_leaves_each_entity_a_smaller_share() -> None:
    graph = CountingGraph([f"land region region{number}" for number in range(200)])
    await observe(graph, "land", reach=Reach(hops=2, top_n=200, top_percent=100))
    assert graph.limits == [PER_ENTITY, 100]


def test_many_seeds_share_what_a_turn_may_expand() -> None:
    wide = Reach(top_n=200, top_percent=100)
    assert [wide.width(seeds) for seeds in (1, 20)] == [200, MAX_EXPANDED // 20]
    assert Reach(top_n=3, top_percent=1).width(1) == 1


@pytest.mark.parametrize("ending", ["silence", "timeout"])
async def test_what_was_found_before_time_ran_out_is_not_lost(ending: Ending) -> None:
    graph = SlowGraph(GOETHE, ending)
    async with anyio.create_task_group() as tasks:
        if ending == "silence":
            tasks.start_soon(let_pass_after, graph.reached, PATIENCE_S)
        seen = await observe(graph, "goethe", reach=Reach(timeout_s=PATIENCE_S))
        assert [found for found, _ in statements_of(seen)] == [
            "goethe partner lili",
            "goethe author faust",
            "goethe citizen weimar",
        ]
        assert (seen.hops, seen.stopped) == (1, True)


async def test_a_cancelled_search_ends_at_once() -> None:
    graph = SlowGraph(GOETHE, "silence")
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(observe, graph, "goethe")
            await graph.reached.wait()
            tasks.cancel_scope.cancel()
    assert graph.frontiers == [["goethe"]]


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


async def observed_around(graph: LocalAdapter, folder: Path, question: str, entity: str, hops: int = 3) -> Reply:
    settings = unhurried(cache_folder=folder, data_folder=folder, embedding=LEXICAL)
    return await call(graph, "observe", settings, question=question, entities=[entity], hops=hops)


async def test_a_node_without_a_name_stands_with_what_it_holds_the_one_of_the_year_first(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    graph = graph_of(ENTRIES)
    for hops in (1, 3):
        for year, order in ((1979, (0, 1)), (1990, (1, 0))):
            reply = await observed_around(graph, tmp_path, f"Who was the mayor in {year}?", "e:town", hops)
            line = next(line for line in reply.plain.lines if line.endswith("| Bikmouth"))
            held = (
                '[career entry of Ann; until 1984-01-31; role "mayor"; from 1978-12-01]',
                'e:S2 [career entry of Bob; role "mayor"; from 1984-02-01]',
            )
            places = [line.index(each) for each in held]
            assert sorted((0, 1), key=lambda which: places[which]) == list(order)
            assert ["e:S2", "e:start", "1984-02-01"] in rows(reply.data["held"])


async def test_what_nodes_without_a_name_hold_comes_with_the_next_hop() -> None:
    crowd = [f'entry{number} at town . entry{number} role "mayor"' for number in range(9)]
    statements = [part for each in crowd for part in each.split(" . ")]
    graph = CountingGraph([*statements, 'town label "Bikmouth"@en', "town river thames", "thames sea north"])
    seeds = [Seed(iri("town"), inquiry("who was mayor of it", ""), labelled=True)]
    seen = await search(graph, RelationFirstScorer(WordModel()), seeds, Reach(hops=2), ignore)
    assert graph.requests == 4  # neighbours and labels, twice
    assert {node.local_part for node in seen.held} == {f"entry{number}" for number in range(9)}


async def test_a_fact_that_is_stored_both_ways_stands_once(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    both = f"{PREFIXES} e:child owl:inverseOf e:parent . e:ann e:child e:bob , e:cid . e:bob e:parent e:ann . "
    reply = await observed_around(graph_of(both), tmp_path, "Who is a child of Ann?", "e:ann")
    assert [line for line in reply.lines if "e:ann" in line] == ["e:ann | e:child | 2: e:bob, e:cid"]
    reply = await observed_around(
        graph_of(f"{both} e:dan e:parent e:ann ."), tmp_path, "Who is a child of Ann?", "e:ann"
    )
    assert set(reply.lines) == {"e:ann | e:child | 2: e:bob, e:cid", "e:dan | e:parent | e:ann"}
