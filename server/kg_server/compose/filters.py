"""Conditions on values, and operands that are given."""

import re
from collections.abc import Sequence
from math import isfinite
from typing import Final
from unicodedata import decimal

from kg_adapters.algebra import (
    ComparedKind,
    Compares,
    Has,
    Hop,
    HopPath,
    Kept,
    Linked,
    Measure,
    Meets,
    Minus,
    Numbers,
    Operator,
    Outranks,
    SetExpression,
    Step,
    ValueOf,
    holds_values,
)
from kg_adapters.errors import InvalidRequest
from kg_adapters.labels import Vocabulary
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Aggregated, Computed, Listed, SetRequest, Witness
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import XSD, XSD_STRING, Iri, Literal
from kg_adapters.values import compared_as, order_of, value_kind
from kg_adapters.written_dates import written_date
from kg_boundary.shown import in_quotes
from kg_server.compose.naming import count_of
from kg_server.compose.routes import AGGREGATES, Way
from kg_server.compose.syntax import Function as ComposeFunction
from kg_server.names import MAX_LABEL

ORDERING: Final = frozenset[Operator](("<", "<=", ">", ">="))
_NUMBER: Final = re.compile(
    r"(?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?(?:[eE][-+]?\d+)?)(?P<unit>(?:\s*[^-+\d\s,.].*)?)",
    re.ASCII,
)
_MORE: Final = re.compile(r"[<>=~]|\b(?:and|or)\b", re.IGNORECASE)
_DIGITS_OF_YEAR: Final = 4
_MOST_NODES: Final = 10**18


COUNTED: Final = "How many there are is asked by Count[…], as in Count[capital] = 1."


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
    kind, order, shown = compared_as(value_kind(given)), order_of(given), in_quotes(given.value, MAX_LABEL)
    if kind is not None and order is None:
        raise Unfit(f"{shown} is not a {kind} that values can be compared with.")
    if not way.to_values:
        raise Unfit(f"{way.name} leads to nodes, which do not compare with {shown}. {COUNTED}")
    if way.kind is not None and kind != way.kind:
        raise Unfit(f"{way.name} has {way.kind}s, and {shown} is not a {way.kind}.")
    if kind is None and operator in ORDERING:
        raise Unfit(f"{shown} is a text, which {operator} cannot compare. Use =, != or ~, which looks inside texts.")
    if kind is not None and operator == "~":
        raise Unfit(f"~ looks for a text in texts, and {shown} is a {kind}.")
    return _compared(of, way, operator, given)


def _compared(of: SetExpression, way: Way, operator: Operator, given: Literal) -> SetExpression:
    if operator == "!=":
        return Minus((Kept(of, Has(way.path)), Kept(of, Compares(way.path, "=", given, possibly=True))))
    return Kept(of, Compares(way.path, operator, given))


def kept_by_members(of: SetExpression, way: Way, operator: Operator, to: SetExpression) -> SetExpression:
    """Return the members of a set that a way leads from to a member of another, or, with `!=`, to others only.

    Raises:
        Unfit: Nodes have no order, or the way leads to values and the set has nodes, or the other way round.
    """
    if holds_values(to) and not way.to_values:
        raise Unfit(f"{way.name} leads to nodes, and this gives values: compare it with nodes. {COUNTED}")
    if not holds_values(to) and not way.to_nodes:
        raise Unfit(f"{way.name} has values, and this gives nodes: compare it with a value, or with Feature[…].")
    if operator not in {"=", "!="}:
        raise Unfit(f"{way.name} leads to nodes, which {operator} cannot compare. Use = or !=. {COUNTED}")
    linked = Kept(of, Linked(way.path, to))
    return linked if operator == "=" else Minus((Kept(of, Has(way.path)), linked))


def kept_by_count(of: SetExpression, way: Way, operator: Operator, given: Literal) -> SetExpression:
    """Return the members of a set from which a way leads to so many nodes or values.

    Raises:
        Unfit: It is no whole number.
    """
    number = order_of(given)
    if number is None or not number.is_integer():
        raise Unfit(f"How many {way.name} leads to is a whole number, not {given.value}.")
    # No node has so many neighbours, so that a larger number says the same; engines compute with 64 bits.
    return Kept(of, Numbers(way.path, operator, int(max(-_MOST_NODES, min(_MOST_NODES, number)))))


def kept_by_name(of: SetExpression, way: Way, text: str, vocabulary: Vocabulary) -> SetExpression:
    """Return the members of a set that lead to nodes whose label contains a text."""
    labels = Hop(tuple(map(Step, vocabulary.labels)))
    return Kept(of, Compares(HopPath((*way.path.hops, labels)), "~", Literal(text, XSD_STRING)))


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


def kept_by_order(of: SetExpression, way: Way, other: Way, operator: Operator) -> SetExpression:
    """Return the members of a set whose values at the ends of two ways, numbers or dates, compare.

    Raises:
        Unfit: They are of different kinds or units.
    """
    if way.kind is None or way.kind != other.kind or way.unit != other.unit:
        raise Unfit(f"{way.name} and {other.name} do not compare: both need numbers of one unit, or dates.")
    one, two = (ValueOf(each.path, way.kind, way.unit) for each in (way, other))
    if operator != "!=":
        return Kept(of, Outranks(one, two, operator))
    return Minus((Kept(Kept(of, Has(way.path)), Has(other.path)), Kept(of, Outranks(one, two, "="))))


def written_number(text: str) -> Literal | None:
    """Return the number that a text is, or None; in the digits of any script, with commas between thousands."""
    return _number_in(_plain_digits(text))


def counted_as(text: str) -> Literal:
    """Return the number that a text is, with which `Count[…]` compares.

    Raises:
        Unfit: It is not one.
    """
    if (number := written_number(text)) is None:
        raise Unfit("Count[…] compares with a whole number, as in Count[capital] = 0.")
    return number


def _given(way: Way, operator: Operator, written: str) -> Literal:
    kind, text = way.kind, _plain_digits(written)
    kinds = frozenset[str]() if way.values is None else frozenset(way.values.kinds)
    if "text" in kinds and kind is not None and (operator == "~" or not _fits(kind, text)):
        # A column may hold both.
        return _text(way, operator, written)
    if kind is not None and operator == "~":
        raise Unfit(f"~ looks for a text in texts, and {way.name} has {kind}s. Use =, !=, <, <=, > or >=.")
    if kind == "number":
        return _number(way, text)
    if kind == "date":
        return _date(way, text)
    if operator != "~" and (not kinds or kinds & {"number", "date"}):
        number = _number_in(text)
        years = number is None or len(text) == _DIGITS_OF_YEAR
        return (written_date(text) if years else None) or number or _text(way, operator, written)
    return _text(way, operator, written)


def _fits(kind: ComparedKind, text: str) -> bool:
    """Return whether a text is a number, with a unit or without, or a date."""
    return (_NUMBER.fullmatch(text) if kind == "number" else written_date(text, expected=True)) is not None


def _text(way: Way, operator: Operator, text: str) -> Literal:
    if operator in ORDERING:
        raise Unfit(f"{way.name} has texts, which {operator} cannot compare. Use =, != or ~, which looks inside them.")
    return Literal(text)


def _number(way: Way, text: str) -> Literal:
    found = _NUMBER.fullmatch(text)
    if found is None:
        example = way.values.greatest.value if way.values is not None and way.values.greatest is not None else "1000"
        raise Unfit(
            f"{way.name} has numbers, and {in_quotes(text, MAX_LABEL)} is not a number. Write one such as {example}."
        )
    unit, written = None if way.values is None else way.values.unit, found["unit"].strip()
    if _MORE.search(written):
        raise Unfit(f"{in_quotes(text, MAX_LABEL)} is not just a number. Separate conditions with commas.")
    if written and written.lower() != (unit or "").lower():
        there = f"is given in {in_quotes(unit, MAX_LABEL)}" if unit else "has numbers without a unit"
        raise Unfit(f"{way.name} {there}, not in {in_quotes(written, MAX_LABEL)}. Write the number without a unit.")
    literal = _number_literal(found["number"], way.unit)
    if literal is None:
        raise Unfit(f"{in_quotes(text, MAX_LABEL)} is more than can be compared with: 1.8e308 at most.")
    return literal


def _date(way: Way, text: str) -> Literal:
    literal = written_date(text, expected=True)
    if literal is None:
        raise Unfit(
            f"{way.name} has dates, and {in_quotes(text, MAX_LABEL)} is not a date. Write 1977, 1977-05, 1977-05-01, "
            "1977-05-01T09:30:00+02:00 or 44 BCE."
        )
    return literal


def _number_in(text: str) -> Literal | None:
    found = _NUMBER.fullmatch(text)
    return None if found is None or found["unit"] else _number_literal(found["number"])


def _number_literal(text: str, unit: Iri | None = None) -> Literal | None:
    plain = text.replace(",", "").removeprefix("+")
    datatype = "double" if "e" in plain.lower() else "decimal" if "." in plain else "integer"
    literal = Literal(plain, unit or Iri(XSD + datatype))
    order = order_of(literal)
    return literal if order is not None and isfinite(order) else None


def _plain_digits(text: str) -> str:
    """Return a text without blanks around it, whose digits of any script are those of ASCII."""
    return "".join(str(decimal(mark)) if mark.isdecimal() else mark for mark in text.strip())


PARTLY: Final = "Not all values of this were fetched, so what to compare with is not known."
BEYOND: Final = "Together these numbers are more than can be computed with, 1.8e308. Min[…] and Max[…] add nothing up."


async def value_in(graph: KGAdapter, of: SetExpression, *, or_none: bool) -> tuple[Literal, Sequence[Witness]] | None:
    """Return the only value of a set, with the facts that state it; of several None, where that is allowed.

    Raises:
        Unfit: It has none, or several.
    """
    found = await compute_sets(graph, SetRequest(Listed(of), limit=2, witnesses=1))
    values = [term for term in found.members if isinstance(term, Literal)]
    if or_none and (found.count.value > 1 or not found.count.exact):
        return None
    if found.count.value > 1:
        raise Unfit(f"This gives {found.count} values, and one is compared with. Min[…] or Max[…] gives one of them.")
    if not found.count.exact:
        raise Unfit(PARTLY)
    if not values:
        raise Unfit("This gives no value, so there is nothing to compare with.")
    return values[0], found.witnesses


async def number_in(graph: KGAdapter, of: SetExpression) -> Literal:
    """Return how many members a set has.

    Raises:
        Unfit: It is not known how many.
    """
    count = await count_of(graph, of)
    if not count.exact:
        raise Unfit(f"This is {count}, and how many exactly is not known.")
    return Literal(str(count.value), Iri(f"{XSD}integer"))


async def total_of(
    graph: KGAdapter, of: SetExpression, by: Measure, function: ComposeFunction
) -> tuple[Literal, Computed]:
    """Return a sum, mean, least or greatest value, and the answer that it is from.

    Raises:
        Unfit: No member of the set has a value, or they cannot be added up.
    """
    try:
        question = Aggregated(of, by, AGGREGATES[function])
    except InvalidRequest as error:
        raise Unfit(str(error)) from error
    found = await compute_sets(graph, SetRequest(question, witnesses=0))
    if not found.count.exact:
        raise Unfit(PARTLY)
    value = found.value
    if value is None:
        raise Unfit("None of them has a value, so there is nothing to compare with.")
    if isinstance(value, Literal):
        return value, found
    if not isfinite(value):
        raise Unfit(BEYOND)
    unit = by.unit if isinstance(by, ValueOf) else None
    return Literal(repr(value), unit or Iri(f"{XSD}double")), found
