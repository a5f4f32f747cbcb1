"""GetPath and Compose over several graphs: linked things are one, and every fact has the mark of its graph."""

from collections.abc import Mapping

import anyio
import pytest

from calls import call, refusal, rows
from kg_adapters.errors import BackendError, BackendUnavailable
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import NeighborPage
from kg_adapters.open_options import OnProgress
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Node
from kg_server.graphs import GraphSet, OpenedGraph, ServedGraph
from kg_server.naming.meaning import Meaning, SharedEmbedder
from kg_server.settings import Settings
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
# The settings for all graphs may name relations that some of them do not know.
BY_ID = ("p:wikidata=http://www.wikidata.org/entity/{}", "b:isbn=https://isbn.example/{}")
OF = {
    "people": Settings(timeout_s=600, links=BY_ID),
    "facts": Settings(timeout_s=600, links=BY_ID),
    "one": Settings(timeout_s=600),
    "two": Settings(timeout_s=600),
    "broken": Settings(timeout_s=0.5),
}


class Failing(LocalAdapter):
    """A graph that fails once it is asked about neighbours, or never answers."""

    fault: BackendError | None = None

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        if self.fault is None:
            await anyio.sleep_forever()
        raise self.fault or AssertionError


def served(**graphs: KGAdapter) -> GraphSet:
    """Return a set of graphs that are open."""
    shared = OF["people"]
    embedder = SharedEmbedder(shared)
    opened = [OpenedGraph(name, graph, OF[name], Meaning(graph, embedder)) for name, graph in graphs.items()]
    return GraphSet([ServedGraph.of(each, embedder) for each in opened], shared, embedder)


def both() -> GraphSet:
    return served(people=people(), facts=facts())


def people() -> LocalAdapter:
    return LocalAdapter(shared_store(PEOPLE))


def facts() -> LocalAdapter:
    return LocalAdapter(shared_store(FACTS))


BOTH = ["people", "facts"]


async def test_a_path_crosses_from_one_graph_to_another_and_each_fact_has_its_graph() -> None:
    reply = await call(both(), "GetPath", source="Mileva", target="Q183", graph=BOTH)
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
    reply = await call(both(), "GetPath", source="p:ulm", target="Q937", max_hops=2, graph=BOTH)
    assert reply.lines == [
        "Ulm (p:ulm) <-[p:bornIn [people]]- Albert Einstein (p:einstein)",
        "both | p:in [people] | p:earth, p:europe",
        "Ulm (p:ulm) -[p:in [people]]-> p:museum <-[p:in [facts]]- Albert Einstein (p:einstein)",
    ]


async def test_an_expression_goes_through_several_graphs_and_its_evidence_has_the_graph_of_each_fact() -> None:
    reply = await call(
        served(people=people(), facts=facts()),
        "Compose",
        expression="Neighbor[Neighbor[Mileva, p:spouse], award received]",
        graph=BOTH,
    )
    assert reply.text == (
        "Nobel Prize in Physics (Q38104).\n"
        "because Mileva | p:spouse [people] | Albert Einstein | award received [facts] | Nobel Prize in Physics"
    )
    assert reply.data["evidence"] == [
        ["p:mileva", "p:spouse", "p:einstein", "people"],
        ["p:einstein", "P166", "Q38104", "facts"],
    ]


async def test_all_that_several_graphs_have_around_a_thing_is_shown_with_its_graph() -> None:
    reply = await call(both(), "Compose", expression="Neighbor[Q937], Feature[Q937]", graph=BOTH)
    assert reply.data["read"] == {"Q937": "p:einstein"}
    assert (
        "Albert Einstein (p:einstein) | award received (P166) [facts] | Nobel Prize in Physics (Q38104)" in reply.lines
    )
    assert ["2", "p:einstein", "P569", "1879-03-14", "xsd:date", "facts"] in rows(reply.data["results"])


async def test_no_path_leads_from_a_thing_to_itself_under_the_id_of_another_graph() -> None:
    reply = await call(both(), "GetPath", source="p:einstein", target="Q937", graph=BOTH)
    assert reply.is_error
    assert "'p:einstein' and 'Q937' are one thing: Albert Einstein (p:einstein)." in reply.text


async def test_a_name_that_linked_things_share_is_not_ambiguous() -> None:
    reply = await call(both(), "Compose", expression="Neighbor[Ulm, country]", graph=BOTH)
    assert reply.data["read"] == {"Ulm": "p:ulm"}
    assert reply.data["results"] == [["1", "p:ulm", "P17", "Q183", "node", "facts"]]


async def test_a_card_says_under_which_id_another_graph_has_the_thing() -> None:
    reply = await call(both(), "Retrieve", text="Albert Einstein", graph="people")
    assert reply.lines[-1] == "also in facts as Q937"
    back = await call(both(), "Retrieve", text="Q3012", graph="facts")
    assert back.lines[-1] == "also in people as p:ulm"
    assert rows(back.data["candidates"])[0][8:] == ["also in people as p:ulm"]
    alone = await call(people(), "Retrieve", text="Albert Einstein")
    assert reply.lines[:-1] == alone.lines


async def test_retrieve_over_all_graphs_says_which_of_the_things_are_one() -> None:
    reply = await call(both(), "Retrieve", text="Ulm")
    assert reply.summary == (
        "people: Exact: 'Ulm' names one thing. facts: Exact: 'Ulm' names one thing. p:ulm in people and Q3012 in facts "
        "are one thing."
    )
    assert [each[8:] for each in rows(reply.data["candidates"])] == [
        ["also in facts as Q3012", "people"],
        ["also in people as p:ulm", "facts"],
    ]
    separator = reply.lines.index("In facts:")
    assert reply.lines[separator - 1 : separator + 2] == ["also in facts as Q3012", "In facts:", "Ulm (Q3012)"]
    assert not any(each.startswith("also in people") for each in reply.lines)


async def test_a_class_name_means_the_classes_of_that_name_in_all_graphs_and_what_is_linked_counts_once() -> None:
    one = """@prefix p: <http://p.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    p:Person rdfs:label "person" . p:ann a p:Person . p:bob a p:Person ."""
    two = """@prefix c: <http://c.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . c:Person rdfs:label "person" .
    c:a1 a c:Person ; owl:sameAs <http://p.org/ann> . c:c1 a c:Person ."""
    graphs = served(one=LocalAdapter(shared_store(one)), two=LocalAdapter(shared_store(two)))
    reply = await call(graphs, "Compose", expression="Count[Type[person]]", graph=["one", "two"])
    assert reply.text.startswith("3. 'person' names 2 things, all taken: ")


ONE = """@prefix ex: <http://one.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:ann rdfs:label "Ann" ; ex:knows ex:bob . ex:bob rdfs:label "Bob" ; ex:likes ex:ann .
"""
TWO = """@prefix ex: <http://two.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:bob rdfs:label "Bobby" ; ex:made ex:chair . ex:chair rdfs:label "Chair" ; ex:of ex:wood .
ex:wood rdfs:label "Wood" ; ex:knows ex:bob .
"""


async def test_ids_of_a_prefix_that_two_graphs_declare_differently_mean_what_they_meant_in_the_answer() -> None:
    graphs = served(one=LocalAdapter(shared_store(ONE)), two=LocalAdapter(shared_store(TWO)))
    for source in ("Bobby", "<http://two.org/bob>"):
        path = await call(graphs, "GetPath", source=source, target="ex:chair", graph=["one", "two"])
        assert path.lines[0] == (
            "Bobby (<http://two.org/bob>) -[made (<http://two.org/made>) [two]]-> Chair (<http://two.org/chair>)"
        )
    around = await call(graphs, "Compose", expression="Neighbor[ex:wood]", graph=["one", "two"])
    assert [row[3] for row in rows(around.data["results"])] == ["<http://two.org/bob>", "<http://two.org/chair>"]
    kept = await call(graphs, "memory-append", triples=path.lines)
    assert kept.data["status"] == "ok", kept.text
    ambiguous = [
        ("GetPath", {"source": "ex:bob", "target": "Chair"}),
        ("Compose", {"expression": "Neighbor[ex:bob, ex:made]"}),
        ("Compose", {"expression": "Neighbor[Ann, ex:knows]"}),
        ("Compose", {"expression": "Count[Type[ex:bob]]"}),
    ]
    for tool, arguments in ambiguous:
        said = await refusal(graphs, tool, **arguments, graph=["one", "two"])
        assert [space for space in ("<http://one.org/", "<http://two.org/") if space not in said] == []


async def test_a_refusal_says_which_graph_was_asked_and_an_empty_answer_to_a_call_that_names_none() -> None:
    place = "Asked in people; facts was not asked: graph=facts."
    unknown = {"entity": "Germany"}
    assert (await refusal(both(), "Degree", **unknown)).endswith(f"\n{place}")
    assert (await refusal(both(), "Compose", expression="Neighbor[Germany], Neighbor[Ulm, country]")).endswith(place)
    nothing = {"source": "Mileva", "target": "p:museum", "max_hops": 1}
    empty = await call(both(), "GetPath", **nothing)
    assert empty.summary.endswith(place)
    assert empty.data["summary"] == empty.summary
    assert (await refusal(both(), "Degree", **unknown, graph="PEOPLE")).endswith("\nAsked in people.")
    assert "sked in" not in await refusal(people(), "Degree", **unknown)
    for elsewhere in (both(), people()):
        graph = {"graph": "people"} if isinstance(elsewhere, GraphSet) else {}
        assert "sked in" not in (await call(elsewhere, "GetPath", **nothing, **graph)).text
    assert "sked in" not in (await call(both(), "Degree", entity="Ulm")).text


async def test_facts_of_paths_and_expressions_over_several_graphs_can_be_kept() -> None:
    path = await call(both(), "GetPath", source="Mileva", target="Q183", graph=BOTH)
    around = await call(both(), "Compose", expression="Neighbor[Q937]", graph=BOTH)
    facts = [*path.lines, *around.lines, "Ulm (Q3012) | country (P17) [FACTS] | Germany (Q183)"]
    kept = await call(both(), "memory-append", triples=facts)
    assert (kept.data["status"], kept.data["refused"]) == ("ok", []), kept.text


@pytest.mark.parametrize("fault", [BackendUnavailable("Connection refused."), None])
async def test_a_graph_that_fails_or_hangs_is_named_and_left_out_of_a_card(
    fault: BackendError | None,
) -> None:
    broken = Failing(shared_store(FACTS))
    broken.fault = fault
    graphs = served(people=people(), broken=broken)
    said = await refusal(graphs, "GetPath", source="Mileva", target="p:ulm", graph=["people", "broken"])
    assert said.startswith("The graph broken")
    if fault is not None:
        embedder = SharedEmbedder(OF["people"])

        async def opener(_: OnProgress) -> KGAdapter:
            raise fault

        closed = ServedGraph(OF["people"], embedder, opener, name="closed")
        several = GraphSet([*graphs.all, closed], OF["people"], embedder)
        said = await refusal(several, "GetPath", source="Mileva", target="p:ulm", graph=["people", "closed"])
        assert said.startswith("The graph closed: Connection refused.")
    card = await call(graphs, "Retrieve", text="Albert Einstein", graph="people")
    alone = await call(people(), "Retrieve", text="Albert Einstein")
    assert card.text == alone.text
