"""What a curator asks of a small graph has the same answer over its file and over an endpoint that holds it."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pyoxigraph
import pytest

from calls import call, composed, refusal, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from remote_graphs import behind_endpoint

ARCHIVE = """
@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix crm: <http://www.cidoc-crm.org/cidoc-crm/> .
@prefix dcterms: <http://purl.org/dc/terms/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
e:Print rdfs:label "print" . e:Sheet rdfs:label "sheet" ; rdfs:subClassOf e:Print .
e:hung rdfs:label "hung" . e:measure rdfs:label "measure" . e:width rdfs:label "width" . e:lent rdfs:label "lent" .
e:i1 a e:Print ; rdfs:label "Harvest" ; dcterms:creator "unknown hand" ; e:width 40 ; e:measure e:k1 .
e:i2 a e:Sheet ; rdfs:label "Orchard" ; dcterms:creator e:mo , "pupils of Mo" ; e:width "40,5" ; e:lent true .
e:i3 a e:Print ; rdfs:label "Mill" ; dcterms:creator e:mo .
e:i4 a e:Print ; rdfs:label "Weir" .
e:mo rdfs:label "Mo Vance" . e:inch rdfs:label "inch" .
e:i1 e:frame [ e:depth 3 ; e:in e:inch ] .
e:near rdfs:label "near" . e:site e:near e:i1 ; crm:P1_is_identified_by [ crm:P190_has_symbolic_content "Ember"@la ] .
[] a e:Show ; rdfs:label "Autumn" ; e:hung e:i1 , e:i2 .
"""


@pytest.fixture(params=["file", "endpoint"])
async def archive(
    request: pytest.FixtureRequest, graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> AsyncGenerator[KGAdapter]:
    """The archive as a file, and behind an endpoint that keeps no names of blank nodes."""
    stored = pyoxigraph.Store()
    stored.load(ARCHIVE.encode(), pyoxigraph.RdfFormat.TURTLE)
    if request.param == "file":
        yield graph_of(ARCHIVE)
        return
    async with behind_endpoint(stored, tmp_path) as graph:
        yield graph


SEEN = {
    "Where[Type[print], lent != true]": ["0 nodes", "Of 4 none meets the condition on lent", "left out"],
    "Where[Type[print], lent = false]": ["0 nodes", "Of 4 none meets the condition on lent", "left out"],
    "Where[Type[print], dcterms:creator ~ unknown]": ["Harvest."],
    "Where[Type[print], dcterms:creator = none]": ["Weir."],
    "Count[Neighbor[Orchard, dcterms:creator]]": ["1. Namely Mo Vance", "dcterms:creator leads to 1 value too"],
    "Neighbor[Mill, dcterms:creator]": ["Mo Vance.\n"],
    "Feature[Neighbor[Harvest, frame]]": ["1 value.", "depth | 3"],
    "Feature[Neighbor[inch, -e:in]]": ["1 value.", "depth | 3"],
}


@pytest.mark.parametrize(("expression", "seen"), SEEN.items())
async def test_an_expression_is_answered_alike(archive: KGAdapter, expression: str, seen: list[str]) -> None:
    answer = (await composed(archive, expression)).plain.text + "\n"
    assert all(each in answer for each in seen), answer


async def test_values_beside_nodes_are_mentioned_where_neighbours_are_counted(archive: KGAdapter) -> None:
    answer = await call(archive, "Degree", entity="Orchard", relation="dcterms:creator")
    assert "It has 1 value of it, which Feature shows." in answer.summary
    answer = await call(archive, "Degree", entity="Mill", relation="dcterms:creator")
    assert "value" not in answer.summary


async def test_what_has_no_number_is_told_from_what_has_one(archive: KGAdapter) -> None:
    answer = (await composed(archive, "Where[Type[print], width > 30]")).plain
    assert answer.summary.startswith("Harvest.")
    assert "that is not a number" in answer.summary


async def test_a_name_of_blank_nodes_is_no_empty_set(archive: KGAdapter) -> None:
    if archive.remote:
        assert "'Autumn' names a node without an id (a blank node)" in await refusal(
            archive, "Compose", expression="Neighbor[Autumn, hung]"
        )
        assert "'Autumn' names a node without an id" in await refusal(archive, "GetNeighbor", entity="Autumn")
    else:
        assert (await composed(archive, "Neighbor[Autumn, hung]")).plain.lines == ["Harvest", "Orchard"]


async def test_a_name_that_is_a_node_of_its_own_names_what_it_is_the_name_of(archive: KGAdapter) -> None:
    answer = await call(archive, "GetNeighbor", entity="Ember", relation="near")
    assert answer.plain.summary.endswith("Harvest.")
    assert (await composed(archive, "Neighbor[Ember, near]")).plain.summary == "Harvest."
    assert "'Ember' names" in (await call(archive, "Retrieve", text="Ember")).summary


async def test_paths_go_through_blank_nodes(archive: KGAdapter) -> None:
    answer = (await call(archive, "GetPath", source="Harvest", target="inch")).plain
    assert answer.summary.startswith("1 path links Harvest and inch within 3 hops. The search was exhaustive")
    assert "[e:frame]-> _:" in answer.lines[0]
    assert "[depth 3] -[e:in]-> inch" in answer.lines[0]


LAB = """
@prefix e: <http://lab.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
e:Scope a owl:Class ; rdfs:subClassOf e:Instrument . e:Instrument a owl:Class . e:Room a owl:Class .
e:supervises rdfs:label "supervises" . e:booked rdfs:label "booked by" . e:at rdfs:label "located in" .
e:p1 a e:Person ; rdfs:label "Ingrid" ; e:supervises e:p2 , e:p3 , e:p4 ; e:nationality "Norwegian" .
e:p2 a e:Person ; rdfs:label "Kim" ; e:nationality "Korean" . e:p3 a e:Person ; rdfs:label "Tomás" .
e:p4 a e:Person ; rdfs:label "Lee" ; e:supervises e:p5 . e:p5 a e:Person ; rdfs:label "Sean" .
e:m1 a e:Scope ; rdfs:label "Confocal A" ; e:at e:r1 ; e:booked e:p2 , e:p3 .
e:m2 a e:Scope ; rdfs:label "Confocal B" ; e:at e:r2 ; e:booked e:p3 .
e:m3 a e:Scope ; rdfs:label "Old Lens" ; e:at e:r1 .
e:m4 a e:Instrument ; rdfs:label "Spinner" ; e:at e:r2 ; e:booked e:p5 .
e:m5 a e:Instrument ; rdfs:label "Lamp" ; e:at e:r2 .
e:r1 a e:Room ; rdfs:label "Room 1" . e:r2 a e:Room ; rdfs:label "Room 2" .
"""


@pytest.fixture(params=["file", "endpoint"])
async def lab(
    request: pytest.FixtureRequest, graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> AsyncGenerator[KGAdapter]:
    """A small graph as a file, and behind an endpoint of which what its classes have is known already."""
    stored = pyoxigraph.Store()
    stored.load(LAB.encode(), pyoxigraph.RdfFormat.TURTLE)
    if request.param == "file":
        yield graph_of(LAB)
        return
    async with behind_endpoint(stored, tmp_path) as graph:
        await graph.profile()
        yield graph


async def test_what_an_entity_lacks_is_compared_with_its_own_class_however_small(lab: KGAdapter) -> None:
    answer = await call(lab, "GetNeighbor", entity="Old Lens", relation="booked by")
    assert "of 5 Instruments 3 have one, so its absence proves nothing" in answer.plain.summary
    answer = await call(lab, "GetNeighbor", entity="Room 1", relation="located in", direction="out")
    assert "no Room here has one" in answer.plain.summary
    answer = await call(lab, "GetNeighbor", entity="Lamp", relation="booked by")
    assert answer.data["knowledge"] == "unknown"


async def test_a_small_graph_is_observed_whole_with_what_classes_have_last(lab: KGAdapter) -> None:
    question = "Which instruments does Ingrid's group use?"
    answer = await call(lab, "observe", question=question, entities=["Ingrid"])
    lines = answer.plain.lines
    used = ["Confocal A | booked by | Kim", "2: Confocal A, Confocal B | booked by | Tomás"]
    assert all(any(set(each.split(" | ")) == set(line.split(" | ")) for line in lines) for each in used), lines
    late = [place for place, line in enumerate(lines) if "rdf:type" in line and not line.startswith("Ingrid")]
    assert late == list(range(len(lines) - len(late), len(lines))), lines
    assert (answer.data["status"], answer.data["knowledge"]) == ("ok", "unknown")
    assert "Left out" not in answer.summary


@pytest.mark.parametrize("entity", ["Ingrid", "Confocal B", "Lamp"])
async def test_an_observation_shows_no_fact_twice(lab: KGAdapter, entity: str) -> None:
    answer = await call(lab, "observe", question=f"What about {entity}?", entities=[entity])
    groups = rows(answer.data["groups"])
    facts = [
        (near, relation, far) if direction == "out" else (far, relation, near)
        for near, relation, direction, _, _, _, *ends in groups
        for far in ends
    ]
    standing_alone = [
        place
        for place, (near, relation, direction, _, _, _, *ends) in enumerate(groups)
        if all(facts.count((near, relation, far) if direction == "out" else (far, relation, near)) > 1 for far in ends)
    ]
    assert standing_alone == []


async def test_an_observation_says_what_it_leaves_out_and_how_to_see_it(lab: KGAdapter) -> None:
    question = "Which instruments does Ingrid's group use?"
    answer = await call(lab, "observe", question=question, entities=["Ingrid"], top_n=3)
    assert "like the question" in answer.summary.partition("facts examined")[2]
    assert "GetNeighbor shows" in answer.summary


async def test_a_set_of_many_nodes_without_values_has_none_and_nothing_else(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    films = "".join(f'<e:f{each}> a <e:Film> ; {label} "Film {each}" . ' for each in range(60))
    answer = (await composed(graph_of(f'{films} <e:Film> {label} "film" .'), "Feature[Type[film]]")).plain
    assert answer.text == "0 values."
    one = graph_of(f'{films} <e:Film> {label} "film" . <e:f7> <e:len> 90 . <e:f8> <e:len> 91 .')
    answer = (await composed(one, "Feature[Type[film]]")).plain
    assert "2 values" in answer.summary
    assert ("Not everything was fetched" in answer.summary) == ("Only what the first 50 nodes" in answer.summary)


async def test_a_date_is_not_mistaken_for_a_relation_without_dates(graph_of: Callable[[str], LocalAdapter]) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    place = f'<e:p> {label} "place of birth" . <e:a> {label} "Ann" ; <e:p> <e:b> . <e:b> {label} "Bonn" .'
    answer = await call(graph_of(place), "GetNeighbor", entity="Ann", relation="date of birth")
    assert "This graph has no dates." in answer.text
    assert "Did you mean" not in answer.text
    born = (
        f'{place} <e:d> {label} "date of death" . <e:a> <e:d> "1999-01-02"^^<http://www.w3.org/2001/XMLSchema#date> .'
    )
    answer = await call(graph_of(born), "GetNeighbor", entity="Ann", relation="date of birth")
    assert "no dates" not in answer.text
    assert "place of birth" not in answer.text.partition("It has")[0]
