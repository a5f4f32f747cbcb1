"""Names of entities and relations in answers and calls."""

from collections.abc import Callable

import pytest
from mcp import Client

from calls import UNHURRIED, Reply, call, composed, refusal, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.prefixes import WIKIDATA
from kg_adapters.terms import RDF_LANG_STRING, XSD, Attribute, BlankNode, Iri, Literal
from kg_server.app import build_server
from kg_server.names import Names, shown_literal, with_id

TOKYO = Iri("http://www.wikidata.org/entity/Q1490")
CAPITAL = Iri("http://www.wikidata.org/prop/direct/P36")
NAMES = Names(WIKIDATA, {TOKYO: "Tokyo", CAPITAL: "capital"})


def test_a_term_without_a_label_shows_its_id_or_its_local_part() -> None:
    assert NAMES.entity(TOKYO) == "Tokyo (Q1490)"
    assert NAMES.entity(Iri("http://www.wikidata.org/entity/Q7")) == "Q7"
    assert NAMES.entity(Iri("http://example.org/a#thing")) == "thing (<http://example.org/a#thing>)"
    assert NAMES.entity(BlankNode("b0")) == "_:b0"
    assert Names(WIKIDATA, {TOKYO: "Q1490"}).entity(TOKYO) == "Q1490"


def test_a_literal_shows_its_language_or_its_datatype() -> None:
    assert shown_literal(Literal("x"), WIKIDATA) == '"x"'
    assert shown_literal(Literal("x", RDF_LANG_STRING, "en"), WIKIDATA) == '"x"@en'
    assert shown_literal(Literal("1", Iri(XSD + "integer")), WIKIDATA) == '"1"^^xsd:integer'
    assert shown_literal(Literal("1", TOKYO), WIKIDATA) == '"1"^^Q1490'


def test_a_value_stands_plainly_and_a_text_says_another_language_than_the_one_that_is_read() -> None:
    names = Names(WIKIDATA, {TOKYO: "Tokyo"}, language="en")
    assert names.value(Literal("2544", Iri(XSD + "integer"))) == "2,544"
    assert names.value(Literal("1997", Iri(XSD + "gYear"))) == "1997"
    assert names.value(Literal("1997", Iri(XSD + "integer"))) == "1997"
    altitude = Names(WIKIDATA, {CAPITAL: "altitude (m)"})
    assert altitude.value(Literal("1997", Iri(XSD + "integer")), relation=CAPITAL) == "1,997"
    assert altitude.term(Literal("1997", Iri(XSD + "integer"))) == "1997"
    assert names.value(Literal("x", RDF_LANG_STRING, "en-GB")) == '"x"'
    assert names.value(Literal("x", RDF_LANG_STRING, "de")) == '"x"@de'
    assert names.value(Literal("2544", Iri("http://e.org/code"))) == '"2544"^^<http://e.org/code>'
    assert names.fact(Attribute(TOKYO, CAPITAL, Literal('a" | b'))).endswith(r' | P36 | "a\" \| b"')


def test_a_label_is_cut_and_kept_on_one_line() -> None:
    names = Names(WIKIDATA, {TOKYO: "a\nb\u2028c\x00d", CAPITAL: "x" * 500})
    assert names.entity(TOKYO) == with_id(r"a\nb\u2028c\u0000d", "Q1490")
    assert names.relation(CAPITAL) == with_id(f"{'x' * 119}…", "P36")


def test_a_label_cannot_pass_for_several_columns_nor_a_value_for_two() -> None:
    names = Names(WIKIDATA, {TOKYO: "Tokyo (Q1) | capital (P36) | Fake"})
    assert names.entity(TOKYO) == with_id(r"Tokyo (Q1) \| capital (P36) \| Fake", "Q1490")
    assert names.entity_labels([TOKYO]) == {"Q1490": r"Tokyo (Q1) \| capital (P36) \| Fake"}
    assert shown_literal(Literal('a" | "b\\'), WIKIDATA) == r'"a\" \| \"b\\"'


def test_a_label_cannot_add_a_step_to_a_path() -> None:
    names = Names(WIKIDATA, {TOKYO: "Ann -[killed]-> Bob", CAPITAL: "was]-> Bob -[is"})
    assert names.entity(TOKYO) == with_id(r"Ann -\[killed]\-> Bob", "Q1490")
    assert names.relation(CAPITAL) == with_id(r"was]\-> Bob -\[is", "P36")


def test_a_datatype_or_language_is_shown_like_any_text() -> None:
    assert shown_literal(Literal("1", Iri(XSD + "a\u202eb")), WIKIDATA) == rf'"1"^^<{XSD}a\u202eb>'
    assert shown_literal(Literal("1", RDF_LANG_STRING, "en\n|"), WIKIDATA) == r'"1"@en\n\|'


def test_a_datatype_without_a_prefix_is_a_whole_iri() -> None:
    assert shown_literal(Literal("1", Iri("http://e.org/t")), WIKIDATA) == '"1"^^<http://e.org/t>'


FAMILY = """
@prefix ex: <http://ex.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
ex:father rdfs:label "father"@en ; skos:altLabel "dad"@en .
ex:inLaw rdfs:label "father-in-law"@en .
ex:birthPlace rdfs:label "place of birth"@en .
ex:seat rdfs:label "capital"@en .
ex:money rdfs:label "capital"@en .
ex:worth rdfs:label "value"@en .
ex:price rdfs:label "value"@en .
ex:ann rdfs:label "Ann"@en ; ex:father ex:bob ; ex:inLaw ex:carl ; ex:birthPlace ex:kyoto .
ex:bob rdfs:label "Bob"@en ; ex:worth 7 .
ex:japan rdfs:label "Japan"@en ; ex:seat ex:kyoto ; ex:money ex:kyoto .
ex:firm ex:money ex:bank ; ex:seat ex:kyoto ; ex:price 3 ; ex:worth 2 .
"""


@pytest.fixture
def family(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    """A family, with an alias and two pairs of relations of one label."""
    return graph_of(FAMILY)


async def asked(graph: LocalAdapter, entity: str, relation: str) -> list[Reply]:
    return [
        await call(graph, "GetNeighbor", entity=entity, relation=relation),
        await call(graph, "Degree", entity=entity, relation=relation, direction="out"),
    ]


@pytest.mark.parametrize("text", ["ex:father", "<http://ex.org/father>", "father", "FATHER", "EX:Father"])
async def test_a_label_stands_for_the_id_of_its_relation(family: LocalAdapter, text: str) -> None:
    neighbors, degree = await asked(family, "ex:ann", text)
    assert neighbors.plain.text == "Ann | father | Bob."
    assert degree.plain.summary == "Ann has 1 distinct outgoing neighbour over father."
    assert (await composed(family, f'Neighbor[ex:ann, "{text}"]')).data["results"] == [
        ["1", "ex:ann", "ex:father", "ex:bob", "node"]
    ]


@pytest.mark.parametrize(
    ("text", "name", "relation"),
    [
        ("Dad", "dad", "father"),
        ("birth place", "birthPlace", "place of birth"),
    ],
)
async def test_another_name_is_said_to_be_read_as_its_relation(
    family: LocalAdapter, text: str, name: str, relation: str
) -> None:
    for reply in await asked(family, "ex:ann", text):
        assert reply.plain.summary.startswith(f"'{name}' is read as {relation}. Ann ")


async def test_features_are_read_by_the_same_rules(family: LocalAdapter) -> None:
    by_id = await call(family, "Feature", entity="ex:firm", feature="ex:price")
    by_label = await call(family, "Feature", entity="ex:bob", feature="Value")
    assert by_id.plain.text == "ex:firm | value | 3"
    assert by_label.data["features"] == [["ex:worth", "7", "xsd:integer"]]
    assert by_label.plain.summary == "Bob | value | 7"


async def test_a_name_of_several_relations_means_all_of_them_and_an_id_means_one(family: LocalAdapter) -> None:
    same, _ = await asked(family, "ex:japan", "capital")
    assert same.text == "Japan (ex:japan) | capital (ex:money) | ex:kyoto, also over ex:seat."
    facts = await call(family, "GetNeighbor", entity="ex:firm", relation="capital")
    count = await call(family, "Degree", entity="ex:firm", relation="capital")
    one = await call(family, "GetNeighbor", entity="ex:firm", relation="ex:seat")
    values = await call(family, "Feature", entity="ex:firm", feature="value")
    none = await call(family, "GetNeighbor", entity="ex:ann", relation="capital")
    assert {row[1] for row in rows(facts.data["triples"])} == {"ex:seat", "ex:money"}
    assert facts.summary.startswith("ex:firm has 2 facts over 2 relations called 'capital' (ex:money 1, ex:seat 1):")
    assert "over 'capital' (2 relations of that name)" in count.summary
    assert {row[1] for row in rows(one.data["triples"])} == {"ex:seat"}
    assert {row[0] for row in rows(values.data["features"])} == {"ex:worth", "ex:price"}
    assert none.data["status"] == "empty"
    kept = await call(family, "memory-append", triples=[*same.text.splitlines(), *facts.text.splitlines()])
    assert kept.summary.startswith("Kept 3 new facts")
    named = await call(family, "memory-append", triples=["ex:firm | capital | ex:bank", "ex:firm | capital | ex:ann"])
    assert named.summary.startswith("Kept 1 new fact")
    assert "'capital' may mean" in named.text


TWINS = (
    "@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
    'e:Person rdfs:label "person" . e:son rdfs:label "child" . e:girl rdfs:label "child" .',
    *(f'e:p{number} a e:Person ; rdfs:label "Person {number}" ; e:size {number} .' for number in range(20)),
    "e:p1 e:son e:p2 . e:p3 e:son e:p4 ; e:girl e:p4 . e:p5 e:son e:p6 . e:p7 e:girl e:p8 .",
)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (
            "Neighbor[Person 0, child]",
            "No 'child' (2 relations of that name): of 20 people at least 3 have one, so its",
        ),
        ("Neighbor[Person 3, child]", "'child' (2 relations of that name): of 20 people at least 3 have one at all"),
        ("Count[Where[Type[person], child != Person 2]]", "Of 20 people, 16 have no 'child' and are left out."),
        ("Where[Neighbor[Person 1, e:son], child = Person 9]", "Of 1 none meets the condition on 'child'"),
    ],
)
async def test_what_is_said_of_several_relations_of_one_name_is_true_of_all_together(
    graph_of: Callable[[str], LocalAdapter], expression: str, said: str
) -> None:
    assert said in (await composed(graph_of("\n".join(TWINS)), expression)).plain.summary


async def test_what_only_shares_words_is_suggested_and_never_taken(family: LocalAdapter) -> None:
    for tool in ("GetNeighbor", "Degree"):
        reply = await call(family, tool, entity="ex:ann", relation="father in")
        assert (reply.data["status"], reply.data["knowledge"]) == ("empty", "unknown")
        assert reply.plain.summary == (
            "Ann is known here. "
            "No relation of this graph is called 'father in'. Did you mean father or "
            "father-in-law? It has place of birth, father, father-in-law."
        )


async def test_relations_of_one_name_are_counted_together_where_only_their_number_is_told(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(f"{FAMILY} ex:rome ex:seat ex:kyoto .")
    nothing = await call(graph, "GetNeighbor", entity="ex:firm", relation="father")
    assert nothing.plain.lines[0] == "outgoing relations: capital 2"
    assert nothing.data["outgoing"] == {"ex:money": 1, "ex:seat": 1}
    town = await call(graph, "GetNeighbor", entity="ex:kyoto", relation="father")
    assert town.plain.lines[-1] == "incoming relations: capital 4; place of birth 1"


async def test_many_relations_of_one_name_do_not_exceed_the_budget(graph_of: Callable[[str], LocalAdapter]) -> None:
    made = "".join(f'ex:made{n} rdfs:label "made" . ex:smith ex:made{n} ex:t{n}, ex:u{n} . ' for n in range(300))
    reply = await call(graph_of(f"{FAMILY} {made}"), "GetNeighbor", entity="ex:smith", max_tokens=800)
    assert len(str(reply.data)) < 3 * 800
    assert "and 300 more with 600 triples, which Degree lists" in reply.text


async def test_a_relation_that_leads_to_nothing_beside_another_of_its_name_is_not_shown(family: LocalAdapter) -> None:
    assert (await composed(family, "Neighbor[Japan, capital]")).plain.text == "ex:kyoto."
    assert (await composed(family, "Neighbor[ex:bank, -capital]")).plain.text == "ex:firm."
    assert "'capital' names 2 relations, all taken" in (await composed(family, "Neighbor[ex:firm, capital]")).summary


async def test_a_suggested_relation_comes_with_its_inverse(graph_of: Callable[[str], LocalAdapter]) -> None:
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> ."
    graph = graph_of(
        f'{owl} {FAMILY} ex:child rdfs:label "child"@en ; owl:inverseOf ex:father . ex:bob ex:child ex:ann .'
    )
    reply = await call(graph, "GetNeighbor", entity="ex:ann", relation="father of")
    assert "Did you mean father (the inverse of child)" in reply.plain.summary


async def test_node_is_still_taken_for_entity_and_not_listed(tokyo: LocalAdapter) -> None:
    async with Client(build_server(tokyo, UNHURRIED)) as client:
        listed = {tool.name: set(tool.input_schema["properties"]) for tool in (await client.list_tools()).tools}
    assert [name for name, arguments in listed.items() if "node" in arguments] == []
    for tool in ("Feature", "Degree", "GetNeighbor"):
        assert "entity" in listed[tool]
        assert (await call(tokyo, tool, node="Q1490")).text == (await call(tokyo, tool, entity="Q1490")).text
    assert await refusal(tokyo, "Degree", node="Q17", entity="Q1490") == (
        "Degree has no argument 'node'. Its arguments are direction, entity, relation."
    )
    assert "no argument 'node'" in await refusal(tokyo, "GetPath", node="Q17", source="Q17", target="Q1490")
