"""What orders values of one kind: numbers by size, dates and years by time."""

import math
import re
from typing import Final

from kg_adapters.profile import ValueKind, is_unit, kind_of
from kg_adapters.terms import Iri, Literal

MAX_COMPARED: Final = 32
"""The most bytes that a value may have to be compared; numbers and dates are shorter."""

_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DATE: Final = re.compile(
    r"(?P<sign>-?)(?P<year>\d{4,})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?"
    r"(?:T(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)


def value_kind(value: Literal) -> ValueKind:
    """Return what kind of value this is: that of its datatype, and `number` for a quantity (`profile.is_unit`)."""
    return "number" if unit_of(value) is not None else kind_of(value.datatype)


def unit_of(value: Literal) -> Iri | None:
    """Return the unit of a quantity; None for any other value."""
    return value.datatype if is_unit(value.datatype) and order_of(value) is not None else None


def order_of(value: Literal) -> float | None:
    """Return a number that orders values of the same kind, and quantities of the same unit; None where there is none.

    Zones of time and parts of a second do not count.
    """
    if len(value.value.encode()) > MAX_COMPARED:
        return None
    match kind_of(value.datatype):
        case "number":
            return number_order(value.value)
        case "date":
            return date_order(value.value)
        case _:
            return number_order(value.value) if is_unit(value.datatype) else None


def number_order(text: str) -> float | None:
    """Return a number as written in XML Schema; None where it is none, or not finite."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def date_order(text: str) -> float | None:
    """Return what orders a date, year, month or point in time among others; None where it is none of these."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year = int(found["year"]) * (-1 if found["sign"] else 1)
    month, day = (int(found[part] or 0) for part in ("month", "day"))
    seconds = sum(int(found[part] or 0) * size for part, size in (("hour", 3600), ("minute", 60), ("second", 1)))
    return float(((year * 13 + month) * 32 + day) * 86_400 + seconds)
