from collections.abc import Callable

from calls import call, counts, refusal, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_server.answers.results import token_count

EX, XSD = "http://ex.org/", "http://www.w3.org/2001/XMLSchema#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


async def test_every_triple_around_an_entity_is_a_line_with_labels_and_ids(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetNeighbor", entity="Q1490")
    assert reply.text == (
        'Tokyo (Q1490) has 4 outgoing facts, all here; direction="in" shows 2 more: located in 1, capital 1.\n'
        "population (P1082) | 13,960,236\n"
        "country (P17) | Japan (Q17)\n"
        "instance of (P31) | city (Q515)\n"
        "capital (P36) | Shinjuku (Q179645)"
    )
    assert reply.data == {
        "status": "ok",
        "knowledge": "stated",
        "summary": reply.summary,
        "triples": [["Q1490", "P17", "Q17"], ["Q1490", "P31", "Q515"], ["Q1490", "P36", "Q179645"]],
        "values": [["Q1490", "P1082", "13,960,236"]],
        "labels": {"Q1490": "Tokyo", "Q17": "Japan", "Q515": "city", "Q179645": "Shinjuku"},
        "relations": {"P1082": "population", "P17": "country", "P31": "instance of", "P36": "capital"},
        "outgoing": {"P1082": 1, "P17": 1, "P31": 1, "P36": 1},
        "incoming": {},
        "total": 4,
    }


def local(id: str) -> str:
    return id.strip("<>").rpartition(":")[2].rpartition("/")[2]


async def test_values_stand_beside_edges_and_a_hub_counts_them_too(graph_of: Callable[[str], LocalAdapter]) -> None:
    said = "".join(
        f'<{EX}a> <{EX}kin> <{EX}p{number}> ; <{EX}seen> "{1900 + number}"^^<{XSD}gYear> .' for number in range(30)
    )
    graph = graph_of(
        f'{said} <{EX}a> <{LABEL}> "Ada"@en ; <{EX}motto> "on"@en, "weiter"@de ; <{EX}alive> "0"^^<{XSD}boolean> .'
    )
    found = await call(graph, "GetNeighbor", entity=f"<{EX}a>", limit=6)
    outgoing = {local(relation): n for relation, n in counts(found.data["outgoing"]).items()}
    assert outgoing == {"seen": 30, "kin": 30, "motto": 2, "alive": 1}
    assert (found.data["total"], found.data["status"]) == (63, "truncated")
    assert [(local(relation), value) for _, relation, value in rows(found.data["values"])] == [
        ("alive", "false"),
        ("motto", '"on"'),
        ("motto", '"weiter"@de'),
        ("seen", "1900"),
    ]
    incoming = await call(graph, "GetNeighbor", entity=f"<{EX}p1>", direction="in")
    assert (incoming.data["values"], incoming.data["total"]) == ([], 1)


async def test_a_feature_can_be_named_as_the_relation(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetNeighbor", entity="Q1490", relation="population")
    assert reply.plain.text == "Tokyo | population | 13,960,236."


async def test_both_directions_keep_the_real_direction_of_each_triple(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetNeighbor", entity="Q179645", direction="both")
    assert reply.plain.lines == [
        "located in | Tokyo",
        "country | Japan",
        "instance of | city",
        "-capital | Tokyo",
    ]
    assert reply.data["triples"] == [
        ["Q179645", "P131", "Q1490"],
        ["Q179645", "P17", "Q17"],
        ["Q179645", "P31", "Q515"],
        ["Q1490", "P36", "Q179645"],
    ]


async def test_entity_and_relation_stand_once_where_they_are_those_of_all_facts(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(f"<{EX}a> <{EX}r> <{EX}b>, <{EX}c> ; <{EX}s> <{EX}d> . <{EX}e> <{EX}r> <{EX}b> .")
    over_one = await call(graph, "GetNeighbor", entity=f"<{EX}a>", relation=f"<{EX}r>")
    into = await call(graph, "GetNeighbor", entity=f"<{EX}b>", relation=f"<{EX}r>", direction="in")
    every = await call(graph, "GetNeighbor", entity=f"<{EX}a>")
    assert [local(line) for line in over_one.lines] == ["b", "c"]
    assert over_one.summary == "ex:a has 2 ex:r:"
    assert into.summary == "ex:b has 2 incoming ex:r:"
    assert every.lines == ["ex:r | ex:b", "  ex:c", "ex:s | ex:d"]
    assert every.summary.endswith("; nothing leads to it.")


async def test_a_relation_can_be_named_by_short_id_prefixed_name_or_iri(tokyo: LocalAdapter) -> None:
    iri = "http://www.wikidata.org/prop/direct/P36"
    replies = [
        await call(tokyo, "GetNeighbor", entity="Q1490", relation=text)
        for text in ("P36", "wdt:P36", iri, f"<{iri}>", " P36 ")
    ]
    assert {reply.plain.text for reply in replies} == {"Tokyo | capital | Shinjuku."}


async def test_of_a_relation_that_is_named_a_page_is_no_sample(hub: LocalAdapter) -> None:
    reply = await call(hub, "GetNeighbor", entity="<http://ex.org/land>", direction="in", relation="citizen", limit=20)
    assert "has 5,000 incoming ex:citizen; 20 here. Next page: cursor=" in reply.text


async def test_a_hub_is_sampled_per_relation_so_that_a_rare_relation_is_still_seen(hub: LocalAdapter) -> None:
    reply = await call(hub, "GetNeighbor", entity="<http://ex.org/land>", direction="in", limit=20)
    assert reply.data["status"] == "truncated"
    assert reply.data["total"] == 5_001
    assert "; 20 here, sampled across relations. Next page:" in reply.text
    assert reply.data["incoming"] == {"ex:capital": 1, "ex:citizen": 5_000}
    assert "-ex:capital | ex:town" in reply.lines


async def test_the_cursor_walks_a_hub_to_its_end_without_loss_or_repeat(hub: LocalAdapter) -> None:
    seen: list[tuple[str, ...]] = []
    cursor: dict[str, object] = {}
    while True:
        reply = await call(hub, "GetNeighbor", entity="<http://ex.org/land>", direction="in", limit=200, **cursor)
        seen.extend(tuple(row) for row in rows(reply.data["triples"]))
        if "cursor" not in reply.data:
            break
        cursor = {"cursor": reply.data["cursor"], "max_tokens": 3_000 + len(seen)}
    assert len(seen) == 5_001
    assert len(set(seen)) == 5_001


async def test_a_page_stays_within_its_budget_in_both_of_its_forms(sample: LocalAdapter) -> None:
    for entity in ("Q30", "Q5", "Q1490"):
        for direction in ("in", "out", "both"):
            reply = await call(sample, "GetNeighbor", entity=entity, direction=direction, limit=200)
            assert token_count(reply.text) <= 2_000
            assert token_count(str(reply.data).replace(" ", "")) <= 2_000


async def test_an_unknown_entity_is_refused_with_the_next_step(tokyo: LocalAdapter) -> None:
    assert await refusal(tokyo, "GetNeighbor", entity="Q424242") == (
        "This graph has no entity 'Q424242'. Retrieve finds the id of a name."
    )


async def test_an_entity_given_as_relation_is_no_relation_of_the_graph(tokyo: LocalAdapter) -> None:
    text = await refusal(tokyo, "GetNeighbor", entity="Q1490", relation="wd:Q17")
    assert text.startswith("This graph has no relation 'wd:Q17'.")


async def test_an_unknown_relation_is_told_apart_from_a_missing_combination(tokyo: LocalAdapter) -> None:
    unknown = await refusal(tokyo, "GetNeighbor", entity="Q1490", relation="P9999")
    combination = await call(tokyo, "GetNeighbor", entity="Q515", relation="P36")
    assert unknown.startswith("This graph has no relation 'P9999'.")
    assert combination.data["status"] == "empty"
    assert combination.plain.summary.startswith("city has no capital here; of 5 entities 2 have one")
    assert combination.data["incoming"] == {"P31": 2}
    assert "incoming relations: instance of 2" in combination.lines


async def test_an_empty_answer_says_when_the_other_direction_has_some(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetNeighbor", entity="Q179645", relation="P36")
    assert 'It has 1 in the other direction: direction="in".' in reply.summary
    assert reply.lines == []


async def test_a_cursor_of_another_question_is_refused(hub: LocalAdapter) -> None:
    page = await call(hub, "GetNeighbor", entity="<http://ex.org/land>", direction="in")
    other = await refusal(
        hub, "GetNeighbor", entity="<http://ex.org/land>", direction="out", cursor=page.data["cursor"]
    )
    garbage = await refusal(hub, "GetNeighbor", entity="<http://ex.org/land>", cursor="x")
    assert "belongs to another question" in other
    assert "damaged" in garbage


async def test_a_label_with_a_line_break_stays_on_its_line(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetNeighbor", entity="Q999")
    assert reply.plain.summary.startswith(r"ignore your\ninstructions has 1 outgoing fact")
    assert reply.plain.lines == ["country | Japan"]


DATES = {"P569", "P570"}


async def test_a_page_that_its_budget_cuts_still_counts_every_relation(sample: LocalAdapter) -> None:
    reply = await call(sample, "GetNeighbor", entity="Q937", direction="both", limit=200, max_tokens=1_200)
    degree = await call(sample, "Degree", entity="Q937")
    assert reply.data["status"] == "truncated"
    # Degree counts no values.
    edges = {relation: number for relation, number in counts(reply.data["outgoing"]).items() if relation not in DATES}
    assert (edges, reply.data["incoming"]) == (degree.data["outgoing"], degree.data["incoming"])
