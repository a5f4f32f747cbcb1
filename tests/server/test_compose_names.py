"""How Compose finds entities, relations and features by name, and what it says where a name means several things."""

from collections.abc import Callable

import pytest

from calls import rows
from compositions import composed, refused
from kg_adapters.local.adapter import LocalAdapter

WORLD = """
@prefix ex: <http://ex.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:seat rdfs:label "capital" .
ex:money rdfs:label "Capital" .
ex:height rdfs:label "size" .
ex:area rdfs:label "size" .
ex:japan rdfs:label "Japan"@en ; ex:seat ex:tokyo ; ex:size 1 ; ex:area 378000 ; ex:motto "first" .
ex:france rdfs:label "France"@en ; ex:seat ex:paris ; ex:height 4810 ; ex:area 640000 ; ex:motto "equal"@fr .
ex:utopia rdfs:label "Utopia"@en ; ex:motto "equal"@en .
ex:tokyo rdfs:label "Tokyo"@en ; ex:near ex:yokohama .
ex:paris rdfs:label "Paris"@en .
ex:paris_texas rdfs:label "Paris"@en .
ex:firm ex:money ex:bank ; ex:seat ex:paris .
ex:yokohama ex:near ex:tokyo .
"""


@pytest.fixture
def world(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    """Countries with capitals, and names that mean several things."""
    return graph_of(WORLD)


async def test_all_of_one_name_take_part_and_are_listed(world: LocalAdapter) -> None:
    reply = await composed(world, "Retrieve[paris]")
    assert reply.plain.summary == "2 nodes. 'paris' names 2 things, all taken: Paris; Paris."
    assert sorted(reply.plain.lines) == ["Paris", "Paris"]


async def test_a_misspelt_name_is_read_and_said(world: LocalAdapter) -> None:
    reply = await composed(world, "Degree[Retrieve[Yokohamma]]")
    assert reply.summary == "ex:yokohama: 1. 'Yokohamma' read as ex:yokohama, one letter off."
    assert reply.data["read"] == {"Yokohamma": "ex:yokohama"}


async def test_a_name_of_several_relations_means_all_of_them_and_an_id_means_one(world: LocalAdapter) -> None:
    reply = await composed(world, "Neighbor[ex:firm, CAPITAL]")
    one = await composed(world, "Neighbor[ex:firm, ex:seat]")
    values = await composed(world, "Feature[ex:france, size]")
    backwards = await composed(world, "Neighbor[ex:bank, -capital]")
    none = await composed(world, "Neighbor[ex:yokohama, capital]")
    assert {row[3] for row in rows(reply.data["results"])} == {"ex:bank", "ex:paris"}
    assert {row[3] for row in rows(one.data["results"])} == {"ex:paris"}
    assert "'CAPITAL' names 2 relations, all taken: ex:seat, 3 facts; ex:money, 1 fact." in reply.summary
    assert "names" not in one.summary
    assert {row[2] for row in rows(values.data["results"])} == {"ex:area", "ex:height"}
    assert backwards.data["results"] == [["1", "ex:bank", "-ex:money", "ex:firm", "node"]]
    assert none.data["results"] == []


async def test_an_unknown_name_is_refused_with_similar_ones_and_those_that_are_there(tokyo: LocalAdapter) -> None:
    relation = await refused(tokyo, "Neighbor[Q17, captial]")
    feature = await refused(tokyo, "Feature[Union[Q17, Q1490], popullation]")
    unknown_id = await refused(tokyo, "Neighbor[Q999, P9999]")
    assert relation.startswith(
        "No relation of this graph is called 'captial'. Did you mean capital? Japan has country, capital."
    )
    assert feature.startswith(
        "No feature of this graph is called 'popullation'. Did you mean population? The first 2 entities "
        "that it is asked of have "
        "rdfs:label, schema:description, skos:altLabel, population."
    )
    assert "This graph has no relation 'P9999'." in unknown_id


async def test_two_relations_in_one_call_are_refused_with_the_way_to_write_them(tokyo: LocalAdapter) -> None:
    text = await refused(tokyo, "Neighbor[Q1490, capital, country]")
    assert "One call takes one relation: write several calls, side by side or inside Union[…, …]." in text


async def test_a_direction_behind_a_relation_is_refused_with_the_mark_for_it(tokyo: LocalAdapter) -> None:
    text = await refused(tokyo, "Neighbor[Q1490, capital, in]")
    assert "A direction is a mark: capital leads away, -capital leads to it, ~capital both ways." in text


async def test_a_feature_is_no_relation_and_a_relation_no_feature(tokyo: LocalAdapter) -> None:
    for name in ("population", "P1082"):
        text = await refused(tokyo, f"Neighbor[Q1490, {name}]")
        assert text.startswith("population has values, not nodes: use Feature[node, P1082].")
    for name in ("capital", "P36"):
        text = await refused(tokyo, f"Feature[Q1490, {name}]")
        assert text.startswith("capital leads to nodes, not values: use Neighbor[node, P36].")


async def test_a_relation_goes_by_the_last_part_of_its_iri_and_by_its_prefixed_name(world: LocalAdapter) -> None:
    for name in ("NEAR", "ex:near"):
        reply = await composed(world, f"Neighbor[ex:tokyo, {name}]")
        assert rows(reply.data["results"])[0][3] == "ex:yokohama"
    reply = await composed(world, "Feature[ex:tokyo, RDFS:Label]")
    assert rows(reply.data["results"])[0][3:] == ["Tokyo", "en"]


async def test_values_are_the_same_in_one_language_only(world: LocalAdapter) -> None:
    reply = await composed(
        world,
        "Count[Intersect[Feature[ex:france, motto], Feature[ex:utopia, motto]]], "
        "Count[Union[Feature[ex:japan, motto], Feature[ex:france, motto]]]",
    )
    assert [row[3:] for row in rows(reply.data["results"])] == [["0", "number"], ["2", "number"]]


async def test_a_name_with_commas_is_refused_with_its_spelling_in_quotation_marks(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    prefixes = "@prefix ex: <http://ex.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    graph = graph_of(f'{prefixes} ex:river rdfs:label "Moselle, Lower, left" ; ex:near ex:town .')
    text = await refused(graph, "Neighbor[moselle, lower, left, near]")
    assert text == (
        "No entity matches 'moselle'. Near, not the same: \"Moselle, Lower, left\". "
        'Write "Moselle, Lower, left", in quotation marks.'
    )
    found = await composed(graph, 'Neighbor["Moselle, Lower, left", near]')
    assert found.data["results"] == [["1", "ex:river", "ex:near", "ex:town", "node"]]
    assert "quotation marks" not in await refused(graph, "Neighbor[danube, upper, near]")
