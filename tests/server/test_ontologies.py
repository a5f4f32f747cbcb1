import re
from collections.abc import Callable

import pytest
import rdflib
from rdflib.collection import Collection
from rdflib.namespace import OWL, RDF, RDFS
from rdflib.term import Node as RdflibNode
from rdflib.term import URIRef

from calls import call, paths, rows
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import Queries
from kg_server.answers.results import token_count
from ontologies import ONTOLOGIES, PREFIXES
from small_graphs import shared_store
from sparql_stand_in import StandInEndpoint, adapter_over, endpoint_of

SCHEMA_ORG = rdflib.Namespace("https://schema.org/")
KINDS = {OWL.Class, RDFS.Class}
PROPERTIES = {RDF.Property, OWL.ObjectProperty, OWL.DatatypeProperty}


def reference(turtle: str) -> rdflib.Graph:
    return rdflib.Graph().parse(data=turtle)


def opened(turtle: str, way: str) -> KGAdapter:
    if way == "local":
        return LocalAdapter(shared_store(turtle))
    graph = reference(turtle)
    if way == "rdflib":
        return RdflibAdapter(graph)
    endpoint, queries = StandInEndpoint(graph.serialize(format="nt")), Queries.of(DIALECTS["standard"], Vocabulary())
    return SparqlAdapter(SparqlParts("ontology", endpoint, queries, RdflibAdapter(graph).prefixes, timeout_s=60))


def instances(graph: rdflib.Graph, kinds: set[URIRef]) -> set[RdflibNode]:
    found = (node for kind in kinds for node in graph.subjects(RDF.type, kind))
    return {node for node in found if isinstance(node, URIRef)}


def short(graph: rdflib.Graph, node: RdflibNode | None) -> str:
    return str(graph.namespace_manager.curie(str(node)))


def declared(graph: rdflib.Graph) -> tuple[set[tuple[str, str]], set[tuple[str, str, tuple[str, ...]]]]:
    """Return the pairs of class and subclass, and each property with a class that has it and where it leads."""
    tree = {
        (short(graph, above), short(graph, node))
        for node, above in graph.subject_objects(RDFS.subClassOf)
        if isinstance(above, URIRef)
    }
    properties = set[tuple[str, str, tuple[str, ...]]]()
    for each in instances(graph, PROPERTIES):
        domains = [node for of in (RDFS.domain, SCHEMA_ORG.domainIncludes) for node in graph.objects(each, of)]
        ranges = [node for of in (RDFS.range, SCHEMA_ORG.rangeIncludes) for node in graph.objects(each, of)]
        for domain in domains:
            union = graph.value(domain, OWL.unionOf)
            for owner in [domain] if union is None else Collection(graph, union):
                leads_to = tuple(short(graph, node) for node in ranges)
                properties.add((short(graph, each), short(graph, owner), leads_to))
    return tree, properties


@pytest.mark.parametrize("name", ONTOLOGIES)
@pytest.mark.parametrize("way", ["local", "rdflib", "endpoint"])
async def test_the_definition_of_an_ontology_is_its_tree_and_its_properties(name: str, way: str) -> None:
    graph, adapter = reference(ONTOLOGIES[name]), opened(ONTOLOGIES[name], way)
    reply = await call(adapter, "Schema")
    classes, properties = len(instances(graph, KINDS)), len(instances(graph, PROPERTIES))
    assert f" is an ontology: {classes} classes, {properties} propert" in reply.summary
    tree, of_class = declared(graph)
    shown = {(above, node) for above, *below in rows(reply.data["tree"]) for node in below}
    assert {(above, node) for above, node in shown if above} == tree
    told = {(each, owner, tuple(ranges)) for each, owner, *ranges in rows(reply.data["properties"])}
    # An endpoint cannot be asked what a list holds that has no name.
    assert told == of_class or (way == "endpoint" and "owl:unionOf" in ONTOLOGIES[name])
    await adapter.aclose()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("DBpedia", "Person", """is a class: owl:Thing > agent > person; 1 direct subclass, 1 in all. Somebody.
subclasses | athlete
property | birth date→xsd:date
inherited from agent | bank account→xsd:string"""),
        ("OWL-Time", "Duration", """Time duration is a class: Temporal duration > Time duration.
restrictions | 'numeric value of duration' exactly 1; 'temporal unit type' max 2 'Temporal unit'"""),
        ("OWL-Time", "Day of week", """Day of week is a class; 2 instances.
restrictions | {Monday, Tuesday}"""),
        ("OWL-Time", "Temporal unit", """restrictions | not 'Temporal entity'
properties that lead to it | temporal unit type"""),
        ("CIDOC CRM", "E22", """is a class: CRM Entity > Thing > Physical Human-Made Thing > Human-Made Object.
inherited from Physical Human-Made Thing | was produced by→Production"""),
        ("CIDOC CRM", "was produced by", """property | was produced by | Physical Human-Made Thing→Production"""),
        ("schema.org", "Person", """Thing > Person; 1 direct subclass, 1 in all. A person.
properties that lead to it | author, knows"""),
        ("Brick", "hvac equipment", """Equipment > HVAC Equipment; 4 direct subclasses, 5 in all.
subclasses | AHU (1), Chiller, Fan Coil Unit, VAV"""),
    ],
)  # fmt: skip
async def test_a_class_is_found_in_its_ontology(name: str, text: str, told: str) -> None:
    for way in ("local", "rdflib"):
        reply = await call(opened(ONTOLOGIES[name], way), "Schema", about=text)
        assert [line for line in told.splitlines() if line not in reply.plain.text] == []


CAR = f"""{PREFIXES}
@prefix e: <http://e.org/> .
e:Car a owl:Class ; rdfs:label "Car" ; rdfs:subClassOf e:Vehicle ,
    [ a owl:Restriction ; owl:onProperty e:engine ; owl:someValuesFrom e:Engine ] ,
    [ a owl:Restriction ; owl:onProperty e:hasPart ; owl:minQualifiedCardinality 2 ; owl:onClass e:Wheel ] ,
    [ a owl:Restriction ; owl:onProperty e:hasPart ; owl:allValuesFrom
      [ a owl:Class ; owl:unionOf ( e:Wheel e:Engine [ a owl:Class ; owl:complementOf e:Vehicle ] ) ] ] ,
    [ a owl:Restriction ; owl:onProperty e:weight ; owl:someValuesFrom
      [ a rdfs:Datatype ; owl:onDatatype xsd:decimal ; owl:withRestrictions ( [ xsd:minInclusive 0 ] ) ] ] ,
    [ a owl:Restriction ; owl:onProperty e:wheels ; owl:hasValue 4 ] , _:circle .
_:circle owl:complementOf _:circle .
e:Vehicle a owl:Class ; rdfs:subClassOf e:Car . e:Engine a owl:Class ; rdfs:label "Big Engine" . e:Wheel a owl:Class .
"""
EXPRESSIONS = {
    "engine some 'Big Engine'",
    "hasPart min 2 Wheel",
    "hasPart only (Wheel or 'Big Engine' or (not Vehicle))",
    "weight some decimal[>= 0]",
    "wheels value 4",
    "not …",
}


async def test_of_two_ways_between_classes_the_shorter_one_comes_first() -> None:
    turtle = f"""{PREFIXES}
@prefix e: <http://e.org/> .
e:A a owl:Class ; rdfs:subClassOf e:B , [ a owl:Restriction ; owl:onProperty e:p ; owl:someValuesFrom e:D ] .
e:B a owl:Class ; rdfs:subClassOf e:Top . e:D a owl:Class ; rdfs:subClassOf e:E .
e:E a owl:Class ; rdfs:subClassOf e:Top . e:Top a owl:Class ."""
    reply = await call(opened(turtle, "local"), "GetPath", source="e:A", target="e:D", max_hops=1)
    assert [len(path) for path in paths(reply.data["paths"])] == [2, 4]


async def test_a_class_has_the_restrictions_of_its_superclasses() -> None:
    reply = await call(opened(CAR, "local"), "Schema", about="Vehicle")
    (line,) = [line for line in reply.plain.text.splitlines() if line.startswith("restrictions inherited from Car | ")]
    assert {each for each in EXPRESSIONS if each in line} == EXPRESSIONS


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("GetNeighbor", {"entity": "e:Car", "relation": "rdfs:subClassOf"}),
        ("Compose", {"expression": "Neighbor[e:Car, rdfs:subClassOf]"}),
        ("Sparql", {"query": "SELECT ?c { e:Car rdfs:subClassOf ?c }"}),
    ],
)
async def test_restrictions_unions_and_lists_are_read_as_one_line(tool: str, arguments: dict[str, object]) -> None:
    for way in ("local", "rdflib"):
        reply = await call(opened(CAR, way), tool, **arguments)
        assert {each for each in EXPRESSIONS if f"{each} (_:" in reply.text.replace('"', "")} == EXPRESSIONS


@pytest.mark.parametrize(("way", "line"), [("rdflib", "e:by | (Ada … b 7) (_:"), ("endpoint", "e:by | (Ada …) (_:")])
async def test_a_list_is_read_as_one_line_in_a_graph_without_classes(way: str, line: str) -> None:
    turtle = '@prefix e: <http://e.org/> . e:a rdfs:label "Ada" . e:book e:by ( e:a [ e:name "x" ] e:b 7 ) .'
    reply = await call(opened(PREFIXES.replace("owl", "o") + turtle, way), "GetNeighbor", entity="e:book")
    assert line in reply.text


async def test_expressions_that_share_all_of_their_parts_are_read_in_no_time() -> None:
    nodes = [" , ".join(f"_:n{other}" for other in range(n + 1, min(n + 60, 300))) for n in range(299)]
    turtle = " ".join(f"_:n{n} owl:unionOf {tails} ." for n, tails in enumerate(nodes))
    reply = await call(
        opened(f"{PREFIXES} {turtle} <http://e/C> rdfs:subClassOf _:n0 .", "local"), "GetNeighbor", entity="http://e/C"
    )
    assert "rdfs:subClassOf | " in reply.text
    assert "… (_:" in reply.text


async def test_a_thesaurus_shows_its_concepts_and_what_they_have(graph_of: Callable[[str], LocalAdapter]) -> None:
    concepts = " ".join(
        f"e:c{n} a skos:Concept ; skos:broader e:c{n // 3} ; skos:notation 'N{n}' ." for n in range(1, 9)
    )
    top = "e:c0 a skos:Concept ; skos:prefLabel 'all' ."
    reply = await call(graph_of(f"{PREFIXES} @prefix e: <http://e.org/> . {concepts} {top}"), "Schema")
    assert "is a thesaurus: 9 concepts." in reply.summary
    assert "all > e:c1 (3), e:c2 (3)" in reply.lines
    assert "skos:Concept | 9: skos:broader 89%→Concept; skos:notation 89% text" in reply.lines
    assert (
        ": all > e:c2 > e:c7."
        in (
            await call(graph_of(f"{PREFIXES} @prefix e: <http://e.org/> . {concepts} {top}"), "Schema", about="e:c7")
        ).text
    )


async def test_an_endpoint_that_keeps_no_names_still_says_what_it_answered_with_a_restriction() -> None:
    reply = await call(opened(CAR, "endpoint"), "GetNeighbor", entity="e:Car")
    assert "hasPart min 2 Wheel (_:" in reply.text


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("Brick", "Rooftop Unit", "Gas Meter"), ("CIDOC CRM", "E22", "Production"), ("DBpedia", "athlete", "place")],
)
@pytest.mark.parametrize("way", ["local", "rdflib", "endpoint"])
async def test_two_classes_are_linked_by_their_nearest_superclass(
    name: str, source: str, target: str, way: str
) -> None:
    graph, adapter = reference(ONTOLOGIES[name]), opened(ONTOLOGIES[name], way)
    ids = {str(label).casefold(): node for node, label in graph.subject_objects(RDFS.label)}
    ids["e22"] = URIRef("http://www.cidoc-crm.org/cidoc-crm/E22_Human-Made_Object")
    ends = [ids[text.casefold()] for text in (source, target)]
    reply = await call(adapter, "GetPath", source=str(ends[0]), target=str(ends[1]))
    above = [list(graph.transitive_objects(end, RDFS.subClassOf)) for end in ends]
    shared = next(short(graph, each) for each in above[0] if each in above[1])
    climbed, *_ = paths(reply.data["paths"])
    assert shared in {node for head, _, tail in climbed for node in (head, tail)}
    steps = ([short(graph, node) for node in of].index(shared) for of in above)
    assert len(climbed) == sum(steps)
    assert {relation for _, relation, _ in climbed} == {"rdfs:subClassOf"}
    assert reply.data["total"] == len(paths(reply.data["paths"]))


async def test_two_classes_are_linked_through_a_restriction() -> None:
    reply = await call(opened(CAR, "local"), "GetPath", source="e:Car", target="e:Wheel")
    assert "Car -[rdfs:subClassOf]-> hasPart min 2 Wheel -[owl:onClass]-> e:Wheel" in re.sub(
        r" \((?:_|e):[\w-]+\)", "", reply.text
    )


async def test_a_graph_of_data_says_that_it_has_an_ontology(graph_of: Callable[[str], LocalAdapter]) -> None:
    towns = " ".join(f"dbo:t{number} a dbo:Place ." for number in range(60))
    reply = await call(graph_of(f"{ONTOLOGIES['DBpedia']} {towns}"), "Schema")
    assert "others | place 60" in reply.lines
    assert "ontology | 4 classes declared" in reply.lines
    assert "is an ontology" not in reply.summary
    athlete = await call(graph_of(f"{ONTOLOGIES['DBpedia']} {towns}"), "Schema", about="athlete")
    assert "is a class: owl:Thing > agent > person > athlete." in athlete.summary


async def test_a_graph_that_declares_nothing_is_not_asked_for_an_ontology() -> None:
    endpoint = endpoint_of(["a p b", "b type Town"])
    reply = await call(adapter_over(endpoint), "Schema", about="nowhere")
    assert reply.data["status"] == "empty"
    assert not any("owl#ObjectProperty" in each for each in endpoint.asked)


@pytest.mark.parametrize("max_tokens", [500, 1_000, 50_000])
async def test_a_large_tree_is_cut_to_its_budget_and_counts_what_is_left_out(
    graph_of: Callable[[str], LocalAdapter], max_tokens: int
) -> None:
    # A circle of two classes above 40 branches of 9 classes.
    tree = " ".join(f"<http://e/C{n}> a owl:Class ; rdfs:subClassOf <http://e/C{n // 9 + 1}> ." for n in range(18, 400))
    circle = " ".join(f"<http://e/C{n}> a owl:Class ; rdfs:subClassOf <http://e/C{3 - n}> ." for n in (1, 2))
    chain = " ".join(f"<http://e/D{n}> a owl:Class ; rdfs:subClassOf <http://e/D{n + 1}> ." for n in range(300))
    reply = await call(graph_of(f"{PREFIXES} {tree} {circle} {chain}"), "Schema", max_tokens=max_tokens)
    assert "is an ontology: 684 classes." in reply.summary
    assert "(299)" in reply.text
    assert token_count(reply.text) <= max_tokens
    cut = re.search(r"(\d+) of (\d+) lines of its tree are here", reply.summary)
    assert (cut is None) == (max_tokens == 50_000)
    assert cut is None or int(cut[1]) == len(reply.lines)
    assert max_tokens > 1_000 or ", and " in reply.text


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("Compose", {"expression": "Count[Type[AHU]]"}, "and Neighbor[AHU, -rdfs:subClassOf+] gives its subclasses."),
        ("Compose", {"expression": "Type[Water Meter]"}, "Schema(about='Water Meter') shows it; it has no subclasses."),
        (
            "GetNeighbor",
            {"entity": "VAV", "relation": "hasLocation"},
            "a restriction of VAV (brick:VAV).",
        ),
        ("Compose", {"expression": "Neighbor[VAV, hasLocation]"}, "Schema(about='VAV') shows it."),
        (
            "Sparql",
            {"query": "SELECT * { ?x brick:hasLocation ?y }"},
            "is declared here, but no fact has it: ",
        ),
        ("Sparql", {"query": "SELECT * { ?x @'feeds' ?y }"}, "but no fact has it. Schema(about='feeds') shows it."),
    ],
)
async def test_what_an_ontology_only_declares_is_shown_the_way_to_its_tree_and_restrictions(
    tool: str, arguments: dict[str, str], told: str
) -> None:
    assert told in (await call(opened(ONTOLOGIES["Brick"], "local"), tool, **arguments)).text
