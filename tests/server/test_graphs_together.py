"""GetPath and Compose over several graphs: linked things are one, and every fact has the mark of its graph."""

from calls import call, rows
from kg_adapters.federated import FederatedGraph
from kg_adapters.links import LinkRules
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.prefixes import Prefixes
from small_graphs import shared_store

PEOPLE = """@prefix p: <http://people.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix wd: <http://www.wikidata.org/entity/> .
p:einstein rdfs:label "Albert Einstein"@en ; p:bornIn p:ulm ; owl:sameAs wd:Q937 .
p:ulm rdfs:label "Ulm"@en ; p:wikidata "Q3012" .
p:mileva rdfs:label "Mileva"@en ; p:spouse p:einstein .
p:ulm p:in p:europe , p:earth , p:museum . p:einstein p:in p:europe , p:earth .
"""
FACTS = """@prefix p: <http://people.org/> . @prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
wd:Q937 rdfs:label "Einstein"@en ; wdt:P166 wd:Q38104 ; wdt:P569 "1879-03-14"^^<http://www.w3.org/2001/XMLSchema#date> .
wd:Q937 p:in p:museum .
wd:Q3012 rdfs:label "Ulm"@en ; wdt:P17 wd:Q183 .
wd:Q183 rdfs:label "Germany"@en .
wd:Q38104 rdfs:label "Nobel Prize in Physics"@en .
wdt:P17 rdfs:label "country"@en . wdt:P166 rdfs:label "award received"@en . wdt:P569 rdfs:label "date of birth"@en .
"""
BY_ID = LinkRules.of(["p:wikidata=http://www.wikidata.org/entity/{}"], Prefixes({"p": "http://people.org/"}))


def together() -> FederatedGraph:
    graphs = {"people": LocalAdapter(shared_store(PEOPLE)), "facts": LocalAdapter(shared_store(FACTS))}
    return FederatedGraph(graphs, {"people": BY_ID})


async def test_a_path_crosses_from_one_graph_to_another_and_each_fact_has_its_graph() -> None:
    reply = await call(together(), "GetPath", source="Mileva", target="Q183")
    assert reply.lines == [
        "Mileva (p:mileva) -[p:spouse [people]]-> Albert Einstein (p:einstein) -[p:bornIn [people]]-> Ulm (p:ulm) "
        "-[country (P17) [facts]]-> Germany (Q183)"
    ]
    assert reply.data["paths"] == [
        [
            ["p:mileva", "p:spouse", "p:einstein", "people"],
            ["p:einstein", "p:bornIn", "p:ulm", "people"],
            ["p:ulm", "P17", "Q183", "facts"],
        ]
    ]


async def test_what_ends_share_is_one_line_for_each_graph() -> None:
    reply = await call(together(), "GetPath", source="p:ulm", target="Q937", max_hops=2)
    assert reply.lines == [
        "Ulm (p:ulm) <-[p:bornIn [people]]- Albert Einstein (p:einstein)",
        "both | p:in [people] | p:earth, p:europe",
        "Ulm (p:ulm) -[p:in [people]]-> p:museum <-[p:in [facts]]- Albert Einstein (p:einstein)",
    ]


async def test_an_expression_goes_through_several_graphs_and_its_evidence_has_the_graph_of_each_fact() -> None:
    reply = await call(together(), "Compose", expression="Neighbor[Neighbor[Mileva, p:spouse], award received]")
    assert reply.text == (
        "Nobel Prize in Physics (Q38104).\n"
        "because Mileva | p:spouse [people] | Albert Einstein | award received [facts] | Nobel Prize in Physics"
    )
    assert reply.data["evidence"] == [
        ["p:mileva", "p:spouse", "p:einstein", "people"],
        ["p:einstein", "P166", "Q38104", "facts"],
    ]


async def test_all_that_several_graphs_have_around_a_thing_is_shown_with_its_graph() -> None:
    reply = await call(together(), "Compose", expression="Neighbor[Q937], Feature[Q937]")
    assert reply.data["read"] == {"Q937": "p:einstein"}
    assert (
        "Albert Einstein (p:einstein) | award received (P166) [facts] | Nobel Prize in Physics (Q38104)" in reply.lines
    )
    assert ["2", "p:einstein", "P569", "1879-03-14", "xsd:date", "facts"] in rows(reply.data["results"])


async def test_a_name_that_linked_things_share_is_not_ambiguous() -> None:
    reply = await call(together(), "Compose", expression="Neighbor[Ulm, country]")
    assert reply.data["read"] == {"Ulm": "p:ulm"}
    assert reply.data["results"] == [["1", "p:ulm", "P17", "Q183", "node", "facts"]]
