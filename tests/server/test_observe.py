from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client

from calls import Reply, reply_of, rows, texts
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_server.answers.results import ObserveResult, token_count
from kg_server.observation.scoring import PaperScorer, Scorer, SpellingScorer
from observers import SlowGraph, WordModel, ranking_server
from oda_runs import story_tools
from small_graphs import PREFIXES

PAPER = PaperScorer(WordModel())


async def observe(graph: KGAdapter, scorer: Scorer = PAPER, /, **arguments: object) -> Reply:
    async with Client(ranking_server(graph, scorer)) as client:
        return reply_of(await client.call_tool("observe", arguments))


async def refusal(graph: KGAdapter, **arguments: object) -> str:
    reply = await observe(graph, PAPER, **arguments)
    assert reply.is_error, reply.text
    return reply.plain.text


async def test_the_relations_most_like_the_question_come_first_in_their_real_direction(tokyo: LocalAdapter) -> None:
    reply = await observe(tokyo, question="What is the capital of Tokyo?", entities=["Q1490"], hops=1)
    summary = (
        "6 relations within 1 hop of Tokyo (Q1490), from 6 facts examined; those most like the question first, by "
        "meaning, as in the ODA paper."
    )
    assert reply.text == (
        f"{summary}\n"
        "Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)\n"
        "Japan (Q17) | capital | Tokyo\n"
        "Tokyo | population (P1082) | 13,960,236\n"
        "Shinjuku | located in (P131) | Tokyo\n"
        "Tokyo | country (P17) | Japan\n"
        "Tokyo | instance of (P31) | city (Q515)"
    )
    assert reply.data == {
        "status": "ok",
        "knowledge": "unknown",
        "summary": summary,
        "groups": [
            ["Q1490", "P36", "out", "1", "0.500", "1", "Q179645"],
            ["Q1490", "P36", "in", "1", "0.500", "1", "Q17"],
            ["Q1490", "P1082", "out", "1", "0.000", "1", '"13960236"^^xsd:integer'],
            ["Q1490", "P131", "in", "1", "0.000", "1", "Q179645"],
            ["Q1490", "P17", "out", "1", "0.000", "1", "Q17"],
            ["Q1490", "P31", "out", "1", "0.000", "1", "Q515"],
        ],
        "labels": {"Q1490": "Tokyo", "Q179645": "Shinjuku", "Q17": "Japan", "Q515": "city"},
        "relations": {
            "P36": "capital",
            "P1082": "population",
            "P131": "located in",
            "P17": "country",
            "P31": "instance of",
        },
        "found": 6,
        "sampled": [],
        "scorer": "meaning, as in the ODA paper",
    }


async def test_several_entities_in_any_spelling_are_observed_together(tokyo: LocalAdapter) -> None:
    reply = await observe(
        tokyo, question="capital", entities=["Q1490", "wd:Q17", " <http://www.wikidata.org/entity/Q17> "]
    )
    assert "within 3 hops of Tokyo, Japan, from" in reply.plain.summary
    groups = rows(reply.data["groups"])
    assert len({tuple(row[:3]) for row in groups}) == len(reply.plain.lines) == len(groups)
    # Seen from Japan it is the same fact as from Tokyo.
    facts = [(row[0], row[6]) if row[2] == "out" else (row[6], row[0]) for row in groups if row[1] == "P36"]
    assert sorted(facts) == [("Q1490", "Q179645"), ("Q17", "Q1490")]


async def test_an_answer_stays_within_its_budget_in_both_of_its_forms(sample: LocalAdapter) -> None:
    for max_tokens in (500, 700, 2_000):
        for entities in (["Q5879"], ["Q30", "Q1490", "Q45765"]):
            reply = await observe(
                sample,
                SpellingScorer("no model"),
                question="who was born in it",
                entities=entities,
                max_tokens=max_tokens,
            )
            assert token_count(reply.text) <= max_tokens
            assert token_count(str(reply.data).replace(" ", "")) <= max_tokens
            groups = rows(reply.data["groups"])
            named = [row for row in groups if len(row) > 6]
            assert (reply.data["status"] == "truncated") == ("more were found" in reply.summary)
            assert len(reply.lines) == len(named) + len({row[0] for row in groups if len(row) == 4})


async def test_every_relation_of_an_entity_is_there_at_least_by_name_and_count(sample: LocalAdapter) -> None:
    question = "Where was he born?"
    (whole,) = [
        await observe(sample, SpellingScorer(), question=question, entities=["Q5879"], hops=1, max_tokens=20_000)
    ]
    small = await observe(sample, SpellingScorer(), question=question, entities=["Q5879"], hops=1, max_tokens=500)
    everything = [(row[1], row[2], row[3]) for row in rows(whole.data["groups"])]
    assert len(everything) > 15
    assert sorted((row[1], row[2], row[3]) for row in rows(small.data["groups"])) == sorted(everything)
    *_, rest = small.plain.lines
    assert rest.startswith("Also around Johann Wolfgang von Goethe | out: ")
    left = [row for row in rows(small.data["groups"]) if len(row) == 4]
    labels = texts(small.data["relations"])
    assert all(f"{labels[row[1]]} {row[3]}" in rest for row in left)
    assert len(left) > 1


async def test_a_relation_with_many_ends_is_one_line_with_their_number(graph_of: Callable[[str], LocalAdapter]) -> None:
    ends = "".join(f"<http://ex.org/x> <http://ex.org/r> <http://ex.org/y{number}> . " for number in range(12))
    reply = await observe(graph_of(ends), question="r", entities=["<http://ex.org/x>"])
    (line,) = reply.lines
    assert line.startswith("ex:x | ex:r | 12: ex:y0, ex:y1, ")
    assert line.endswith(", …")
    ((_, _, _, count, _, _, *far),) = rows(reply.data["groups"])
    assert (count, len(far)) == ("12", 10)


async def test_an_id_stands_where_a_thing_is_first_named_and_wherever_it_has_a_namesake(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    graph = graph_of(
        "@prefix e: <http://ex.org/> . e:x e:r e:y ; e:s e:z . e:y e:r e:w . "
        f'e:x {label} "Xavier" . e:y {label} "Ann" . e:z {label} "Ann" . e:w {label} "Will" .'
    )
    reply = await observe(graph, question="r", entities=["<http://ex.org/x>"])
    assert reply.lines == ["Xavier (e:x) | e:r | Ann (e:y)", "Ann (e:y) | e:r | Will (e:w)", "Xavier | e:s | Ann (e:z)"]


async def test_more_is_named_of_what_is_near_than_of_what_is_far(graph_of: Callable[[str], LocalAdapter]) -> None:
    crowd = "".join(f"e:x e:r e:y{number} . e:y0 e:r e:z{number} . " for number in range(12))
    crowd += "".join(f"e:far{number} e:s e:farther{number} . " for number in range(200))
    reply = await observe(graph_of(f"@prefix e: <http://ex.org/> . {crowd}"), question="r", entities=["e:x"])
    groups = {row[0]: (row[3], len(row[6:])) for row in rows(reply.data["groups"]) if row[2] == "out"}
    assert (groups["e:x"], groups["e:y0"]) == (("12", 10), ("12", 4))


async def test_no_label_can_end_one_item_of_a_list_and_begin_another(graph_of: Callable[[str], LocalAdapter]) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    graph = graph_of(
        "<http://ex.org/x> <http://ex.org/r> <http://ex.org/y> , <http://ex.org/z> . "
        f'<http://ex.org/y> {label} "Ann (ex:q), Bob" . <http://ex.org/z> {label} "3: Cid" .'
    )
    reply = await observe(graph, question="r", entities=["<http://ex.org/x>"])
    assert reply.lines == ['ex:x | ex:r | 2: "3: Cid" (ex:z), "Ann (ex:q), Bob" (ex:y)']


async def test_the_scorer_that_had_to_do_is_named(tokyo: LocalAdapter) -> None:
    reply = await observe(tokyo, SpellingScorer("onnxruntime is missing"), question="capital", entities=["Q1490"])
    assert reply.data["scorer"] == "spelling alone (onnxruntime is missing)"
    assert "by spelling alone (onnxruntime is missing)." in reply.summary


async def test_hubs_that_were_not_seen_whole_are_named(hub: LocalAdapter) -> None:
    reply = await observe(hub, question="who is a citizen", entities=["<http://ex.org/land>"])
    assert reply.data["sampled"] == ["ex:land"]
    assert reply.summary.endswith("Only sampled, relation by relation: ex:land; GetNeighbor lists all.")


async def test_values_are_facts_beside_edges_and_stand_plainly(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of(
        "@prefix e: <http://ex.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
        'e:x e:died "1997-04-05"^^xsd:date ; e:size "2544"^^xsd:integer ; e:motto "ever on" ; e:home e:y .'
    )
    reply = await observe(graph, question="when died", entities=["<http://ex.org/x>"])
    assert reply.lines[0] == "e:x | e:died | 1997-04-05"
    assert set(reply.lines[1:]) == {
        "e:x | e:size | 2,544",
        'e:x | e:motto | "ever on"',
        "e:x | e:home | e:y",
    }
    assert rows(reply.data["groups"])[0][6] == '"1997-04-05"^^xsd:date'


async def test_an_answer_that_ran_out_of_time_says_so_and_shows_what_there_is() -> None:
    graph = SlowGraph(["goethe partner lili", "lili birth offenbach"], "timeout")
    reply = await observe(graph, question="partner", entities=["<http://example.org/goethe>"])
    assert reply.data["status"] == "timeout"
    assert reply.summary.endswith("Time ran out after 1 of 3 hops: ask for fewer hops or entities.")
    assert reply.lines == ["example:goethe | example:partner | example:lili"]


async def test_unknown_ids_are_refused_by_name_all_of_them_at_once(tokyo: LocalAdapter) -> None:
    one = await refusal(tokyo, question="capital", entities=["Q1490", "Q424242"])
    assert one == "This graph has no entity 'Q424242'. Retrieve finds the id of a name."
    several = await refusal(tokyo, question="capital", entities=["Q1490", *(f"Q42424{place}" for place in range(5))])
    assert all(f"'Q42424{place}'" in several for place in range(5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"question": " \n ", "entities": ["Q1490"]}, "question is missing"),
        ({"question": "x", "entities": []}, "entities=[]"),
        ({"question": "x", "entities": ["Q1490"] * 21}, "entities="),
        ({"question": "x", "entities": 1490}, "entities=1490: it must be a list"),
        ({"question": "\ud800 capital", "entities": ["Q1490"]}, "it must be a text without broken characters"),
        ({"question": "x" * 1_001, "entities": ["Q1490"]}, "question="),
        ({"question": "x", "entities": ["Q1490"], "hops": 5}, "hops=5"),
        ({"question": "x", "entities": ["P36"]}, "capital is a relation"),
        ({"question": "x", "entities": ["Q1490"], "depth": 2}, "observe has no argument 'depth'"),
    ],
)
async def test_what_cannot_be_asked_is_refused_with_the_reason(
    tokyo: LocalAdapter, arguments: dict[str, object], message: str
) -> None:
    assert message in await refusal(tokyo, **arguments)


@pytest.mark.parametrize(
    "question",
    ["东京的首都是什么", "ما هي عاصمة طوكيو", "\N{TOKYO TOWER}\u202e \x07capital", "capital " * 100, "]},'\"\n|"],
)
async def test_a_question_in_any_script_is_answered(tokyo: LocalAdapter, question: str) -> None:
    for scorer in (PAPER, SpellingScorer()):
        reply = await observe(tokyo, scorer, question=question, entities=["Q1490"])
        assert (reply.is_error, reply.data["found"]) == (False, 9)


async def test_progress_is_reported_with_each_hop(tokyo: LocalAdapter) -> None:
    told: list[tuple[float, float | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async with Client(ranking_server(tokyo, PAPER)) as client:
        await client.call_tool("observe", {"question": "capital", "entities": ["Q1490"]}, progress_callback=tell)
    assert told == [(1, 3), (2, 3), (3, 3)]


async def test_by_the_papers_score_every_fact_that_a_hop_keeps_is_shown(tmp_path: Path) -> None:
    lines = [f"wd:Q1490 wdt:P47 wd:Q{number} . wd:Q{number} wdt:P36 wd:Q{number + 100} ." for number in range(200, 240)]
    async with story_tools(tmp_path, "\n".join((PREFIXES, *lines)), "minilm", observe_score="paper") as tools:
        call = await tools.call(
            "observe", {"question": "Its neighbours?", "entities": ["Q1490"], "hops": 2, "top_n": 30, "top_percent": 50}
        )
    groups = ObserveResult.model_validate(call.data).groups
    shown = [(row[5], len(row[6:])) for row in groups]
    assert sum(count for hop, count in shown if hop == "1") == 30
    assert sum(count for hop, count in shown if hop == "2") == 15
    assert next(row[3] for row in groups) == "40"
