"""A value beside a link is a row of the table that it leads to: in the index, in the SPARQL of `explain`, and over an
endpoint, each equal to SQLite."""

# ruff: noqa: S608 - a test's own database is asked

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Final

import pyoxigraph
import pytest
from mcp import Client

from calls import Reply, call, reply_of, rows, unhurried
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from kg_server.app import build_server
from remote_graphs import behind_endpoint
from tables import database

FLEET: Final = """
CREATE TABLE region (code TEXT PRIMARY KEY, name TEXT);
CREATE TABLE station (station_id INTEGER PRIMARY KEY, name TEXT, region TEXT REFERENCES region (code), owner TEXT,
    docks INTEGER);
CREATE TABLE rider (rider_id INTEGER PRIMARY KEY, name TEXT, home INTEGER REFERENCES station (station_id),
    contact TEXT);
CREATE TABLE bike (bike_id INTEGER PRIMARY KEY, model TEXT, station_id INTEGER REFERENCES station (station_id),
    owner INTEGER REFERENCES rider (rider_id), contact INTEGER REFERENCES rider (rider_id), size TEXT);
CREATE TABLE trip (trip_id INTEGER PRIMARY KEY, rider_id INTEGER REFERENCES rider (rider_id),
    bike_id INTEGER REFERENCES bike (bike_id), km REAL, size INTEGER);
CREATE TABLE repair (trip_id INTEGER REFERENCES trip (trip_id), bike_id INTEGER REFERENCES bike (bike_id), part TEXT,
    cost REAL, note TEXT);
INSERT INTO region VALUES ('001', 'North'), ('010', 'South'), ('go', 'Middle'), ('GO', 'Outer');
INSERT INTO station VALUES (1, 'Mill', '001', 'Smith & Co', 10), (2, 'Harbour', '010', 'Ann Smith', 20),
    (3, 'go', 'go', 'City', 5), (4, 'Park', '001', NULL, 12);
INSERT INTO rider VALUES (1, 'Ann Smith', 2, 'ann@x.org'), (2, 'Bo Lind', 1, 'bo@x.org'), (3, 'Cy Ray', 1, NULL),
    (4, '1', 3, 'one@x.org'), (5, 'Eva Moss', 4, 'eva@x.org');
INSERT INTO bike VALUES (1, 'Swift', 2, 2, 1, 'XL'), (2, 'Swift', 1, 1, 1, 'S'), (3, 'Tour', 1, 1, 2, 'XL'),
    (4, 'Tour', 3, NULL, NULL, 'S'), (5, 'Cargo', 1, 3, 2, '7'), (6, 'Cargo', 2, 1, NULL, NULL);
INSERT INTO trip VALUES (1, 1, 2, 5.0, 7), (2, 1, 1, 7.5, 7), (3, 2, 1, 3.0, 2), (4, 3, 2, 12.0, 2), (5, 2, 3, 5.0, 3),
    (6, 1, 1, 1.0, 9), (7, 5, 6, 9.0, 1), (8, 2, 2, 4.0, NULL);
INSERT INTO repair VALUES (1, 2, 'chain', 20, 'old'), (1, 2, 'tyre', 8, NULL), (3, 1, 'chain', 15, 'new'),
    (4, 2, 'lamp', 8, NULL), (5, 3, 'chain', 22, 'old'), (7, 6, 'tyre', 9, 'new'), (NULL, 4, 'lamp', 7, 'old');
"""
BOTH: Final = "Union[Type[bike], Type[station]]"
OWNERS: Final = "(SELECT name AS owner FROM bike JOIN rider ON owner = rider_id UNION ALL SELECT owner FROM station)"
REPAIRED: Final = "SELECT COUNT(DISTINCT trip_id) FROM repair"
CHAIN: Final = f"{REPAIRED} WHERE part = 'chain' AND"


def count(table: str, condition: str) -> str:
    return f"SELECT COUNT(*) FROM {table} WHERE {condition}"


QUESTIONS: Final = {
    # Rows by their keys, which several tables have.
    "Count[Where[Type[trip], rider_id = 1]]": count("trip", "rider_id = 1"),
    'Count[Where[Type[trip], rider_id = "2"]]': count("trip", "rider_id = 2"),
    "Count[Where[Type[trip], rider_id = 4]]": count("trip", "rider_id = 4"),
    "Count[Where[Type[trip], rider_id != 1]]": count("trip", "rider_id <> 1"),
    "Count[Where[Type[bike], station_id = 1]]": count("bike", "station_id = 1"),
    "Count[Where[Type[rider], home = 1]]": count("rider", "home = 1"),
    "Count[Where[Type[station], region = 001]]": count("station", "region = '001'"),
    "Count[Where[Type[station], region = 010]]": count("station", "region = '010'"),
    "Count[Where[Type[station], region != 001]]": count("station", "region <> '001'"),
    "Count[Where[Type[station], region = go]]": count("station", "region = 'go'"),
    "Count[Where[Type[rider], home = go]]": count("rider", "home = 3"),
    "Count[Where[Type[bike], owner/home = 2]]": count("bike JOIN rider ON rider_id = owner", "home = 2"),
    "Count[Where[Type[trip], bike_id/owner = 1]]": count("trip JOIN bike USING (bike_id)", "owner = 1"),
    "Count[Where[Type[bike], -bike_id/rider_id = 1]]": "SELECT COUNT(DISTINCT bike_id) FROM trip WHERE rider_id = 1",
    "Sum[Where[Type[trip], rider_id = 1], km]": "SELECT SUM(km) FROM trip WHERE rider_id = 1",
    "Mean[Where[Type[trip], bike_id = 2], km]": "SELECT AVG(km) FROM trip WHERE bike_id = 2",
    "Count[Neighbor[1, -rider_id]]": count("trip", "rider_id = 1"),
    "Count[Neighbor[1, -station_id]]": count("bike", "station_id = 1"),
    "Count[Neighbor[001, -region]]": count("station", "region = '001'"),
    # How many links there are.
    "Count[Where[Type[bike], Count[owner] = 1]]": count("bike", "owner NOT NULL"),
    "Count[Where[Type[rider], Count[-rider_id] = Count[Where[Type[trip], rider_id = 2]]]]": (
        "SELECT COUNT(*) FROM (SELECT 1 FROM trip GROUP BY rider_id HAVING COUNT(*) = 3)"
    ),
    # A column that is a link in one table and text, or a number, in another.
    "Count[Where[Type[bike], owner = 1]]": count("bike", "owner = 1"),
    "Count[Where[Type[bike], owner != 1]]": count("bike", "owner <> 1"),
    "Count[Where[Type[bike], owner = none]]": count("bike", "owner IS NULL"),
    "Count[Where[Type[bike], owner ~ smith]]": count("bike JOIN rider ON owner = rider_id", "name LIKE '%smith%'"),
    "Count[Where[Type[station], owner ~ smith]]": count("station", "owner LIKE '%smith%'"),
    'Count[Where[Type[station], owner = "Ann Smith"]]': count("station", "owner = 'Ann Smith'"),
    "Count[Where[Type[station], owner != City]]": count("station", "owner <> 'City'"),
    "Count[Where[Type[station], owner = none]]": count("station", "owner IS NULL"),
    "Count[Where[Type[rider], contact ~ x.org]]": count("rider", "contact LIKE '%x.org%'"),
    "Count[Where[Type[rider], contact = none]]": count("rider", "contact IS NULL"),
    "Count[Where[Type[bike], contact = none]]": count("bike", "contact IS NULL"),
    f"Count[Where[{BOTH}, owner ~ smith]]": count(OWNERS, "owner LIKE '%smith%'"),
    f'Count[Where[{BOTH}, owner = "Ann Smith"]]': count(OWNERS, "owner = 'Ann Smith'"),
    f'Count[Where[{BOTH}, owner != "Ann Smith"]]': count(OWNERS, "owner <> 'Ann Smith'"),
    f"Count[Where[{BOTH}, Count[owner] = 1]]": count(OWNERS, "owner NOT NULL"),
    "Count[Where[Type[bike], size = XL]]": count("bike", "size = 'XL'"),
    "Count[Where[Type[bike], size = 7]]": count("bike", "size = '7'"),
    "Count[Where[Type[bike], size ~ x]]": count("bike", "size LIKE '%x%'"),
    "Count[Where[Type[trip], size > 2]]": count("trip", "size > 2"),
    "Sum[Type[trip], size]": "SELECT SUM(size) FROM trip",
    # Conditions on one and the same row.
    "Count[Where[Type[trip], -trip_id/part = chain, -trip_id/cost < 10]]": f"{CHAIN} cost < 10",
    "Count[Where[Type[trip], -trip_id/part = chain, -trip_id/cost > 14]]": f"{CHAIN} cost > 14",
    "Count[Where[Type[trip], -trip_id/part = tyre, -trip_id/note = none]]": (
        f"{REPAIRED} WHERE part = 'tyre' AND note IS NULL"
    ),
    "Count[Where[Type[trip], -trip_id/note != old, -trip_id/part = chain]]": f"{CHAIN} note <> 'old'",
    "Count[Where[Type[trip], -trip_id/part = lamp, km > 5, -trip_id/bike_id = 2]]": (
        f"{REPAIRED} JOIN trip USING (trip_id) WHERE part = 'lamp' AND repair.bike_id = 2 AND km > 5"
    ),
    "Count[Where[Type[rider], -rider_id/bike_id/owner = 2, -rider_id/bike_id/station_id = 2, -rider_id/km > 2]]": (
        "SELECT COUNT(DISTINCT trip.rider_id) FROM trip JOIN bike USING (bike_id) "
        "WHERE owner = 2 AND station_id = 2 AND km > 2"
    ),
    "Count[Where[Type[rider], -rider_id/bike_id ~ 3, -rider_id/km > 3]]": (
        "SELECT COUNT(DISTINCT rider_id) FROM trip WHERE bike_id = 3 AND km > 3"
    ),
    "Count[Where[Type[bike], -bike_id = 4, -bike_id/km > 10]]": (
        "SELECT COUNT(DISTINCT bike_id) FROM trip WHERE trip_id = 4 AND km > 10"
    ),
    # Conditions that no single row can meet are about different ones.
    "Count[Where[Type[trip], -trip_id/part = tyre, -trip_id/part = chain]]": (
        f"{REPAIRED} WHERE part = 'tyre' AND trip_id IN (SELECT trip_id FROM repair WHERE part = 'chain')"
    ),
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, sqlite3.Connection]]:
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "fleet.sqlite").write_bytes(database(FLEET))
    build_store([folder / "fleet.sqlite"], folder / "store", ImportOptions())
    with closing(sqlite3.connect(folder / "fleet.sqlite")) as opened:
        yield folder / "store", opened


@pytest.fixture
async def local(imported: tuple[Path, sqlite3.Connection]) -> AsyncIterator[LocalAdapter]:
    """The store of the database."""
    async with aclosing(LocalAdapter(open_store(imported[0]))) as graph:
        yield graph


@pytest.fixture(params=["local", "endpoint"])
async def fleet(
    request: pytest.FixtureRequest, imported: tuple[Path, sqlite3.Connection], tmp_path: Path
) -> AsyncIterator[KGAdapter]:
    """The store of the database, and the same triples behind an endpoint."""
    if request.param == "local":
        async with aclosing(LocalAdapter(open_store(imported[0]))) as graph:
            yield graph
        return
    stored = pyoxigraph.Store.read_only(str(imported[0] / "oxigraph"))
    async with behind_endpoint(stored, tmp_path) as graph:
        yield graph


def number(text: str) -> float:
    return float(text.partition(" ")[0].rstrip(".").replace(",", ""))


async def test_every_answer_is_that_of_sql(fleet: KGAdapter, imported: tuple[Path, sqlite3.Connection]) -> None:
    found, wanted = dict[str, float | str](), dict[str, float]()
    async with Client(build_server(fleet, unhurried())) as client:
        for expression, sql in QUESTIONS.items():
            arguments = {"expression": expression, "evidence": "none"}
            reply = reply_of(await client.call_tool("Compose", arguments))
            found[expression] = reply.text if reply.is_error else number(reply.text)
            (wanted[expression],) = imported[1].execute(sql).fetchone()
    assert found == wanted


async def test_the_sparql_of_explain_asks_the_same(
    local: LocalAdapter, imported: tuple[Path, sqlite3.Connection]
) -> None:
    found, wanted = dict[str, float](), dict[str, float]()
    async with Client(build_server(local, unhurried())) as client:

        async def ask(tool: str, **arguments: object) -> Reply:
            return reply_of(await client.call_tool(tool, arguments))

        for expression, sql in QUESTIONS.items():
            ((_, query),) = rows((await ask("Compose", expression=expression, explain=True)).data["sparql"])
            ((value, *_),) = rows((await ask("Sparql", query=query)).data["rows"])
            found[expression] = float(value)
            (wanted[expression],) = imported[1].execute(sql).fetchone()
    assert found == wanted


ONE: Final = "'1' names 5 things here: "
BORNE: Final = ["bike:1", "rider:1", "station:1", "trip:1"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("GetNeighbor", {"entity": "1"}),
        ("Feature", {"entity": "1"}),
        ("Degree", {"entity": "1"}),
        ("GetPath", {"source": "1", "target": "7"}),
        ("observe", {"question": "Who is 1?", "entities": ["1"]}),
    ],
)
async def test_an_id_of_several_tables_is_refused_with_all_that_have_it(
    fleet: KGAdapter, tool: str, arguments: dict[str, object]
) -> None:
    reply = await call(fleet, tool, **arguments)
    assert reply.is_error
    assert ONE in reply.text
    assert all(f"({each})" in reply.text for each in BORNE)


async def test_a_search_for_an_id_of_several_tables_names_them_all(fleet: KGAdapter) -> None:
    reply = await call(fleet, "Retrieve", text="1")
    # The fourth rider is called so.
    assert reply.summary == "Exact: '1' names 6 things."
    assert [row[0] for row in rows(reply.data["candidates"])][-1] == "rider:4"


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("GetNeighbor", {"entity": "1", "relation": "-rider_id"}, "'1' is read as Ann Smith (rider:1), not "),
        ("Degree", {"entity": "1", "relation": "home", "direction": "out"}, "'1' is read as Ann Smith (rider:1), not "),
        ("Feature", {"entity": "1", "feature": "docks"}, "'1' is read as Mill (station:1), not "),
        ("Feature", {"entity": "go"}, "'go' is read as Middle (region:go), not go (station:3). "),
        ("Feature", {"entity": "GO"}, "'GO' is read as Outer (region:GO), not go (station:3). "),
        ("Feature", {"entity": "go", "feature": "docks"}, "'go' is read as go (station:3), not Middle (region:go). "),
        ("Compose", {"expression": "Degree[go, -region]"}, "'go' is read as Middle (region:go), not go (station:3)."),
    ],
)
async def test_a_relation_decides_which_row_an_id_means_and_an_exact_id_comes_before_a_name(
    fleet: KGAdapter, tool: str, arguments: dict[str, object], said: str
) -> None:
    assert said in (await call(fleet, tool, **arguments)).text


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (
            "Where[Type[repair], bike_id < 3]",
            "leads to nodes, which < cannot compare. How many there are is asked by C",
        ),
        ("Where[Type[trip], rider_id = 99]", "No entity matches '99'. How many there are is asked by Count[rider_id]."),
        ("Where[Type[trip], rider_id = Mean[Type[trip], km]]", "rider_id (relation:rider_id) leads to nodes, which do"),
        ("Where[Type[bike], Count[owner] = Feature[1, docks]]", "Expected an operator and a whole number, as in Count"),
    ],
)
async def test_links_are_counted_by_count_only(local: LocalAdapter, expression: str, said: str) -> None:
    reply = await call(local, "Compose", expression=expression)
    assert reply.is_error
    assert said in reply.text


OF_ONE: Final = (
    "The 2 conditions on -trip_id are about one and the same thing there. Intersect[Where[…], Where[…]] asks"
)
APART: Final = (
    "Each of the 2 conditions on -trip_id may be about another thing there. Where[…, -trip_id = Where[…]] asks"
)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("Where[Type[trip], -trip_id/part = chain, -trip_id/cost > 14]", OF_ONE),
        ("Where[Type[trip], -trip_id/part = chain, -trip_id/part = tyre]", APART),
        (f"Where[{BOTH}, Count[owner] = 1]", "leads to nodes and to values: both are counted here."),
        (f"Degree[{BOTH}, owner]", "leads to nodes and to values: both are counted here."),
        ("Degree[Type[station], owner]", "leads to values, which are counted here."),
        ("Mean[Type[bike], owner]", "leads to nodes: what counts is how many of them there are."),
    ],
)
async def test_an_answer_reports_how_it_was_read(fleet: KGAdapter, expression: str, said: str) -> None:
    assert said in (await call(fleet, "Compose", expression=expression)).text


@pytest.mark.parametrize(
    "expression",
    [
        "Where[Type[trip], bike_id/owner = 1, bike_id/model = Swift]",
        "Where[Type[bike], Count[model] = 1]",
        "Degree[Type[bike], owner]",
    ],
)
async def test_what_can_be_read_in_one_way_only_needs_no_remark(local: LocalAdapter, expression: str) -> None:
    reply = await call(local, "Compose", expression=expression)
    assert "one and the same" not in reply.text
    assert "counted here" not in reply.text


REMEMBERED: Final = {
    "1 | home | 2": ["rider:1", "relation:home", "station:2"],
    "1 | region | 001": ["station:1", "relation:region", "region:001"],
    "7 | rider_id | 5": ["trip:7", "relation:rider_id", "rider:5"],
    "2 | owner | 1": ["bike:2", "relation:owner", "rider:1"],
    "go | region | go": ["station:3", "relation:region", "region:go"],
    "1 | docks | 10": ["station:1", "relation:docks", '"10"^^xsd:integer'],
    "go | owner | City": ["station:3", "relation:owner", '"City"'],
}


async def test_a_line_for_a_memory_means_the_rows_between_which_the_graph_has_its_relation(
    fleet: KGAdapter, tmp_path: Path
) -> None:
    settings = unhurried(cache_folder=tmp_path, data_folder=tmp_path)
    kept = await call(fleet, "memory-append", settings, triples=list(REMEMBERED))
    assert kept.data["refused"] == []
    assert sorted(row[1:4] for row in rows(kept.data["facts"])) == sorted(REMEMBERED.values())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("7 | rider_id | 1", "There, 7 (trip:7) has rider_id (relation:rider_id) Eva Moss (rider:5)."),
        ("1 | home | 1", "There, Ann Smith (rider:1) has home (relation:home) Harbour (station:2)."),
        ("3 | owner | City", "'3' names 5 things here: "),
    ],
)
async def test_a_line_that_does_not_hold_or_is_not_clear_is_refused(
    local: LocalAdapter, tmp_path: Path, line: str, said: str
) -> None:
    settings = unhurried(cache_folder=tmp_path, data_folder=tmp_path)
    assert said in (await call(local, "memory-append", settings, triples=[line])).text


@pytest.mark.parametrize("expression", ["Where[Type[bike], Count[-bike_id] > 1]", "Top[Type[bike], -bike_id, 9]"])
async def test_links_of_several_tables_that_are_counted_together_are_told(local: LocalAdapter, expression: str) -> None:
    assert (
        "-bike_id (relation:bike_id): 8 of trip (type:trip) and 7 of repair (type:repair)."
        in (await call(local, "Compose", expression=expression)).text
    )


async def test_a_query_takes_all_that_a_name_or_an_id_names(fleet: KGAdapter) -> None:
    stations = await call(fleet, "Sparql", query='SELECT ?s { ?s @"region" @"go" }')
    owner = await call(fleet, "Sparql", query='SELECT ?o { @"go" @"owner" ?o }')
    assert (stations.data["rows"], owner.data["rows"]) == ([["station:3"]], [["City"]])
    assert "'go' names 2 things, all taken: " in stations.summary
