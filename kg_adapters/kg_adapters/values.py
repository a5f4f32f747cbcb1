"""How values are ordered and compared: numbers by size, dates and years by time, everything else as text."""

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kg_adapters.dates import date_order, period_of
from kg_adapters.errors import InvalidRequest
from kg_adapters.profile import ValueKind, is_unit, kind_of
from kg_adapters.terms import XSD, Iri, Literal, literal_key

if TYPE_CHECKING:
    from kg_adapters.algebra import ComparedKind, DatePart, Operator

# Here and below no run of digits can be read in two ways: texts of outsiders may have millions.
_NUMBER: Final = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|INF)", re.ASCII)


def value_kind(value: Literal) -> ValueKind:
    """Return what kind of value this is: that of its datatype, and `number` for a quantity (`profile.is_unit`)."""
    return "number" if unit_of(value) is not None else kind_of(value.datatype)


def unit_of(value: Literal) -> Iri | None:
    """Return the unit of a quantity; None for any other value."""
    return value.datatype if is_unit(value.datatype) and order_of(value) is not None else None


def order_of(value: Literal) -> float | None:
    """Return a number that orders values of the same kind, and quantities of the same unit; None where there is none.

    A number beyond 1.8e308 is infinite.
    """
    match kind_of(value.datatype):
        case "number":
            return number_order(value.value)
        case "date":
            return date_order(value.value)
        case _:
            return number_order(value.value) if is_unit(value.datatype) else None


def number_order(text: str) -> float | None:
    """Return a number of any length, as written in XML Schema, as a double; None where it is none."""
    return None if _NUMBER.fullmatch(text) is None else float(text)


def exact_number(text: str) -> Decimal:
    """Return a number, as far as its exponent has less than 18 digits, by all its digits; else as a double."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal(float(text))


PARTS_BEHIND_YEAR: Final[dict["DatePart", int]] = {"year": 0, "month": 1, "day": 2}
"""How many parts of a date stand behind its year, up to and with the one that is named."""
_DATE_PARTS: Final = re.compile(r"(-?)([0-9]+)((?:-[0-9]{2}(?!:)){0,2})")
_DATE_TYPES: Final = ("gYear", "gYearMonth", "date")


def date_up_to(text: str, part: "DatePart") -> Literal | None:
    """Return a date up to its year, month or day, or as much of that as it has; None where it is no date."""
    found = None if date_order(text) is None else _DATE_PARTS.match(text)
    if found is None:
        return None
    behind = found[3].split("-")[1 : PARTS_BEHIND_YEAR[part] + 1]
    return Literal("-".join((f"{found[1]}{found[2]:0>4}", *behind)), Iri(XSD + _DATE_TYPES[len(behind)]))


def extreme_of(values: Iterable[Literal], *, lowest: bool, exact: bool) -> Literal:
    """Return the least or greatest of values that are the same in order, the first by `literal_key` of equal ones.

    Args:
        values: The values, of which there is at least one.
        lowest: Whether the least is wanted.
        exact: Whether they are numbers, of which those that are the same as doubles may differ in the digits beyond.
    """
    if not exact:
        return min(values, key=literal_key)
    sign = 1 if lowest else -1
    return min(values, key=lambda value: (sign * exact_number(value.value), literal_key(value)))


_MOST_INTEGER: Final = 2**63 - 1
_MOST_DECIMAL: Final = 2**127 - 1
_DECIMAL_PLACES: Final = 18
_SURELY_HELD: Final = re.compile(r"[+-]?(?:[0-9]{1,18}|[0-9]{1,18}[.][0-9]{0,18}|[.][0-9]{1,18})")
_PLAIN: Final = re.compile(r"[+-]?0*+(?P<whole>[0-9]{0,21})(?:[.](?P<places>(?:[0-9]*[1-9])?)0*)?")
_SHORT_YEAR: Final = re.compile(r"(-?)([0-9]{1,3})(?![0-9])")
_DOUBLE: Final = XSD + "double"


def held_form(text: str, datatype: str) -> tuple[str, str]:
    """Return the text and datatype by which Oxigraph computes with a value; the same where it does as it is written.

    A number beyond 64 bits (integers) or 128 bits with 18 decimal places (decimals) is a double, and a year has four
    digits at least.
    """
    match _kind_named(datatype):
        case "number" if not (_SURELY_HELD.fullmatch(text) or _is_held(text, datatype)):
            number = number_order(text)
            return (text, datatype) if number is None else (repr(number).upper(), _DOUBLE)
        case "date" if (year := _SHORT_YEAR.match(text)) is not None and date_order(text) is not None:
            return f"{year[1]}{year[2]:0>4}{text[year.end() :]}", datatype
        case _:
            return text, datatype


@lru_cache(maxsize=1_000)
def _kind_named(datatype: str) -> ValueKind:
    return kind_of(Iri(datatype))


def _is_held(text: str, datatype: str) -> bool:
    if datatype in {_DOUBLE, f"{XSD}float"}:
        return True
    found = _PLAIN.fullmatch(text)
    if found is None:
        return False
    if datatype != f"{XSD}decimal":
        return int(found["whole"] or 0) <= _MOST_INTEGER
    places = found["places"] or ""
    return len(places) <= _DECIMAL_PLACES and int(f"{found['whole']}{places:0<{_DECIMAL_PLACES}}") <= _MOST_DECIMAL


SIGNS: Final[dict["Operator", tuple[int, ...]]] = {
    "=": (0,),
    "!=": (-1, 1),
    "<": (-1,),
    "<=": (-1, 0),
    ">": (1,),
    ">=": (0, 1),
    "~": (),
}
"""Where an operator is true: -1 stands for less than the given value, 0 for equal to it, 1 for more."""


def compares(value: Literal, operator: "Operator", given: Literal, *, possibly: bool = False) -> bool:
    """Say whether a value stands in a relation to a given one, or `possibly` does: see `algebra.Compares`.

    Raises:
        InvalidRequest: What is given is not what its datatype says, or cannot be compared like this.
    """
    kind = compared_kind_of(given, operator)
    if kind is None:
        return text_compares(value.value.lower(), operator, given.value.lower())
    unit = unit_of(given)
    order, other = order_of_kind(value, kind, unit), order_of_kind(given, kind, unit)
    if order is None or other is None:
        return False
    if kind == "number":
        return holds(order, operator, other)
    period, signs = period_of(given.value), SIGNS[operator]
    vague = period.vague_for(signs, possibly=possibly)
    return vague[order] if order in vague else period.sign(order) in signs


def compared_kind_of(given: Literal, operator: "Operator") -> "ComparedKind | None":
    """Return as what values are compared with a given one; None where they are compared as texts.

    Raises:
        InvalidRequest: It is not what its datatype says, or cannot be compared like this.
    """
    kind = compared_as(value_kind(given))
    if kind is None:
        return None
    if operator == "~":
        raise InvalidRequest(f"~ looks for a text in texts; {given.value} is a {kind}.")
    if order_of(given) is None:
        raise InvalidRequest(f"{given.value} is not a {kind}.")
    return kind


def compared_as(kind: ValueKind) -> "ComparedKind | None":
    """Return as what values of a kind are compared; None where it is as texts."""
    match kind:
        case "number" | "date":
            return kind
        case _:
            return None


def order_of_kind(value: Literal, kind: "ComparedKind", unit: Iri | None = None) -> float | None:
    """Return what orders a value among those of a kind, or of a unit; None where it is none of them."""
    fits = kind_of(value.datatype) == kind if unit is None else value.datatype == unit
    return order_of(value) if fits else None


def text_compares(text: str, operator: "Operator", given: str) -> bool:
    """Say whether a text, in lower case like the one that is given, stands in a relation to it."""
    if operator == "~":
        return given in text
    return (text > given) - (text < given) in SIGNS[operator]


def holds(number: float, operator: "Operator", given: float) -> bool:
    """Say whether a number stands in a relation to a given one."""
    return (number > given) - (number < given) in SIGNS[operator]
