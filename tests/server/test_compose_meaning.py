"""What a word of an expression is taken for: a name or a number, a class or its instances, a date or none."""

from collections.abc import Callable

import pytest

from calls import composed, refused, rows
from kg_adapters.local.adapter import LocalAdapter
from small_graphs import Unlisted

CITIES = """
@prefix e: <http://e.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
e:City rdfs:label "city" . e:Tower rdfs:label "tower" . e:Kind rdfs:label "kind" .
e:pop rdfs:label "population" . e:inc rdfs:label "inception" . e:in rdfs:label "located in" . e:big rdfs:label "big" .
e:h rdfs:label "height (m. Yes.\\nstated: 9 nodes)" . e:in e:note "a relation" . e:series rdfs:label "series" .
e:c0 a e:City ; rdfs:label "Arville" ; e:pop 1000 ; e:big 1.5e308 ; e:h 5 ; e:inc "1950-01-01"^^xsd:date .
e:c1 a e:City ; rdfs:label "Beaville" ; e:pop 2000, 2001 ; e:big 1.5e308 ; e:h 6 ; e:inc "1950"^^xsd:gYear .
e:c2 a e:City ; rdfs:label "Cerville" ; e:pop 30 ; e:mixed 12000, "1950"^^xsd:gYear ; e:inc "1960"^^xsd:gYear .
e:t0 a e:Tower ; rdfs:label "Turm" ; e:in e:c0 ; e:series e:s1984 . e:t1 a e:Tower ; e:in e:c0, e:Kind .
e:s1984 rdfs:label "1984" . e:City e:sort e:Kind .
"""


MAY_MEET = "1 may meet it, as its date is less precise than 1950-01-01: Beaville 1950."


@pytest.fixture
def cities(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    """Three cities and two towers, one of them of the series 1984."""
    return graph_of(CITIES)


def results(data: dict[str, object]) -> list[str]:
    return [row[3] for row in rows(data["results"])]


@pytest.mark.parametrize(
    ("expression", "found", "said"),
    [
        ('Where[Type[tower], series = "1984"]', ["e:t0"], ""),
        ("Where[Type[tower], Count[series] = 1]", ["e:t0"], ""),
        ("Where[Type[tower], series = 1984]", ["e:t0"], ""),
        ("Where[Type[tower], Count[located in] = 2]", ["e:t1"], ""),
        ("Where[Type[tower], Count[located in] > -1]", ["e:t0", "e:t1"], ""),
        (f"Where[Type[city], Count[-located in] < 1{'0' * 20}]", ["e:c0", "e:c1", "e:c2"], ""),
        ("Where[Type[city], population > １९９]", ["e:c0", "e:c1"], ""),
        ("Where[Type[city], population > 1,999]", ["e:c1"], ""),
        ("Where[Type[city], mixed > 1000]", ["e:c2"], ""),
        ("Where[Type[city], mixed > 10000]", ["e:c2"], ""),
        ("Where[Type[city], inception = Feature[Arville, inception]]", ["e:c0"], MAY_MEET),
        ("Where[Type[city], inception = 1950-01-01]", ["e:c0"], MAY_MEET),
        ("Where[Type[city], inception != 1950-01-01]", ["e:c2"], MAY_MEET),
        ("Where[Type[city], inception >= 1950-01-01]", ["e:c0", "e:c1", "e:c2"], ""),
        ("Where[Type[city], inception <= 1950-12-31]", ["e:c0", "e:c1"], ""),
        ("Where[Type[city], population = Feature[Beaville, population]]", ["e:c1"], ""),
    ],
)
async def test_digits_are_numbers_dates_or_names_by_what_a_relation_leads_to(
    cities: LocalAdapter, expression: str, found: list[str], said: str
) -> None:
    reply = await composed(cities, expression)
    assert results(reply.data) == found
    assert said in reply.plain.summary


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("inception = 1977-99", "has dates, and '1977-99' is not a date. Write 1977, 1977-05, 1977-05-01,"),
        ("inception = 1977-02-29", "'1977-02-29' is not a date."),
        ("inception > 1977T00:00:00", "'1977T00:00:00' is not a date."),
        ("inception > 1977-05-01T25:00:00", "is not a date."),
        (f"inception > {'9' * 4_400}", "is not a date."),
        (f"population > {'9' * 4_400}", "is more than can be compared with: 1.8e308 at most."),
        ("population < 1e999", "'1e999' is more than can be compared with"),
        ("population > 1977-05-01", "has numbers, and '1977-05-01' is not a number. Write one such as "),
        ("height > 5 ft", r"is given in 'm. Yes.\nstated: 9 nodes', not in 'ft'."),
        ("located in > 1", "leads to nodes, which > cannot compare. How many there are is asked by Count[located in]."),
        ("located in = 2", "No entity matches '2'. How many there are is asked by Count[located in]."),
        ("Count[located in] > 1.5", "is a whole number, not 1.5."),
        (
            "population > 1 and population < 3",
            "'1 and population < 3' is not just a number. Separate conditions with commas.",
        ),
        ("population = Type[city]", "has values, and this gives nodes: compare it with a value, or with Feature[…]."),
        (
            "located in = Feature[Type[city], population]",
            "leads to nodes, and this gives values: compare it with nodes.",
        ),
        ("population 1000", "A condition is a relation, an operator and a value, as in population > 1000."),
        ("population > Count[city]", "'city' is a class here, which is one node. Type[city] gives its instances."),
    ],
)
async def test_what_is_no_such_number_or_date_is_refused_where_it_stands(
    cities: LocalAdapter, condition: str, said: str
) -> None:
    text = await refused(cities, f"Where[Type[city], {condition}]")
    assert said in text
    assert "stated: 9 nodes\n" not in text
    assert text.splitlines()[1].startswith("Where[Type[city], ")
    assert text.splitlines()[2].strip() == "^"


@pytest.mark.parametrize(("name", "number"), [("cities", "3"), ("towre", "2"), ("City", "3")])
async def test_a_class_is_read_in_the_plural_and_with_a_slip(cities: LocalAdapter, name: str, number: str) -> None:
    reply = await composed(cities, f"Count[Type[{name}]]")
    assert results(reply.data) == [number]
    assert (" read as " in reply.summary) == (name != "City")


async def test_what_names_no_class_is_refused_with_the_way_to_all(cities: LocalAdapter) -> None:
    text = await refused(cities, "Type[flower]")
    assert text.startswith("No entity matches 'flower'. ")
    assert text.endswith(" Schema lists the classes.")
    assert "is not a class here: it has no instances. Schema" in await refused(cities, "Type[Turm]")


async def test_a_feature_leads_nowhere_backwards(cities: LocalAdapter) -> None:
    text = await refused(cities, "Neighbor[Arville, -population]")
    assert "has values, and none leads back: Where[…, e:pop = value] finds what has one." in text


async def test_how_many_are_wanted_is_a_number_of_few_digits(cities: LocalAdapter) -> None:
    text = await refused(cities, f"Top[Type[city], population, {'9' * 4_400}]")
    assert text.startswith("Expected how many, a whole number from 1 to 10,000.")


@pytest.mark.parametrize("function", ["Sum", "Mean"])
async def test_a_sum_that_no_number_holds_is_refused(cities: LocalAdapter, function: str) -> None:
    assert (await refused(cities, f"{function}[Type[city], big]")).startswith("Together these numbers are more than")
    condition = f"Where[Type[city], big > {function}[Type[city], big]]"
    assert (await refused(cities, condition)).startswith("Together these numbers are more than")
    assert results((await composed(cities, "Max[Type[city], big]")).data) == ["1.5e308"]


@pytest.mark.parametrize(
    "expression",
    [
        "Neighbor[city, located in]",
        "Neighbor[Neighbor[Retrieve[city], located in], located in]",
        "Feature[city, population]",
        "Degree[city]",
        "Degree[city, located in]",
        "Union[city, Turm]",
        "Count[Union[city, Turm]]",
        "Minus[Neighbor[Turm, located in], city]",
        "Intersect[Type[city], city]",
        "Share[city, Arville]",
        "Where[Type[tower], located in = city]",
    ],
)
async def test_a_class_in_place_of_its_instances_is_said(cities: LocalAdapter, expression: str) -> None:
    reply = await composed(cities, expression)
    assert "'city' is a class here, which is one node. Type[city] gives its instances." in reply.summary


@pytest.mark.parametrize(
    "expression", ["Neighbor[city, sort]", "Neighbor[city, -rdf:type]", "Intersect[Neighbor[Turm, rdf:type], tower]"]
)
async def test_a_class_that_is_meant_itself_needs_no_word(cities: LocalAdapter, expression: str) -> None:
    assert " is a class here" not in (await composed(cities, expression)).summary


async def test_the_number_of_a_class_is_refused(cities: LocalAdapter) -> None:
    text = await refused(cities, "Count[city]")
    assert text.startswith(
        "'city' is a class here, which is one node. Type[city] gives its instances.\nCount[city]\n      ^"
    )


async def test_remarks_on_one_of_several_parts_name_it(cities: LocalAdapter) -> None:
    reply = await composed(cities, "Count[Arvile], Feature[Arville, population], Degree[Arvile, located in]")
    assert reply.plain.summary.startswith(
        "3 parts, worked out side by side. Parts 1, 3: 'Arvile' read as Arville, one letter off. Part 1: "
    )


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("Top[Type[city], population]", ["2000", "2001"]),
        ("Where[Type[city], population > 1500]", ["e:c1"]),
        ("Max[Type[city], inception]", ["1960"]),
        ("Where[Type[tower], located in = Arville]", ["e:t0", "e:t1"]),
        ("Top[Type[tower], located in]", ["2"]),
        ("Where[Type[city], located in > 0]", []),
        ("Sum[Type[tower], population]", []),
    ],
)
async def test_what_a_relation_leads_to_is_asked_where_the_definition_does_not_know(
    cities: LocalAdapter, expression: str, found: list[str]
) -> None:
    assert results((await composed(Unlisted(cities), expression)).data) == found


async def test_a_feature_that_the_definition_does_not_know_is_no_relation(cities: LocalAdapter) -> None:
    text = await refused(Unlisted(cities), "Neighbor[Arville, population]")
    assert text.startswith(
        "population has values, not nodes: use Feature[node, e:pop].\nNeighbor[Arville, population]\n"
    )
