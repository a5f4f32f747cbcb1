"""Conditions over relations that lead to nodes from some and to texts from others, and over nested objects."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

import pyoxigraph
import pytest

from calls import call, rows, texts
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from remote_graphs import behind_endpoint

BOOKS: Final = """
@prefix e: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:Book rdfs:label "book" .
e:a a e:Book ; rdfs:label "Alpha" ; e:creator "Anonymous" ; e:extent 12 .
e:b a e:Book ; rdfs:label "Beta" ; e:creator e:p ; e:extent [ e:value 30 ] .
e:c a e:Book ; rdfs:label "Gamma" ; e:creator e:p , "workshop of Ann" ; e:extent 40 .
e:d a e:Book ; rdfs:label "Delta" .
e:p rdfs:label "Ann" .
e:Shop rdfs:label "shop" . e:Car rdfs:label "car" . e:shopOwner rdfs:label "owner" . e:carOwner rdfs:label "owner" .
e:s1 a e:Shop ; rdfs:label "S1" ; e:shopOwner "Smith & Co" . e:s3 a e:Shop ; rdfs:label "S3" .
e:s2 a e:Shop ; rdfs:label "S2" ; e:shopOwner "Ann Smith" .
e:c1 a e:Car ; rdfs:label "C1" ; e:carOwner e:p1 . e:c3 a e:Car ; rdfs:label "C3" .
e:c2 a e:Car ; rdfs:label "C2" ; e:carOwner e:p2 . e:p1 rdfs:label "Ann Smith" . e:p2 rdfs:label "Bo" .
"""
HERTZ, OTHER = {"name": "Hz"}, {"name": "GO"}
LEAD, ZINC = {"analyte": "lead"}, {"analyte": "zinc"}
WATERS: Final[Sequence[Mapping[str, object]]] = [
    {"id": "go", "unit": HERTZ, "readings": [{**LEAD, "value": 2}, {**ZINC, "value": 9}]},
    {"id": "w2", "unit": OTHER, "readings": [{**LEAD, "value": 7}, {**ZINC, "value": 1}]},
    {"id": "w3", "unit": HERTZ, "readings": [{**LEAD, "value": 4, "flag": "x"}]},
    {"id": "hz", "unit": HERTZ, "readings": [{**LEAD, "value": 8}, {**LEAD, "value": 1}]},
    {"id": "w5", "unit": OTHER, "readings": []},
]


@pytest.fixture(params=["local", "endpoint"])
async def graph(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KGAdapter]:
    """The books, shops and cars, and the waters, in a store and behind an endpoint."""
    (tmp_path / "books.ttl").write_text(BOOKS, "utf-8")
    (tmp_path / "water.json").write_text(json.dumps(WATERS), "utf-8")
    build_store([tmp_path / "books.ttl", tmp_path / "water.json"], tmp_path / "store", ImportOptions())
    if request.param == "local":
        async with aclosing(LocalAdapter(open_store(tmp_path / "store"))) as opened:
            yield opened
        return
    stored = pyoxigraph.Store.read_only(str(tmp_path / "store" / "oxigraph"))
    async with behind_endpoint(stored, tmp_path / "cache") as opened:
        yield opened


QUESTIONS: Final = {
    "Where[Type[book], creator ~ anon]": "Alpha",
    "Where[Type[book], creator = Anonymous]": "Alpha",
    "Where[Type[book], creator = Ann]": "Beta Gamma",
    "Where[Type[book], creator ~ ann]": "Beta Gamma",
    "Where[Type[book], creator != Ann]": "Alpha",
    "Where[Type[book], creator != Anonymous]": "Beta Gamma",
    "Where[Type[book], creator = none]": "Delta",
    "Where[Type[book], Count[creator] = 2]": "Gamma",
    "Where[Type[book], extent > 20]": "Gamma",
    "Where[Type[shop], owner ~ smith]": "S1 S2",
    'Where[Type[shop], owner != "Ann Smith"]': "S1",
    "Where[Type[shop], owner = none]": "S3",
    "Where[Type[car], owner ~ smith]": "C1",
    "Where[Type[car], owner = none]": "C3",
    'Where[Union[Type[shop], Type[car]], owner = "Ann Smith"]': "C1 S2",
    "Where[Union[Type[shop], Type[car]], owner = none]": "C3 S3",
    "Where[Type[water], readings/analyte = lead, readings/value > 5]": "hz w2",
    "Where[Type[water], readings/value > 1, readings/value < 5]": "go w3",
    "Where[Type[water], readings/value < 2, readings/analyte != zinc]": "hz",
    "Where[Type[water], readings/flag = none, readings/value > 3, readings/analyte = lead]": "hz w2",
    "Where[Type[water], readings/analyte = lead, readings/analyte = zinc]": "go w2",
    "Where[Type[water], unit = GO]": "w2 w5",
    "Where[Type[water], unit = hz]": "go hz w3",
}


async def test_each_member_is_compared_by_what_it_has_and_one_nested_object_meets_all_conditions(
    graph: KGAdapter,
) -> None:
    found: dict[str, str] = {}
    for expression in QUESTIONS:
        reply = await call(graph, "Compose", expression=expression, evidence="none")
        assert not reply.is_error, reply.text
        labels = texts(reply.data["labels"])
        ids = (row[3] for row in rows(reply.data["results"]))
        found[expression] = " ".join(sorted(labels.get(each, each) for each in ids))
    assert found == QUESTIONS


async def test_groups_and_tables_hold_values_beside_nodes(graph: KGAdapter) -> None:
    both = "Union[Type[shop], Type[car]]"
    grouped = await call(graph, "Compose", expression=f"Group[{both}, owner]")
    assert sorted(row[3] for row in rows(grouped.data["results"])) == ["1"] * 4
    assert '"Smith & Co": 1' in grouped.lines
    table = await call(graph, "Compose", expression="Table[Type[shop], owner]")
    assert 'S1: "Smith & Co"' in table.plain.text


@pytest.mark.parametrize("row", ["go", "hz"])
async def test_the_id_of_a_row_comes_before_the_name_of_a_nested_object(graph: KGAdapter, row: str) -> None:
    reply = await call(graph, "Feature", entity=row)
    assert f"'{row}' is read as {row} (entity:{row}), not {'GO' if row == 'go' else 'Hz'} (water_unit:" in reply.text
