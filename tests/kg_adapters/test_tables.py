"""Tables become one graph: each row an entity, columns of ids links, and everything that was guessed is reported."""

import csv
import json
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.files.reader import SourceReader
from kg_adapters.files.sources import Source, gather_sources
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.open_options import ReadingLimits
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.sqlite import sqlite_batches
from kg_boundary.json_stream import Json
from tables import CHINOOK, COUNTRIES, NORTHWIND, TablesRead, database, declared_links, flights_tables, written

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty: a table is a header and rows below it."),
        ("  \n,,\n", "is empty: a table is a header and rows below it."),
        ("id,name\n", "has a header and no row below it."),
        ("head,relation,tail", "has a header and no row below it."),
        ("head,relation,tail\n,near,\n", ", line 2: an edge needs a head and a tail."),
        ("id,name\n1,a\n,b\n", ", line 3: the id column is empty."),
    ],
)
def test_what_is_no_row_of_a_table_is_reported_once(tmp_path: Path, content: str, problem: str) -> None:
    options = TableOptions(id_columns=("id",)) if ",b" in content else TableOptions()
    read = TablesRead(tmp_path, {"g.csv": content}, options)
    assert [each.removeprefix("g.csv").lstrip(" ") for each in read.problems] == [problem.lstrip(" ")]


def test_an_import_of_a_header_alone_fails_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"g\.csv has a header and no row below it\. Fix the file"):
        build_store(written(tmp_path, {"g.csv": "id,name\n"}), tmp_path / "store", ImportOptions(sparql=False))
    assert not (tmp_path / "store").exists()


REPEATED = "id,name,boss\n1,Ann,\n2,Bob,1\n2,Cid,1\n3,Dee,2\n"


@pytest.mark.parametrize(
    ("options", "told", "labels"),
    [
        ((), "so the rows are numbered. To make rows with the same id one entity: --id-column id.", ["Bob"]),
        (("id",), "rows with the same id become one entity.", ["Bob", "Cid"]),
    ],
)
def test_ids_that_repeat_are_reported_with_their_lines(
    tmp_path: Path, options: tuple[str, ...], told: str, labels: list[str]
) -> None:
    read = TablesRead(tmp_path, {"g.csv": REPEATED}, TableOptions(id_columns=options))
    (line,) = (each for each in read.lines if "is the same in" in each)
    first, _, rest = line.partition("line 4")
    assert (first, rest.lstrip(",; ")) == ("  id is the same in line 3 and ", told)
    assert [f'rdfs:label "{label}"' for label in labels] == [each for each in read.about("g:2") if "label" in each]


NAMES = [
    ("name,born,country\nAda,1815,England\nEmmy,1882,Germany\n", ["Ada", "Emmy"]),
    ("mathematician,country\nAda,England\nEmmy,Germany\n", ["Ada", "Emmy"]),
    ("数学家,国家\n华罗庚,中国\n冈洁,日本\n", ["华罗庚", "冈洁"]),
    ("id,born,country\nm1,1815,England\nm2,1882,Germany\n", ["m1", "m2"]),
    ("id,mathematician,country\nm1,Ada,England\nm2,Emmy,Germany\n", ["Ada", "Emmy"]),
    ("thing,mathematician\nhttp://e/ada,Ada\nhttp://e/emmy,Emmy\n", ["Ada", "Emmy"]),
    ("iso,state\nGB,England\nDE,Germany\n", ["England", "Germany"]),
    ("code,country,title\nm1,England,Ada\nm2,Germany,Emmy\n", ["Ada", "Emmy"]),
    ("id,title,last_name,first_name\nm1,Dr,Noether,Emmy\nm2,,Gauss,\n", ["Emmy Noether", "Gauss"]),
    (
        "mathematician,born\nAda,1815\nAda,1816\nEmmy,1882\nSofia,1850\nMary,1780\n",
        ["Ada", "Ada", "Emmy", "Sofia", "Mary"],
    ),
]


@pytest.mark.parametrize(("content", "names"), NAMES)
def test_rows_are_called_by_a_column_of_names_and_by_nothing_that_is_only_said_of_them(
    tmp_path: Path, content: str, names: list[str]
) -> None:
    said = [line.partition(" rdfs:label ") for line in TablesRead(tmp_path, {"g.csv": content}).statements]
    rows = [(head, text.strip('"')) for head, label, text in said if label and not head.startswith("type:")]
    relations = content.partition("\n")[0].split(",")
    assert [text for _, text in rows if text not in relations] == names


@pytest.mark.parametrize(
    ("content", "edges", "left"),
    [
        ("from,to,kind\na,b,near\nb,c,far\n", ("near", "far"), ()),
        ("from,to,bond,since\na,b,near,1990\nb,c,far,1991\n", ("near", "far"), ("since",)),
        ("from,to,since\na,b,1990\nb,c,1991\n", ("g",), ("since",)),
        ("from,to,bond,by\na,b,near,Ann\nb,c,far,Bob\n", ("g",), ("bond", "by")),
        ("from,to,,since\na,b,,\n", ("g",), ()),
        ("a,near,b\nb,near,c\nc,near,d\n", ("near",), ()),
        ("head,relation,tail\na,near,b\nb,near,c\na,height,12\n", ("near",), ()),
    ],
)
def test_a_list_of_edges_takes_its_only_words_for_relations_and_tells_what_it_leaves_out(
    tmp_path: Path, content: str, edges: tuple[str, ...], left: tuple[str, ...]
) -> None:
    report = TablesRead(tmp_path, {"g.csv": content}).reports["g"]
    assert (report.edges, dict(report.columns)["edges"]) == (True, edges)
    assert [each.columns for each in report.left_out] == ([left] if left else [])


@pytest.mark.parametrize(
    ("column", "kind", "written_as"),
    [
        ("born\n1999-01-31\nNA", "date", '"1999-01-31"^^date'),
        ("when\n31.12.2020\n1.2.2021", "date (day first)", '"2020-12-31"^^date'),
        ("when\n12/31/2020\n01/02/2021", "date (month first)", '"2020-12-31"^^date'),
        ("when\n01/02/2020\n03/04/2020", "text", '"01/02/2020"'),
        ("at\n2013-01-01 10:00\n2013-01-02 11:30", "date and time", '"2013-01-01T10:00:00"^^dateTime'),
        ("share\n0.5\n2e3", "number", '"0.5"^^double'),
        ("price\n3,14\n1.000,5", "number (with a decimal comma)", '"3.14"^^decimal'),
        ("price\n1,234\n5,678", "number (with a decimal comma)", '"1.234"^^decimal'),
        ("card\n007\n012", "text", '"007"'),
        ("Phone\n+4\n+5", "text", '"+4"'),
        ("zip code\n10115\n20095", "text", '"10115"'),
        ("founded\n973\n1410", "year", '"0973"^^gYear'),
        ("open\nTRUE\nfalse", "true or false", '"true"^^boolean'),
        ("page\nhttp://e.org\nhttps://e.org/a", "address", '"http://e.org"^^anyURI'),
    ],
)
def test_the_values_of_a_column_have_the_kind_that_all_of_them_share(
    tmp_path: Path, column: str, kind: str, written_as: str
) -> None:
    name, *cells = column.split("\n")
    content = "\n".join([f"id;{name}", *(f"row{place};{cell}" for place, cell in enumerate(cells))])
    read = TablesRead(tmp_path, {"g.csv": content})
    assert read.kinds("g") == {name: kind}
    assert read.about("e:row0")[-1].partition(" ")[2] == written_as


def test_dates_whose_order_is_unknown_stay_text_until_it_is_said(tmp_path: Path) -> None:
    content = "id,when\na,01/02/2020\n"
    (left,) = TablesRead(tmp_path, {"g.csv": content}).reports["g"].left_out
    assert (left.columns, left.option) == (("when",), "--column g.when=dmy or =mdy")
    read = TablesRead(tmp_path, {"g.csv": content}, TableOptions(kinds=("g.when=dmy",)))
    assert read.about("e:a")[-1] == 'when "2020-02-01"^^date'


NEW_YORK = {
    ("flights.carrier", "airlines.carrier"),
    ("flights.tailnum", "planes.tailnum"),
    ("flights.origin", "airports.faa"),
    ("flights.dest", "airports.faa"),
    ("weather.origin", "airports.faa"),
    ("flights.weather", "weather.origin, time_hour"),
}


def test_columns_that_hold_the_ids_of_other_tables_lead_to_their_rows_and_no_others_do(tmp_path: Path) -> None:
    read = TablesRead(tmp_path, flights_tables())
    assert read.links() == NEW_YORK
    links = {link.column: link for link in read.reports["flights"].links}
    assert (links["tailnum"].values, links["tailnum"].matched, links["dest"].matched) == (60, 48, 90)
    flight = read.about("flights:2")
    assert {"carrier e:AA", "tailnum e:N101BA", "origin e:JFK", 'flight "1"^^integer'} <= set(flight)


def test_two_columns_that_are_an_id_together_lead_to_the_rows_that_a_join_finds(tmp_path: Path) -> None:
    tables = flights_tables()
    read = TablesRead(tmp_path, tables)
    flights, weather = (list(csv.DictReader(tables[name].splitlines())) for name in ("flights.csv", "weather.csv"))
    rows = {(row["origin"], row["time_hour"]): row["temp"] for row in weather}
    said = dict(line.split(" temp ") for line in read.statements if line.startswith("weather:") and " temp " in line)
    ends = dict(line.split(" weather ") for line in read.statements if " weather weather:" in line)
    found = [said.get(ends.get(f"flights:{number}", "")) for number in range(1, len(flights) + 1)]
    temperatures = [rows.get((row["origin"], row["time_hour"])) for row in flights]
    assert found == [None if each is None else f'"{each}"^^integer' for each in temperatures]
    assert temperatures.count(None) == 2
    assert read.about("weather:EWR%2F2013-01-01T21%3A00%3A00Z") == ['rdfs:label "EWR/2013-01-01T21:00:00Z"']
    assert 'hour "7"^^integer' in read.about("weather:JFK%2F2013-01-01T07%3A00%3A00Z")
    apart = TablesRead(tmp_path, tables, TableOptions(no_links=("flights.weather",)))
    assert apart.links() == NEW_YORK - {("flights.weather", "weather.origin, time_hour")}


def test_values_without_a_row_stay_nodes_with_names_and_what_stands_for_none_is_left_out(tmp_path: Path) -> None:
    read = TablesRead(tmp_path, flights_tables())
    assert read.about("e:ZZX") == ['rdfs:label "ZZX"']
    assert read.about("e:N159JA") == ['rdfs:label "N159JA"']
    assert read.about("e:NA") == []
    assert [each.columns for each in read.reports["planes"].left_out][:1] == [("speed",)]


def test_numbers_lead_to_rows_only_where_a_column_is_called_for_them(tmp_path: Path) -> None:
    read = TablesRead(
        tmp_path,
        {
            "customers.csv": "id,name\n1,Ann\n2,Bob\n3,Cid\n",
            "orders.csv": "id,customer_id,month,orders,items\n1,1,1,1,1\n2,1,2,2,2\n3,3,3,1,1\n",
            "items.csv": "id,order,price\n1,1,2.5\n2,1,3.5\n3,2,1.5\n",
            "salaries.csv": "customer_id,amount\n1,10\n2,20\n",
            "calls.csv": "call,customer,minutes\nx,2.0,1.0\ny,,3.0\nz,3.0,2.0\n",
        },
    )
    assert read.links() == {
        ("orders.customer_id", "customers.id"),
        ("items.order", "orders.id"),
        ("salaries.customer_id", "customers.id"),
        ("calls.customer", "customers.id"),
    }
    assert "customer_id customers:3" in read.about("orders:3")
    assert read.about("e:z")[-2:] == ["customer customers:3", 'minutes "2.0"^^decimal']
    assert "  customer → customers.id: all of 2 values, such as '2.0', each with '.0' (--no-link calls.customer)" in (
        read.lines
    )
    tables = {name: (tmp_path / name).read_text(encoding="utf-8") for name in ("customers.csv", "calls.csv")}
    chosen = TablesRead(tmp_path, tables, TableOptions(links=("calls.minutes=customers.id",)))
    assert "minutes customers:2" in chosen.about("e:z")


def test_the_id_is_the_column_that_others_refer_to_and_cells_may_hold_several(tmp_path: Path) -> None:
    read = TablesRead(tmp_path, {"countries.csv": COUNTRIES, "cities.csv": "city,country\nBerlin,DEU\nGraz,AUT\n"})
    countries = read.reports["countries"]
    assert (countries.id, countries.label, countries.aliases) == ("cca3", "name", ("alt_names",))
    assert read.links() == {("countries.borders", "countries.cca3"), ("cities.country", "countries.cca3")}
    germany = read.about("e:DEU")
    assert {"borders e:AUT", "borders e:FRA", 'skos:altLabel "Deutschland"', 'languages "German"'} <= set(germany)


def test_what_people_say_about_their_columns_comes_before_what_is_guessed(tmp_path: Path) -> None:
    tables = {"countries.csv": COUNTRIES, "cities.csv": "city,country\nBerlin,DE\nGraz,AT\n"}
    options = TableOptions(
        id_columns=("countries=cca2",),
        kinds=("area=text",),
        splits=("languages=,",),
        links=("cities.country=countries.cca2",),
        no_links=("all",),
    )
    read = TablesRead(tmp_path, tables, options)
    assert read.links() == {("cities.country", "countries.cca2")}
    malta = read.about("e:MT")
    assert {'languages "Maltese"', 'languages "English"', 'area "316"', 'cca3 "MLT"'} <= set(malta)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (TableOptions(id_columns=("post",)), r"No table has a column 'post'\. Write --id-column as in countries=name"),
        (TableOptions(id_columns=("cities=post",)), r"cities has no column 'post'\. It has 'city', 'country'"),
        (TableOptions(splits=("x.y=,",)), r"No table has a column 'x\.y'\. There are countries\.name, "),
        (TableOptions(links=("cities.country=x.y",)), r"No table has a column 'x\.y'"),
        (TableOptions(no_links=("towns.country",)), r"No table has a column 'towns\.country'"),
    ],
)
def test_a_column_that_is_named_must_be_there(tmp_path: Path, options: TableOptions, message: str) -> None:
    files = written(tmp_path, {"countries.csv": COUNTRIES, "cities.csv": "city,country\nBerlin,DEU\n"})
    with pytest.raises(InvalidSource, match=message):
        build_store(files, tmp_path / "store", ImportOptions(sparql=False, tables=options))
    with pytest.raises(InvalidRequest, match=r"'colour' is no kind of values\. --column takes text, number, date"):
        TableOptions(kinds=("country=colour",))


def test_an_edge_list_is_about_the_rows_with_its_ids_which_keep_their_names(tmp_path: Path) -> None:
    read = TablesRead(
        tmp_path,
        {
            "people.csv": "id,name\n1,Ann\n2,Bob\n3,Cid\n",
            "knows.csv": "source,relation,target\n1,knows,2\n2,knows,3\n3,height,180\n",
            "places.csv": "code,name\nX1,Xanten\nY1,Ypern\n",
            "near.csv": "from,to\nX1,Y1\nY1,Z1\n",
        },
    )
    assert {'rdfs:label "Ann"', "knows people:2"} <= set(read.about("people:1"))
    assert read.about("people:3")[-1] == 'height "180"^^integer'
    assert [each for each in read.about("e:X1") if "label" in each] == ['rdfs:label "Xanten"']
    assert read.about("e:Z1") == ['rdfs:label "Z1"']


def test_the_summary_shows_links_with_their_share_and_the_options_that_change_them(tmp_path: Path) -> None:
    read = TablesRead(tmp_path, {name: text for name, text in flights_tables().items() if name != "weather.csv"})
    assert read.lines[-9:] == [
        "flights.csv: 300 entities, one in each row; numbered, 'row 1' to 'row 300'.",
        "  carrier → airlines.carrier: all of 6 values, such as '9E' (--no-link flights.carrier)",
        "  tailnum → planes.tailnum: 80% of 60 values, such as 'N101BA'; 12 others have no row there "
        "(--no-link flights.tailnum)",
        "  origin → airports.faa: all of 3 values, such as 'EWR' (--no-link flights.origin)",
        "  dest → airports.faa: 99% of 91 values, such as 'AAQ'; 1 other has no row there (--no-link flights.dest)",
        "  year: year",
        "  whole number: month, day, dep_time, flight, distance, hour",
        "  date and time: time_hour",
        "  cells with NA or the like, left out: dep_time, time_hour (--column flights.dep_time=text)",
    ]


def test_of_very_many_columns_in_two_tables_the_first_are_shown_and_how_many_more_there_are(tmp_path: Path) -> None:
    width = 20_000
    header, row = (",".join(f"{letter}{place}" for place in range(width)) for letter in "cv")
    table = f"{header}\n{row}\n{row}\n"
    line = TablesRead(tmp_path, {"g.csv": table, "h.csv": table}).lines[1]
    assert line.endswith(f"c11, and {width - 12:,} more")


def test_a_column_of_which_too_few_values_are_ids_comes_with_the_option_that_links_it(tmp_path: Path) -> None:
    airports = "faa,name\nJFK,Kennedy\nLAX,Los Angeles\nSEA,Seattle\nORD,O'Hare\n"
    flights = "id,goes\nf1,JFK\nf2,LAX\nf3,SEA\nf4,ORD\nf5,SJU\nf6,BQN\n"
    read = TablesRead(tmp_path, {"airports.csv": airports, "flights.csv": flights})
    assert read.links() == set()
    told = "  4 of 6 values are ids of airports.faa, too few for a link: goes (--link flights.goes=airports.faa)"
    assert told in read.lines


def test_of_a_long_header_the_beginning_is_shown(tmp_path: Path) -> None:
    long = "x" * 3_000
    lines = TablesRead(tmp_path, {"g.csv": f"id,{long},parent {long}\na,1,b\nb,2,a\n"}).lines
    assert (len(lines), all("…" in line and len(line) < 400 for line in lines[1:])) == (3, True)


def test_a_text_of_json_that_begins_with_a_plus_is_no_number(tmp_path: Path) -> None:
    records = [{"id": "a", "call": "+4", "size": "5"}, {"id": "b", "call": "+5", "size": 6}]
    read = TablesRead(tmp_path, {"g.json": json.dumps(records), "h.csv": "id,rise\nx,+4\ny,-5\n"})
    assert (read.kinds("g"), read.kinds("h")) == ({"call": "text", "size": "whole number"}, {"rise": "whole number"})


def test_headers_that_repeat_stay_apart(tmp_path: Path) -> None:
    read = TablesRead(tmp_path, {"g.csv": "id,n,n,n 3,\na,1,2,3,4\n"})
    assert tuple(read.kinds("g")) == ("n", "n 3", "n 3 4", "column 5")


def test_a_folder_of_tables_is_one_graph(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    written(tmp_path / "data", {**flights_tables(50), "more.ttl": "<http://e/a> <http://e/p> <http://e/b> ."})
    report = build_store([tmp_path / "data"], tmp_path / "store", ImportOptions(sparql=False))
    links = {(f"{table.table}.{link.column}", link.to) for table in report.tables for link in table.links}
    assert links == NEW_YORK


@pytest.mark.parametrize(("name", "count"), [("chinook.db", 11), ("northwind.sqlite3", 13)])
def test_the_keys_that_a_database_declares_are_ids_and_links_and_nothing_else_is(
    tmp_path: Path, name: str, count: int
) -> None:
    read = TablesRead(tmp_path, {name: database(CHINOOK if count == 11 else NORTHWIND)})
    assert read.problems == []
    assert read.links() == declared_links(tmp_path / name)
    assert len(read.links()) == count
    assert all(link.declared for report in read.reports.values() for link in report.links)
    assert all(report.id for report in read.reports.values())


def test_ids_of_a_database_are_valid_in_their_own_table_and_what_is_no_text_is_left_out(tmp_path: Path) -> None:
    returns = """CREATE TABLE Returns (Order_ INTEGER, Product INTEGER, Reason TEXT,
        FOREIGN KEY (Product, Order_) REFERENCES "Order Details" (ProductID, OrderID));
        INSERT INTO Returns VALUES (10248, 3, 'stale');
        CREATE VIRTUAL TABLE Texts USING fts5(text);
        CREATE TABLE Notes (text)"""
    read = TablesRead(tmp_path, {"shop.db": database(NORTHWIND, returns)})
    assert {'rdfs:label "Ana Trujillo"', 'City "México D.F."'} <= set(read.about("Customers:ANATR"))
    assert "CustomerTypeID CustomerDemographics:ALFKI" in read.about("CustomerCustomerDemo:ANATR%2FALFKI")
    assert {"OrderID Orders:10248", 'Quantity "12"^^integer'} <= set(read.about("Order%20Details:10248%2F1"))
    assert "Order%20Details Order%20Details:10248%2F3" in read.about("Returns:1")
    assert read.lines[0] == "shop.db, Categories: 2 entities, one in each row; id: CategoryID; name: CategoryName."
    reports_to = "  ReportsTo → Employees.EmployeeID: all of 1 value, such as '2', as declared "
    assert f"{reports_to}(--no-link Employees.ReportsTo)" in read.lines
    assert read.notes == [
        "shop.db: 'Invoices' left out: a view repeats what tables hold.",
        "shop.db: 'Texts' left out: a virtual table holds nothing itself.",
        "shop.db, Order Details: Value left out: such columns are computed from others.",
        "shop.db, Categories: Picture: 2 binary values left out.",
        "shop.db, Notes left out: it has no row.",
    ]


def test_a_damaged_database_is_refused_or_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)",
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39) "
        "INSERT INTO t SELECT i, printf('%0999d', i) FROM n",
    )
    with pytest.raises(InvalidSource, match=r"g\.db cannot be read as a SQLite database: .*Check it with: sqlite3 "):
        TablesRead(tmp_path, {"g.db": whole[:100] + b"\xff" * 5000})
    middle = len(whole) // 2 // 4096 * 4096
    read = TablesRead(tmp_path, {"g.db": whole[:middle] + b"\xff" * 4096 + whole[middle + 4096 :]})
    assert read.problems == ["g.db, t cannot be read to its end: database disk image is malformed."]
    assert 0 < read.reports["t"].rows < 40
    (tmp_path / "g.db-wal").write_text("changes", encoding="utf-8")
    read = TablesRead(tmp_path, {"g.db": whole})
    assert [each.partition(". ")[0] for each in read.problems] == ["g.db-wal holds changes that are not in g.db yet"]


def test_a_database_that_changes_while_it_is_read_is_reported_as_that(tmp_path: Path) -> None:
    path, problems = tmp_path / "g.db", list[str]()
    whole = database(
        "CREATE TABLE t (x)",
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
        "INSERT INTO t SELECT printf('%0999d', i) FROM n",
    )
    path.write_bytes(whole)
    source, limits = Source(path, path.name), ReadingLimits()
    with path.open("rb") as file:
        batches = sqlite_batches(source, file, lambda text, _: problems.append(text), lambda _: None, limits)
        next(batches)
        path.write_bytes(whole[:8192])
        list(batches)
    [problem] = problems
    assert "it was changed while it was read. Close the program that writes to it." in problem


WORLD: list[Json] = [
    {
        "name": {
            "common": "Germany",
            "official": "Federal Republic of Germany",
            "native": {"deu": {"common": "Deutschland"}},
        },
        "cca3": "DEU",
        "currencies": {"EUR": {"name": "Euro", "symbol": "€"}},
        "capital": ["Berlin"],
        "altSpellings": ["DE", "Bundesrepublik Deutschland"],
        "languages": {"deu": "German"},
        "latlng": [51, 9],
        "borders": ["AUT", "FRA"],
        "area": 357114,
        "landlocked": False,
    },
    {
        "name": {"common": "Austria"},
        "currencies": {"EUR": {"name": "Euro", "symbol": "€"}},
        "cca3": "AUT",
        "borders": ["DEU"],
        "languages": {"bar": "Bavarian"},
        "area": 83871,
    },
    {"name": {"common": "France"}, "cca3": "FRA", "borders": ["DEU"], "independent": True, "area": 551695.5},
    {"name": {"common": "Malta"}, "cca3": "MLT", "borders": [], "latlng": None},
]
"""Records like those of world-countries."""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("world.json", json.dumps(WORLD)),
        ("world.json", json.dumps({"count": 4, "next": None, "results": WORLD}, indent=1)),
        ("world.ndjson", "\n".join(map(json.dumps, WORLD))),
        ("world.txt", "\n".join(map(json.dumps, WORLD)) + "\n"),
    ],
)
def test_records_are_rows_and_what_is_nested_in_them_is_behind_them(tmp_path: Path, name: str, content: str) -> None:
    read = TablesRead(tmp_path, {name: content})
    assert read.problems == []
    world = read.reports["world"]
    assert (world.id, world.label, read.kinds("world")["area"]) == ("cca3", "name", "number")
    assert ("world.borders", "world.cca3") in read.links()
    germany = read.about("e:DEU")
    assert {'rdfs:label "Germany"', "borders e:AUT", "borders e:FRA", 'capital "Berlin"'} <= set(germany)
    assert {'latlng "51"^^integer', 'latlng "9"^^integer', 'landlocked "false"^^boolean'} <= set(germany)
    assert "name%20details world.name:1" in germany
    assert [each for each in read.about("world.name:1") if "type" not in each] == [
        'common "Germany"',
        'official "Federal Republic of Germany"',
        "native world.name.native:1",
    ]
    assert {'deu "German"', 'rdfs:label "German"'} <= set(read.about("world.languages:1"))
    assert {'rdfs:label "Euro"', 'key "EUR"', 'symbol "€"'} <= set(read.about("world.currencies:1"))
    assert "  currencies → world.currencies: 1 nested object" in read.lines


def test_several_lists_of_one_object_are_tables_that_are_linked(tmp_path: Path) -> None:
    shop = {
        "made": "2020-01-01",
        "customers": [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}],
        "orders": [
            {"id": 1, "customer_id": 2, "items": [{"product": "tea", "count": 2}, {"product": "jam", "count": 1}]},
            {"id": 2, "customer_id": 1},
            {"id": 3, "customer_id": 1},
        ],
    }
    read = TablesRead(tmp_path, {"shop.json": json.dumps(shop)})
    assert read.links() == {("orders.customer_id", "customers.id"), ("orders.items", "orders.items")}
    assert {"customer_id customers:2", "items orders.items:1", "items orders.items:2"} <= set(read.about("orders:1"))
    assert {'product "jam"', 'count "1"^^integer'} <= set(read.about("orders.items:2"))
    assert read.notes == ["shop.json: 'made' left out: only the objects in lists are records."]


def test_the_keys_of_an_object_of_records_are_their_ids(tmp_path: Path) -> None:
    countries = {"AD": {"name": "Andorra", "near": ["FR"]}, "FR": {"name": "France"}, "MC": {"near": ["FR", "AD"]}}
    read = TablesRead(tmp_path, {"countries.json": json.dumps(countries)})
    assert read.problems == []
    assert (read.reports["countries"].id, read.links()) == ("key", {("countries.near", "countries.key")})
    assert {'rdfs:label "Andorra"', "near e:FR"} <= set(read.about("e:AD"))


@pytest.mark.parametrize(
    ("name", "content", "problems", "rows"),
    [
        ("g.json", '[{"a": 1}, {"a": 2}, {"a" 3}]', ["g.json, line 1, column 27: Expecting ':' delimiter."], 2),
        ("g.json", '[{"a": 1}, 5, {"a": 2}]', ["g.json, record 2: a record is an object {…}."], 2),
        ("g.json", '[{"a": "\\ud800"}, {"a": "x"}]', ["g.json, record 1: a text holds half of a surrogate pair"], 1),
        (
            "g.jsonl",
            '{"a": 1}\n{"a": \n[1]\n{"a": 2}\n',
            ["g.jsonl, line 2: Expecting value.", "g.jsonl, line 3: a record is an object {…}."],
            2,
        ),
        ("g.jsonl", "", ["g.jsonl holds no record"], 0),
        ("g.json", "[" + '{"a":' * 300 + "1" + "}" * 300 + "]", ["g.json, before byte"], 0),
    ],
)
def test_records_that_are_damaged_are_reported_and_the_others_read(
    tmp_path: Path, name: str, content: str, problems: list[str], rows: int
) -> None:
    read = TablesRead(tmp_path, {name: content})
    assert [shown[: len(wanted)] for shown, wanted in zip(read.problems, problems, strict=True)] == problems
    assert sum(report.rows for report in read.reports.values()) == rows


def test_parquet_is_read_as_records_are(tmp_path: Path) -> None:
    pytest.importorskip("arro3.io")
    content = (DATA / "tables" / "people.parquet").read_bytes()
    read = TablesRead(tmp_path, {"g.parquet": content})
    assert (read.problems, read.links()) == ([], {("g.boss", "g.id")})
    assert {"boss e:a", 'born "2020-01-01"^^date'} <= set(read.about("e:b"))
    assert 'height "1.5"^^decimal' in read.about("e:a")
    assert read.notes == ["g.parquet: photo left out: binary values and intervals are no text."]
    half = TablesRead(tmp_path, {"g.parquet": content[: len(content) // 2]})
    assert "a Parquet file ends with a description of its columns" in half.problems[0]
    # The parser dies of this one, and with it the process that reads the file.
    spoilt = SourceReader(skip_errors=True)
    damaged = written(tmp_path, {"g.parquet": content[:4] + b"\xff" * (len(content) - 12) + content[-8:]})
    assert list(spoilt.read(gather_sources(damaged).files[0])) == []
    assert [each.partition(": ")[0] for each in spoilt.problems] == [f"{tmp_path}/g.parquet, byte 0"]
