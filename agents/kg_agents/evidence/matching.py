"""Comparing names, numbers, dates and truth values as people, models and files write them."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Final

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_ARTICLE: Final = re.compile(r"^(?:the|an|a)\s+(?=\S)")
_OUTSIDE: Final = " \t\r\n.,;:!?\"'`*“”\u2018\u2019«»"
_TRUTHS: Final[Mapping[str, bool]] = {"true": True, "yes": True, "false": False, "no": False}

_DIGITS: Final = r"(?:\d{1,3}(?:[,'\u2019 \u00a0\u2009\u202f]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[+-]?\d{1,3})?"
_WIDE: Final = Context(prec=1_000, traps=[])
"""For numbers of up to 1,000 digits; longer ones are rounded."""
_NUMBER: Final = re.compile(rf"([+-]?)[$€£]?({_DIGITS})\s*(hundred|thousand|million|billion|trillion)?")
_ABOUT: Final = re.compile(r"(?:(?:about|around|approximately|approx\.?|roughly|nearly|almost|circa|ca?\.)\s+|[~≈]\s*)")
_LEAD: Final = re.compile(r"(?:minus|negative)\s+")
_UNIT: Final = re.compile(r"[%°$€£]?(?:[^\W\d_]+(?:[/.²³^-][^\W_]*|\s[^\W\d_]+)?)?[²³23]?\.?", re.UNICODE)
_GROUPS: Final = re.compile(r"[,'\u2019 \u00a0\u2009\u202f]")
UNITS: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final[Mapping[str, int]] = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_WORDS: Final[Mapping[str, int]] = {
    **{word: number for number, word in enumerate(UNITS)},
    **{word: 10 * number for number, word in enumerate(_TENS, start=2)},
}
_SPELLINGS: Final = {
    **dict.fromkeys(("metre", "metres", "meter", "meters"), "m"),
    **dict.fromkeys(("kilometre", "kilometres", "kilometer", "kilometers", "kms"), "km"),
    **dict.fromkeys(("centimetre", "centimetres", "centimeter", "centimeters"), "cm"),
    **dict.fromkeys(("millimetre", "millimetres", "millimeter", "millimeters"), "mm"),
    **dict.fromkeys(("mile", "miles"), "mi"),
    **dict.fromkeys(("foot", "feet"), "ft"),
    **dict.fromkeys(("square kilometres", "square kilometers", "sq km", "km2", "km^2"), "km²"),
    **dict.fromkeys(("square metres", "square meters", "sq m", "m2", "m^2"), "m²"),
    **dict.fromkeys(("hectare", "hectares"), "ha"),
    **dict.fromkeys(("kilogram", "kilograms", "kilos"), "kg"),
    **dict.fromkeys(("gram", "grams"), "g"),
    **dict.fromkeys(("tonne", "tonnes", "ton", "tons"), "t"),
    **dict.fromkeys(("second", "seconds", "sec"), "s"),
    **dict.fromkeys(("minute", "minutes", "mins"), "min"),
    **dict.fromkeys(("hour", "hours", "hrs", "hr"), "h"),
    **dict.fromkeys(("percent", "per cent"), "%"),
    **dict.fromkeys(("degrees", "degree"), "°"),
}
_MEASURES: Final = frozenset((*_SPELLINGS.values(), "°c", "°f", "k", "w", "kw", "mw", "v", "hz", "l", "ml", "km/h"))
"""The units that cannot stand for each other; any other word behind a number says what was counted."""

_ISO: Final = re.compile(r"([+-]?)(\d{3,12})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(t[\d:.]+(?:z|[+-][\d:]+)?)?z?")
_DAY_FIRST: Final = re.compile(r"(?:(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?)?([a-z]{3,9})\.?,?\s+(\d{3,4})")
_MONTH_FIRST: Final = re.compile(r"([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{3,4})")
_DOTTED: Final = re.compile(r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})")
_SLASHED: Final = re.compile(r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})")
_BEFORE_CHRIST: Final = re.compile(r"(\d{1,6})(?:-(\d\d))?(?:-(\d\d))?\s*(?:bc|bce|b\.c\.)")
_DATE_LEAD: Final = re.compile(r"^(?:(?:in|on|since|from|the|year)\s+)+")
_RANGE: Final = re.compile(r"\s+(?:to|until|till|and)\s+|\s*[\u2013\u2014]\s*|\s+-\s+|(?<=\d{4})-(?=\d{4}$)")
_RANGE_LEAD: Final = re.compile(r"^(?:from|between)\s+")
_YEAR: Final = re.compile(r"\d{4}")
_SEPARATOR: Final = re.compile(r"(\s*(?:;|,(?!\d))\s*(?:and\s+|&\s+)?|\s+and\s+)", re.IGNORECASE)
_COMMA: Final = re.compile(r"(\s*(?:;|,(?!\d))\s*)")
_MOST_PARTS: Final = 200
_MOST_JOINED: Final = 6
"""How many parts between separators one name may have, as `Port-au-Prince, Haiti, and Sons`."""


@dataclass(frozen=True, slots=True)
class Date:
    """A date as precise as it was written: what is not known is None."""

    year: int
    month: int | None = None
    day: int | None = None

    def holds(self, other: "Date") -> bool:
        """Return whether another date lies in this day, month or year."""
        same_month = self.month is None or self.month == other.month
        return self.year == other.year and same_month and self.day in {None, other.day}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit.

    Args:
        number: The number.
        unit: Its unit in one spelling, or what was counted; empty where none is written.
        about: Whether it is written as rounded, as in `about 61,000`.
    """

    number: Decimal
    unit: str = ""
    about: bool = False

    def states(self, other: "Quantity") -> bool:
        """Return whether this number, which a fact holds, is the other: one that is written as rounded may be."""
        # A word that is no measure says what was counted.
        if self.unit and other.unit in _MEASURES and self.unit != other.unit:
            return False
        if not other.about:
            return self.number == other.number
        digits = other.number.normalize().as_tuple().exponent
        return (
            isinstance(digits, int) and self.number.quantize(Decimal((0, (1,), digits)), context=_WIDE) == other.number
        )


def fold(text: str) -> str:
    """Return a name without case, accents, an article before it, or marks around it."""
    plain = text
    if not text.isascii():
        plain = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
    return _ARTICLE.sub("", " ".join(plain.casefold().split()).strip(_OUTSIDE))


def words_of(text: str) -> str:
    """Return the words of a text, without case and marks."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def truth_of(text: str) -> bool | None:
    """Return what a text says where it is yes, no, true or false."""
    return _TRUTHS.get(fold(text))


@lru_cache(maxsize=10_000)
def quantity_of(text: str) -> Quantity | None:
    """Return the number that a text is, in digits or words, perhaps rounded, signed, or with a unit after it."""
    written = " ".join(text.replace("\u2212", "-").lower().split()).rstrip(".")
    about = _ABOUT.match(written)
    written = written[about.end() :] if about else written
    if lead := _LEAD.match(written):
        written = f"-{written[lead.end() :]}"
    found = _NUMBER.match(written)
    if found is None:
        number, rest = _spelled(written)
    else:
        number, rest = _decimal(found), written[found.end() :]
    if number is None or not _UNIT.fullmatch(rest.strip()):
        return None
    unit = rest.strip().rstrip(".")
    return Quantity(number, unit_of(unit), about is not None)


def unit_of(text: str) -> str:
    """Return a unit in one spelling."""
    folded = text.strip().lower()
    first = folded.partition(" ")[0]
    spelled = _SPELLINGS.get(folded) or _SPELLINGS.get(first)
    return spelled or (first if first in _MEASURES else folded)


def number_of(text: str) -> Decimal | None:
    """Return the number that a text is."""
    found = quantity_of(text)
    return found.number if found else None


def same_number(one: str, gold: str, tolerance: float) -> bool:
    """Return whether two texts are one number, within a share of the right one; what may be a year is that year."""
    first, right = quantity_of(one), quantity_of(gold)
    if first is None or right is None:
        return False
    if right.states(first):
        return True
    if _YEAR.fullmatch(gold.strip()) or ({first.unit, right.unit} <= _MEASURES and first.unit != right.unit):
        return False
    return abs(first.number - right.number) <= abs(right.number) * Decimal(str(tolerance))


@lru_cache(maxsize=10_000)
def date_of(text: str) -> Date | None:
    """Return the date that a text is, in digits or with the name of its month.

    The first of January in a timestamp of midnight is a year: graphs write years so.
    """
    written = _DATE_LEAD.sub("", " ".join(text.strip().lower().split()).rstrip("."))
    if found := _BEFORE_CHRIST.fullmatch(written):
        return Date(-int(found[1]), *(int(part) if part else None for part in found.groups()[1:]))
    if found := _ISO.fullmatch(written):
        return _iso_date(found)
    if found := _MONTH_FIRST.fullmatch(written):
        return _named_date(found[3], found[1], found[2])
    if found := _DAY_FIRST.fullmatch(written):
        return _named_date(found[3], found[2], found[1])
    found = _DOTTED.fullmatch(written) or _SLASHED.fullmatch(written)
    return Date(int(found["year"]), int(found["month"]), int(found["day"])) if found else None


def dates_of(text: str) -> tuple[str, str] | None:
    """Return the two ends of a range of dates, as they are written."""
    ends = _RANGE.split(_RANGE_LEAD.sub("", text.strip().lower()))
    return (ends[0], ends[1]) if len(ends) == 2 and all(map(date_of, ends)) else None


def is_name(text: str) -> bool:
    """Return whether a text is no number, date or truth value."""
    return truth_of(text) is None and quantity_of(text) is None and date_of(text) is None and not dates_of(text)


def same_date(one: str, gold: str) -> bool:
    """Return whether a text is a right date, at the precision of that date."""
    first, right = date_of(one), date_of(gold)
    return first is not None and right is not None and right.holds(first)


def states_value(value: str, text: str, unit: str = "") -> bool:
    """Return whether a value of a fact states a text: the same words, the same number, or a date within the text's.

    Args:
        value: The value, without quotes and datatype.
        text: What is compared with it.
        unit: The unit of the value, where it is known and not written behind it.
    """
    if fold(value) == fold(text) and _signs(value) == _signs(text):
        return True
    here, said = quantity_of(value), quantity_of(text)
    if here and said:
        scale, _, rest = unit.lower().partition(" ")
        scaled = Quantity(here.number * _SCALES[scale], unit_of(rest)) if scale in _SCALES else None
        plain = Quantity(here.number, here.unit or unit_of(unit))
        return plain.states(said) or (scaled is not None and scaled.states(said))
    held, asked = date_of(value), date_of(text)
    return held is not None and asked is not None and asked.holds(held)


def parts_of(text: str, is_one: Callable[[str], bool], *, at_and: bool = True) -> Sequence[str]:
    """Return the members of a list in one text, each once and as long as it is one name.

    Args:
        text: The list, whose members have commas, semicolons or "and" between them.
        is_one: Whether a text is one name, whatever it holds.
        at_and: Whether "and" alone separates members.
    """
    pieces = (_SEPARATOR if at_and else _COMMA).split(text)
    parts: list[str] = []
    at = 0
    while at < len(pieces) and len(parts) < _MOST_PARTS:
        ends = range(min(len(pieces), at + 2 * _MOST_JOINED - 1), at + 1, -1)
        end = next((end for end in ends if (end - at) % 2 and is_one("".join(pieces[at:end]))), at + 1)
        parts.append("".join(pieces[at:end]).strip())
        at = end + 1
    return [part for part in dict.fromkeys(parts) if part]


def numbers_in(text: str) -> tuple[int, ...]:
    """Return the whole numbers in a text such as `3, 7-9`, each once."""
    return tuple(dict.fromkeys(_counted(text)))


def _counted(text: str) -> Iterator[int]:
    for found in re.finditer(r"(\d{1,4})(?:\s*(?:-|\u2013|\.\.|to)\s*(\d{1,4}))?", text):
        yield from range(int(found[1]), int(found[2] or found[1]) + 1)


def _signs(text: str) -> bool:
    """Return whether a text begins with a minus, which folding would drop."""
    return text.strip().startswith(("-", "\u2212"))


def _decimal(found: re.Match[str]) -> Decimal | None:
    try:
        number = Decimal(found[1] + _GROUPS.sub("", found[2]))
    except InvalidOperation:
        return None
    return number * _SCALES[found[3]] if found[3] else number


def _spelled(text: str) -> tuple[Decimal | None, str]:
    """Return the number that a text begins with in words, and what follows it."""
    negative = text.startswith("-")
    words = re.findall(r"[^\W\d_]+", text)
    total, current, used = 0, 0, 0
    for word in words:
        if word in _WORDS:
            current += _WORDS[word]
        elif word in _SCALES and (current or total):
            current *= _SCALES[word]
            if _SCALES[word] > _SCALES["hundred"]:
                total, current = total + current, 0
        elif word != "and" or not used:
            break
        used += 1
    if not used:
        return None, text
    return Decimal(total + current) * (-1 if negative else 1), " ".join(words[used:])


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
