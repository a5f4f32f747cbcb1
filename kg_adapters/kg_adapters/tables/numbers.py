"""Read numbers as people write them: in groups of digits, with signs of money and percent, in brackets for minus."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import in_quotes

Mark: TypeAlias = Literal[".", ","]
"""What stands between the whole part of a number and its decimals."""

_MONEY: Final = (
    r"(?:(?:US|CA|AU|NZ|HK|[ACRS])?\$|[£¥¢\u20a0-\u20cf]|kr|zł|Kč|Ft|lei|"
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|KRW|MAD|MXN|MYR|"
    "NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR)"
)
_MEASURES: Final = (
    r"(?:[kKMGT]?B|[kMG]?Hz|[kMG]W(?:h|p)?|[km]?g|[ckm]?m[²³23]?|[cdhm]?[lL]|km/h|m/s|m?s|min|h|ha|t|lb|lbs|oz|mi|ft|yd|mph|"
    r"°[CF]|rpm|pp[mb]|dB|kcal|kJ|[km]?Pa|bar|mbar)"
)
_SPACE: Final = " \u00a0\u2009\u202f"
_APOSTROPHES: Final = "'\u2019"
_SIGNS: Final = "+\u2212-"
_SAME_UNIT: Final = {"EUR": "€", "GBP": "£"}


def _digits(mark: Mark) -> str:
    """Return the pattern of the digits of a number, in groups or not."""
    point, comma = (r"\.", ",") if mark == "." else (",", r"\.")
    groups = "|".join(rf"(?:{sign}\d{{3}})+" for sign in (comma, f"[{_SPACE}]", f"[{_APOSTROPHES}]"))
    # In India, groups before the last three digits have two: 12,34,567.
    indian = r"[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d+)?|" if mark == "." else ""
    grouped = rf"{indian}[1-9]\d{{0,2}}(?:{groups})(?:{point}\d+)?"
    return rf"(?>{grouped}|(?:(?:0|[1-9]\d{{0,17}})(?:{point}\d{{0,999}})?|{point}\d{{1,999}})(?:[eE][+-]?\d{{1,3}})?)"


def number_pattern(mark: Mark) -> str:
    """Return the pattern of numbers with a decimal mark; what may separate groups of three digits is the other one."""
    inner = rf"(?:{_MONEY}[{_SPACE}]?)?[{_SIGNS}]?{_digits(mark)}[{_SPACE}]?(?:{_MONEY}|[%‰]|{_MEASURES})?"
    in_brackets = r"(?:\((?=[^\x1f]*\))|(?![^\x1f]*\)))"
    return rf"{in_brackets}(?:[{_SIGNS}][{_SPACE}]?)?{inner}\)?-?"


_DIGITS: Final = {mark: re.compile(_digits(mark)) for mark in (".", ",")}
_NUMBERS: Final = {mark: re.compile(number_pattern(mark)) for mark in (".", ",")}
_UNIT: Final = re.compile(rf"{_MONEY}|[%‰]|{_MEASURES}$")
_MINUS: Final = re.compile("[(\u2212-]")
_IN_GROUPS: Final = re.compile(rf"[.,{_APOSTROPHES}{_SPACE}]")


def written_number(cell: str, mark: Mark) -> str:
    """Return a number that fits the pattern of a mark as XML Schema writes decimals and doubles."""
    found = _DIGITS[mark].search(cell)
    if found is None:
        return cell
    whole, _, rest = found[0].partition(mark)
    kept = (_IN_GROUPS.sub("", whole) or "0") + (f".{rest}" if rest else "")
    return f"-{kept}" if _MINUS.search(cell[: found.start()] + cell[found.end() :]) is not None else kept


def unit_in(cell: str) -> str:
    """Return the sign of money or percent, or the measure, in a cell that holds a number; nothing where it has none."""
    found = _UNIT.search(cell) if any(each.fullmatch(cell) is not None for each in _NUMBERS.values()) else None
    return "" if found is None else _SAME_UNIT.get(found[0], found[0])


def mark_in(example: str) -> Mark:
    """Return the decimal mark of a number that is given as an example, such as `1.200,00`.

    Raises:
        InvalidRequest: It is no number, or could have either mark.
    """
    fitting = [mark for mark, pattern in _NUMBERS.items() if pattern.fullmatch(example) is not None]
    if len(fitting) != 1:
        raise InvalidRequest(
            f"{in_quotes(example)} does not show how numbers are written. Give one with its groups and decimals, such "
            "as 1.200,00 or 1,200.00."
        )
    return "." if fitting[0] == "." else ","


@dataclass(frozen=True, slots=True)
class NumberReading:
    """How the numbers of a column are read.

    Args:
        example: One of its cells.
        mark: Their decimal mark.
        units: The signs of money and percent in its cells.
        is_open: Whether all of them could also be read with the other mark, and nothing in the column decides.
        is_guess: Whether nothing in the rest of the file decides either.
    """

    example: str
    mark: Mark
    units: tuple[str, ...] = ()
    is_open: bool = False
    is_guess: bool = False

    @property
    def told(self) -> str:
        """The example and what it is read as."""
        unit, number = unit_in(self.example), _shown(written_number(self.example, self.mark))
        return number if number == self.example else f"{self.example} is {number}{f' {unit}' if unit else ''}"

    @property
    def other(self) -> str:
        """What the example would be with the other mark."""
        return _shown(written_number(self.example, "," if self.mark == "." else "."))

    @property
    def says_more(self) -> bool:
        """Whether the numbers are not written as they are read, or could be read in another way."""
        return self.is_open or written_number(self.example, self.mark) != self.example


def _shown(number: str) -> str:
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, point, rest = digits.partition(".")
    return f"{sign}{int(whole):,}{point}{rest}" if whole.isdecimal() else number


def telling_example(cells: Sequence[str]) -> str:
    """Return the cell that shows best how numbers are written: that with most that is no digit, the first of these."""
    return max(
        cells, key=lambda cell: (sum(not letter.isdecimal() for letter in cell.lstrip("+-")), -cells.index(cell))
    )


@dataclass(frozen=True, slots=True)
class FileMark:
    """The decimal mark of a file.

    Args:
        mark: What it is.
        is_guess: Whether nothing in the file proves it.
    """

    mark: Mark
    is_guess: bool


def mark_of(proven: Iterable[Mark], *, commas: bool) -> FileMark:
    """Return the decimal mark of a file.

    Args:
        proven: The marks that columns prove.
        commas: Whether such files have decimal commas if nothing in them decides.
    """
    found = set(proven)
    return FileMark(found.pop(), is_guess=False) if len(found) == 1 else FileMark("," if commas else ".", is_guess=True)
