"""Dates as people write them, in conditions and in tables."""

import re
from calendar import monthrange
from collections.abc import Mapping
from typing import Final

from kg_adapters.dates import epoch_of, written_day
from kg_adapters.profile import EDTF
from kg_adapters.terms import XSD, Iri, Literal

_TIME: Final = (
    r"(?:(?:T| +)(?P<hour>\d\d):?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,18}))?)?"
    r"(?: *(?P<zone>Z|UTC|GMT|(?P<sign>[-+])(?P<hours>\d\d)(?::?(?P<minutes>\d\d))?))?)?"
)
_FORMS: Final = (
    (
        r"(?P<minus>-?)(?P<year>\d{1,3}(?![\d/-])|\d{4,12})"
        rf"(?:(?P<mark>[-/])(?P<month>\d\d)(?:(?P=mark)(?P<day>\d\d){_TIME})?)?"
    ),
    r"(?P<before>\d{1,12})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)? *(?:BCE?|B\.C\.(?:E\.)?)",
    r"AD *(?P<year>\d{1,12})",
    r"(?P<year>\d{1,12}) *(?:CE|AD)",
)
_WIDER: Final = (
    rf"(?P<day>[0-3]?\d)\.(?P<month>[01]?\d)\.(?P<year>\d{{4}}){_TIME}",
    rf"(?P<day>1[3-9]|[23]\d)(?P<mark>[-/])(?P<month>[01]?\d)(?P=mark)(?P<year>\d{{4}}){_TIME}",
    rf"(?P<month>[01]?\d)(?P<mark>[-/])(?P<day>1[3-9]|[23]\d)(?P=mark)(?P<year>\d{{4}}){_TIME}",
)
"""Forms where nothing but a date is expected; of days and months between slashes those that can be told apart."""
_EXACT, _ALL = (
    tuple(re.compile(form, re.ASCII | re.IGNORECASE) for form in forms) for forms in (_FORMS, (*_FORMS, *_WIDER))
)
_TYPES: Final = ("gYear", "gYearMonth", "date", "dateTime")
_MOST_OFFSET: Final = 14 * 60
"""How many minutes a zone is from UTC, at most."""


def written_date(text: str, *, expected: bool = False) -> Literal | None:
    """Return the year, month, day or moment that a text is; None where it is none, or not on the calendar.

    Args:
        text: What is written.
        expected: Whether it can be nothing else: then it may also be a decade, century or millennium, or begin with the
            day.
    """
    found = next(filter(None, (form.fullmatch(text) for form in (_ALL if expected else _EXACT))), None)
    if found is None:
        epoch = epoch_of(text) if expected else None
        return None if epoch is None else Literal(epoch, EDTF)
    parts = {name: each for name, each in found.groupdict().items() if each is not None}
    year = 1 - int(parts["before"]) if "before" in parts else int(parts["year"]) * (-1 if parts.get("minus") else 1)
    rest = [int(parts[part]) for part in ("month", "day") if part in parts]
    if parts.get("before") == "0" or not _on_calendar(year, *rest):
        return None
    day = written_day(year, *rest)
    if "hour" not in parts:
        return Literal(day, Iri(XSD + _TYPES[len(rest)]))
    time = _time(parts)
    return None if time is None else Literal(f"{day}T{time}", Iri(XSD + _TYPES[-1]))


def _time(parts: Mapping[str, str]) -> str | None:
    """Return a time of day with its zone as XML Schema writes it; None where there is no such time."""
    hour, minute, second = (parts.get(part, "00") for part in ("hour", "minute", "second"))
    fraction = f".{parts['fraction']}" if "fraction" in parts else ""
    is_time = hour < "24" and max(minute, second) < "60"
    if not is_time and f"{hour}{minute}{second}{fraction.rstrip('.0')}" != "240000":
        return None
    zone = "Z" if "zone" in parts else ""
    if "sign" in parts:
        hours, minutes = parts["hours"], parts.get("minutes", "00")
        if minutes >= "60" or int(hours) * 60 + int(minutes) > _MOST_OFFSET:
            return None
        zone = f"{parts['sign']}{hours}:{minutes}"
    return f"{hour}:{minute}:{second}{fraction}{zone}"


def _on_calendar(year: int, month: int = 1, day: int = 1) -> bool:
    """Say whether there is such a day; the calendar repeats after 400 years."""
    return 1 <= month <= 12 and 1 <= day <= monthrange(2000 + year % 400, month)[1]
