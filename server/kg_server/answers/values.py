"""Values as people write them, `1997-04-05`, `2,544`, `true`, `52.52, 13.405`, and which value such a text may mean."""

import re
from decimal import Decimal, InvalidOperation
from typing import Final
from urllib.parse import unquote

from kg_adapters.dates import plain_date
from kg_adapters.profile import EDTF, kind_of
from kg_adapters.tables.iris import UNIT
from kg_adapters.terms import XSD, Iri, Literal
from kg_adapters.values import order_of
from kg_boundary.shown import shown

_MOST_DIGITS: Final = 30
_MOST_WRITTEN: Final = 250
"""How many characters a number may have that is written without an exponent."""
_NUMBER: Final = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_BOOLEANS: Final = {"true": "true", "1": "true", "false": "false", "0": "false"}
_ZONE: Final = r"(?:Z|[-+]\d\d:\d\d)?"
_TIMES: Final = {
    XSD + "date": re.compile(rf"-?\d{{4,12}}-\d\d-\d\d{_ZONE}"),
    XSD + "gYearMonth": re.compile(rf"-?\d{{4,12}}-\d\d{_ZONE}"),
    XSD + "dateTime": re.compile(rf"-?\d{{4,12}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{{1,9}})?{_ZONE}"),
    XSD + "time": re.compile(rf"\d\d:\d\d:\d\d(?:\.\d{{1,9}})?{_ZONE}"),
    XSD + "gYear": re.compile(rf"-?\d{{4,12}}{_ZONE}"),
    EDTF.value: re.compile(r"-?\d{4,12}/-?\d{4,12}|Y?-?\d{4,12}~"),
}
_POINT: Final = re.compile(r"POINT ?\((-?\d{1,3}(?:\.\d{1,18})?) (-?\d{1,3}(?:\.\d{1,18})?)\)", re.IGNORECASE)
_UNITS: Final = re.compile(r"http://(?:dbpedia\.org/datatype/|qudt\.org/vocab/unit/)([A-Za-z][A-Za-z0-9_-]{0,39})")
"""Datatypes that are units, and how the unit is called."""
_LONGEST_UNIT: Final = 60
_UNIT_ENTITIES: Final = re.compile(r"http://www\.wikidata\.org/entity/(Q[1-9]\d{0,11})")
"""Datatypes that are units of Wikidata, which have labels."""
_WORDS: Final = {
    "Q712226": "square kilometre",
    "Q25343": "square metre",
    "Q35852": "hectare",
    "Q25267": "degree Celsius",
    "M": "m",
    "KiloM": "km",
    "CentiM": "cm",
    "MilliM": "mm",
    "KiloGM": "kg",
    "GM": "g",
    "SEC": "s",
    "MIN": "min",
    "HR": "h",
    "DAY": "days",
    "YR": "years",
}
"""What frequent ones are called where the graph does not say it."""
_YEARS: Final = range(1000, 2101)
"""What may be a year where nothing says that it is a quantity: nobody writes one with a comma."""
_HIDDEN: Final = {
    XSD + "dateTime": re.compile(r"T00:00:00(?:\.0+)?(?:Z|\+00:00)?\Z"),
    XSD + "gYear": re.compile(r"(?:\A|(?<=\A-))0+(?=[0-9])"),
}
"""What is left out: the hour of midnight, and the zeros before a year."""


def unit_of(literal: Literal) -> Iri | None:
    """Return the entity that is the unit of a number, or None where it has none."""
    return None if _UNIT_ENTITIES.fullmatch(literal.datatype.value) is None else literal.datatype


def unit_name(unit: Iri) -> str | None:
    """Return what a unit is called where the graph does not say it; None for one that is not known to be a unit."""
    if unit.value.startswith(UNIT) and len(unit.value) <= _LONGEST_UNIT:
        return shown(unquote(unit.value.removeprefix(UNIT)))
    known = _UNITS.fullmatch(unit.value) or _UNIT_ENTITIES.fullmatch(unit.value)
    return None if known is None else _WORDS.get(known[1], known[1])


def plain_value(literal: Literal, *, quantity: bool = False, unit: str | None = None) -> str | None:
    """Return a value as people write it; None for a text, and for what its datatype forbids.

    A point comes as latitude and longitude, a number of a unit with it. A whole number that may be a year has no
    comma, unless it is known to be a quantity.

    Args:
        literal: The value.
        quantity: Whether it is known to be a quantity.
        unit: What its unit is called, where that is an entity with a name.
    """
    match kind_of(literal.datatype):
        case "number":
            number = _number(literal)
            return None if number is None else _written(number, quantity=quantity)
        case "boolean":
            return _BOOLEANS.get(literal.value)
        case "coordinates":
            point = _POINT.fullmatch(literal.value)
            return None if point is None else f"{point[2]}, {point[1]}"
        case _:
            pass
    known = unit or unit_name(literal.datatype)
    if known is not None:
        number = _number(literal)
        return None if number is None else f"{number:,f} {known}"
    pattern = _TIMES.get(literal.datatype.value)
    if pattern is None or (pattern.fullmatch(literal.value) is None and order_of(literal) is None):
        return None
    hidden = _HIDDEN.get(literal.datatype.value)
    return plain_date(literal.value if hidden is None else hidden.sub("", literal.value))


def may_mean(text: str, literal: Literal) -> bool:
    """Say whether a text that stands without quotes is this value: as it is, as people write it, or the same number."""
    if text in {literal.value, plain_value(literal), plain_value(literal, quantity=True)}:
        return True
    if kind_of(literal.datatype) != "number" or _NUMBER.fullmatch(text) is None:
        return False
    return Decimal(text.replace(",", "")) == _number(literal)


def value_of(text: str) -> Literal | None:
    """Return the value that a text without quotes is by its form alone: a number, a date or a truth value, or None."""
    if _NUMBER.fullmatch(text) is not None and len(text) <= _MOST_DIGITS:
        return Literal(text.replace(",", "").removeprefix("+"), Iri(XSD + ("decimal" if "." in text else "integer")))
    if text in {"true", "false"}:
        return Literal(text, Iri(XSD + "boolean"))
    return next((Literal(text, Iri(kind)) for kind, form in _TIMES.items() if form.fullmatch(text) is not None), None)


def _written(number: Decimal, *, quantity: bool) -> str:
    # A tenth of a year is no year.
    may_be_year = not quantity and number in _YEARS and number.as_tuple().exponent == 0
    return f"{number:f}" if may_be_year else f"{number:,f}"


def _number(literal: Literal) -> Decimal | None:
    try:
        number = Decimal(literal.value)
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    # What is written out would be longer than any page: 1E999999.
    size = max(len(number.as_tuple().digits), abs(number.adjusted()))
    is_plain = len(literal.value) <= _MOST_WRITTEN and "e" not in literal.value.lower()
    return number if is_plain or size <= _MOST_DIGITS else None
