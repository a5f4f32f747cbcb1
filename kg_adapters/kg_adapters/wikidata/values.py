"""Dates with their precision, quantities with their units and coordinates, as people write them.

Wikidata's dates are whole days whatever is known of them, and say beside that what is known
(https://www.wikidata.org/wiki/Help:Dates). Years before the common era count from 0, which is 1 BCE.
"""

import re
from typing import Final

from kg_adapters.terms import XSD, XSD_STRING, BlankNode, Iri, Literal, Node

ANY_URI: Final = Iri(XSD + "anyURI")

DATE: Final = Iri(XSD + "date")
DECIMAL: Final = Iri(XSD + "decimal")
_DATE_TIME: Final = Iri(XSD + "dateTime")
_POINT: Final = Iri("http://www.opengis.net/ont/geosparql#wktLiteral")
_TIME: Final = re.compile(r"([+-]?)(\d{1,16})-(\d\d)-(\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z?")
_WKT: Final = re.compile(r"(?:<([^>]*)>\s*)?POINT\s*\(\s*(-?[\d.]+)\s+(-?[\d.]+)\s*\)", re.IGNORECASE)
DAY, _MONTH, _YEAR, _DECADE, _CENTURY, _MILLENNIUM = 11, 10, 9, 8, 7, 6


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
        return Literal(_period(year, precision))
    if year <= 0:
        rest = {_YEAR: "", _MONTH: f"-{month}"}.get(precision, f"-{month}-{day}")
        return Literal(f"{1 - year}{rest} BCE")
    text, kind = {
        _YEAR: (f"{year:04}", Iri(XSD + "gYear")),
        _MONTH: (f"{year:04}-{month}", Iri(XSD + "gYearMonth")),
        DAY: (f"{year:04}-{month}-{day}", DATE),
    }.get(precision, (f"{year:04}-{month}-{day} {clock}", XSD_STRING))
    return Literal(text, kind)


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
    count, era = (year, "") if year > 0 else (1 - year, " BCE")
    if precision == _DECADE:
        return f"{count // 10 * 10}s{era}"
    if precision in {_CENTURY, _MILLENNIUM}:
        years, name = (100, "century") if precision == _CENTURY else (1_000, "millennium")
        return f"{_ordinal((count - 1) // years + 1)} {name}{era}"
    return f"about {count:,} years {'BCE' if era else 'CE'}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
