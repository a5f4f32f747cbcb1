"""Answers over tables that people bring, where what they ask stands in a column that is no link, or in two tables."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from calls import call, rows
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from tables import written

CODES = ["AAA", "BBB", "CCC", "DDD", "EEE", "FFF", "GGG", "HHH", "III", "LAX"]
NAMES = [*(f"{code.title()} Field" for code in CODES[:-1]), "Los Angeles Intl"]


def _rows(header: str, *rows: str) -> str:
    return "\n".join((header, *rows, ""))


TABLES = {
    "airports.csv": _rows("faa,name,alt", *(f"{code},{name},1" for code, name in zip(CODES, NAMES, strict=True))),
    # Every tenth destination is no airport: too many for a link.
    "flights.csv": _rows(
        "carrier,origin,dest,delay",
        *(f"U{at % 2},{CODES[at % 3]},{'XXX' if at % 10 == 0 else CODES[at % 10]},{at}" for at in range(40)),
    ),
    "weather.csv": _rows(
        "origin,hour,temp,rain", *(f"{CODES[at % 3]},{at},{at}.5,{at if at % 3 else ''}" for at in range(30))
    ),
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("airports")
    build_store(written(folder, TABLES), folder / "store", ImportOptions())
    return folder / "store"


@pytest.fixture
async def airports(imported: Path) -> AsyncIterator[LocalAdapter]:
    """Flights between airports, whose destinations are no links."""
    graph = LocalAdapter(open_store(imported))
    yield graph
    await graph.aclose()


HELD = "it holds texts such as '...', not links; 4 have 'LAX', the id or a value of "


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Compose", {"expression": 'Where[Type[flights], dest = "Los Angeles Intl"]'}),
        ("Compose", {"expression": 'Count[Where[Type[flights], delay > 3, dest = "Los Angeles Intl"]]'}),
        ("Compose", {"expression": 'Count[Where[Type[flights], dest != "Los Angeles Intl"]]'}),
        ("Compose", {"expression": "Degree[LAX, -dest]"}),
        ("GetNeighbor", {"entity": "LAX", "relation": "dest", "direction": "in"}),
        ("Degree", {"entity": "Los Angeles Intl", "relation": "dest", "direction": "in"}),
        ("Sparql", {"query": "SELECT ?f { ?f relation:dest entity:LAX }"}),
        ("Sparql", {"query": 'SELECT ?f { ?f relation:dest "Los Angeles Intl" }'}),
        ("Sparql", {"query": 'SELECT ?f { ?f relation:dest ?a . ?a rdfs:label "Los Angeles Intl" }'}),
    ],
)
async def test_what_a_column_holds_by_its_code_is_not_denied_under_its_name(
    airports: LocalAdapter, tool: str, arguments: dict[str, str]
) -> None:
    answer = await call(airports, tool, **arguments)
    assert HELD in re.sub("such as '[A-Z]{3}'", "such as '...'", answer.text.replace("It holds", "it holds"))
    assert answer.data.get("knowledge") in {"unknown", "stated"}


ROWS = "14 of flights (type:flights) and 10 of weather (type:weather)"


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("GetNeighbor", {"entity": "AAA", "relation": "origin", "direction": "in"}, f"24 incoming origin, {ROWS}"),
        ("Degree", {"entity": "AAA", "relation": "origin", "direction": "in"}, f"over origin, {ROWS}."),
        ("Compose", {"expression": "Degree[AAA, -origin]"}, f"24. -origin: {ROWS}."),
        ("Compose", {"expression": "Count[Neighbor[AAA, -origin]]"}, f"24. -origin: {ROWS}."),
        ("Schema", {"about": "origin"}, "| 70: 40 of flights (type:flights) and 30 of weather (type:weather), e.g."),
    ],
)
async def test_rows_of_two_tables_with_one_column_are_told_apart(
    airports: LocalAdapter, tool: str, arguments: dict[str, str], told: str
) -> None:
    assert told in (await call(airports, tool, **arguments)).text.replace(" (relation:origin)", "")


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("Where[Type[weather], dest = AAA]", "No weathers have dest: it is of flights. They have hour, origin, temp"),
        ("Top[Type[airports], temp, 3]", "No airports have temp: it is of weathers. They have alt, faa."),
        ("Mean[Where[Type[flights], delay > 3], temp]", "No flights have temp: it is of weathers. They have "),
        ("Group[Type[airports], -carrier]", "No airports have -carrier. They have alt, faa."),
    ],
)
async def test_a_column_of_another_table_is_named_with_those_that_there_are(
    airports: LocalAdapter, expression: str, told: str
) -> None:
    assert told in re.sub(r" \(relation:\w+\)", "", (await call(airports, "Compose", expression=expression)).text)


async def test_rows_that_the_limit_of_a_query_cuts_are_not_all(airports: LocalAdapter) -> None:
    query = "SELECT ?x { ?x relation:dest 'LAX' } LIMIT"
    cut, whole = [await call(airports, "Sparql", query=f"{query} {limit}") for limit in (2, 9)]
    assert cut.summary.startswith("2 rows; the query's LIMIT 2 leaves out any more.")
    assert whole.summary == "4 rows, all here."


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("Compose", {"expression": "Feature[LAX, name]"}, "'name' is read as rdfs:label."),
        ("Compose", {"expression": "Group[Type[flights], origin/name]"}, '"Aaa Field": 14'),
        ("Feature", {"entity": "LAX", "feature": "name"}, 'rdfs:label | "Los Angeles Intl"'),
        ("Sparql", {"query": "SELECT ?n { @'LAX' @'name' ?n }"}, "Read 'name' as rdfs:label. 1 row, all here."),
    ],
)
async def test_the_column_of_names_is_read_as_the_label(
    airports: LocalAdapter, tool: str, arguments: dict[str, str], told: str
) -> None:
    assert told in (await call(airports, tool, **arguments)).text


async def test_two_columns_that_differ_say_who_lacks_one(airports: LocalAdapter) -> None:
    answer = await call(airports, "Compose", expression="Count[Where[Type[weather], rain != temp]]")
    assert answer.text == "20. Of 30 weathers, 10 have no rain (relation:rain) and are left out."


async def test_of_many_ties_the_first_are_shown_and_the_others_counted(airports: LocalAdapter) -> None:
    answer = await call(airports, "Compose", expression="Top[Type[airports], alt, 2]")
    many, every = [
        await call(airports, "Compose", expression="Top[Type[flights], origin, 3]", evidence=evidence)
        for evidence in ("none", "all")
    ]
    assert len(answer.lines) == len(CODES)
    assert (len(many.lines), many.lines[-1]) == (11, "and 30 more that tie with the last; evidence=all lists them")
    assert sum(line.startswith("row ") for line in every.lines) == 40
    assert len(rows(many.data["results"])) == 40


VISITS = {
    "visit.csv": _rows("visit_id,pet", "1,Rex", "2,Mo"),
    "line.csv": _rows("line,visit_id,price", "10,1,10.0", "11,1,10.0", "12,2,15.0"),
}


async def test_equal_values_of_several_rows_each_count(tmp_path: Path) -> None:
    build_store(written(tmp_path, VISITS), tmp_path / "store", ImportOptions())
    graph = LocalAdapter(open_store(tmp_path / "store"))
    found = {
        expression: (await call(graph, "Compose", expression=expression, evidence="all")).plain.text
        for expression in (
            "Sum[Type[visit], -visit_id/price]",
            "Mean[Type[visit], -visit_id/price]",
            "Table[Type[visit], -visit_id/price]",
            "Feature[Rex, -visit_id/price]",
        )
    }
    await graph.aclose()
    total, mean, table, feature = found.values()
    assert total.splitlines() == [
        "35. Of 3 values of 2 nodes. Over 2: Rex 10.0 and 10.0, Mo 15.0.",
        "because Rex | rdf:type | visit; 10 | visit_id | Rex; price | 10.0",
        "because Rex | rdf:type | visit; 11 | visit_id | Rex; price | 10.0",
        "because Mo | rdf:type | visit; 12 | visit_id | Mo; price | 15.0",
    ]
    assert mean.startswith("11.6667. Of 3 values of 2 nodes.")
    assert table.splitlines()[1:3] == ["Rex: 2: 10.0, 10.0", "Mo: 15.0"]
    assert feature == "Rex: 2: 10.0, 10.0."
