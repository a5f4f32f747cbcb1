"""Dates: where they stand in time, what they are compared with, and years before Christ.

A date is a year, month, day or point in time as XML Schema writes it, with as few digits of the year as there are, or a
period or approximate year of EDTF (`-0399/-0300` is the 4th century BCE, `Y-4567000000~`), which counts as its first
year. Years are those of RDF, which count a year 0: `-0043` is 44 BCE. A time without a zone counts as UTC; days, months
and years are those of UTC, and a zone without a time does not count.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from kg_adapters.errors import InvalidRequest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# No run of digits can be read in two ways: texts of outsiders may have millions.
_MONTH: Final = r"-(?P<month>0[0-9]|1[0-2])"
_DAY: Final = r"-(?P<day>[0-2][0-9]|3[01])"
_TIME: Final = r"T(?P<hour>[01][0-9]|2[0-4]):(?P<minute>[0-5][0-9]):(?P<second>(?:[0-5][0-9]|60)(?:[.][0-9]+)?)"
_DATE: Final = re.compile(
    rf"Y?(?P<sign>-?)(?:(?P<year>[0-9]{{3,12}})(?:{_MONTH}(?:{_DAY})?)?|(?P<early>[0-9]{{1,2}}))(?:{_TIME})?"
    r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?(?:/(?P<last>-?[0-9]{4,12})|[~?%])?"
)
DATE_FORM: Final = re.sub(r"\?(?:P<\w+>|:)", "", f"^{_DATE.pattern}$")
"""How a date is written, as a pattern of SPARQL: of a year before 100 nothing but the year."""

DAY: Final = 100_000
"""How far apart the orders of two days are."""
YEAR_SLOT, MONTH_SLOT, DAY_SLOT, TIME_SLOT = 0, 1, 2, 3
"""What is added to the order of its first day for a year, month and day, and for a time of day beside its seconds."""
DAYS_BEFORE: Final = 730_426
"""How many days are before the year 2000, from which orders count, so that they are exact to a microsecond today."""
DAY_S: Final = 86_400
_LAST_SECOND: Final = DAY_S - 1
_CYCLE: Final = 146_097
"""How many days 400 years have, after which the calendar repeats."""


def date_order(text: str) -> float | None:
    """Return what orders a date among others, in `DAY`s since 2000; None where it is none.

    A year stands before its first month, a month before its first day, a day before its first moment.
    """
    found = _DATE.fullmatch(text)
    return None if found is None else _order(found)


def _order(found: re.Match[str]) -> float:
    year = int(found["year"] or found["early"]) * (-1 if found["sign"] else 1)
    # A month or day 00 is one that is not known.
    month, day = int(found["month"] or 0), int(found["day"] or 0)
    days = days_before(year, month or 1, day or 1)
    if found["hour"] is None:
        return float(days * DAY + (DAY_SLOT if month and day else MONTH_SLOT if month else YEAR_SLOT))
    zone, second = found["zone"] or "Z", float(found["second"])
    offset = 0 if zone == "Z" else int(f"{zone[0]}1") * (int(zone[1:3]) * 60 + int(zone[4:]))
    later, minute = divmod(int(found["hour"]) * 60 + int(found["minute"]) - offset, DAY_S // 60)
    return (days + later) * DAY + TIME_SLOT + (minute * 60 + second)


_Days = TypeVar("_Days", int, "npt.NDArray[np.int64]")


def days_before(year: _Days, month: _Days, day: _Days) -> _Days:
    """Return how many days a day is after the first of 2000, in the calendar of today for all times; of many days each.

    The year begins in March, so that a leap day is its last, and the months have 153 days in five.
    """
    since_march = (month + 9) % 12
    year = year - since_march // 10
    return day + (153 * since_march + 2) // 5 + 365 * year + year // 4 - year // 100 + year // 400 - DAYS_BEFORE


def _day_after(days: int) -> tuple[int, int, int]:
    """Return year, month and day so many days after the first of 2000."""
    cycles, days = divmod(days, _CYCLE)
    day = date(2000, 1, 1) + timedelta(days)
    return day.year + 400 * cycles, day.month, day.day


@dataclass(frozen=True, slots=True)
class Vague:
    """A date less precise than another, in which that lies.

    Args:
        order: What orders it.
        text: How it is written.
        signs: Where it may be: -1 before the other, 0 within, 1 after it.
    """

    order: float
    text: str
    signs: frozenset[int]


@dataclass(frozen=True, slots=True)
class Period:
    """What dates are compared with: some years, a month or day, or a moment, which begins and ends at once.

    Args:
        first: The order of its beginning.
        after: The order of the beginning of what follows, or of the moment.
        first_text: The same as text, in UTC.
        after_text: The same, no longer than needed.
        vague: The less precise dates in which it lies: they may be before it, within it and after it.
    """

    first: float
    after: float
    first_text: str
    after_text: str
    vague: tuple[Vague, ...]

    @property
    def is_moment(self) -> bool:
        """Whether it has no length."""
        return self.first == self.after

    def sign(self, order: float) -> int:
        """Return -1 for what is before, 0 for what is within and 1 for what is after it."""
        return -1 if order < self.first else 0 if order < self.after or order == self.first else 1

    def vague_for(self, signs: tuple[int, ...], *, possibly: bool) -> Mapping[float, bool]:
        """Return for the orders of less precise dates whether they meet a condition, or may meet it."""
        return {each.order: meets(each, signs, possibly=possibly) for each in self.vague}


def meets(vague: Vague, signs: tuple[int, ...], *, possibly: bool) -> bool:
    """Say whether a less precise date meets a condition for certain, or possibly."""
    return bool(vague.signs.intersection(signs)) if possibly else vague.signs.issubset(signs)


def period_of(text: str) -> Period:
    """Return what a date is as something to compare with.

    Raises:
        InvalidRequest: It is none.
    """
    found = _DATE.fullmatch(text)
    if found is None:
        raise InvalidRequest(f"{text} is not a date.")
    order = _order(found)
    days, slot = int(order // DAY), order % DAY
    year, month, day = _day_after(days)
    starts = ((written_day(year), days_before(year, 1, 1)), (written_day(year, month), days_before(year, month, 1)))
    ends = (days_before(year + 1, 1, 1), _month_after(year, month), days + 1)
    units = [(*start, end) for start, end in zip((*starts, (written_day(year, month, day), days)), ends, strict=True)]
    if slot >= TIME_SLOT:
        moment = f"{written_day(year, month, day)}T{_clock(slot - TIME_SLOT)}"
        lasts = slot - TIME_SLOT >= _LAST_SECOND
        begin, end, precise = days if slot == TIME_SLOT else None, days + 1 if lasts else None, len(units)
        bounds = (order, order, moment, moment)
    else:
        precise = int(slot)
        first_text, begin, end = units[precise]
        end = end if found["last"] is None else max(end, days_before(int(found["last"]) + 1, 1, 1))
        # As texts, a year stands before its first day, and is after the day before that.
        after_text = written_day(*_day_after(end)).removesuffix("-01").removesuffix("-01")
        bounds = (float(begin * DAY), float(end * DAY), first_text, after_text)
    vague = (
        Vague(
            float(start * DAY + place),
            written,
            frozenset(sign for sign, may_be in ((-1, start != begin), (0, True), (1, last != end)) if may_be),
        )
        for place, (written, start, last) in enumerate(units[:precise])
    )
    return Period(*bounds, tuple(vague))


def _month_after(year: int, month: int) -> int:
    return days_before(year + month // 12, month % 12 + 1, 1)


def written_day(year: int, *rest: int) -> str:
    """Return a year, month or day as RDF writes it."""
    return "-".join((f"{'-' if year < 0 else ''}{abs(year):04}", *(f"{part:02}" for part in rest)))


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds, 6), 60)
    return f"{int(minutes) // 60:02}:{int(minutes) % 60:02}:{f'{second:09.6f}'.rstrip('0').rstrip('.')}"


_EARLY: Final = re.compile(r"-?0*(?P<year>[0-9]{1,4})(?P<rest>(?:-[0-9]{2}){0,2}(?:T.+)?)")
_PERIOD: Final = re.compile(r"(-?[0-9]{4,12})/(-?[0-9]{4,12})")
_ABOUT: Final = re.compile(r"Y?(-?[0-9]{4,12})~")


def plain_date(text: str) -> str:
    """Return a date as people write it: `44-03-15 BCE`, `4th century BCE`, `1950s`; else as it is."""
    if (period := _PERIOD.fullmatch(text)) is not None:
        return _plain_period(*map(int, period.groups())) or text
    if (about := _ABOUT.fullmatch(text)) is not None:
        return f"about {_counted(int(about[1])):,} years{_era(int(about[1])) or ' CE'}"
    found = _EARLY.fullmatch(text)
    if found is None or not (text.startswith("-") or int(found["year"]) == 0):
        return text
    return f"{1 + int(found['year'])}{found['rest']} BCE"


def _counted(year: int) -> int:
    return year if year > 0 else 1 - year


def _era(year: int) -> str:
    return "" if year > 0 else " BCE"


def _plain_period(first: int, last: int) -> str | None:
    least, most = sorted((_counted(first), _counted(last)))
    if _era(first) != _era(last):
        return None
    decade = most // 10 * 10
    if (max(1, decade), decade + 9) == (least, most):
        return f"{decade}s{_era(first)}"
    for years, name in ((100, "century"), (1_000, "millennium")):
        if most % years == 0 and least == most - years + 1:
            return f"{_ordinal(most // years)} {name}{_era(first)}"
    return None


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


_EPOCH: Final = re.compile(
    r"(?:(?P<count>\d{1,10})(?:st|nd|rd|th) (?P<name>century|millennium)|(?P<decade>\d{1,4}0)s)(?P<era> BCE?| CE| AD)?",
    re.IGNORECASE,
)


def epoch_of(text: str) -> str | None:
    """Return a decade, century or millennium, such as `4th century BCE`, as EDTF writes it; None for others."""
    found = _EPOCH.fullmatch(text)
    if found is None:
        return None
    if found["name"] is None:
        most = int(found["decade"]) + 9
        least = max(1, most - 9)
    else:
        years = 100 if found["name"].lower() == "century" else 1_000
        most = int(found["count"]) * years
        least = most - years + 1
    before = (found["era"] or "").upper().startswith(" B")
    first, last = (1 - most, 1 - least) if before else (least, most)
    return f"{written_day(first)}/{written_day(last)}" if most else None
