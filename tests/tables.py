"""Likenesses of tables that people have, flights of New York and countries of the world, and how to read them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kg_adapters.files.reader import SourceReader
from kg_adapters.files.recognition import parts_of
from kg_adapters.files.rows import line_of
from kg_adapters.files.sources import gather_sources
from kg_adapters.open_options import ReadingLimits
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.report import TableReport


def written(folder: Path, tables: Mapping[str, str]) -> list[Path]:
    """Write files, by their names, and return their paths."""
    for name, content in tables.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in tables]


class TablesRead:
    """Tables that were read together, without a store.

    Attributes:
        statements: What they say, as lines without their end.
        problems: What could not be read.
        reports: What became of each table, by its name.
        lines: The same for people, without the folder.
    """

    def __init__(self, folder: Path, tables: Mapping[str, str], options: TableOptions | None = None) -> None:
        reader = SourceReader(skip_errors=True, tables=options)
        sources = gather_sources(written(folder, tables)).files
        parts = [part for source in sources for part in parts_of(source, ReadingLimits())]
        reader.plan_tables(parts)
        self.statements = [_short(line_of(row)) for part in parts for rows in reader.read(part) for row in rows]
        self.problems = [problem.removeprefix(f"{folder}/") for problem in reader.problems]
        self.reports: dict[str, TableReport] = {report.table: report for report in reader.tables}
        self.lines = [line.removeprefix(f"{folder}/") for report in reader.tables for line in report.lines()]

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
    """Return five tables like those of nycflights13: a fifth of the planes and some airports have no row."""
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
            *(200 + number, hours[number * 7 % len(hours)][2], moments[number * 7 % len(hours)]),
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
