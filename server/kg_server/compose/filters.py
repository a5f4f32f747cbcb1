"""Conditions of `Where` as conditions on sets."""

import re
from typing import Final

from kg_adapters.algebra import (
    Compares,
    Has,
    Hop,
    Kept,
    Linked,
    Meets,
    Minus,
    Numbers,
    Operator,
    Path,
    SetExpression,
    Step,
)
from kg_adapters.comparing import compared_as
from kg_adapters.labels import Vocabulary
from kg_adapters.profile import kind_of
from kg_adapters.terms import XSD, XSD_STRING, Iri, Literal
from kg_adapters.value_order import date_order
from kg_boundary.shown import in_quotes
from kg_server.compose.relations import Way
from kg_server.names import MAX_LABEL

ORDERING: Final = frozenset[Operator](("<", "<=", ">", ">="))
_NUMBER: Final = re.compile(r"([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(\D.*)?")
_DATE: Final = re.compile(r"-?\d{4,}(-\d\d)?(-\d\d)?(T\d\d:\d\d:\d\dZ?)?")
_DATE_TYPES: Final = ("gYear", "gYearMonth", "date", "dateTime")


class Unfit(ValueError):
    """What a value is compared with does not fit; the message says why, and what would."""


def kept_by_value(of: SetExpression, way: Way, operator: Operator, text: str) -> SetExpression:
    """Return the members of a set whose values at the end of a way compare with a written one.

    Raises:
        Unfit: It cannot be compared with what is there.
    """
    return _compared(of, way, operator, _given(way, operator, text))


def kept_by_literal(of: SetExpression, way: Way, operator: Operator, given: Literal) -> SetExpression:
    """Return the members of a set whose values at the end of a way, or their number, compare with a computed one.

    Raises:
        Unfit: It cannot be compared with what is there.
    """
    kind, shown = compared_as(kind_of(given.datatype)), in_quotes(given.value, MAX_LABEL)
    if not way.to_values:
        if kind != "number" or not float(given.value).is_integer():
            raise Unfit(f"{way.name} leads to nodes, not to values: compare it with a whole number, not with {shown}.")
        return Kept(of, Numbers(way.path, operator, int(float(given.value))))
    if way.kind is not None and kind != way.kind:
        raise Unfit(f"{way.name} has {way.kind}s, and {shown} is none.")
    if kind is None and operator in ORDERING:
        raise Unfit(f"{shown} is a text, which {operator} cannot compare. Use =, != or ~, which looks inside texts.")
    if kind is not None and operator == "~":
        raise Unfit(f"~ looks for a text in texts, and {shown} is a {kind}.")
    return _compared(of, way, operator, given)


def _compared(of: SetExpression, way: Way, operator: Operator, given: Literal) -> SetExpression:
    if operator == "!=":
        return Minus((Kept(of, Has(way.path)), Kept(of, Compares(way.path, "=", given))))
    return Kept(of, Compares(way.path, operator, given))


def kept_by_members(of: SetExpression, way: Way, operator: Operator, to: SetExpression) -> SetExpression:
    """Return the members of a set that a way leads from to a member of another, or, with `!=`, to others only.

    Raises:
        Unfit: Nodes have no order.
    """
    if operator not in {"=", "!="}:
        raise Unfit(f"{way.name} leads to nodes, which {operator} cannot compare. Use = or !=, or a number of nodes.")
    linked = Kept(of, Linked(way.path, to))
    return linked if operator == "=" else Minus((Kept(of, Has(way.path)), linked))


def kept_by_number(of: SetExpression, way: Way, operator: Operator, text: str) -> SetExpression | None:
    """Return the members of a set from which a way leads to so many nodes; None where no whole number is written."""
    if operator == "~" or not text.isdecimal():
        return None
    return Kept(of, Numbers(way.path, operator, int(text)))


def kept_by_name(of: SetExpression, way: Way, text: str, vocabulary: Vocabulary) -> SetExpression:
    """Return the members of a set that lead to nodes whose label contains a text."""
    labels = Hop(tuple(map(Step, vocabulary.labels)))
    return Kept(of, Compares(Path((*way.path.hops, labels)), "~", Literal(text, XSD_STRING)))


def kept_by_meeting(of: SetExpression, way: Way, other: Way, operator: Operator) -> SetExpression:
    """Return the members of a set from which two ways lead to the same.

    Raises:
        Unfit: The operator is neither `=` nor `!=`.
    """
    if operator not in {"=", "!="}:
        raise Unfit(f"Two relations compare with = and !=, not with {operator}.")
    met = Kept(of, Meets(way.path, other.path))
    if operator == "=":
        return met
    return Minus((Kept(Kept(of, Has(way.path)), Has(other.path)), met))


def _given(way: Way, operator: Operator, text: str) -> Literal:
    kind = way.kind
    if kind is not None and operator == "~":
        raise Unfit(f"~ looks for a text in texts, and {way.name} has {kind}s. Use =, !=, <, <=, > or >=.")
    if kind == "number":
        return _number(way, text)
    if kind == "date":
        return _date(way, text)
    if way.values is not None and set(way.values.kinds) & {"number", "date"}:
        return _date_literal(text) or _number_literal(text) or Literal(text)
    if operator in ORDERING:
        raise Unfit(f"{way.name} has texts, which {operator} cannot compare. Use =, != or ~, which looks inside them.")
    return Literal(text)


def _number(way: Way, text: str) -> Literal:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or not any(mark.isdigit() for mark in found[1]):
        example = way.values.greatest.value if way.values is not None and way.values.greatest is not None else "1000"
        raise Unfit(f"{way.name} has numbers, and {in_quotes(text, MAX_LABEL)} is none. Write one such as {example}.")
    unit = None if way.values is None else way.values.unit
    if found[2] is not None and found[2].strip().lower() != (unit or "").lower():
        there = f"is told in {unit}" if unit else "has numbers without a unit"
        raise Unfit(f"{way.name} {there}, not in {in_quotes(found[2].strip(), MAX_LABEL)}. Write the number alone.")
    literal = _number_literal(found[1])
    assert literal is not None  # noqa: S101 - it has digits
    return literal


def _date(way: Way, text: str) -> Literal:
    literal = _date_literal(text.strip())
    if literal is None:
        raise Unfit(
            f"{way.name} has dates, and {in_quotes(text, MAX_LABEL)} is none. Write 1977, 1977-05 or 1977-05-01."
        )
    return literal


def _number_literal(text: str) -> Literal | None:
    plain = text.replace(",", "").removeprefix("+")
    try:
        float(plain)
    except ValueError:
        return None
    return Literal(plain, Iri(XSD + ("double" if "e" in plain.lower() else "decimal" if "." in plain else "integer")))


def _date_literal(text: str) -> Literal | None:
    found = _DATE.fullmatch(text)
    if found is None or date_order(text) is None:
        return None
    return Literal(text, Iri(XSD + _DATE_TYPES[sum(part is not None for part in found.groups())]))
