"""A text that is no name may be a value, a part of a name or an identifier: every tool reads it so, and says so."""

from collections.abc import Callable
from pathlib import Path

import pytest
import rdflib

from calls import call, refusal, rows, unhurried
from embedders import LEXICAL
from kg_adapters.caching import CachingAdapter
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from sparql_stand_in import LateEndpoint, StandInEndpoint, adapter_over

LAB = """
@prefix e: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix dct: <http://purl.org/dc/terms/> .
e:Person rdfs:label "Person" . e:Worker rdfs:label "worker" . e:Tool rdfs:label "tool" .
e:origin rdfs:label "origin" . e:colour rdfs:label "colour" . e:uses rdfs:label "uses" . e:since rdfs:label "since" .
e:a a e:Worker ; rdfs:label "Magnus Thorvaldsen" ; e:origin "Icelandic" ; e:since 2011 ; e:uses e:v .
e:b a e:Worker ; rdfs:label "Petra Lindqvist" ; e:origin "Swedish" ; e:since 2011 .
e:c a e:Worker ; rdfs:label "Hugo Lindqvist" ; e:origin "Swedish"@en ; e:since 2019 .
e:v a e:Tool ; rdfs:label "Volvo Lift" ; e:colour "Grün matt" ; dct:identifier "KA/118" .
e:w a e:Tool ; rdfs:label "Hand Saw" ; e:colour "Grün matt" ; dct:identifier "KA/119" .
e:x a e:Tool ; rdfs:label "Bench Saw" ; e:colour "grey" ; e:origin "Swedish" ; dct:identifier "KA/120" .
e:y a e:Tool ; rdfs:label "Greig" ; e:colour "Grieg" .
"""
ORDERS = """\
order,customer,item
1001,Müller GmbH,bolt
1002,ACME Ltd,nut
1003,Müller GmbH,"washer, flat"
1004,Dupont SA,"washer, flat"
"""
ASKED_FOR_VALUES = "FILTER(?a NOT IN"
SETTINGS = unhurried(embedding=LEXICAL)
GraphOf = Callable[[str], LocalAdapter]
Places = pytest.mark.parametrize("place", ["store", "memory", "endpoint"])


def placed(graph_of: GraphOf, place: str, text: str = LAB) -> KGAdapter:
    """Return a graph in a store, in this process, or behind an endpoint."""
    if place == "store":
        return graph_of(text)
    graph = rdflib.Graph().parse(data=text)
    if place == "memory":
        return RdflibAdapter(graph)
    return CachingAdapter(adapter_over(StandInEndpoint(graph.serialize(format="nt"))))


@pytest.fixture
def orders(tmp_path: Path) -> LocalAdapter:
    table = tmp_path / "orders.csv"
    table.write_text(ORDERS, encoding="utf-8")
    build_store([table], tmp_path / "store", ImportOptions())
    return LocalAdapter(open_store(tmp_path / "store"))


async def test_a_value_of_a_table_shows_the_rows_that_have_it_and_the_condition_that_finds_them(
    orders: LocalAdapter,
) -> None:
    found = (
        "'Müller GmbH': value of customer in 2 of 4 orders: 1001, 1003. "
        'Where[Type[orders], customer = "Müller GmbH"] finds them.'
    )
    reply = await call(orders, "Retrieve", SETTINGS, text="Müller GmbH")
    assert (reply.text, reply.data["match"], reply.data["knowledge"]) == (found, "value", "stated")
    assert [row[1] for row in rows(reply.data["candidates"])] == ["1001", "1003"]
    assert rows(reply.data["values"]) == [
        [
            "Müller GmbH",
            "relation:customer",
            "2",
            "type:orders",
            "4",
            'Where[Type[orders], customer = "Müller GmbH"]',
        ]
    ]
    reply = await call(orders, "Compose", expression='Count[Where[Type[orders], customer = "Müller GmbH"]]')
    assert reply.text.startswith("2.")


async def test_the_condition_that_finds_a_value_with_a_comma_can_be_asked_as_it_stands(orders: LocalAdapter) -> None:
    reply = await call(orders, "Retrieve", SETTINGS, text="washer, flat")
    condition = rows(reply.data["values"])[0][-1]
    assert (await call(orders, "Compose", expression=f"Count[{condition}]")).text.startswith("2.")


@pytest.mark.parametrize("text", ["müller gmbh", "muller gmbh", "MÜLLER GMBH", " Müller GmbH "])
async def test_a_value_is_found_in_any_case_and_without_accents(orders: LocalAdapter, text: str) -> None:
    reply = await call(orders, "Retrieve", SETTINGS, text=text)
    assert 'Where[Type[orders], customer = "Müller GmbH"] finds them.' in reply.text


@Places
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Icelandic", "value of origin in 1 of 3 workers: Magnus Thorvaldsen"),
        ("icelandic", "value of origin in 1 of 3 workers: Magnus Thorvaldsen"),
        ("Grün matt", "value of colour in 2 of 4 tools: Volvo Lift, Hand Saw"),
        ("2011", "value of since in 2 of 3 workers: Magnus Thorvaldsen, Petra Lindqvist"),
        # Of several classes there is none in common.
        ("Swedish", "value of origin in 3 entities: Petra Lindqvist, Hugo Lindqvist, Bench Saw."),
        # What is a value is no misspelling.
        ("Grieg", "value of colour in 1 of 4 tools: Greig"),
    ],
)
async def test_what_is_no_name_but_a_value_is_found_by_it(graph_of: GraphOf, place: str, text: str, said: str) -> None:
    reply = await call(placed(graph_of, place), "Retrieve", SETTINGS, text=text)
    assert reply.data["match"] == "value"
    assert f"'{text}': {said}" in reply.text


@Places
async def test_a_type_leaves_of_those_who_have_a_value_only_its_instances(graph_of: GraphOf, place: str) -> None:
    reply = await call(placed(graph_of, place), "Retrieve", SETTINGS, text="Swedish", type="worker")
    assert "value of origin in 2 of 3 workers: Petra Lindqvist, Hugo Lindqvist." in reply.text


@Places
async def test_neighbours_of_a_value_are_those_who_have_it(graph_of: GraphOf, place: str) -> None:
    graph = placed(graph_of, place)
    reply = await call(graph, "GetNeighbor", entity="Grün matt")
    assert reply.summary.startswith("No entity is called so. 'Grün matt': value of colour in 2 of 4 tools")
    assert [row[2] for row in rows(reply.data["values"])] == ['"Grün matt"'] * 2
    assert [line.partition(" (")[0] for line in reply.lines] == ["Volvo Lift", "Hand Saw"]
    reply = await call(graph, "GetNeighbor", entity="Icelandic", relation="uses")
    assert '= "Icelandic"], uses]' in reply.summary


@Places
async def test_to_observe_a_value_is_to_observe_those_who_have_it(graph_of: GraphOf, place: str) -> None:
    graph = placed(graph_of, place)
    reply = await call(graph, "observe", SETTINGS, question="Who uses what?", entities=["Icelandic"])
    assert reply.summary.startswith("'Icelandic': value of origin in 1 of 3 workers: Magnus Thorvaldsen.")
    assert "Volvo Lift" in reply.text


@Places
async def test_the_schema_about_a_value_shows_the_feature_its_class_and_who_has_it(
    graph_of: GraphOf, place: str
) -> None:
    reply = await call(placed(graph_of, place), "Schema", SETTINGS, about="Grün matt")
    assert "'Grün matt': value of colour in 2 of 4 tools: Volvo Lift, Hand Saw." in reply.summary
    assert [line.partition(" | ")[0] for line in reply.lines[:2]] == ["feature", "class"]


@Places
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Compose", {"expression": "Neighbor[Icelandic]"}),
        ("Compose", {"expression": "Count[Type[Icelandic]]"}),
        ("Sparql", {"query": 'SELECT ?p { ?p ?q @"Icelandic" }'}),
        ("Feature", {"entity": "Icelandic"}),
        ("GetPath", {"source": "Icelandic", "target": "Volvo Lift"}),
    ],
)
async def test_where_an_entity_must_be_named_a_value_is_refused_with_its_condition(
    graph_of: GraphOf, place: str, tool: str, arguments: dict[str, object]
) -> None:
    text = await refusal(placed(graph_of, place), tool, **arguments)
    assert "No entity matches 'Icelandic'. It is a value of origin in 1 of 3 workers: Magnus Thorvaldsen." in text
    assert '= "Icelandic"] finds it.' in text


@Places
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Thorvaldsen", "Close: read 'Thorvaldsen' as Magnus Thorvaldsen ({}), by a part of its name."),
        ("magnus", "Close: read 'magnus' as Magnus Thorvaldsen ({}), by a part of its name."),
        ("Torvaldsen", "Close: read 'Torvaldsen' as Magnus Thorvaldsen ({}), one letter off a part of its name."),
        # Two vowels changed places.
        ("Thorveldsan", "Close: read 'Thorveldsan' as Magnus Thorvaldsen ({}), 2 letters off a part of its name."),
    ],
)
async def test_the_only_bearer_of_a_first_or_last_name_is_read_and_said(
    graph_of: GraphOf, place: str, text: str, read: str
) -> None:
    graph = placed(graph_of, place)
    reply = await call(graph, "Retrieve", SETTINGS, text=text)
    node = rows(reply.data["candidates"])[0][0]
    assert (reply.data["match"], reply.text.startswith(read.format(node))) == ("close", True)
    reply = await call(graph, "GetNeighbor", entity=text, relation="uses")
    assert reply.text.startswith(f"'{text}' read as Magnus Thorvaldsen")
    assert "Volvo Lift" in reply.text


@Places
@pytest.mark.parametrize(("text", "names"), [("Lindqvist", {"b", "c"}), ("saw", {"w", "x"})])
async def test_several_bearers_of_a_part_of_a_name_are_listed_and_none_is_read(
    graph_of: GraphOf, place: str, text: str, names: set[str]
) -> None:
    graph = placed(graph_of, place)
    reply = await call(graph, "Retrieve", SETTINGS, text=text)
    assert reply.data["match"] == "loose"
    assert {row[0].rstrip(">")[-1] for row in rows(reply.data["candidates"])} == names
    assert "No entity matches" in await refusal(graph, "GetNeighbor", entity=text)


@Places
@pytest.mark.parametrize("text", ["Faust", "Perso", "Zylinder", "Magnum"])
async def test_what_merely_has_letters_in_common_is_not_listed(graph_of: GraphOf, place: str, text: str) -> None:
    noise = f"{LAB} e:n1 e:uses e:AUS . e:AUS rdfs:label 'AUS' . e:UST rdfs:label 'UST' ; e:uses e:AUS ."
    reply = await call(placed(graph_of, place, noise), "Retrieve", SETTINGS, text=text)
    listed = [row[1] for row in rows(reply.data["candidates"])]
    assert not {"AUS", "UST", "Volvo Lift", "Greig"}.intersection(listed)
    assert len(listed) <= 1


@Places
@pytest.mark.parametrize(
    ("tool", "arguments", "begin"),
    [
        ("Retrieve", {"text": "KA/118"}, "Exact: 'KA/118' names Volvo Lift"),
        ("Retrieve", {"text": "ka/118"}, "Exact: 'ka/118' names Volvo Lift"),
        ("GetNeighbor", {"entity": "KA/119"}, "'KA/119' read as Hand Saw"),
        ("Degree", {"entity": "KA/118"}, "'KA/118' read as Volvo Lift"),
        ("Compose", {"expression": "Feature[KA/118, colour]"}, "1 value. 'KA/118' read as Volvo Lift"),
        ("Sparql", {"query": 'SELECT ?c { @"KA/118" @"colour" ?c }'}, "'KA/118' read as Volvo Lift"),
    ],
)
async def test_an_identifier_names_its_only_bearer_in_every_tool(
    graph_of: GraphOf, place: str, tool: str, arguments: dict[str, object], begin: str
) -> None:
    reply = await call(placed(graph_of, place), tool, SETTINGS, **arguments)
    assert reply.plain.text.startswith(begin)
    assert "by its identifier" in reply.text


@Places
async def test_every_condition_that_is_shown_finds_as_many_as_it_says(graph_of: GraphOf, place: str) -> None:
    unnamed = "\n".join(line for line in LAB.splitlines() if not line.startswith(("e:Person", "e:origin")))
    for text in (LAB, unnamed):
        graph = placed(graph_of, place, text)
        reply = await call(graph, "Retrieve", SETTINGS, text=["Icelandic", "Grün matt", "2011", "grieg"])
        for _, _, count, _, _, condition in rows(reply.data["values"]):
            assert (await call(graph, "Compose", expression=f"Count[{condition}]")).text.startswith(f"{count}.")


async def test_a_condition_on_a_text_does_not_ask_whether_it_is_a_value() -> None:
    endpoint = StandInEndpoint(rdflib.Graph().parse(data=LAB).serialize(format="nt"))
    graph = adapter_over(endpoint)
    reply = await call(graph, "Compose", expression='Count[Where[Type[tool], colour = "Grün matt"]]')
    assert (reply.text[:2], [each for each in endpoint.asked if ASKED_FOR_VALUES in each]) == ("2.", [])
    await call(graph, "Retrieve", SETTINGS, text=["Icelandic", "Grün matt", "Hand Saw"])
    assert sum(ASKED_FOR_VALUES in each for each in endpoint.asked) == 1


async def test_a_list_may_hold_values_and_a_value_may_hold_a_comma(orders: LocalAdapter) -> None:
    reply = await call(orders, "Retrieve", SETTINGS, text="ACME Ltd, bolt")
    assert reply.data["matches"] == {"ACME Ltd": "value", "bolt": "value"}
    assert (await call(orders, "Retrieve", SETTINGS, text="washer, flat")).data["match"] == "value"


async def test_texts_of_a_list_say_each_for_itself_what_they_are(graph_of: GraphOf) -> None:
    texts = ["Hand Saw", "Icelandic", "Thorvaldsen", "Zylinder"]
    reply = await call(graph_of(LAB), "Retrieve", SETTINGS, text=texts)
    assert reply.summary == "4 texts: 1 exact, 1 close, 1 a value, 1 named by nothing here."
    assert reply.data["matches"] == dict(zip(texts, ("exact", "value", "close", "none"), strict=True))


async def test_where_values_come_too_late_the_rest_of_the_answer_stands() -> None:
    late = LateEndpoint(rdflib.Graph().parse(data=LAB).serialize(format="nt"), ASKED_FOR_VALUES)
    reply = await call(CachingAdapter(adapter_over(late)), "Retrieve", SETTINGS, text="Icelandic")
    assert (reply.data["match"], reply.text.startswith("No entity matches 'Icelandic'.")) == ("none", True)
