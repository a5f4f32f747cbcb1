"""What Compose claims of its numbers: they agree, say what they leave out, and claim no more than is known."""

import re
from collections.abc import Callable
from functools import partial

import pytest

from calls import call, composed, rows
from kg_adapters.caching import CachingAdapter
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Count
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.terms import Literal

TOWERS = 6
TOWNS = "\n".join(
    (
        "@prefix e: <http://e.org/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "@prefix owl: <http://www.w3.org/2002/07/owl#> .",
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .",
        'e:City rdfs:label "city" . e:Tower rdfs:label "tower" . e:in rdfs:label "located in" .',
        'e:has rdfs:label "contains" . e:pop rdfs:label "population" . e:began rdfs:label "inception" .',
        'e:tiny rdfs:label "weight" . e:big rdfs:label "mass" . e:in owl:inverseOf e:has .',
        *(
            f'e:c{number} a e:City ; rdfs:label "Ville {number}" ; e:pop {number}000 ; e:tiny 0.0000{number} .'
            for number in range(1, 6)
        ),
        'e:lat rdfs:label "latitude" . e:c2 e:lat 8.5 . e:c3 e:lat 9.5 .',
        'e:big2 rdfs:label "size" . e:c2 e:big2 "INF"^^xsd:double . e:c3 e:big2 "-INF"^^xsd:double .',
        'e:c1 e:pop 3000 ; e:big 1.5e300 . e:c2 e:big 1.5e300 . e:c5 e:big "heavy"^^xsd:double .',
        'e:c1 e:began "12000-01-01"^^xsd:date . e:c2 e:began "1950-01-01"^^xsd:date . e:c3 e:began "1950"^^xsd:gYear .',
        *(f'e:t{number} a e:Tower ; rdfs:label "Turm {number}" ; e:in e:c4 .' for number in range(TOWERS)),
        "e:c4 e:has e:t0, e:t1 .",
    )
)
AROUND = TOWERS + 1
"""The neighbours of Ville 4: its towers, and its class."""


@pytest.fixture
def towns(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    return graph_of(TOWNS)


class Partial(CachingAdapter):
    """A graph that answers a part of what is asked for."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph)
        self.compute = partial(self._part)

    async def _part(self, request: SetRequest) -> Computed:
        del request
        return Computed(Count(1, exact=False), (Literal("3000"),), value=3000.0)


async def test_neighbours_their_count_and_the_degree_are_one_number(towns: LocalAdapter) -> None:
    expression = 'Neighbor["Ville 4"], Count[Neighbor["Ville 4"]], Degree["Ville 4"]'
    reply = await composed(towns, expression)
    assert [row[3] for row in rows(reply.data["parts"])] == [f"{AROUND} neighbours", str(AROUND), str(AROUND)]
    assert len([row for row in rows(reply.data["results"]) if row[0] == "1"]) == AROUND


async def test_values_and_their_count_are_one_number_and_names_are_none(towns: LocalAdapter) -> None:
    reply = await composed(towns, 'Feature["Ville 1"], Count[Feature["Ville 1"]]')
    assert [row[3] for row in rows(reply.data["parts"])] == ["5 values", "5"]
    assert "rdfs:label" not in reply.text


async def test_what_is_shared_over_a_relation_and_its_inverse_is_told_once(towns: LocalAdapter) -> None:
    reply = await composed(towns, 'Share["Turm 0", "Turm 1"], Share["Turm 0", "Turm 5"]')
    assert rows(reply.data["results"]) == [
        [part, "", relation, end, "node"]
        for part in "12"
        for relation, end in (("e:in", "e:c4"), ("rdf:type", "e:Tower"))
    ]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("Mean[Type[city], weight]", "3e-05."),
        ("Mean[Type[city], population]", "3,000. Of 6 values of 5 nodes."),
        ("Sum[Type[city], population]", "18,000. Of 6 values of 5 nodes."),
        ("Max[Type[city], population]", "5,000."),
        (
            "Sum[Type[city], mass]",
            "3e+300. 2 more have no mass, and 1 has a value that is not a number; they are not counted. Over 2: ",
        ),
        (
            'Count[Top[Union["Ville 1", "Ville 5"], mass]]',
            "1. 1 more has a value of mass that is not a number and is not counted.",
        ),
        (
            "Count[Where[Type[city], mass > 5]]",
            "2. Namely Ville 1, Ville 2. Of 5 cities, 2 have no mass, and 1 has a value that is not a number "
            '(Ville 5 "heavy"^^xsd:double); they are',
        ),
        (
            "Count[Where[Type[city], mass > population]]",
            "2. Namely Ville 1, Ville 2. Of 5 cities, 2 have no mass, and 1 has a value that is not a number "
            '(Ville 5 "heavy"^^xsd:double); they are',
        ),
        ("Count[Where[Type[city], mass = none]]", "2. Namely Ville 3, Ville 4."),
        ("Count[Where[Type[city], mass != none]]", "3. Namely Ville 1, Ville 2, Ville 5."),
        ("Count[Where[Type[city], population = none]]", "0. All 5 have population."),
        ("Count[Where[Type[city], Count[contains] = 0]]", "4."),
        ("Where[Type[city], Count[contains] >= 6]", "Ville 4."),
        ("Group[Type[city], population]", "5 groups. Over 5 nodes."),
        ("Top[Group[Type[city], population], 1]", "3,000: 2. The largest of 5."),
        ("Group[Type[city], mass]", "2 groups. 2 nodes have no mass and are not counted. Over 3 nodes."),
        ("Bottom[Group[Type[city], population], 2]", "4 groups. The smallest of 5. Over 5 nodes."),
        ("Table[Minus[Type[city], Ville 1], population, latitude]", "4 rows.\nin all | population | 14,000\nVille 2"),
        ("Table[Type[city], population, mass]", "5 rows.\nVille 1"),
        ("Table[Type[city], size]", "5 rows by size.\nVille 1"),
        ("Count[Top[Type[city], inception, 1]]", "1. 2 more have no inception and are not counted."),
        (
            "Top[Where[Type[city], population < 4000], inception]",
            "1 node. 1 has several values of population: any of them may meet the condition.\nVille 1",
        ),
        ("Count[Top[Type[tower], located in, 1]]", "6. These are 6: 5 more tie with the last of 1."),
        ("Sum[Where[Type[city], inception >= 1950], mass]", "3e+300. 1 more has no mass and is not counted."),
    ],
)
async def test_a_number_says_what_it_is_of(towns: LocalAdapter, expression: str, said: str) -> None:
    assert (await composed(towns, expression)).plain.text.startswith(said)


async def test_evidence_of_the_largest_or_smallest_groups_is_of_these(towns: LocalAdapter) -> None:
    reply = await composed(towns, "Top[Group[Type[city], population]], Bottom[Group[Type[city], population], 2]")
    values = [row[-1] for row in rows(reply.data["evidence"]) if "e:pop" in row]
    assert values == ["3000", "1000", "2000", "4000"]


@pytest.mark.parametrize(
    ("expression", "number", "knowledge"),
    [
        ("Count[Where[Type[city], inception != 1950]]", "1", "stated"),
        ("Count[Table[Minus[Type[city], Ville 1], population]]", "4", "stated"),
        ("Count[Where[Type[city], inception > 12001]]", "0", "unknown"),
        ("Count[Where[Type[city], population > 90000]]", "0", "denied"),
        ('Count[Neighbor["Ville 1", located in]]', "0", "unknown"),
        ("Count[Intersect[Type[city], Type[tower]]]", "0", "unknown"),
        ('Count[Where[Neighbor["Ville 1", located in], population > 1]]', "0", "unknown"),
        ('Degree["Ville 1", located in]', "0", "unknown"),
    ],
)
async def test_that_there_is_none_is_claimed_only_where_the_graph_knows(
    towns: LocalAdapter, expression: str, number: str, knowledge: str
) -> None:
    reply = await composed(towns, expression)
    assert ([row[3] for row in rows(reply.data["results"])], reply.data["knowledge"]) == ([number], knowledge)


async def test_members_that_a_condition_knows_nothing_of_are_told(towns: LocalAdapter) -> None:
    for condition in ("inception != 1950", "inception > 1950", "inception = Feature[Ville 2, inception]"):
        reply = await composed(towns, f"Count[Where[Type[city], {condition}]]")
        assert " Of 5 cities, 2 have no inception and are left out." in reply.plain.summary, condition
    reply = await composed(towns, "Where[Type[city], population > 1000]")
    assert reply.plain.summary == (
        "5 nodes. 1 has several values of population: any of them may meet the condition. "
        "Evidence for 3 of 5; evidence=all shows more."
    )


async def test_a_value_that_a_call_gives_compares_as_one_that_is_written(towns: LocalAdapter) -> None:
    for given, equal in (("1950-01-01", ["e:c2"]), ("1950", ["e:c2", "e:c3"])):
        town = "Ville 2" if given == "1950-01-01" else "Ville 3"
        for operator, found in (("=", equal), ("!=", ["e:c1"])):
            for written in (given, f"Feature[{town}, inception]"):
                reply = await composed(towns, f"Where[Type[city], inception {operator} {written}]")
                assert [row[3] for row in rows(reply.data["results"])] == found, (operator, written)


@pytest.mark.parametrize("given", ["Feature[Ville 3, population]", "Sum[Type[city], population]"])
async def test_a_part_of_the_values_is_not_compared_with(towns: LocalAdapter, given: str) -> None:
    reply = await composed(Partial(towns), f"Where[Type[city], population > {given}]")
    assert "Not all values of this were fetched" in reply.text


async def test_a_count_says_how_names_were_read(towns: LocalAdapter) -> None:
    reply = await composed(towns, 'Count[Union["Vile 4", "Turm 1"]]')
    assert reply.data["read"] == {"Vile 4": "e:c4", "Turm 1": "e:t1"}


REGIONS = "\n".join(
    (
        "@prefix e: <http://e.org/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        'e:Town rdfs:label "town" . e:Land rdfs:label "country" . e:Part rdfs:label "region" .',
        'e:land rdfs:label "country" . e:part rdfs:label "located in region" . e:near rdfs:label "near" .',
        'e:l a e:Land ; rdfs:label "Mübumark" . e:r a e:Part ; rdfs:label "Zdurnbiria" ; rdfs:altLabel "Zdur" .',
        *(f'e:t{n} a e:Town ; rdfs:label "Ort {n}" ; e:land e:l ; e:part e:r .' for n in range(12)),
        "e:t0 e:near e:t0, e:t1 .",
    )
)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (
            "Where[Type[town], country = Zdurnbiria]",
            "0 nodes. Of 12 none meets the condition on country, which leads to country; Zdurnbiria "
            "is of the class region: try located in region.",
        ),
        (
            "Count[Intersect[Where[Type[town], near = Ort 0], Where[Type[town], country = Zdurnbiria]]]",
            "0. Of 12 none meets the condition on country, which leads to",
        ),
        (
            "Intersect[Neighbor[Ort 0, near], Neighbor[Ort 5, country]]",
            "0 nodes. None is in all of the sets, which have 2, 1.",
        ),
        ("Minus[Neighbor[Ort 0, near], Type[town]]", "0 nodes. All 2 are taken away."),
        ("Where[Neighbor[Ort 5, near], country = Mübumark]", "0 nodes. Ort 5 has no near."),
        (
            "Neighbor[Neighbor[Mübumark, -country], -located in region]",
            "0 nodes. None of the 12 has -located in region.",
        ),
    ],
)
async def test_nothing_says_which_step_left_nothing(
    graph_of: Callable[[str], LocalAdapter], expression: str, said: str
) -> None:
    assert (await composed(graph_of(REGIONS), expression)).plain.summary.startswith(said)


async def test_an_entity_that_an_edge_leads_back_to_is_a_neighbour_of_its_own_in_every_tool(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(REGIONS)
    for relation, number in (("near", 2), (None, 5)):
        of = '"Ort 0"' if relation is None else f'"Ort 0", {relation}'
        reply = await composed(graph, f"Degree[{of}], Count[Neighbor[{of}]]")
        assert [row[3] for row in rows(reply.data["results"])] == [str(number)] * 2
        told = await call(graph, "Degree", entity="e:t0", **({} if relation is None else {"relation": relation}))
        assert told.data["neighbors"] == number


async def test_a_long_list_is_told_whole_where_there_is_room(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of("\n".join(f"<http://e.org/hub> <http://e.org/has> <http://e.org/{n:03}> ." for n in range(300)))
    expression = "Neighbor[<http://e.org/hub>, <http://e.org/has>]"
    short = await composed(graph, expression)
    named = re.search(r"results are left out: max_tokens=(\d+) shows them", short.summary)
    assert named is not None
    whole = await call(graph, "Compose", expression=expression, max_tokens=int(named[1]))
    assert (short.data["status"], whole.data["status"]) == ("truncated", "ok")
    assert len(whole.lines) == 300
