"""Whether a value stands in a relation to a given one, as `kg_adapters.algebra.Compares` says."""

import operator
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from kg_adapters.algebra import ComparedKind, Operator
from kg_adapters.errors import InvalidRequest
from kg_adapters.profile import ValueKind, kind_of
from kg_adapters.terms import Literal
from kg_adapters.value_order import order_of

Orders: TypeAlias = Callable[[float, float], bool]

ORDERS: Final[dict[Operator, Orders]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What the operators mean of numbers that order values."""

DATE_UNITS: Final = (13 * 32 * 86_400, 32 * 86_400, 86_400, 1)
"""What a year, a month, a day and a second make of what orders dates (`value_order.date_order`)."""

_PARTS: Final = re.compile(r"-?\d{4,}(-\d\d)?(-\d\d)?(T\d\d:\d\d:\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)


def compares(value: Literal, operator: Operator, given: Literal) -> bool:
    """Say whether a value stands in a relation to a given one.

    Raises:
        InvalidRequest: What is given is not what its datatype says, or cannot be compared like this.
    """
    kind = compared_kind_of(given, operator)
    if kind is None:
        return text_compares(value.value.lower(), operator, given.value.lower())
    order, other = order_of_kind(value, kind), order_of_kind(given, kind)
    if order is None or other is None:
        return False
    unit = 1 if kind == "number" else max(precision(value.value), precision(given.value))
    return ORDERS[operator](order // unit, other // unit) if kind == "date" else ORDERS[operator](order, other)


def compared_kind_of(given: Literal, operator: Operator) -> ComparedKind | None:
    """Return as what values are compared with a given one; None where they are compared as texts.

    Raises:
        InvalidRequest: It is not what its datatype says, or cannot be compared like this.
    """
    kind = compared_as(kind_of(given.datatype))
    if kind is None:
        return None
    if operator == "~":
        raise InvalidRequest(f"~ looks for a text in texts; {given.value} is a {kind}.")
    if order_of(given) is None:
        raise InvalidRequest(f"{given.value} is no {kind}.")
    return kind


def compared_as(kind: ValueKind) -> ComparedKind | None:
    """Return as what values of a kind are compared; None where it is as texts."""
    match kind:
        case "number" | "date":
            return kind
        case _:
            return None


def order_of_kind(value: Literal, kind: ComparedKind) -> float | None:
    """Return what orders a value among those of a kind; None where it is none of them."""
    return order_of(value) if kind_of(value.datatype) == kind else None


def text_compares(text: str, operator: Operator, given: str) -> bool:
    """Say whether a text, in lower case like the one that is given, stands in a relation to it."""
    if operator == "~":
        return given in text
    return ORDERS[operator]((text > given) - (text < given), 0)


def precision(text: str) -> int:
    """Return the unit of `DATE_UNITS` that a date is told to: that of a year, a month, a day or a second."""
    found = _PARTS.fullmatch(text)
    return DATE_UNITS[-1 if found is None else sum(part is not None for part in found.groups())]
