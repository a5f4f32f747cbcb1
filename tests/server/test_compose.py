"""Compose as a client sees it: worked cases, names, and what an answer says about itself."""

import json
from collections.abc import Callable
from contextlib import aclosing

import pytest
from mcp import Client

from calls import UNHURRIED, compose_server, composed, refused, reply_of, rows, unhurried
from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.terms import Iri
from kg_server.answers.results import token_count
from kg_server.app import build_server
from kg_server.settings import Settings

SHOP = "\n".join(
    (
        "@prefix ex: <http://shop.example/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        'ex:B00BRPTT9K rdfs:label "Nokia CC-3068 Shell for Lumia 520 - Retail Packaging - White" ;',
        "    ex:bought_together_item ex:B00E45043A .",
        'ex:B00E45043A rdfs:label "Screen protector" ; ex:bought_together_item ex:B00BRPTT9K .',
        *(f"ex:B00E45043A ex:bought_together_item ex:item{number:02} ." for number in range(48)),
    )
)

CLINIC = """
@prefix ex: <http://clinic.example/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:DB00591 rdfs:label "Fluocinolone Acetonide" ; ex:Compound-treats-Disease ex:DOID_3310, ex:DOID_8893 .
ex:DOID_3310 rdfs:label "atopic dermatitis" ; ex:Disease-localizes-Anatomy ex:UBERON_0001690, ex:UBERON_0001691 .
ex:DOID_8893 rdfs:label "psoriasis" ; ex:Disease-localizes-Anatomy ex:UBERON_0001691, ex:UBERON_0002097 .
ex:DOID_1909 rdfs:label "otitis" ; ex:Disease-localizes-Anatomy ex:UBERON_0001690 .
ex:UBERON_0001690 rdfs:label "ear" .
ex:UBERON_0001691 rdfs:label "external ear" .
ex:UBERON_0002097 rdfs:label "skin" .
"""


async def test_the_count_that_the_paper_got_wrong_is_one_expression(graph_of: Callable[[str], LocalAdapter]) -> None:
    shell = "Retrieve[Nokia CC-3068 Shell for Lumia 520 - Retail Packaging - White]"
    reply = await composed(
        graph_of(SHOP),
        f"Count[Minus[Neighbor[Neighbor[{shell}, bought_together_item], bought_together_item], {shell}]]",
    )
    assert reply.text == "48."
    assert reply.data["status"] == "ok"
    assert reply.data["results"] == [["1", "", "", "48", "number"]]
    assert rows(reply.data["evidence"])[1] == ["ex:B00E45043A", "ex:bought_together_item", "ex:item00"]


async def test_the_intersection_that_the_paper_got_wrong_is_one_expression(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    reply = await composed(
        graph_of(CLINIC),
        "Intersect[Neighbor[Retrieve[Fluocinolone Acetonide], Compound-treats-Disease], "
        "Neighbor[Retrieve[ear], -Disease-localizes-Anatomy]]",
    )
    assert reply.data["results"] == [["1", "", "", "ex:DOID_3310", "node"]]
    assert reply.data["evidence"] == [
        [f"ex:{name}" for name in names]
        for names in (
            ("DB00591", "Compound-treats-Disease", "DOID_3310"),
            ("DOID_3310", "Disease-localizes-Anatomy", "UBERON_0001690"),
        )
    ]


async def test_an_answer_shows_results_and_evidence_with_labels_and_ids(tokyo: LocalAdapter) -> None:
    reply = await composed(tokyo, "Feature[Neighbor[Retrieve[Japan], Capital], population]")
    assert reply.text == "1 value.\nTokyo (Q1490) | population (P1082) | 13,960,236"
    assert reply.data == {
        "status": "ok",
        "knowledge": "stated",
        "read": {"Japan": "Q17"},
        "summary": "1 value.",
        "parts": [["1", "Feature[Neighbor[Retrieve[Japan], Capital], population]", "values", "1 value"]],
        "results": [["1", "Q1490", "P1082", "13960236", "xsd:integer"]],
        "evidence": [["Q17", "P36", "Q1490"]],
        "labels": {"Q1490": "Tokyo", "Q17": "Japan"},
        "relations": {"P1082": "population", "P36": "capital"},
    }


async def test_a_relation_is_walked_backwards_and_told_in_its_true_direction(tokyo: LocalAdapter) -> None:
    reply = await composed(tokyo, "Neighbor[wd:Q1490, - P36]")
    assert reply.plain.text == "Japan."
    assert reply.data["results"] == [["1", "Q1490", "-P36", "Q17", "node"]]


async def test_values_and_numbers_are_told_by_node_and_neighbours_of_several_nodes_once(tokyo: LocalAdapter) -> None:
    reply = await composed(tokyo, "Degree[Union[Q1490, Q17, Q515], capital], Neighbor[Union[Q1490, Q17, Q515], P36]")
    assert sorted(rows(reply.data["results"])) == [
        ["1", "Q1490", "P36", "1", "number"],
        ["1", "Q17", "P36", "1", "number"],
        ["1", "Q515", "P36", "0", "number"],
        ["2", "", "", "Q1490", "node"],
        ["2", "", "", "Q179645", "node"],
    ]
    assert ["Q1490", "P36", "Q179645"] in rows(reply.data["evidence"])


async def test_an_id_that_the_graph_does_not_have_is_refused_and_pointed_at_where_it_stands_twice(
    tokyo: LocalAdapter,
) -> None:
    refusal = "This graph has no entity 'Q424242'. Retrieve finds the id of a name."
    assert await refused(tokyo, "Neighbor[Union[Q1490, Q424242], P36]") == refusal
    twice = "Neighbor[Union[Q424242, Q424242], P36]"
    assert await refused(tokyo, twice) == f"{refusal}\n{twice}\n{' ' * 15}^"


async def test_a_part_that_fails_leaves_the_others_alone(tokyo: LocalAdapter) -> None:
    reply = await composed(tokyo, "Degree[Q1490], Neighbor[Osaka, capital], Retrieve[Shinjuku]")
    assert reply.data["status"] == "truncated"
    assert reply.summary == "3 parts: 2 worked out, 1 failed."
    assert reply.lines[0] == "part 1 | Degree[Q1490] | 3"
    assert rows(reply.data["parts"])[1][:3] == ["2", "Neighbor[Osaka, capital]", "error"]
    assert rows(reply.data["parts"])[1][3].startswith("No entity matches 'Osaka'.")
    assert [row[3] for row in rows(reply.data["results"])] == ["3", "Q179645"]


@pytest.mark.parametrize(
    ("wrong", "reason", "caret"),
    [
        ("Town[Q1490]", "There is no function 'Town'.", 0),
        ("Neighbor[Q1490, capital", "This bracket of Neighbor is never closed.", 8),
        ("Top[Type[city], population, many]", "Expected how many, a whole number", 28),
        ("Degree[Q1490] at last", "Expected a comma and another call, or the end.", 14),
    ],
)
async def test_a_part_that_cannot_be_read_is_refused_at_its_place_and_the_others_are_worked_out(
    tokyo: LocalAdapter, wrong: str, reason: str, caret: int
) -> None:
    reply = await composed(tokyo, f"Degree[Q1490], {wrong}")
    assert reply.summary == "2 parts: 1 worked out, 1 failed."
    at = next(place for place, line in enumerate(reply.lines) if line.startswith("part 2"))
    assert reply.lines[at].startswith(f"part 2 | {wrong} | error: {reason}")
    assert reply.lines[at + 1 : at + 3] == [wrong, f"{' ' * caret}^"]
    assert [row[:3] for row in rows(reply.data["parts"])] == [["1", "Degree[Q1490]", "numbers"], ["2", wrong, "error"]]
    assert [row[3] for row in rows(reply.data["results"])] == ["3"]


async def test_what_follows_a_part_that_cannot_be_read_is_worked_out(tokyo: LocalAdapter) -> None:
    reply = await composed(tokyo, 'Town["a, Degree[b"], Degree[Q1490] x, Degree[Q1490]')
    assert reply.summary == "3 parts: 1 worked out, 2 failed."
    assert [row[0] for row in rows(reply.data["results"])] == ["3"]


STAFF = """
@prefix ex: <http://staff.example/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:e1 rdfs:label "Ida" ; ex:post [ ex:role ex:e3 ; ex:since 1990 ], ex:p2 .
ex:p2 ex:role ex:e4 ; ex:since 2001 .
ex:e3 rdfs:label "nurse" .
ex:e4 rdfs:label "doctor" .
"""


@pytest.mark.parametrize(
    "expression",
    [
        "Neighbor[Ida, post]",
        "Neighbor[Ida]",
        "Degree[Neighbor[Ida, post], role]",
        "Group[Ida, post]",
        "Top[Neighbor[Ida, post], since, 2]",
        "Table[Neighbor[Ida, post], since]",
    ],
)
async def test_a_node_without_a_name_is_shown_with_what_it_holds(
    graph_of: Callable[[str], LocalAdapter], expression: str
) -> None:
    reply = await composed(graph_of(STAFF), expression)
    ((nurse,), (doctor,)) = ([line for line in reply.lines if each in line] for each in ("_:", "ex:p2"))
    assert ("nurse" in nurse, "1990" in nurse) == (True, True)
    assert ("doctor" in doctor, "2001" in doctor) == (True, True)
    held = [row[2] for row in rows(reply.data["held"])]
    assert {"ex:e3", "ex:e4"} <= set(held)


async def test_as_in_the_paper_retrieve_gives_the_one_node_nearest_by_embedding(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    cache = tmp_path_factory.getbasetemp() / "sample"
    settings = unhurried(cache_folder=cache, data_folder=cache / "data", compose_retrieve="nearest")
    async with aclosing(LocalAdapter(open_sample(cache))) as graph, Client(build_server(graph, settings)) as client:
        for text, found in (("the physicist of relativity", "Q937"), ("Albert Einstein", "Q937"), ("Goethe", "Q5879")):
            reply = reply_of(await client.call_tool("Compose", {"expression": f"Retrieve[{text}]"}))
            assert [row[3] for row in rows(reply.data["results"])] == [found]


async def test_without_vectors_retrieve_gives_one_of_those_that_are_like_a_text(tokyo: LocalAdapter) -> None:
    settings = unhurried(embedding=LEXICAL, compose_retrieve="nearest")
    async with Client(build_server(tokyo, settings)) as client:
        reply = reply_of(await client.call_tool("Compose", {"expression": "Retrieve[Tokyo City]"}))
    assert [row[3] for row in rows(reply.data["results"])] == ["Q1490"]


async def test_when_every_part_fails_the_call_fails_with_all_reasons(tokyo: LocalAdapter) -> None:
    text = await refused(tokyo, "Retrieve[zzzzqqqq], Neighbor[Q424242, P36]")
    assert text.splitlines() == [
        "None of the 2 parts can be worked out.",
        "1: No entity matches 'zzzzqqqq'.",
        "2: This graph has no entity 'Q424242'. Retrieve finds the id of a name.",
    ]
    assert (await refused(tokyo, ",".join(["Retrieve[zzzzqqqq]"] * 9))).endswith("\nThe other 4 fail too.")


async def test_an_exact_name_stands_for_an_id_and_nothing_is_computed_from_another(tokyo: LocalAdapter) -> None:
    assert (await composed(tokyo, 'Neighbor["Tokyo", capital]')).plain.text.startswith("Shinjuku.")
    text = await refused(tokyo, 'Neighbor["Kyoto", capital]')
    assert text == "No entity matches 'Kyoto'."


async def test_the_id_of_a_relation_is_no_node(tokyo: LocalAdapter) -> None:
    assert "capital is a relation" in await refused(tokyo, "Neighbor[P36, capital]")


async def test_nothing_in_the_asked_direction_points_to_the_other(tokyo: LocalAdapter) -> None:
    reply = await composed(tokyo, "Neighbor[Q17, -capital]")
    assert reply.data["status"] == "empty"
    assert reply.plain.summary == "0 nodes. Only the other way round: capital."
    assert reply.plain.lines == []


async def test_neighbours_over_everything_are_as_many_as_degree_counts(sample: LocalAdapter) -> None:
    reply = await composed(sample, "Degree[Q5879], Count[Neighbor[Q5879]]")
    (degree,) = (await sample.degrees([Iri("http://www.wikidata.org/entity/Q5879")])).values()
    assert [row[3] for row in rows(reply.data["results"])] == [str(degree.neighbors.value)] * 2


async def test_counts_of_numbers_stay_these_numbers(tokyo: LocalAdapter) -> None:
    reply = await composed(tokyo, "Count[Degree[Union[Q1490, Q17]]], Count[Q1490]")
    assert [row[3] for row in rows(reply.data["results"])] == ["3", "3", "1"]


async def test_a_hub_is_counted_whole_and_does_not_spoil_an_intersection(hub: LocalAdapter) -> None:
    land, first = "ex:land", "ex:person0000"
    last = "ex:person4999"
    citizens = f"Neighbor[{land}, -citizen]"
    reply = await composed(
        hub,
        f"Count[{citizens}], Intersect[{citizens}, Union[{first}, {last}, {land}]], "
        f"Minus[Union[{first}, {last}, {land}], {citizens}]",
    )
    assert [row[3] for row in rows(reply.data["results"])] == ["5000", first, last, land]
    assert [last, "ex:citizen", land] in rows(reply.data["evidence"])
    assert reply.data["status"] == "ok"


async def test_results_that_do_not_fit_are_counted(hub: LocalAdapter) -> None:
    reply = await composed(hub, "Degree[Neighbor[ex:land, -citizen], citizen]")
    assert reply.data["status"] == "truncated"
    shown = len(rows(reply.data["results"]))
    assert f"{5_000 - shown:,} results are left out" in reply.summary


@pytest.mark.parametrize("max_tokens", [300, 2_000])
async def test_both_forms_stay_within_the_budget(sample: LocalAdapter, max_tokens: int) -> None:
    expression = "Neighbor[Neighbor[Q30, -P27], P19], Neighbor[Q64, -P19], Retrieve[John Adams], Degree[Q1490]"
    reply = await composed(sample, expression, Settings(max_tokens=max_tokens, timeout_s=60))
    assert token_count(reply.text) <= max_tokens
    assert token_count(json.dumps(reply.data, ensure_ascii=False, separators=(",", ":"))) <= max_tokens
    assert reply.data["status"] == "truncated"
    assert "results are left out" in reply.summary


async def test_parts_share_the_room_of_an_answer(sample: LocalAdapter) -> None:
    reply = await composed(sample, "Neighbor[Q30, -P27], Neighbor[Q64, -P19], Retrieve[Tokyo]")
    assert {row[0] for row in rows(reply.data["results"])} == {"1", "2", "3"}


async def test_sixty_four_parts_do_not_overflow_the_answer(tokyo: LocalAdapter) -> None:
    reply = await composed(tokyo, ", ".join(["Feature[Q1490, 'population']"] * 64), unhurried(max_tokens=400))
    assert token_count(reply.text) <= 400
    assert "parts are left out: ask for fewer at once." in reply.summary


HOSTILE = {
    "quotes": ("Retrieve['\"Tokyo\"']", "Tokyo"),
    "chinese": ("Retrieve[\u6771\u4eac]", "No entity matches '\u6771\u4eac'."),
    "surrogate": ("Retrieve[\ud800]", "a text without broken characters"),
    "control": ("Retrieve[\x00\x01]", "No entity matches"),
    "code": ("Retrieve[__import__('os').system('true')]", "No entity matches"),
    "size": ("Retrieve[" + "x" * 100_000 + "]", "at most 20000 characters"),
    "injection": ("Neighbor[<http://a> <http://b>, x]", "is not an id"),
}


@pytest.mark.parametrize(("expression", "said"), HOSTILE.values(), ids=HOSTILE)
async def test_odd_expressions_get_an_answer_or_a_clear_refusal(
    tokyo: LocalAdapter, expression: str, said: str
) -> None:
    async with Client(compose_server(tokyo)) as client:
        odd = await client.call_tool("Compose", {"expression": expression})
        after = await client.call_tool("Compose", {"expression": "Count[Q1490]"})
    text = str(odd.content[0])
    assert said in text.replace('\\"', '"').replace("\\'", "'")
    assert len(text) < 1_500
    assert not after.is_error


async def test_the_sparql_that_asks_the_same_is_shown_where_it_is_asked_for(tokyo: LocalAdapter) -> None:
    server = build_server(tokyo, UNHURRIED)
    expression = "Count[Neighbor[Q17, -country]], Where[Neighbor[Q17, -country], population > 1000], Feature[Q1490]"
    async with Client(server) as client:
        reply = reply_of(await client.call_tool("Compose", {"expression": expression, "explain": True}))
        queries = dict(rows(reply.data["sparql"]))
        answers = [reply_of(await client.call_tool("Sparql", {"query": query})) for query in queries.values()]
    assert list(queries) == ["1", "2"]
    assert "The SPARQL of 1 of the parts is not shown" in reply.summary
    assert [line for line in reply.lines if line.startswith("SPARQL | PREFIX ")] == [
        f"SPARQL | {query}" for query in queries.values()
    ]
    counted, kept = ([row[3] for row in rows(reply.data["results"]) if row[0] == part] for part in queries)
    assert rows(answers[0].data["rows"]) == [counted]
    assert [row[0] for row in rows(answers[1].data["rows"])] == kept
    assert "sparql" not in (await composed(tokyo, expression)).data
