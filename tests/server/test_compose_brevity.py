"""What an answer of Compose leaves unsaid, since the expression or another line says it; its rows hold everything."""

from collections.abc import Callable
from pathlib import Path

import pytest
import rdflib
from mcp import Client

from calls import UNHURRIED, Reply, compose_server, composed, reply_of, rows
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.app import build_server
from small_graphs import WithoutSets
from sparql_stand_in import StandInEndpoint, adapter_over

FILMS = "\n".join(
    (
        "@prefix e: <http://e.org/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        *(f'e:f{n} a e:Film ; rdfs:label "Film {n}" ; e:by e:d{n % 2} ; e:year {1990 + n} .' for n in range(4)),
        'e:d0 rdfs:label "Anna" ; e:born e:town ; e:award e:prize . e:d1 rdfs:label "Bert" ; e:born e:town .',
        *(f"e:d1 e:met e:p{n:02} . e:p{n:02} e:likes e:t{n:02}, e:tea ." for n in range(15)),
        'e:town rdfs:label "Town" . e:prize rdfs:label "Prize" .',
        'e:x1 rdfs:label "Twin" ; e:knows e:d0 . e:x2 rdfs:label "Twin" ; e:knows e:d1 .',
    )
)


@pytest.fixture
def films(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    """Four films by two directors, one of whom met many people who like things."""
    return graph_of(FILMS)


async def whole(graph: LocalAdapter, expression: str) -> Reply:
    async with Client(compose_server(graph)) as client:
        return reply_of(await client.call_tool("Compose", {"expression": expression, "evidence": "all"}))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("Neighbor[Film 0, by]", "Anna."),
        ("Neighbor[Anna, -by]", "2 nodes.\nFilm 0\nFilm 2"),
        ("Intersect[Neighbor[Film 0, by], Neighbor[Film 2, by]]", "Anna."),
        ("Neighbor[Film 0, by/born]", "Town.\nbecause Film 0 | e:by | Anna | e:born | Town"),
        (
            "Where[Neighbor[Anna, -by], year > 1989]",
            "2 nodes.\nFilm 0\nFilm 2\nbecause Film 0 | e:year | 1990\nbecause Film 2 | e:year | 1992",
        ),
        ("Top[Type[film], year]", "1 node.\nFilm 3 | e:year | 1993"),
        (
            "Max[Where[Type[film], year > 1992], year]",
            "1993. Over 1: Film 3 1993.\nbecause Film 3 | e:year | 1993",
        ),
        ("Top[Union[Film 0, Film 1], year]", "1 node.\nFilm 1 | e:year | 1991\nbecause Film 0 | e:year | 1990"),
        (
            "Bottom[Union[Film 3, Film 0, Film 1], year, 2]",
            "2 nodes by e:year.\nFilm 0: 1990\nFilm 1: 1991\nbecause Film 3 | e:year | 1993",
        ),
        (
            "Max[Union[Film 0, Film 1], year]",
            "1991. Over 2: Film 0 1990, Film 1 1991.\nbecause Film 1 | e:year | 1991",
        ),
        (
            "Where[Film 1, year > Feature[Film 0, year]]",
            "Film 1.\nbecause Film 1 | e:year | 1991\nbecause Film 0 | e:year | 1990",
        ),
        (
            "Sum[Type[film], year]",
            "7,966. Over 4: Film 0 1990, Film 1 1991, Film 2 1992, Film 3 1993.",
        ),
        ("Count[Where[Type[film], year > 1990]]", "3. Namely Film 1, Film 2, Film 3."),
        ("Count[Neighbor[Bert, met]]", "15."),
        (
            "Mean[Neighbor[Bert, met], likes]",
            "2. e:likes leads to nodes: what counts is how many of them there are. Over 15 nodes.",
        ),
        (
            "Neighbor[Where[Neighbor[Prize, -award], born = Town], -by]",
            "2 nodes.\nFilm 0\nFilm 2\n"
            "because Anna | e:award | Prize; e:born | Town; Film 0 | e:by | Anna\n"
            "because Film 2 | e:by | Anna",
        ),
        (
            "Where[Neighbor[Neighbor[Film 1, by], -by], year > 1991]",
            "Film 3.\nbecause Film 1 | e:by | Bert | -e:by | Film 3 | e:year | 1993",
        ),
    ],
)
async def test_only_what_is_new_is_told(films: LocalAdapter, expression: str, text: str) -> None:
    assert (await composed(films, expression)).plain.text == text


@pytest.mark.parametrize("expression", ["Where[Type[e:Town], e:in = e:r]", "Top[Type[e:Town], e:in, 3]"])
async def test_what_no_instance_has_is_said_once_with_the_narrowest_classes_that_have_it(
    graph_of: Callable[[str], LocalAdapter], expression: str
) -> None:
    graph = graph_of(
        "@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        "e:Bridge rdfs:subClassOf e:Thing . e:Town rdfs:subClassOf e:Thing . "
        "e:b a e:Bridge ; e:in e:t . e:t a e:Town ; e:of e:r ."
    )
    answer = await composed(graph, expression)
    assert answer.text == "0 nodes. No Towns have e:in: it is of Bridges. They have of."


@pytest.mark.parametrize(
    "expression",
    [
        "Top[Union[Film 0, Film 1], year]",
        "Max[Union[Film 0, Film 1], year]",
        "Where[Film 1, year > Feature[Film 0, year]]",
    ],
)
async def test_the_evidence_of_a_comparison_has_a_row_for_each_side(films: LocalAdapter, expression: str) -> None:
    found = rows((await composed(films, expression)).data["evidence"])
    assert sorted(found) == [["e:f0", "e:year", "1990"], ["e:f1", "e:year", "1991"]]


async def test_of_namesakes_the_evidence_tells_which_has_what(films: LocalAdapter) -> None:
    reply = await composed(films, "Neighbor[Where[Twin, knows], knows]")
    assert reply.lines[-2:] == ["because Twin (e:x1) | e:knows | Anna", "because Twin (e:x2) | e:knows | Bert"]
    assert reply.plain.summary == (
        "2 nodes. 'Twin' names 2 things, all taken: Twin, e:knows: Anna; Twin, e:knows: Bert."
    )


async def test_all_evidence_is_told_where_it_is_asked_for(films: LocalAdapter) -> None:
    reply = await whole(films, "Count[Where[Type[film], year > 1992]]")
    assert reply.plain.text == "1. Namely Film 3.\nbecause Film 3 | rdf:type | e:Film; e:year | 1993"
    short = await composed(films, "Count[Where[Type[film], year > 1992]]")
    assert rows(short.data["evidence"]) == rows(reply.data["evidence"])


async def test_of_many_groups_the_largest_are_listed(films: LocalAdapter) -> None:
    expression = "Group[Neighbor[Bert, met], likes]"
    short, full = await composed(films, expression), await whole(films, expression)
    assert len(short.lines) == 11
    assert (short.lines[0], short.lines[-1]) == ("e:tea: 15", "and 6 more, of 1 each; evidence=all lists them")
    assert len([line for line in full.lines if not line.startswith("because")]) == 16
    assert rows(short.data["results"]) == rows(full.data["results"])


BRIDGES = Path(__file__).parents[1] / "data" / "bridges-qudt.ttl"

MILLS = BRIDGES.with_name("mills.json")

BRIDGE, MILL = "Type[bridge]", "Type[paper mill]"


def local(folder: Path, file: Path = BRIDGES) -> KGAdapter:
    return LocalAdapter(open_store(build_store([file], folder / "store", ImportOptions(sparql=False)).folder))


def without_sets(folder: Path) -> KGAdapter:
    return WithoutSets(local(folder))


def by_rdflib(_: Path) -> KGAdapter:
    return RdflibAdapter(rdflib.Graph().parse(BRIDGES))


def endpoint(_: Path) -> KGAdapter:
    return adapter_over(StandInEndpoint(rdflib.Graph().parse(BRIDGES).serialize(format="nt")))


async def asked(graph: KGAdapter, *expressions: str) -> list[str]:
    """Return the first line of what Compose says of each expression, without the rows that show it."""
    async with Client(build_server(graph, UNHURRIED)) as client:
        replies = [reply_of(await client.call_tool("Compose", {"expression": each})) for each in expressions]
    await graph.aclose()
    return [reply.plain.text.splitlines()[0].partition(" Over ")[0] for reply in replies]


@pytest.mark.parametrize("opened", [local, without_sets, by_rdflib, endpoint])
async def test_quantities_of_one_unit_compare_and_add_up_on_every_engine(
    opened: Callable[[Path], KGAdapter], tmp_path: Path
) -> None:
    told = await asked(
        opened(tmp_path),
        f"Max[{BRIDGE}, clearance]",
        f"Mean[{BRIDGE}, clearance]",
        f"Sum[Where[{BRIDGE}, length > 100 m], length]",
        f"Count[Where[{BRIDGE}, length >= Mean[{BRIDGE}, length]]]",
        f"Count[Where[{BRIDGE}, length = Feature[Mill Bridge, length]]]",
        f"Sum[Minus[{BRIDGE}, Mill Bridge], weight limit]",
        f"Sum[{BRIDGE}, weight limit]",
    )
    left_out = " 1 more has no clearance and is not counted."
    # An endpoint is asked only for what does not compare.
    of_all = " " if opened is endpoint else " Of 4 bridges, "
    metre = "<http://qudt.org/vocab/unit/M>" if opened is endpoint else "unit:M"
    unknown = f'{of_all}1 has a value of length that is not a number and is left out (Ford Bridge "unknown"^^{metre}).'
    assert told == [
        f"55 m.{left_out}",
        f"21.4 m.{left_out}",
        "2,060.5 m.",
        f"1. Compared with 702.8333 m, over 3 nodes. Namely Strait Bridge.{unknown}",
        f"1. Namely Mill Bridge.{unknown}",
        "52,000 kg. 1 more has no weight limit and is not counted.",
        "weight limit has values in different units, which are not compared or added up: kg, TON_Metric. "
        "Table[…] shows each value with its unit.",
    ]


async def test_what_is_compared_with_quantities_has_their_unit(tmp_path: Path) -> None:
    different = "different units are not compared."
    told = await asked(
        local(tmp_path, MILLS),
        f"Where[{MILL}, daily output > 9 km]",
        f"Where[{MILL}, daily output > Max[{MILL}, elevation above sea level]]",
        f"Where[{MILL}, employees > Max[{MILL}, daily output]]",
        f"Where[{MILL}, daily output > Count[{MILL}]]",
        f"Where[{MILL}, length > 5]",
        f"Where[{MILL}, daily output ~ 1]",
    )
    assert told == [
        "daily output is given in 'quire', not in 'km'. Write the number without a unit.",
        f"daily output has the unit quire, and what it is compared with has the unit m; {different}",
        f"employees has no unit, and what it is compared with has the unit quire; {different}",
        f"daily output has the unit quire, and what it is compared with has no unit; {different}",
        "length has values in different units, which are not compared or added up: m, km. "
        "Table[…] shows each value with its unit.",
        "~ looks for a text in texts, and daily output has numbers. Use =, !=, <, <=, > or >=.",
    ]


@pytest.mark.parametrize("opened", [local, by_rdflib, endpoint])
async def test_the_schema_shows_ranges_with_their_unit(opened: Callable[[Path], KGAdapter], tmp_path: Path) -> None:
    graph = opened(tmp_path)
    async with Client(build_server(graph, UNHURRIED)) as client:
        whole = reply_of(await client.call_tool("Schema", {})).plain.text
        about = reply_of(await client.call_tool("Schema", {"about": "bridge"})).plain.text
    await graph.aclose()
    assert "length 48…1,848 m" in whole
    assert "weight limit 75% 12,000…40,000 kg, also TON_Metric" in whole
    assert "feature | clearance | 3 of 4 3.2…55 m" in about
