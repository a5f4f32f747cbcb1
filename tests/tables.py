"""Likenesses of tables that people have: flights, countries, and two databases of shops; and how to read them."""

import pickle
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from kg_adapters.files.frames import Content, Frame, Note, Problem, ReadOrder, StatementColumns
from kg_adapters.files.process import send_content
from kg_adapters.files.recognition import parts_of
from kg_adapters.files.rows import line_of
from kg_adapters.files.sources import Source, gather_sources
from kg_adapters.open_options import ReadingLimits
from kg_adapters.tables.edges import EdgeSurvey
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.passes import CellSurvey, Surveyed, SurveyTask, TableTask, plan_sources
from kg_adapters.tables.report import TableReport
from kg_adapters.tables.survey import TableSurvey


def written(folder: Path, tables: Mapping[str, str | bytes]) -> list[Path]:
    """Write files, by their names, and return their paths."""
    for name, content in tables.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return [folder / name for name in tables]


def database(*statements: str) -> bytes:
    """Return a SQLite file that is made by statements of SQL."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(";".join(statements))
        return made.serialize()


class TablesRead:
    """Tables that were read together: in this process, and without a store.

    Attributes:
        statements: What they say, as lines without their end.
        problems: What could not be read.
        notes: What was left out, without the folder.
        reports: What became of each table, by its name.
        lines: The same for people, without the folder.
    """

    def __init__(self, folder: Path, tables: Mapping[str, str | bytes], options: TableOptions | None = None) -> None:
        self.problems, self.notes = list[str](), list[str]()
        self._folder = f"{folder}/"
        sources = gather_sources(written(folder, tables)).files
        parts = [part for source in sources for part in parts_of(source, ReadingLimits())]
        plans, reports = plan_sources(parts, options or TableOptions(), self._surveyed)
        columns = [each for part in parts for each in self._sent(part, plans.get(part))]
        rows = [row for each in columns if isinstance(each, StatementColumns) for row in each.rows()]
        self.statements = [_short(line_of(row)) for row in rows]
        self.reports: dict[str, TableReport] = {report.table: report for report in reports}
        self.lines = [line.removeprefix(self._folder) for report in reports for line in report.lines()]

    def _surveyed(self, source: Source, task: SurveyTask) -> list[Surveyed]:
        return [each for each in self._sent(source, task) if isinstance(each, TableSurvey | EdgeSurvey | CellSurvey)]

    def _sent(self, source: Source, task: TableTask | None) -> list[Content]:
        sent = list[bytes]()
        send_content(
            lambda frame: sent.append(pickle.dumps(frame)), ReadOrder(source, ReadingLimits(), True, table=task)
        )
        contents: list[Content] = [frame.content for frame in map(pickle.loads, sent) if isinstance(frame, Frame)]
        self.problems += [each.text.removeprefix(self._folder) for each in contents if isinstance(each, Problem)]
        if not isinstance(task, SurveyTask):
            self.notes += [each.text.removeprefix(self._folder) for each in contents if isinstance(each, Note)]
        return contents

    def about(self, node: str) -> list[str]:
        """Return what is said of a node, given in short."""
        return [line.removeprefix(f"{node} ") for line in self.statements if line.startswith(f"{node} ")]

    def links(self) -> set[tuple[str, str]]:
        """Return which column leads to which."""
        return {(f"{name}.{link.column}", link.to) for name, report in self.reports.items() for link in report.links}

    def kinds(self, table: str) -> dict[str, str]:
        """Return the kind of the values of each column."""
        return {column: kind for kind, columns in self.reports[table].columns for column in columns}


_SHORT = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf:",
    "http://www.w3.org/2000/01/rdf-schema#": "rdfs:",
    "http://www.w3.org/2004/02/skos/core#": "skos:",
    "http://www.w3.org/2001/XMLSchema#": "",
    "urn:table:relation:": "",
    "urn:table:entity:": "e:",
    "urn:table:": "",
}


def _short(line: str) -> str:
    for long, short in _SHORT.items():
        line = line.replace(f"<{long}", f"<{short}")
    return line.removesuffix(" .\n").replace("<", "").replace(">", "")


def table(header: str, rows: Sequence[Sequence[object]]) -> str:
    """Return a table as CSV."""
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def flights_tables(flights: int = 300) -> dict[str, str]:
    """Return five tables like those of nycflights13: a fifth of the planes, some airports and an hour have no row."""
    letters = "ABCDEFGHIJ"
    airports = ["EWR", "JFK", "LGA", *(f"{a}{b}Q" for a in letters for b in letters)]
    carriers = ["9E", "AA", "B6", "DL", "UA", "WN"]
    tails = [f"N{100 + number}{letters[number % 10]}A" for number in range(60)]
    hours = [(month, day, hour) for month in range(1, 13) for day in (1, 2) for hour in range(24)]
    moments = [f"2013-{month:02}-{day:02}T{hour:02}:00:00Z" for month, day, hour in hours]
    weather = [
        (origin, 2013, *hours[place], 30 + place % 50, "NA", moments[place])
        for origin in airports[:3]
        for place in range(len(hours))
        if (origin, place) != ("EWR", 21)
    ]
    rows = [
        (
            *(
                2013,
                *hours[number * 7 % len(hours)][:2],
                "NA" if number % 9 == 0 else 517 + number,
                carriers[number % 6],
            ),
            *(number % 97, "NA" if number % 50 == 0 else tails[number % 60], airports[number % 3]),
            "ZZX" if number % 100 == 99 else airports[3 + number % 90],
            *(200 + number, hours[number * 7 % len(hours)][2]),
            "NA" if number == 8 else moments[number * 7 % len(hours)],
        )
        for number in range(flights)
    ]
    return {
        "airlines.csv": table("carrier,name", [(each, f"{each} Airlines Inc.") for each in carriers]),
        "airports.csv": table(
            "faa,name,alt,tz,dst",
            [(each, f"{each} Airport", place, -5, "AUN"[place % 3]) for place, each in enumerate(airports)],
        ),
        "planes.csv": table(
            "tailnum,year,manufacturer,seats,speed",
            [(each, 1990 + place % 20, "BOEING", 2 + place % 9, "NA") for place, each in enumerate(tails[:48])],
        ),
        "weather.csv": table("origin,year,month,day,hour,temp,wind_gust,time_hour", weather),
        "flights.csv": table(
            "year,month,day,dep_time,carrier,flight,tailnum,origin,dest,distance,hour,time_hour", rows
        ),
    }


COUNTRIES = """name,cca2,cca3,capital,languages,borders,alt_names,area
Germany,DE,DEU,Berlin,"German","AUT,FRA",Deutschland;Federal Republic of Germany,357114
France,FR,FRA,Paris,"French","DEU",République française,551695
Austria,AT,AUT,Vienna,"German","DEU",Österreich,83871
Malta,MT,MLT,Valletta,"Maltese,English",,,316
"""
"""Countries like those of world-countries, with ids in the third column."""


CHINOOK = """
CREATE TABLE Artist (ArtistId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE Album (AlbumId INTEGER PRIMARY KEY, Title NVARCHAR(160), ArtistId INTEGER REFERENCES Artist (ArtistId));
CREATE TABLE Employee (EmployeeId INTEGER PRIMARY KEY, LastName NVARCHAR(20), FirstName NVARCHAR(20),
    ReportsTo INTEGER REFERENCES Employee (EmployeeId), HireDate DATETIME);
CREATE TABLE Customer (CustomerId INTEGER PRIMARY KEY, FirstName NVARCHAR(40), LastName NVARCHAR(20),
    Phone NVARCHAR(24), SupportRepId INTEGER REFERENCES Employee (EmployeeId));
CREATE TABLE Invoice (InvoiceId INTEGER PRIMARY KEY, CustomerId INTEGER REFERENCES Customer (CustomerId),
    InvoiceDate DATETIME, Total NUMERIC(10,2));
CREATE TABLE Genre (GenreId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE MediaType (MediaTypeId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE Track (TrackId INTEGER PRIMARY KEY, Name NVARCHAR(200), AlbumId INTEGER REFERENCES Album (AlbumId),
    MediaTypeId INTEGER REFERENCES MediaType (MediaTypeId), GenreId INTEGER REFERENCES Genre (GenreId),
    Milliseconds INTEGER, UnitPrice NUMERIC(10,2));
CREATE TABLE InvoiceLine (InvoiceLineId INTEGER PRIMARY KEY, InvoiceId INTEGER REFERENCES Invoice (InvoiceId),
    TrackId INTEGER REFERENCES Track (TrackId), UnitPrice NUMERIC(10,2), Quantity INTEGER);
CREATE TABLE Playlist (PlaylistId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE PlaylistTrack (PlaylistId INTEGER REFERENCES Playlist (PlaylistId),
    TrackId INTEGER REFERENCES Track (TrackId), PRIMARY KEY (PlaylistId, TrackId)) WITHOUT ROWID;
INSERT INTO Artist VALUES (1, 'AC/DC'), (2, 'Accept'), (3, 'Aerosmith');
INSERT INTO Album VALUES (1, 'For Those About To Rock', 1), (2, 'Balls to the Wall', 2), (3, 'Big Ones', 3);
INSERT INTO Employee VALUES (1, 'Adams', 'Andrew', NULL, '2002-08-14 00:00:00'),
    (2, 'Edwards', 'Nancy', 1, '2002-05-01 00:00:00'), (3, 'Peacock', 'Jane', 2, '2002-04-01 00:00:00');
INSERT INTO Customer VALUES (1, 'Luís', 'Gonçalves', '+55 (12) 3923-5555', 3), (2, 'Leonie', 'Köhler', '+49 0711', 3);
INSERT INTO Invoice VALUES (1, 2, '2009-01-01 00:00:00', 1.98), (2, 1, '2009-01-02 00:00:00', 0.99);
INSERT INTO Genre VALUES (1, 'Rock'), (2, 'Jazz');
INSERT INTO MediaType VALUES (1, 'MPEG audio file'), (2, 'Protected AAC audio file');
INSERT INTO Track VALUES (1, 'Evil Walks', 1, 1, 1, 263497, 0.99), (2, 'Balls to the Wall', 2, 2, 1, 342562, 0.99),
    (3, 'Walk On Water', 3, 1, 2, 295680, 0.99);
INSERT INTO InvoiceLine VALUES (1, 1, 2, 0.99, 1), (2, 1, 3, 0.99, 1), (3, 2, 1, 0.99, 1);
INSERT INTO Playlist VALUES (1, 'Music'), (2, 'Movies');
INSERT INTO PlaylistTrack VALUES (1, 1), (1, 2), (1, 3);
"""
"""The tables and foreign keys of the sample database Chinook, with a few rows."""

NORTHWIND = """
CREATE TABLE Categories (CategoryID INTEGER PRIMARY KEY, CategoryName TEXT, Picture BLOB);
CREATE TABLE CustomerDemographics (CustomerTypeID TEXT PRIMARY KEY, CustomerDesc TEXT);
CREATE TABLE Customers (CustomerID TEXT PRIMARY KEY, CompanyName TEXT, City TEXT);
CREATE TABLE CustomerCustomerDemo (CustomerID TEXT REFERENCES Customers, CustomerTypeID TEXT
    REFERENCES CustomerDemographics, PRIMARY KEY (CustomerID, CustomerTypeID));
CREATE TABLE Employees (EmployeeID INTEGER PRIMARY KEY, LastName TEXT, FirstName TEXT,
    ReportsTo INTEGER REFERENCES Employees);
CREATE TABLE Regions (RegionID INTEGER PRIMARY KEY, RegionDescription TEXT);
CREATE TABLE Territories (TerritoryID TEXT PRIMARY KEY, TerritoryDescription TEXT, RegionID INTEGER NOT NULL,
    FOREIGN KEY (regionid) REFERENCES regions (regionid));
CREATE TABLE EmployeeTerritories (EmployeeID INTEGER REFERENCES Employees, TerritoryID TEXT REFERENCES Territories,
    PRIMARY KEY (EmployeeID, TerritoryID));
CREATE TABLE Shippers (ShipperID INTEGER PRIMARY KEY, CompanyName TEXT);
CREATE TABLE Suppliers (SupplierID INTEGER PRIMARY KEY, CompanyName TEXT);
CREATE TABLE Orders (OrderID INTEGER PRIMARY KEY, CustomerID TEXT REFERENCES Customers, EmployeeID INTEGER
    REFERENCES Employees, OrderDate DATETIME, ShipVia INTEGER REFERENCES Shippers);
CREATE TABLE Products (ProductID INTEGER PRIMARY KEY, ProductName TEXT, SupplierID INTEGER REFERENCES Suppliers,
    CategoryID INTEGER REFERENCES Categories, UnitPrice NUMERIC);
CREATE TABLE "Order Details" (OrderID INTEGER REFERENCES Orders, ProductID INTEGER REFERENCES Products,
    Quantity INTEGER, Value AS (Quantity * 2), PRIMARY KEY (OrderID, ProductID));
CREATE VIEW Invoices AS SELECT * FROM Orders;
INSERT INTO Categories VALUES (1, 'Beverages', x'00ff'), (2, 'Condiments', x'00fe');
INSERT INTO CustomerDemographics VALUES ('ALFKI', 'a type that is called like a customer');
INSERT INTO Customers VALUES ('ALFKI', 'Alfreds Futterkiste', 'Berlin'), ('ANATR', 'Ana Trujillo', 'México D.F.');
INSERT INTO CustomerCustomerDemo VALUES ('ANATR', 'ALFKI');
INSERT INTO Employees VALUES (1, 'Davolio', 'Nancy', 2), (2, 'Fuller', 'Andrew', NULL);
INSERT INTO Regions VALUES (1, 'Eastern'), (2, 'Western');
INSERT INTO Territories VALUES ('01581', 'Westboro', 1), ('98004', 'Bellevue', 2);
INSERT INTO EmployeeTerritories VALUES (1, '01581'), (2, '98004');
INSERT INTO Shippers VALUES (1, 'Speedy Express'), (2, 'United Package');
INSERT INTO Suppliers VALUES (1, 'Exotic Liquids'), (2, 'New Orleans Cajun Delights');
INSERT INTO Orders VALUES (10248, 'ALFKI', 1, '1996-07-04', 2), (10249, 'ANATR', 2, '1996-07-05', 1);
INSERT INTO Products VALUES (1, 'Chai', 1, 1, 18), (2, 'Aniseed Syrup', 1, 2, 10), (3, 'Gumbo', 2, 2, 21.35);
INSERT INTO "Order Details" VALUES (10248, 1, 12), (10248, 3, 10), (10249, 2, 5);
"""
"""The tables and foreign keys of the sample database Northwind, with a few rows."""


def declared_links(path: Path) -> set[tuple[str, str]]:
    """Return which columns lead to which, as a SQLite file declares it; keys of several columns in their own order."""
    with closing(sqlite3.connect(path)) as opened:
        tables = [name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            (f"{table}.{here}", f"{there}.{key}")
            for table in tables
            for _, place, target, here, _, *_ in opened.execute(f"PRAGMA foreign_key_list('{table}')")
            for there in tables
            if there.casefold() == target.casefold()
            for _, key, *_, number in opened.execute(f"PRAGMA table_info('{there}')")
            if number == place + 1
        }
