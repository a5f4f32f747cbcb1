"""What SPARQL says of values that are compared: `kg_adapters.values`, as text."""

import re
from collections.abc import Callable
from typing import Final

from kg_adapters.algebra import ComparedKind, Operator
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import XSD, Iri, Literal
from kg_adapters.values import MAX_COMPARED, SIGNS, compared_kind_of, unit_of

_DATES: Final = ", ".join(
    writing.iri(Iri(XSD + name)) for name in ("date", "dateTime", "dateTimeStamp", "gYear", "gYearMonth")
)
_INTEGER, _DECIMAL, _DOUBLE = (writing.iri(Iri(XSD + name)) for name in ("integer", "decimal", "double"))
_REST: Final = r"(T00:00:00)?(\.[0-9]+)?(Z|[+-][0-9][0-9]:[0-9][0-9])$|T00:00:00(\.[0-9]+)?$|\.[0-9]+$"
"""What of a date does not count: midnight, parts of a second, the zone. Virtuoso refuses what fits an empty text."""
_SCALES: Final = {0: 1, 2: 1_000, 5: 100_000, 14: 100_000_000_000}
"""What makes a whole number of what orders a date, by how many characters say what follows its year."""
_FOUR_DIGITS: Final = re.compile(r"\d{4}(?!\d)")


NUMBER: Final = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$"
"""How quantities are written; engines differ on exponents of more digits."""


def is_of_kind(value: str, kind: ComparedKind, unit: Iri | None = None) -> str:
    """Return the condition that a variable is a number, a quantity of a unit, or a date."""
    if unit is not None:
        short = f"STRLEN(STR({value})) <= {MAX_COMPARED}"
        return f"DATATYPE({value}) = {writing.iri(unit)} && {short} && REGEX(STR({value}), {writing.text(NUMBER)})"
    if kind == "number":
        return f"isNumeric({value})"
    return f"DATATYPE({value}) IN ({_DATES}) && STRLEN(STR({value})) <= {MAX_COMPARED}"


def ordered(value: str, kind: ComparedKind, key: str, fresh: Callable[[], str]) -> str:
    """Return the pattern that binds a key by the size of which values of a kind are ordered.

    For a date that is its year, with month, day and time as a fraction that begins with 1.
    """
    if kind == "number":
        return f"BIND({_DOUBLE}(STR({value})) AS {key})"
    text, digits = fresh(), fresh()
    apart = f'BIND({_told(value)} AS {text}) BIND(REPLACE({text}, "^-", "") AS {digits})'
    sign = f'IF(STRSTARTS({text}, "-"), "-", "")'
    year = f'{_INTEGER}(CONCAT({sign}, STRBEFORE(CONCAT({digits}, "-"), "-")))'
    rest = f'{_DECIMAL}(CONCAT("0.1", REPLACE(STRAFTER({digits}, "-"), "[^0-9]", "")))'
    return f"{apart} BIND({year} + {rest} AS {key})"


def compared(value: str, operator: Operator, given: Literal, fresh: Callable[[], str]) -> str:
    """Return the pattern that a variable stands in a relation to a given value.

    Raises:
        InvalidRequest: What is given is not what its datatype says, or cannot be compared like this.
    """
    kind = compared_kind_of(given, operator)
    if kind is None:
        return f"FILTER({_as_text(value, operator, given)})"
    if kind == "number":
        unit = unit_of(given)
        number = value if unit is None else f"{_DOUBLE}(STR({value}))"
        return f"FILTER({is_of_kind(value, kind, unit)} && {number} {operator} {_number(given)})"
    if _FOUR_DIGITS.match(given.value):
        return f"FILTER({is_of_kind(value, kind)} && {_by_text(value, operator, given.value)})"
    key, other = fresh(), fresh()
    orders = f"{ordered(value, kind, key, fresh)} {ordered(writing.text(given.value), kind, other, fresh)}"
    return f"FILTER({is_of_kind(value, kind)}) {orders} FILTER({_by_order(value, key, operator, given, other)})"


def _number(given: Literal) -> str:
    return given.value if re.fullmatch(r"\d+(?:\.\d+)?", given.value) else f"{_DOUBLE}({writing.text(given.value)})"


def _as_text(value: str, operator: Operator, given: Literal) -> str:
    text, wanted = f"LCASE(STR({value}))", writing.text(given.value.lower())
    compares = f"CONTAINS({text}, {wanted})" if operator == "~" else f"{text} {operator} {wanted}"
    return f"isLiteral({value}) && {compares}"


def _by_text(value: str, operator: Operator, given: str) -> str:
    """Compare as far as both dates say: years of four digits sort as texts do, and so does what follows them."""
    wanted, text = re.sub(_REST, "", given), _told(value)
    if len(wanted) == 4:
        said = f"SUBSTR(STR({value}), 1, 4) {operator} {writing.text(wanted)}"
    else:
        said = f"SUBSTR({text}, 1, {len(wanted)}) {operator} SUBSTR({writing.text(wanted)}, 1, STRLEN({text}))"
    later = f'REGEX(STR({value}), "^[0-9][0-9][0-9][0-9][0-9]")'
    return f"({later} || {said})" if 1 in SIGNS[operator] else f"!{later} && {said}"


def _by_order(value: str, key: str, operator: Operator, given: Literal, other: str) -> str:
    said = f'STRLEN(STRAFTER(REPLACE({_told(value)}, "^-", ""), "-"))'
    year, month, day, second = _SCALES.values()
    told = f"IF({said} > 12, {second}, IF({said} > 4, {day}, IF({said} > 1, {month}, {year})))"
    own = _SCALES[len(re.sub(_REST, "", given.value).removeprefix("-").partition("-")[2])]
    scale = f"IF({told} < {own}, {told}, {own})"
    return f"FLOOR({key} * {scale}) {operator} FLOOR({other} * {scale})"


def _told(value: str) -> str:
    """Return what of the text of a date counts."""
    return f'REPLACE(STR({value}), {writing.text(_REST)}, "")'
