"""Dates as SPARQL patterns, in the order of `kg_adapters.dates`."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from kg_adapters.algebra import Operator, Zone
from kg_adapters.dates import (
    DATE_FORM,
    DAY,
    DAY_S,
    DAY_SLOT,
    DAYS_BEFORE,
    MONTH_SLOT,
    TIME_SLOT,
    YEAR_SLOT,
    Period,
    Vague,
    meets,
    period_of,
)
from kg_adapters.profile import EDTF
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import XSD, Iri
from kg_adapters.values import SIGNS

_DATES: Final = ", ".join(
    writing.iri(each)
    for each in (*(Iri(XSD + name) for name in ("date", "dateTime", "dateTimeStamp", "gYear", "gYearMonth")), EDTF)
)
_INTEGER, _DECIMAL, _MOMENT = (writing.iri(Iri(XSD + name)) for name in ("integer", "decimal", "dateTime"))
_BESIDE: Final = r"^Y|/.*$|[~?%]$|-00(-00)?$|Z$|[+-][0-9][0-9]:[0-9][0-9]$"
"""What of a date without its time does not count. Virtuoso refuses what fits an empty text."""
_UNEVEN: Final = "T(24|.*[-+.])"
"""What a time has that does not stand in the order of texts: another zone than UTC, or parts of a second."""
_FOUR_DIGITS: Final = re.compile(r"(?!9999)[1-9]\d{3}(?!\d)")
_LATER, _EARLIER = "^Y?[0-9]{5}", "^(Y?-|[0-9]{1,3}([^0-9]|$))"
_ZONE: Final = "[+-][0-9][0-9]:[0-9][0-9]$"
_POINT: Final = "^[0-9]{4}-[0-9][0-9]-[0-9][0-9]T"
_FIRST_MOMENT: Final = "0000-01-01T00:00:00Z"
_MONTHS: Final = '"131403040506070809101112"'
"""The months as their numbers in years that begin in March, from January."""
_DAYS_BEFORE: Final = DAYS_BEFORE + 122
_MARKS: Final[Mapping[int | None, int]] = {YEAR_SLOT: 6, MONTH_SLOT: 4, DAY_SLOT: 1}
"""How many tenths of a microsecond a year, month and day are before their first moment."""


def is_date(value: str) -> str:
    """Return the condition that a variable is a date."""
    return f"DATATYPE({value}) IN ({_DATES}) && REGEX(STR({value}), {writing.text(DATE_FORM)})"


def without_zone(value: str) -> str:
    """Return the text of a date without its zone."""
    return f'REPLACE(STR({value}), {writing.text(_ZONE)}, "")'


def is_timed(value: str, zones: Sequence[Zone]) -> str:
    """Return the condition that a variable is a point in time in one of these zones."""
    utc, zoned = (f"REGEX(STR({value}), {writing.text(form)})" for form in ("Z$|[+-]00:00$", _ZONE))
    tests: dict[Zone, str] = {"utc": utc, "other": f"({zoned} && !{utc})", "none": f"(!{zoned} && !{utc})"}
    some = " || ".join(tests[zone] for zone in zones)
    return f"{is_date(value)} && REGEX(STR({value}), {writing.text(_POINT)}) && ({some})"


def ordered(value: str, key: str, fresh: Callable[[], str]) -> str:
    """Return the pattern that binds a key by which dates have the order of `dates.date_order`.

    It counts seconds; a year, month or day is a little before its first moment. Each variable is used as rarely as can
    be, since engines put in its place what it is bound to.
    """
    text, day, time, month, year = (fresh() for _ in range(5))
    sign, digits = f'IF(STRSTARTS({text}, "-"), "-", "")', f'STRBEFORE(CONCAT({day}, "-"), "-")'
    bound = {
        text: f'REPLACE(STRBEFORE(CONCAT(STR({value}), "T"), "T"), {writing.text(_BESIDE)}, "")',
        day: f'REPLACE({text}, "^-", "")',
        time: f'STRAFTER(STR({value}), "T")',
        month: f'{_INTEGER}(SUBSTR({_MONTHS}, 2 * {_INTEGER}({_pair(f"""STRAFTER({day}, "-")""", 1, "01")}) - 1, 2))',
        year: f"{_DECIMAL}(CONCAT({sign}, {digits})) - FLOOR({month} / 13.0)",
        key: f'{DAY_S} * ({_days(day, month, year)}) + IF({time} = "", {_mark(day)}, {_seconds(time)})',
    }
    return " ".join(f"BIND({said} AS {name})" for name, said in bound.items())


def _days(day: str, month: str, year: str) -> str:
    """Return how many days a day is after the first of 2000; its year begins in March."""
    leaps = f"FLOOR(365.25 * {year}) - FLOOR(0.01 * {year}) + FLOOR(0.0025 * {year})"
    last = _pair(f'STRAFTER(STRAFTER({day}, "-"), "-")', 1, "01")
    return f"{leaps} + FLOOR(30.6001 * ({month} + 1)) + {_INTEGER}({last}) - {_DAYS_BEFORE}"


def _mark(day: str) -> str:
    """Return by how many seconds a year, month or day is before its first moment: less than a moment before that."""
    return f'0.0000001 * (STRLEN(STRAFTER({day}, "-")) - {_MARKS[YEAR_SLOT]})'


def _seconds(time: str) -> str:
    """Return how many seconds after midnight in UTC a time of day is."""
    second = f'{_DECIMAL}(CONCAT("0", REPLACE(SUBSTR({time}, 7), "Z$|[-+].*$", "")))'
    east, west = (_minutes(f'STRAFTER({time}, "{mark}")') for mark in "+-")
    return f"60 * ({_minutes(time)} - ({east}) + {west}) + {second}"


def _minutes(time: str) -> str:
    """Return how many minutes the hours and minutes of a text are; 0 for an empty one."""
    hour, minute = (f'{_INTEGER}(CONCAT("0", SUBSTR({time}, {start}, 2)))' for start in (1, 4))
    return f"60 * {hour} + {minute}"


def _pair(text: str, start: int, default: str) -> str:
    """Return two digits of a text, or others where it is empty."""
    return f'SUBSTR(CONCAT({text}, "{default}"), {start}, 2)'


def compared(value: str, operator: Operator, given: str, fresh: Callable[[], str], *, possibly: bool) -> str:
    """Return the pattern that a variable is a date that stands in a relation to a given one; see `algebra.Compares`."""
    period = period_of(given)
    if _FOUR_DIGITS.match(period.first_text):
        return f"FILTER({is_date(value)} && {_by_text(value, operator, period, possibly=possibly)})"
    key = fresh()
    first, after = (_written(each, TIME_SLOT if period.is_moment else None) for each in (period.first, period.after))
    told = {each: _written(each.order, int(each.order % DAY)) for each in period.vague}
    found = _but_for(key, told, _within(key, operator, first, after), operator, possibly=possibly)
    return f"FILTER({is_date(value)}) {ordered(value, key, fresh)} FILTER({found})"


def _by_text(value: str, operator: Operator, period: Period, *, possibly: bool) -> str:
    """Compare with a date whose year has four digits: such dates in UTC sort as texts do."""
    text = f'REPLACE(STR({value}), {writing.text(_BESIDE)}, "")'
    first, after = writing.text(period.first_text), writing.text(period.after_text)
    told = {each: writing.text(each.text) for each in period.vague}
    plain = _but_for(text, told, _within(text, operator, first, after), operator, possibly=possibly)
    zoned = f'CONCAT(STR({value}), IF(REGEX(STR({value}), "Z$|{_ZONE}"), "", "Z"))'
    moments = (f"{writing.text(_moment(each))}^^{_MOMENT}" for each in (period.first_text, period.after_text))
    uneven = _within(f"{_MOMENT}({zoned})", operator, *moments)
    found = f'IF(REGEX(STR({value}), "{_UNEVEN}"), {uneven}, {plain})'
    later, earlier = f'REGEX(STR({value}), "{_LATER}")', f'REGEX(STR({value}), "{_EARLIER}")'
    found = f"({earlier} || {found})" if -1 in SIGNS[operator] else f"!{earlier} && {found}"
    return f"({later} || {found})" if 1 in SIGNS[operator] else f"!{later} && {found}"


def _within(value: str, operator: Operator, first: str, after: str) -> str:
    """Return the condition that a value stands in a relation to what begins and ends there."""
    if first == after:
        return f"{value} {operator} {first}"
    match operator:
        case "=":
            return f"({value} >= {first} && {value} < {after})"
        case "!=":
            return f"({value} < {first} || {value} >= {after})"
        case "<" | ">=":
            return f"{value} {operator} {first}"
        case _:
            return f"{value} {'<' if operator == '<=' else '>='} {after}"


def _but_for(value: str, vague: Mapping[Vague, str], found: str, operator: Operator, *, possibly: bool) -> str:
    """Return a condition, and for less precise dates whether they meet it."""
    kept = [text for each, text in vague.items() if meets(each, SIGNS[operator], possibly=possibly)]
    others = [text for text in vague.values() if text not in kept]
    found = f"({value} NOT IN ({', '.join(others)}) && {found})" if others else found
    return f"({value} IN ({', '.join(kept)}) || {found})" if kept else found


def _moment(text: str) -> str:
    """Return the first moment of a day, month or year, in UTC."""
    return f"{text}{_FIRST_MOMENT[len(text) :]}" if "T" not in text else f"{text}Z"


def _written(order: float, slot: int | None) -> str:
    """Return the key of what has an order and a slot of its day, or what is before all of that day."""
    days = order // DAY
    second = Decimal(order - days * DAY - TIME_SLOT) if slot == TIME_SLOT else -Decimal(_MARKS.get(slot, 10)) / 10**7
    return f"{int(days) * DAY_S + round(second, 7):f}"
