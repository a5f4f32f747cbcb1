"""Dates with their precision, quantities with their units and coordinates, as people write them.

Wikidata's dates are whole days whatever is known of them, and say beside that what is known
(https://www.wikidata.org/wiki/Help:Dates). Their years are those of RDF here, in which year 0 is 1 BCE.
"""

import re
from typing import Final

from kg_adapters.dates import written_day
from kg_adapters.profile import EDTF
from kg_adapters.terms import XSD, BlankNode, Iri, Literal, Node

ANY_URI: Final = Iri(XSD + "anyURI")

DATE: Final = Iri(XSD + "date")
DECIMAL: Final = Iri(XSD + "decimal")
_DATE_TIME: Final = Iri(XSD + "dateTime")
_POINT: Final = Iri("http://www.opengis.net/ont/geosparql#wktLiteral")
_TIME: Final = re.compile(r"([+-]?)(\d{1,16})-(\d\d)-(\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z?")
_WKT: Final = re.compile(r"(?:<([^>]*)>\s*)?POINT\s*\(\s*(-?[\d.]+)\s+(-?[\d.]+)\s*\)", re.IGNORECASE)
DAY, _MONTH, _YEAR = 11, 10, 9
_PERIODS: Final = {8: (10, 0), 7: (100, 1), 6: (1_000, 1)}
"""How many years a decade, century and millennium have, and the last digits of the first of them."""
_FOUR_DIGITS: Final = 9_999


def date(value: str, precision: int) -> Literal | None:
    """Return a date as far as it is known, or None where it is no date.

    Args:
        value: A day, as `xsd:dateTime` has it.
        precision: How far it is known: 11 to the day, 10 to the month, 9 to the year, 8 to the decade, 7 to the
            century, 6 to the millennium, and each less to ten times as many years; more than 11 to the hour and below.
    """
    parts = _TIME.fullmatch(value)
    if parts is None:
        return None
    sign, digits, month, day, clock = parts.groups()
    year = -int(digits) if sign == "-" else int(digits)
    if precision < _YEAR:
        return Literal(_period(year, precision), EDTF)
    text, kind = {
        _YEAR: (written_day(year), Iri(XSD + "gYear")),
        _MONTH: (f"{written_day(year)}-{month}", Iri(XSD + "gYearMonth")),
        DAY: (f"{written_day(year)}-{month}-{day}", DATE),
    }.get(precision, (f"{written_day(year)}-{month}-{day}T{clock}:00Z", _DATE_TIME))
    return Literal(text, kind)


def year_of_json(value: str) -> str:
    """Return a date of Wikidata's JSON, where 1 BCE is the year -1, as its RDF has it, where it is the year 0."""
    parts = _TIME.fullmatch(value)
    if parts is None or parts[1] != "-":
        return value
    return f"{written_day(1 - int(parts[2]))}{value[parts.end(2) :]}"


def quantity(amount: str, unit: str | None) -> Literal:
    """Return an amount with the name of its unit, or as a number where it has none."""
    number = amount.removeprefix("+")
    return Literal(number, DECIMAL) if unit is None else Literal(f"{number} {unit}")


def plain(value: Literal) -> Literal:
    """Return a literal as people write it, as far as it shows: days without a time, coordinates with sides."""
    if value.datatype == _DATE_TIME and value.value.endswith("T00:00:00Z"):
        return date(value.value, DAY) or value
    if value.datatype == _POINT and (point := _WKT.fullmatch(value.value.strip())):
        globe, longitude, latitude = point.groups()
        north, east = ("S" if latitude.startswith("-") else "N"), ("W" if longitude.startswith("-") else "E")
        where = f"{latitude.removeprefix('-')}° {north}, {longitude.removeprefix('-')}° {east}"
        return Literal(where if globe is None else f"{where} (globe {globe.rpartition('/')[2]})")
    if value.datatype == DECIMAL:
        return Literal(value.value.removeprefix("+"), DECIMAL)
    return value


def link(node: Node) -> Literal:
    """Return what is no literal and no entity as one: the address of a page or file, or that a value is unknown."""
    # An unknown value is a blank node, or an address made up for it.
    if isinstance(node, BlankNode) or "/.well-known/genid/" in node.value:
        return Literal("unknown value")
    return Literal(node.value, ANY_URI)


def _period(year: int, precision: int) -> str:
    """Return a decade, century or millennium, or a number of years, as EDTF writes it."""
    if precision not in _PERIODS:
        return f"{'Y' if abs(year) > _FOUR_DIGITS else ''}{written_day(year)}~"
    years, begin = _PERIODS[precision]
    count = year if year > 0 else 1 - year
    least = max(1, (count - begin) // years * years + begin)
    most = (count - begin) // years * years + begin + years - 1
    first, last = (least, most) if year > 0 else (1 - most, 1 - least)
    return f"{written_day(first)}/{written_day(last)}"
