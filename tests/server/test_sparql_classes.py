"""Classes by name in a query mean what they mean in every other tool: with subclasses, each instance once."""

from collections.abc import Callable
from pathlib import Path

import pyoxigraph
import pytest

from calls import call, composed, refusal, rows, texts
from kg_adapters.local.adapter import LocalAdapter
from remote_graphs import behind_endpoint

PORT = """
@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:Vessel rdfs:label "vessel" . e:Ferry rdfs:label "ferry" ; rdfs:subClassOf e:Vessel .
e:Barge rdfs:label "barge" ; rdfs:subClassOf e:Vessel . e:CarFerry rdfs:label "car ferry" ; rdfs:subClassOf e:Ferry .
e:moored rdfs:label "moored at" . e:Quay rdfs:label "quay" . e:q1 a e:Quay ; rdfs:label "East Quay" .
e:v1 a e:Vessel ; rdfs:label "Alba" ; e:moored e:q1 ; e:crew 4 .
e:v2 a e:CarFerry , e:Barge ; rdfs:label "Brita" ; e:moored e:q1 ; e:crew 9 .
e:v3 a e:Ferry , e:Vessel ; rdfs:label "Clara" ; e:crew 12 .
e:v4 a e:Barge ; rdfs:label "Dora" ; e:moored e:q1 .
e:o1 a e:Office ; rdfs:label "Harbour office" ; e:runs e:v1 , e:v2 , e:q1 .
"""

SHAPES = {
    'SELECT (COUNT(?v) AS ?n) { ?v a @"vessel" }': 4,
    'SELECT (COUNT(*) AS ?n) { ?v a @"vessel" ; @"moored at" @"East Quay" }': 3,
    'SELECT (COUNT(*) AS ?n) { ?v @"moored at" ?q ; a @"vessel" . ?q a @"quay" }': 3,
    'SELECT (COUNT(*) AS ?n) { ?v @"moored at" ?q ; a @"vessel" ; e:crew ?c . }': 2,
    'SELECT (COUNT(*) AS ?n) { e:o1 e:runs ?v . ?v a @"vessel" }': 2,
    'SELECT (COUNT(*) AS ?n) { ?v a @"ferry" . ?v a @"barge" }': 1,
    'SELECT (COUNT(*) AS ?n) { ?v a @"vessel" FILTER NOT EXISTS { ?v a @"ferry" } }': 2,
    'SELECT (COUNT(*) AS ?n) { ?v a @"vessel" MINUS { ?v a @"ferry" } }': 2,
    'SELECT (COUNT(*) AS ?n) { e:o1 e:runs ?v OPTIONAL { ?v a @"vessel" ; e:crew ?c } }': 3,
    'SELECT (COUNT(*) AS ?n) { @"Brita" a @"vessel" ; e:crew ?c }': 1,
    'SELECT (SUM(?c) AS ?n) { ?v a @"vessel" ; e:crew ?c }': 25,
    'SELECT (COUNT(*) AS ?n) { { ?v a @"ferry" } UNION { ?v a @"barge" } }': 4,
    'SELECT (COUNT(*) AS ?n) { ?v a @"ferry", @"barge" }': 1,
    'SELECT (COUNT(*) AS ?n) { ?v a @"vessel", e:Vessel }': 2,
    'SELECT (COUNT(*) AS ?n) { ?v a e:Vessel, @"vessel" , e:Ferry ; e:crew ?c }': 1,
    'SELECT (COUNT(*) AS ?n) { ?v a @"vessel" ;; e:crew 4 }': 1,
    'SELECT (COUNT(*) AS ?n) { BIND(e:v2 AS ?v) ?v a @"vessel" }': 1,
    'SELECT (COUNT(*) AS ?n) { e:o1 e:runs ?v FILTER NOT EXISTS { ?v a @"vessel", e:Vessel } }': 2,
    'SELECT (COUNT(*) AS ?n) { ?v e:crew ?c FILTER EXISTS { [] a @"vessel" ; e:crew ?c } }': 3,
    'SELECT (COUNT(*) AS ?n) { ?v a/rdfs:subClassOf* @"vessel" }': 6,
    "SELECT (COUNT(?v) AS ?n) { ?v a e:Vessel }": 2,
}


@pytest.fixture
def port(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    return graph_of(PORT)


@pytest.mark.parametrize(("query", "number"), SHAPES.items())
async def test_an_instance_of_a_class_by_name_counts_once_whatever_its_subclass(
    port: LocalAdapter, query: str, number: int
) -> None:
    reply = await call(port, "Sparql", query=query)
    assert reply.data["rows"] == [[str(number)]]


@pytest.mark.parametrize(
    ("query", "step"),
    [
        ('SELECT (COUNT(*) AS ?n) { [] a @"vessel" }', "Write a variable in place of the brackets."),
        ('SELECT * { [ a @"vessel" ; e:crew ?c ] }', "Write a variable in place of the brackets."),
        ('CONSTRUCT WHERE { ?v a @"vessel" }', "Write CONSTRUCT { … } WHERE { … }."),
    ],
)
async def test_where_an_instance_would_count_twice_the_query_is_refused(
    port: LocalAdapter, query: str, step: str
) -> None:
    assert step in await refusal(port, "Sparql", query=query)
    assert not (await call(port, "Sparql", query=query.replace("vessel", "quay"))).is_error


async def test_a_template_takes_classes_by_name(port: LocalAdapter) -> None:
    made = await call(port, "Sparql", query='CONSTRUCT { ?v e:is e:x } WHERE { ?v a @"vessel" }')
    assert len(rows(made.data["rows"])) == 4


async def test_a_class_that_is_compared_is_that_class_alone_with_both_numbers(port: LocalAdapter) -> None:
    for condition in ('FILTER(?c = @"vessel")', 'VALUES ?c { @"vessel" }'):
        reply = await call(port, "Sparql", query=f"SELECT (COUNT(?v) AS ?n) {{ ?v a ?c {condition} }}")
        assert reply.data["rows"] == [["2"]]
        assert "compared with a variable, is that class alone (2 of it); with its subclasses" in reply.summary


async def test_a_class_counts_alike_in_every_tool_and_over_an_endpoint(port: LocalAdapter, tmp_path: Path) -> None:
    query = 'SELECT (COUNT(?v) AS ?n) { ?v a @"vessel" }'
    assert (await composed(port, "Count[Type[vessel]]")).text.startswith("4.")
    stored = pyoxigraph.Store()
    stored.load(PORT.encode(), pyoxigraph.RdfFormat.TURTLE)
    async with behind_endpoint(stored, tmp_path) as remote:
        assert (await call(remote, "Sparql", query=query)).data["rows"] == [["4"]]
        assert (await composed(remote, "Count[Type[vessel]]")).text.startswith("4.")


async def test_both_numbers_are_given_where_a_class_has_subclasses(port: LocalAdapter) -> None:
    by_name = await call(port, "Sparql", query='SELECT (COUNT(?v) AS ?n) { ?v a @"vessel" }')
    assert by_name.summary.startswith("'vessel' takes in its subclasses: 4 instances, 2 of it directly.")
    by_id = await call(port, "Sparql", query="SELECT (COUNT(?v) AS ?n) { ?v a e:Vessel }")
    assert "that class alone (2 of it); with its subclasses there are 4 instances" in by_id.summary
    plain = await call(port, "Sparql", query='SELECT (COUNT(?q) AS ?n) { ?q a @"quay" }')
    assert plain.summary == "1 row, all here."


LABELLESS = """
@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:Microscope rdfs:subClassOf e:Instrument . e:m1 a e:Microscope . e:m2 a e:Microscope . e:i1 a e:Instrument .
e:rented rdfs:subPropertyOf e:usedBy . e:m1 e:usedBy e:p1 . e:m2 e:rented e:p1 .
"""


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ('SELECT (COUNT(?i) AS ?n) { ?i a @"Instrument" }', 3),
        ('SELECT (COUNT(?i) AS ?n) { ?i a @"e:Instrument" }', 1),
        ('SELECT (COUNT(?i) AS ?n) { ?i @"usedBy" e:p1 }', 2),
        ('SELECT (COUNT(?i) AS ?n) { ?i @"used by" e:p1 }', 2),
        ('SELECT (COUNT(?i) AS ?n) { ?i @"e:usedBy" e:p1 }', 1),
    ],
)
async def test_what_has_no_label_goes_by_its_local_name(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path, query: str, number: int
) -> None:
    stored = pyoxigraph.Store()
    stored.load(LABELLESS.encode(), pyoxigraph.RdfFormat.TURTLE)
    async with behind_endpoint(stored, tmp_path) as remote:
        for graph in (graph_of(LABELLESS), remote):
            assert (await call(graph, "Sparql", query=query)).data["rows"] == [[str(number)]]


async def test_of_classes_of_one_name_the_largest_is_meant_in_every_tool(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(f'{PORT} e:Bigger rdfs:label "quay" . e:b1 a e:Bigger . e:b2 a e:Bigger .')
    said = "'quay' is read as quay (e:Bigger), not quay (e:Quay)."
    counted = await composed(graph, "Count[Type[quay]]")
    assert counted.text.startswith("2.")
    assert said in counted.summary
    asked = await call(graph, "Sparql", query='SELECT ?q { ?q a @"quay" }')
    assert len(rows(asked.data["rows"])) == 2
    assert said in asked.summary
    assert "quay (e:Bigger): 2 quays" in (await call(graph, "Schema", about="quay")).text


async def test_a_graph_that_types_otherwise_is_read_alike(sample: LocalAdapter) -> None:
    reply = await call(sample, "Sparql", query='SELECT ?x { ?x a @"city"; @"country" @"Japan" }')
    assert {"Tokyo", "Hiroshima"} & set(texts(reply.data["labels"]).values())
