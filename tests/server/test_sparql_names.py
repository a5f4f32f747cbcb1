"""Names where ids stand in a query: which texts are names, what they stand for in their place, and what is said."""

from collections.abc import Callable
from contextlib import aclosing

import pytest
from rdflib import Graph

from calls import call, plain, refusal
from kg_adapters.errors import InvalidRequest
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.sparql.outline import outline_of
from kg_server.sparql.syntax import Form, Role

WORLD = """
@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
e:crosses rdfs:label "crosses"@en ; skos:altLabel "spans"@en . e:built rdfs:label "built"@en .
e:long rdfs:label "length (m)"@en . e:mother rdfs:label "parent"@en . e:father rdfs:label "parent"@en .
e:Bridge rdfs:label "bridge"@en . e:Card rdfs:label "bridge"@en . e:Person rdfs:label "person"@en .
e:b1 a e:Bridge ; rdfs:label "Turnov Bridge"@en ; e:crosses e:mirpa ; e:built 1931 ; e:long 180 .
e:b2 a e:Bridge ; rdfs:label "Crooked Bridge of Schar"@en ; e:crosses e:ska ; e:built 1968 ; e:long 90 .
e:mirpa rdfs:label "River Mirpa"@en . e:ska rdfs:label "River Ska"@en .
e:p1 a e:Person ; rdfs:label "Ann Lee"@en ; e:mother e:p3 ; e:born 1950 .
e:p2 a e:Person ; rdfs:label "Ann Lee"@en ; e:father e:p3 ; e:likes e:Card .
e:Drink rdfs:label "round"@en . e:Song rdfs:label "round"@en . e:Game rdfs:label "round"@en .
e:d1 a e:Drink ; e:likes e:Song . e:g1 a e:Game ; e:likes e:d1 .
e:p3 a e:Person ; rdfs:label "Bob Hornby"@en ; skos:altLabel "Robert the Old"@en .
"""


@pytest.fixture
def world(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    return graph_of(WORLD)


def places(query: str) -> list[tuple[str, Role, Form]]:
    outline = outline_of(query)
    return [(outline.tokens[each.token].name, each.role, each.form) for each in outline.places]


def test_what_stands_in_texts_iris_comments_and_behind_them_is_no_name() -> None:
    query = """SELECT * { ?s ?p 'a @"b"', "c @'d'", '''e @"f" ' g''', "h"@en, <http://i/@j> . # @"k"\n ?s ?p @'l"m' }"""
    assert places(query) == [('l"m', "node", "pattern")]
    assert places('ASK { ?x ?y "\\"@\\"", @"a\\"b" }') == [('a"b', "node", "pattern")]


def test_every_place_is_told() -> None:
    query = """PREFIX a: <http://a/#@no> SELECT (IF(?x = @"1", @"2", 3) AS ?y) {
        @"4" @"5"/^(@"6"|a:b)* ?w, ?v ; !(@"7"|^@"8") ?x ; a [ @"9" ( @"10" 2 ) ] .
        { ?x ?p ?y FILTER(?p NOT IN (@"11", a:c) && EXISTS { @"12" a:p -1 }) } UNION { VALUES ?p { @"13" UNDEF } }
        VALUES (?x ?p) { (a:x @"14") } BIND(@"15" AS ?z) OPTIONAL { SELECT * { ?x ?y @"16" } ORDER BY (?x != @"17") }
    }"""
    expected: dict[Role, dict[str, Form]] = {
        "free": {
            "1": "equal",
            "2": "single",
            "11": "commas",
            "13": "list",
            "14": "single",
            "15": "single",
            "17": "unequal",
        },
        "node": {"4": "pattern", "10": "pattern", "12": "pattern", "16": "pattern"},
        "verb": {"5": "pattern", "6": "pattern", "7": "negated", "8": "single", "9": "pattern"},
    }
    assert sorted(places(query)) == sorted(
        (name, role, form) for role, forms in expected.items() for name, form in forms.items()
    )


@pytest.mark.parametrize(
    "query", ['ASK { ?x ?y @"a }', "ASK { ?x ?y @ }", 'ASK { ?x ?y @"  " }', 'ASK { ?x ?y "a"@"b" }']
)
def test_what_is_nearly_a_name_is_refused_with_its_place(query: str) -> None:
    with pytest.raises(InvalidRequest, match=r"\nASK .*\n +\^$"):
        outline_of(query)


async def test_names_stand_for_entities_relations_and_classes(world: LocalAdapter) -> None:
    reply = await call(
        world, "Sparql", query='SELECT ?b ?y { ?b a @"bridge" ; @"crosses" @"River Mirpa" ; @"built" ?y }'
    )
    assert reply.plain.lines[1].startswith("Turnov Bridge | ")
    assert reply.plain.summary == "1 row, all here."
    assert reply.data["read"] == {
        "bridge": "e:Bridge",
        "crosses": "e:crosses",
        "River Mirpa": "e:mirpa",
        "built": "e:built",
    }


async def test_a_slip_an_alias_a_plural_and_a_missing_unit_are_said(world: LocalAdapter) -> None:
    query = 'SELECT ?b { ?b a @"bridges" ; @"spans" @"River Mripa" ; @"length" 180 }'
    reply = await call(world, "Sparql", query=query)
    assert reply.plain.summary == (
        "'bridges' read as bridge, one letter off. Read 'spans' as crosses. 'River Mripa' read "
        "as River Mirpa, one letter off. Read 'length' as length (m). 1 row, all here."
    )


async def test_all_namesakes_are_taken_and_the_rest_of_the_query_chooses(world: LocalAdapter) -> None:
    both = await call(world, "Sparql", query='SELECT * { @"Ann Lee" @"parent" ?x } ORDER BY ?x')
    assert both.plain.lines == ["?x", "Bob Hornby", "Bob Hornby"]
    assert both.plain.summary == (
        "'Ann Lee' names 2 things, all taken: Ann Lee, person, e:born: 1950; Ann Lee, person. "
        "'parent' names 2 relations, all taken: e:father, 1 fact; e:mother, 1 fact. 2 rows, all here."
    )
    assert both.data["read"] == {"Ann Lee": "e:p1, e:p2", "parent": "e:father, e:mother"}
    one = await call(world, "Sparql", query='SELECT ?x ?y { BIND(1 AS ?x) @"Ann Lee" e:born ?y }')
    assert len(one.plain.lines) == 2


async def test_a_name_may_be_a_class_in_one_place_and_an_entity_in_another(world: LocalAdapter) -> None:
    reply = await call(world, "Sparql", query='SELECT ?x { ?x a @"round" ; e:likes @"round" }')
    assert reply.lines == ["?x", "e:d1"]
    assert reply.plain.summary == (
        "'round' names 2 things, all taken: round; round. 'round' names 3 things, all taken: round; round; round. "
        "1 row, all here."
    )
    assert reply.data["read"] == {"round": "e:Drink, e:Game, e:Song"}


async def test_a_graph_in_rdflib_answers_and_refuses_alike(world: LocalAdapter) -> None:
    queries = [
        'SELECT ?b { ?b a @"bridges" ; @"spans" @"River Mripa" ; @"length" 180 }',
        'ASK { @"Zurnov Tunnel" @"crossing" ?x }',
        "SELECT ?b { ?b e:built ?y FILTER(?y > 1990) }",
    ]
    async with aclosing(RdflibAdapter(Graph().parse(data=WORLD))) as graph:
        for query in queries:
            expected = await call(world, "Sparql", query=query, timeout_s=60)
            assert await call(graph, "Sparql", query=query, timeout_s=60) == expected


NAMESAKES = {
    'SELECT ?x { ?x a @"person" FILTER(?x=@"Ann Lee") }': 2,
    'SELECT ?x { ?x a @"person" FILTER(?x != @"Ann Lee") }': 1,
    'SELECT ?x { ?x a @"person" FILTER(?x IN (e:p3, @"Ann Lee")) }': 3,
    'SELECT ?x { VALUES ?x { @"Ann Lee" } }': 2,
    'SELECT ?x { ?x a @"person" MINUS { @"Ann Lee" @"parent" ?x } }': 2,
    'SELECT ?x { { @"Ann Lee" e:likes ?x } UNION { ?x e:likes @"Ann Lee" } }': 1,
    'SELECT ?x ?p { @"Ann Lee" ?p ?x VALUES ?p { @"parent" } }': 2,
    'SELECT ?o { e:p1 !@"parent" ?o }': 3,
    'SELECT ?o { e:p1 !(a|@"parent") ?o }': 2,
    'SELECT ?x { @"bridge" ^a ?x }': 2,
    'SELECT ?x { ?x e:likes @"bridge" }': 1,
    'SELECT ?x { VALUES ?c { @"bridge" } ?x a ?c }': 2,
    'DESCRIBE @"Ann Lee"': 8,
}


async def test_namesakes_are_taken_wherever_they_stand(world: LocalAdapter) -> None:
    for query, count in NAMESAKES.items():
        reply = await call(world, "Sparql", query=query)
        assert len(reply.lines) == 1 + count, reply.text


async def test_where_one_id_alone_can_stand_namesakes_are_refused(world: LocalAdapter) -> None:
    said = await refusal(world, "Sparql", query='SELECT ?x { BIND(@"Ann Lee" AS ?x) }')
    assert plain(said.splitlines()[0]) == (
        "'Ann Lee' names 2 things: Ann Lee, person, e:born: 1950; Ann Lee, person. "
        "Only one id is allowed here: write that of the one you mean."
    )
    assert said.splitlines()[2] == " " * 17 + "^"


async def test_unknown_and_loose_names_stop_the_query_each_with_its_place(world: LocalAdapter) -> None:
    said = await refusal(world, "Sparql", query='ASK { @"Zurnov Tunnel"\n  @"crossing" @"Ann Leeson" ; @"made of" 1 }')
    lines = said.splitlines()
    assert [line.partition(": ")[0] for line in lines if line.startswith("line ")] == [
        "line 1, column 7",
        "line 2, column 3",
        "line 2, column 15",
    ]
    assert lines[0] == "No entity matches 'Zurnov Tunnel'."
    assert lines[3] == ("No relation of this graph is called 'crossing'. Near in meaning, not the same: crosses.")
    assert lines[6].startswith("No entity matches 'Ann Leeson'. Near, not the same: Ann Lee")
    assert (await refusal(world, "Sparql", query='ASK { ?x @"Turnov Bridge" ?y }')).splitlines()[0] == (
        "No relation of this graph is called 'Turnov Bridge'."
    )


async def test_a_class_or_relation_in_other_words_stops_the_query_with_those_near_in_meaning(
    world: LocalAdapter,
) -> None:
    said = await refusal(world, "Sparql", query='SELECT ?x { ?x a @"human being" ; @"constructed in" ?y }')
    assert [line for line in said.splitlines() if "near" in line.lower()] == [
        "No entity matches 'human being'. Near, not the same: person.",
        "No relation of this graph is called 'constructed in'. Near in meaning, not the same: built.",
    ]


async def test_a_name_where_no_id_can_stand_is_refused(world: LocalAdapter) -> None:
    for query in ('PREFIX a: @"b" ASK {}', 'SELECT ?x { ?x ?y "1"^^@"b" }'):
        assert "A name is not allowed here" in await refusal(world, "Sparql", query=query)
    many = " ".join(f'@"{number}"' for number in range(51))
    assert "at most 50 names" in await refusal(world, "Sparql", query=f"SELECT * {{ VALUES ?x {{ {many} }} }}")


async def test_a_query_with_names_still_only_reads(world: LocalAdapter) -> None:
    for query in (
        'SELECT * { SERVICE <http://127.0.0.1:9/> { @"Ann Lee" ?p ?o } }',
        'SELECT * FROM @"Bob Hornby" { ?s ?p ?o }',
        'DELETE WHERE { @"Bob Hornby" ?p ?o }',
        'INSERT DATA { @"Bob Hornby" @"built" 1 }',
    ):
        assert "refused" in await refusal(world, "Sparql", query=query)
