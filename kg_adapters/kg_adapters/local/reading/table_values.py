"""What kind of values a column of a table holds, guessed from all of them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Final

from kg_adapters.terms import XSD, XSD_STRING

MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
"""What stands in lower case for no value among numbers, dates and truth values; in texts only nothing does."""
_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})")
_DECIMAL: Final = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})(?:\.\d{1,18})?")
_DOUBLE: Final = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?")
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_MONTH: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ]([01]\d|2[0-3]):([0-5]\d)(:[0-5]\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?"
)
_YEAR: Final = re.compile(r"\d{4}")
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"{}|^`\\]+")
_FORMS: Final = {"integer": _INTEGER, "decimal": _DECIMAL, "gYearMonth": _MONTH, "anyURI": _ADDRESS, "gYear": _YEAR}
_SAID_IN_YEARS: Final = re.compile(
    r"(?:^|[_\s-])(?:year|yr|since)$|^(?:founded|established|born|died|built|opened)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of values.

    Args:
        datatype: Its IRI.
        name: What people call it.
    """

    datatype: str
    name: str


TEXT: Final = Kind(XSD_STRING.value, "text")
YEAR: Final = Kind(XSD + "gYear", "year")
_KINDS: Final = (
    Kind(XSD + "boolean", "true or false"),
    Kind(XSD + "integer", "whole number"),
    Kind(XSD + "decimal", "number"),
    Kind(XSD + "double", "number"),
    Kind(XSD + "date", "date"),
    Kind(XSD + "gYearMonth", "month"),
    Kind(XSD + "dateTime", "date and time"),
    Kind(XSD + "anyURI", "address"),
)


def kind_of(header: str, values: Iterable[str]) -> Kind:
    """Return the kind that all values of a column have, blank ones left out; text where they have none in common."""
    said = {value for value in set(values) if value.lower() not in MISSING}
    if not said:
        return TEXT
    if _SAID_IN_YEARS.search(header) is not None and all(_YEAR.fullmatch(value) for value in said):
        return YEAR
    return next((kind for kind in _KINDS if all(written(value, kind) is not None for value in said)), TEXT)


def written(value: str, kind: Kind) -> str | None:
    """Return a value as its datatype writes it, or None where it is of another kind."""
    match kind.datatype.removeprefix(XSD):
        case "boolean":
            return value.lower() if value.lower() in {"true", "false"} else None
        case "double":
            return value if _DOUBLE.fullmatch(value) is not None and not _has_zero_first(value) else None
        case "date":
            return value if _is_date(value) else None
        case "dateTime":
            return _moment(value)
        case name:
            form = _FORMS.get(name)
            return value if form is None or form.fullmatch(value) is not None else None


def is_address(value: str) -> bool:
    """Say whether a value is an IRI of the web."""
    return _ADDRESS.fullmatch(value) is not None


def _has_zero_first(value: str) -> bool:
    """Say whether it is a code such as 007."""
    return re.match(r"[+-]?0\d", value) is not None


def _is_date(value: str) -> bool:
    parts = _DATE.fullmatch(value)
    if parts is None:
        return False
    try:
        date(int(parts[1]), int(parts[2]), int(parts[3]))
    except ValueError:
        return False
    return True


def _moment(value: str) -> str | None:
    parts = _MOMENT.fullmatch(value)
    if parts is None or not _is_date(parts[1]):
        return None
    return f"{parts[1]}T{parts[2]}:{parts[3]}{parts[4] or ':00'}{parts[5] or ''}"
