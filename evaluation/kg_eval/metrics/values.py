"""Names, numbers, dates and yes or no, as people and files write them, compared."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_ARTICLE: Final = re.compile(r"^(?:the|an|a)\s+(?=\S)")
_OUTSIDE: Final = " \t\r\n.,;:!?\"'`*“”\u2018\u2019«»"
_NUMBER: Final = re.compile(
    r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d{1,3})?)(?:\s*[%°]?(?:[^\W\d_]+(?:[/.²³][^\W_]*)*)?)?"
)
_ISO: Final = re.compile(r"([+-]?)(\d{3,12})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(t[\d:.]+z?)?")
_DAY_FIRST: Final = re.compile(r"(?:(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?)?([a-z]{3,9})\.?,?\s+(\d{3,4})")
_MONTH_FIRST: Final = re.compile(r"([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{3,4})")
_BEFORE_CHRIST: Final = re.compile(r"(\d{1,6})\s*(?:bc|bce|b\.c\.)")
_TRUTHS: Final[Mapping[str, bool]] = {"true": True, "yes": True, "false": False, "no": False}
_YEAR: Final = re.compile(r"\d{4}")


@dataclass(frozen=True, slots=True)
class Date:
    """A date as precise as it was written: what is not known is None."""

    year: int
    month: int | None = None
    day: int | None = None

    def holds(self, other: "Date") -> bool:
        """Say whether another date lies in this day, month or year."""
        same_month = self.month is None or self.month == other.month
        return self.year == other.year and same_month and self.day in {None, other.day}


def fold(text: str) -> str:
    """Return a name without case, accents, an article before it, or marks around it."""
    plain = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
    return _ARTICLE.sub("", " ".join(plain.casefold().split()).strip(_OUTSIDE))


def truth_of(text: str) -> bool | None:
    """Return what a text says where it is yes, no, true or false."""
    return _TRUTHS.get(fold(text))


def number_of(text: str) -> Decimal | None:
    """Return the number that a text is, perhaps with a unit of one word after it."""
    found = _NUMBER.fullmatch(text.strip().lower())
    if found is None:
        return None
    try:
        return Decimal(found[1].replace(",", ""))
    except InvalidOperation:
        return None


def same_number(one: str, gold: str, tolerance: float) -> bool:
    """Say whether two texts are one number, within a share of the right one; what may be a year is that year."""
    first, right = number_of(one), number_of(gold)
    if first is None or right is None:
        return False
    if _YEAR.fullmatch(gold.strip()):
        return first == right
    return abs(first - right) <= abs(right) * Decimal(str(tolerance))


def date_of(text: str) -> Date | None:
    """Return the date that a text is.

    The first of January in a timestamp of midnight is a year: graphs write years so.
    """
    written = " ".join(text.strip().lower().split())
    if found := _BEFORE_CHRIST.fullmatch(written):
        return Date(-int(found[1]))
    if found := _ISO.fullmatch(written):
        return _iso_date(found)
    if found := _MONTH_FIRST.fullmatch(written):
        return _named_date(found[3], found[1], found[2])
    if found := _DAY_FIRST.fullmatch(written):
        return _named_date(found[3], found[2], found[1])
    return None


def same_date(one: str, gold: str) -> bool:
    """Say whether a text is a right date, at the precision of that date."""
    first, right = date_of(one), date_of(gold)
    return first is not None and right is not None and right.holds(first)


def _iso_date(found: re.Match[str]) -> Date | None:
    sign, year, month, day, time = found.groups()
    value = int(year) * (-1 if sign == "-" else 1)
    whole_year = time is not None and (month, day) in {("01", "01"), ("00", "00")}
    if month is None and (sign or len(year) > 4):
        return None
    if whole_year or month is None:
        return Date(value)
    return Date(value, int(month) or None, int(day or 0) or None)


def _named_date(year: str, month: str, day: str | None) -> Date | None:
    number = next((n for n, name in enumerate(MONTHS, start=1) if name == month or name[:3] == month), None)
    return None if number is None else Date(int(year), number, int(day) if day else None)
