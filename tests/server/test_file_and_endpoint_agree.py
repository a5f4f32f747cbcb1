"""What a curator asks of a small graph has the same answer over its file and over an endpoint that holds it."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pyoxigraph
import pytest

from calls import call, composed, refusal
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
