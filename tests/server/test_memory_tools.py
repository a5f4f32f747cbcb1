import re
from collections.abc import Callable
from pathlib import Path

import pytest

from calls import call, plain, reply_of, unhurried
from calls import rows as rows_of
from kg_adapters.local.adapter import LocalAdapter
from kg_server.memory.store import MemoryLimits
from memories import facts_of, files_in, remembering

GOETHE = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
wd:Q5879 rdfs:label "Goethe"@en ; wdt:P451 wd:Q66408 ; wdt:P19 wd:Q1794 ; wdt:P570 "1832-03-22"^^xsd:date .
wd:Q66408 rdfs:label "Lili Sch\u00f6nemann"@en ; wdt:P19 wd:Q3042 .
wd:Q3042 rdfs:label "Offenbach am Main"@en ; wdt:P17 wd:Q183 .
wd:Q1794 rdfs:label "Frankfurt"@en ; wdt:P17 wd:Q183 .
wd:Q183 rdfs:label "Germany"@en .
wdt:P451 rdfs:label "unmarried partner"@en .
wdt:P19 rdfs:label "place of birth"@en .
wdt:P570 rdfs:label "date of death"@en .
wdt:P17 rdfs:label "country"@en .
"""
MANY_VALUES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
wd:Q1 wdt:P1 "1997-04-05"^^xsd:date , "1997-04-05" , "1998-01-02T00:00:00Z"^^xsd:dateTime , "1998-01-02"^^xsd:date ,
    "2544"^^xsd:integer , "+2544"^^xsd:decimal , "2,544" , "12.50"^^xsd:decimal , "1.2E3"^^xsd:double , "5" , 5 , 5.0 ,
    "true" , true , "0"^^xsd:boolean , "1997"^^xsd:gYear , 1997 , "same"@en , "same"@de , "Q1" , "two\\nlines" , "" ,
    "a | b" , "odd"^^wd:Q5 , "NaN"^^xsd:double , "1E99999"^^xsd:double , "soon"^^xsd:date , "say \\"so\\""@en ,
    "]-> x" .
"""
GUESSES = [
    ["Q1", "P1", "14,000,000"],
    ["Q1", "P1", "2001-02-03"],
    ["Q1", "P1", '"new"@en'],
    ["Q1", "P1", '"77"'],
    ["Q1", "P1", '"x"^^wd:Q6'],
]
PARTNER, BIRTH = ["Q5879", "P451", "Q66408"], ["Q66408", "P19", "Q3042"]
CAPITAL, LAND = ["Q1490", "P36", "Q179645"], ["Q1490", "P17", "Q17"]
TO_LILI = "Goethe -[unmarried partner]-> Lili Sch\u00f6nemann"
TO_OFFENBACH = f"{TO_LILI} -[place of birth]-> Offenbach am Main"


@pytest.fixture
def goethe(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    """Goethe, where he was born and died, and a fianc\u00e9e with a birthplace of her own."""
    return graph_of(GOETHE)


async def test_a_path_grows_by_each_triple_that_goes_on_from_its_end(goethe: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(goethe, tmp_path) as memory:
        begun = await memory.append(PARTNER)
        handle = str(begun.data["memory"])
        grown = await memory.append(BIRTH, memory=handle)
        whole = await memory.read(handle)
    assert begun.plain.text == f"Kept 1 new fact; memory {handle} holds 1 fact in 1 path.\n{TO_LILI}"
    assert grown.plain.text == f"Kept 1 new fact; memory {handle} holds 2 facts in 1 path.\n{TO_OFFENBACH}"
    facts = [["1", *PARTNER, "verified"], ["1", *BIRTH, "verified"]]
    labels = {"Q5879": "Goethe", "Q66408": "Lili Sch\u00f6nemann", "Q3042": "Offenbach am Main"}
    relations = {"P451": "unmarried partner", "P19": "place of birth"}
    shared = {"status": "ok", "knowledge": "stated", "facts": facts, "labels": labels, "relations": relations}
    assert grown.data == {**shared, "summary": grown.summary, "memory": handle, "added": 1, "refused": []}
    assert whole.data == {**shared, "summary": whole.summary, "total": 2}
    assert whole.plain.text == f"The memory holds 2 facts in 1 path, all here.\n{TO_OFFENBACH}"


async def test_the_same_triple_changes_nothing_later_or_in_the_same_call(goethe: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(goethe, tmp_path) as memory:
        twice = await memory.append(PARTNER, PARTNER)
        handle = str(twice.data["memory"])
        again = await memory.append(PARTNER, memory=handle)
    assert twice.summary == (
        f"Kept 1 new fact; memory {handle} holds 1 fact in 1 path. 1 of the triples was there already."
    )
    assert again.plain.text == (
        f"Kept 0 new facts; memory {handle} holds 1 fact in 1 path. 1 of the triples was there already.\n{TO_LILI}"
    )
    assert (again.data["added"], again.data["status"]) == (0, "ok")


async def test_another_connection_goes_on_with_a_memory_by_its_handle(goethe: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(goethe, tmp_path) as memory:
        handle = await memory.begin(PARTNER)
    async with remembering(goethe, tmp_path) as memory:
        assert (await memory.append(BIRTH, memory=f" {handle}\n")).plain.lines == [TO_OFFENBACH]
        assert await memory.begin(PARTNER) != handle


async def test_a_triple_that_the_graph_lacks_is_refused_with_what_it_has_and_the_others_are_kept(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        reply = await memory.append(["Q1490", "P36", "Q515"], CAPITAL, ["Q1490", "P131", "Q179645"])
    refused = [
        "triple 1 (Q1490 | P36 | Q515): the graph does not have it. There, Tokyo has capital Shinjuku.",
        "triple 3 (Q1490 | P131 | Q179645): the graph has it only the other way round, Shinjuku | located in | "
        "Tokyo. Swap head and tail.",
    ]
    assert reply.plain.text == "\n".join(
        [
            f"Kept 1 new fact; memory {reply.data['memory']} holds 1 fact in 1 path. 2 triples refused: correct and "
            "send only these.",
            *(f"refused {each}" for each in refused),
            "Tokyo -[capital]-> Shinjuku",
        ]
    )
    assert reply.data["refused"] == [line.removeprefix("refused ") for line in reply.lines[:2]]
    assert (reply.data["status"], reply.is_error) == ("ok", False)


async def test_a_call_without_a_good_triple_fails_and_begins_no_memory(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        reply = await memory.append(["Q1490", "P36", "Q515"], ["Q5", "P36", "Q17"])
    assert reply.is_error
    assert reply.plain.text == (
        "No triple was kept, and no memory changed.\n"
        "triple 1 (Q1490 | P36 | Q515): the graph does not have it. There, Tokyo has capital Shinjuku.\n"
        "triple 2 (Q5 | P36 | Q17): This graph has no entity 'Q5'. Retrieve finds the id of a name."
    )
    assert files_in(tmp_path) == []


async def test_what_is_not_verified_is_marked_wherever_it_is_shown(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        reply = await memory.append(CAPITAL, ["Q179645", "P36", '"a guess"@en'], allow_unverified=True)
        handle = str(reply.data["memory"])
        read = await memory.read(handle)
        resource = await memory.resource(handle)
    line = 'Tokyo -[capital]-> Shinjuku -[capital, unverified]-> "a guess"@en'
    holdings = "holds 2 facts in 1 path, 1 of them unverified"
    assert reply.plain.text == f"Kept 2 new facts; memory {handle} {holdings}.\n{line}"
    assert plain(resource) == read.plain.text == f"The memory {holdings}, all here.\n{line}"
    rows = [["1", *CAPITAL, "verified"], ["1", "Q179645", "P36", '"a guess"@en', "unverified"]]
    assert (reply.data["facts"], read.data["facts"]) == (rows, rows)


def whole(value: str, kind: str) -> str:
    """Return a value with its language or datatype."""
    quoted = '"' + value.replace('"', '\\"') + '"'
    return f"{quoted}{'^^' if ':' in kind or kind == 'Q5' else '@' if kind else ''}{kind}"


async def test_whatever_a_memory_shows_can_be_kept_again(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    graph, limits, settings = graph_of(MANY_VALUES), MemoryLimits(triples_per_call=100), unhurried(max_tokens=20_000)
    features = await call(graph, "Feature", settings, entity="Q1", feature="P1")
    async with remembering(graph, tmp_path, limits, settings) as memory:
        # Values that people write alike are told apart by their datatypes alone, which the rows have.
        begun = await memory.append(*(["Q1", "P1", whole(*cells)] for _, *cells in rows_of(features.data["features"])))
        handle = str(begun.data["memory"])
        guessed = await memory.append(*GUESSES, memory=handle, allow_unverified=True)
        read = await memory.read(handle)
        steps = [re.split(r" -\[|(?:, unverified)?\]-> ", line, maxsplit=2) for line in read.lines]
        for shown in (steps, [row[1:4] for row in facts_of(read)]):
            again = await memory.append(*shown, memory=handle, allow_unverified=True)
            assert (again.data["added"], again.data["refused"]) == (0, [])
    assert (begun.data["added"], begun.data["refused"]) == (len(features.lines), [])
    assert (guessed.data["added"], guessed.data["refused"]) == (len(GUESSES), [])
    tails = {step[2] for step in steps}
    assert {"1997-04-05", "2,544", "true", "1997", '"5"', '"same"@de', '"new"@en', "12.50"} <= tails
    assert {'"14000000"^^xsd:integer', '"2001-02-03"^^xsd:date'} <= tails


async def test_rows_can_be_copied_and_lines_behind_what_they_are_about(tokyo: LocalAdapter, tmp_path: Path) -> None:
    neighbors = await call(tokyo, "GetNeighbor", entity="Q1490")
    features = await call(tokyo, "Feature", entity="Q1490")
    lines = [f"Tokyo (Q1490) | {line}" for line in (*neighbors.lines, *features.lines)]
    async with remembering(tokyo, tmp_path) as memory:
        from_lines = await memory.append(*lines)
        stated = [*rows_of(neighbors.data["triples"]), *rows_of(neighbors.data["values"])]
        from_rows = await memory.append(*stated, memory=from_lines.data["memory"])
    assert "Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)" in lines
    # The population stands among the neighbouring facts and among the features.
    assert (len(neighbors.lines), len(features.lines)) == (4, 4)
    assert (from_lines.data["added"], from_lines.data["refused"]) == (7, [])
    assert (from_rows.data["added"], from_rows.data["refused"]) == (0, [])


async def test_a_wrong_label_beside_an_id_is_said_in_both_forms(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        one = await memory.append("Kyoto (Q1490) | capital (P36) | Shinjuku (Q179645)")
        many = await memory.append("A (Q1490) | B (P36) | C (Q179645)", "A (Q1490) | D (P17) | E (Q17)")
    assert one.summary.endswith(" Q1490 is Tokyo in this graph, not Kyoto; the id counts.")
    assert one.data["summary"] == one.summary
    assert many.summary.endswith(
        " Q1490 is Tokyo in this graph, not A; the id counts. P36 is capital in this graph, not B; the id counts."
        " Q179645 is Shinjuku in this graph, not C; the id counts. 2 more ids have another label in this graph."
    )


async def test_more_triples_than_one_call_takes_are_refused_and_none_is_kept(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    async with remembering(tokyo, tmp_path, MemoryLimits(triples_per_call=2)) as memory:
        handle = await memory.begin(CAPITAL)
        many = await memory.append(CAPITAL, LAND, LAND, memory=handle)
        none = await memory.append(memory=handle)
        held = await memory.read(handle)
        kept = await memory.append(CAPITAL, LAND, memory=handle)
    assert many.is_error
    assert many.text == (
        "One call takes 1 to 2 triples; these are 3. Keep only those that help to answer the question."
    )
    assert none.text == many.text.replace("are 3", "are 0")
    assert (held.data["total"], kept.data["added"]) == (1, 1)


PASTED = [
    ("GetNeighbor", {"entity": "Q1490"}, 29),
    ("GetNeighbor", {"entity": "Q1490", "relation": "P190"}, 13),
    ("GetNeighbor", {"entity": "Q1490", "relation": "P36", "direction": "in"}, 2),
    ("Feature", {"entity": "Q1490"}, 11),
    ("GetPath", {"source": "Q9312", "target": "Q183", "max_hops": 2, "limit": 5}, 5),
    ("GetPath", {"source": "Q937", "target": "Q5879", "max_hops": 2, "limit": 5}, 4),
    ("Retrieve", {"text": "Goethe"}, 8),
    ("Compose", {"expression": "Feature[Q1490, skos:altLabel], Feature[Q5879, schema:description]"}, 4),
    ("Compose", {"expression": "Feature[Q1490, schema:description]"}, 1),
    ("Compose", {"expression": "Feature[Union[Q1490, Q5879], skos:altLabel]"}, 2),
    ("Compose", {"expression": "Table[Union[Q1490, Q5879], skos:altLabel], Feature[Q1490]"}, 3),
    ("observe", {"question": "What is Tokyo the capital of?", "entities": ["Q1490"]}, 2),
]


@pytest.mark.parametrize(("tool", "arguments", "least"), PASTED)
async def test_the_fact_lines_of_an_answer_are_kept_word_for_word(
    sample: LocalAdapter, tmp_path: Path, tool: str, arguments: dict[str, object], least: int
) -> None:
    reply = await call(sample, tool, **arguments)
    assert len(reply.lines) >= least
    # The first line names what others leave out; that of `observe` and of several expressions is a sentence.
    given = reply.lines if tool == "observe" or "parts" in reply.summary else reply.text.splitlines()
    async with remembering(sample, tmp_path, MemoryLimits(triples_per_call=50)) as memory:
        kept = await memory.append(*given)
        assert not kept.is_error, kept.text
        assert "refused" not in kept.summary, kept.text
        assert len(facts_of(kept)) >= least - 1
        again = await memory.read(str(kept.data["memory"]))
        copy = await memory.begin(*again.lines)
        assert {tuple(row[1:]) for row in facts_of(await memory.read(copy))} == {
            tuple(row[1:]) for row in facts_of(again)
        }


async def test_lines_that_leave_out_their_entity_are_refused_without_the_first_line_of_their_answer(
    goethe: LocalAdapter, tmp_path: Path
) -> None:
    async with remembering(goethe, tmp_path) as memory:
        for lines in (["place of birth (P19) | Frankfurt (Q1794)"], ["Q5879 | P451 | Q66408", "P19 | Q3042"]):
            reply = await memory.append(*lines, allow_unverified=True)
            assert "it is not a triple" in reply.text


async def test_a_relation_that_was_walked_backwards_is_kept_as_the_graph_states_it(
    goethe: LocalAdapter, tmp_path: Path
) -> None:
    async with remembering(goethe, tmp_path) as memory:
        kept = await memory.read(await memory.begin("Frankfurt (Q1794) | -place of birth (P19) | Goethe (Q5879)"))
    assert [row[1:4] for row in facts_of(kept)] == [["Q5879", "P19", "Q1794"]]


async def test_the_evidence_of_compose_states_a_triple_for_each_relation(goethe: LocalAdapter, tmp_path: Path) -> None:
    partner, born = "Goethe | unmarried partner | Lili Schönemann", "place of birth | Offenbach am Main"
    backwards = "because Frankfurt | -place of birth | Goethe; country | Germany"
    async with remembering(goethe, tmp_path) as memory:
        there = await memory.append(f"because {partner} | {born}")
        assert [row[1:4] for row in facts_of(there)] == [PARTNER, BIRTH]
        back = await memory.append(backwards)
        assert [row[1:4] for row in facts_of(back)] == [["Q5879", "P19", "Q1794"], ["Q1794", "P17", "Q183"]]
        for odd in ("because ", "because Goethe", "because Goethe | place of birth"):
            refused = await memory.append(odd, allow_unverified=True)
            assert refused.is_error
            assert "it is not a triple" in refused.text


async def test_a_fact_in_a_sentence_and_a_node_with_what_it_holds_are_read(
    goethe: LocalAdapter, tmp_path: Path
) -> None:
    async with remembering(goethe, tmp_path) as memory:
        sentence = await memory.append("Goethe (Q5879) | place of birth (P19) | Frankfurt (Q1794).")
        held = await memory.append("Goethe | unmarried partner | wd:Q66408 [place of birth Offenbach am Main (Q3042)]")
    assert [row[1:4] for row in facts_of(sentence)] == [["Q5879", "P19", "Q1794"]]
    assert [row[1:4] for row in facts_of(held)] == [PARTNER]


async def test_a_relation_whose_own_name_begins_with_a_dash_is_not_turned_around(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    graph = graph_of('<http://e/a> <http://e/r/-capital> <http://e/b> ; <http://e/r/tag> "b" .')
    lines = ("<http://e/a> | -capital (<http://e/r/-capital>) | <http://e/b>", "<http://e/a> | <http://e/r/tag> | b")
    async with remembering(graph, tmp_path) as memory:
        kept = await memory.append(*lines)
    assert "refused" not in kept.summary, kept.text
    assert len(facts_of(kept)) == 2


async def test_a_value_that_is_written_like_a_name_above_stays_a_value(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    prefixes = "\n".join(line for line in GOETHE.splitlines() if line.startswith("@prefix"))
    graph = graph_of(
        f'{prefixes} wd:Q1 rdfs:label "Ann"@en ; wdt:P1 wd:Q2 ; wdt:P2 "Ann" , "Bob" . wd:Q2 rdfs:label "Bob"@en .'
    )
    async with remembering(graph, tmp_path) as memory:
        kept = await memory.append("Ann (Q1) | P1 | Bob (Q2)", "Ann (Q1) | P2 | Ann", "Ann (Q1) | P2 | Bob")
    assert [row[1:4] for row in facts_of(kept)] == [["Q1", "P1", "Q2"], ["Q1", "P2", '"Ann"'], ["Q1", "P2", '"Bob"']]


async def test_lines_that_state_far_too_many_triples_are_refused_and_nothing_is_kept(
    goethe: LocalAdapter, tmp_path: Path
) -> None:
    places = ", ".join(f"place (Q{number})" for number in range(80))
    path = "Q1" + " -[P19]-> Q2" * 101
    async with remembering(goethe, tmp_path) as memory:
        many = await memory.append(*[f"Q5879 | P19 | 80: {places}"] * 1_000)
        listed = await memory.append(f"Q5879 | P19 | 80: {places}")
        walked = await memory.append(path)
        stretched = await memory.append("Q5879 has 1 " + "x" * 4_000 + ":" + "x" * 4_000, "P19 | Q1794")
    assert "these are 1,000" in many.text
    assert "these are 80" in listed.text
    assert "it is not a triple" in walked.text
    assert all(each.is_error for each in (many, listed, walked, stretched))


async def test_triples_that_are_no_list_are_refused_with_the_shape_of_one(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        for triples in ('[["Tokyo", "capital"', {"head": "Tokyo"}):
            reply = reply_of(await memory.client.call_tool("memory-append", {"triples": triples}))
            assert reply.is_error
            assert reply.text.endswith('"Shinjuku (Q179645)"]] or ["Tokyo | capital | Shinjuku"].')
