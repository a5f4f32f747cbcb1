"""Find the kind that the values of a column share, and write values as their datatypes demand."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache, partial
from itertools import product
from typing import Final

from kg_adapters.files.rows import IRI
from kg_adapters.tables.numbers import Mark, number_pattern, unit_in, written_number
from kg_adapters.terms import XSD, XSD_STRING
from kg_adapters.written_dates import written_date

_MISSING: Final = frozenset(
    {
        *("", "na", "n/a", "n.a.", "nan", "-nan", "nat", "null", "none", "nil", "inf", "-inf", "+inf"),
        *("-", "--", "\u2013", "\u2014", ".", "..", "...", "…", ":", "?"),
        *("<na>", "#n/a", "#na", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!", "1.#ind", "-1.#ind"),
    }
)


def _spellings(word: str) -> Iterator[str]:
    yield from map("".join, product(*({letter, letter.upper()} for letter in word)))


MISSING: Final = frozenset(spelling for word in _MISSING for spelling in _spellings(word))
"""Cells that mean no value among numbers, dates and truth values; among texts only the empty one does."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of values.

    Args:
        datatype: Its IRI.
        name: What people call it.
        read_as: How the table writes such values where it is not as their datatype does.
    """

    datatype: str
    name: str
    read_as: str = ""


TEXT: Final = Kind(XSD_STRING.value, "text")
BOOLEAN: Final = Kind(XSD + "boolean", "true or false")
INTEGER: Final = Kind(XSD + "integer", "whole number")
DECIMAL: Final = Kind(XSD + "decimal", "number")
DOUBLE: Final = Kind(XSD + "double", "number")
POINT: Final = Kind(XSD + "decimal", "number", "with a decimal point")
COMMA: Final = Kind(XSD + "decimal", "number", "with a decimal comma")
DATE: Final = Kind(XSD + "date", "date")
DAY_FIRST: Final = Kind(XSD + "date", "date", "day first")
MONTH_FIRST: Final = Kind(XSD + "date", "date", "month first")
ANY_DATE: Final = Kind(XSD + "date", "date", "of any precision")
_YEAR_LIKE: Final = Kind(XSD + "gYear", "year", "or any number")
"""What a year looks like, and many another number."""
MONTH: Final = Kind(XSD + "gYearMonth", "month")
MOMENT: Final = Kind(XSD + "dateTime", "date and time")
YEAR: Final = Kind(XSD + "gYear", "year")
ADDRESS: Final = Kind(XSD + "anyURI", "address")

_NUMBERS: Final = (INTEGER, DECIMAL, DOUBLE)
AS_PEOPLE_WRITE: Final[Mapping[Kind, Mark]] = {POINT: ".", COMMA: ","}
"""The kinds of numbers that are not written as XML Schema does, with their decimal mark."""
NUMBERS: Final = frozenset({*_NUMBERS, *AS_PEOPLE_WRITE})

CHOSEN_KINDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "text": (TEXT,),
    "number": (*_NUMBERS, POINT, COMMA),
    "date": (DATE, DAY_FIRST, MONTH_FIRST, ANY_DATE),
    "dmy": (DAY_FIRST,),
    "mdy": (MONTH_FIRST,),
    "month": (MONTH,),
    "datetime": (MOMENT,),
    "year": (YEAR,),
    "boolean": (BOOLEAN,),
    "address": (ADDRESS,),
}
"""The kinds that people can choose for a column, by the names that they use; the first that fits all values counts."""

_WHOLE: Final = r"[+-]?(?:0|[1-9]\d{0,17})"
_PATTERNS: Final[Mapping[Kind, str]] = {
    BOOLEAN: r"(?i:true|false)",
    INTEGER: _WHOLE,
    DECIMAL: rf"{_WHOLE}(?>(?:\.\d{{1,18}})?)",
    DOUBLE: r"[+-]?(?!0\d)\d{1,18}+(?>(?:\.\d{1,999})?)(?>(?:[eE][+-]?\d{1,3})?)",
    POINT: number_pattern("."),
    COMMA: number_pattern(","),
    DATE: r"\d{4}-\d\d-\d\d",
    DAY_FIRST: r"(?:[0-3]?\d\.[01]?\d\.\d{4}|[0-3]?\d/[01]?\d/\d{4}|[0-3]?\d-[01]?\d-\d{4})",
    MONTH_FIRST: r"(?:[01]?\d/[0-3]?\d/\d{4}|[01]?\d-[0-3]?\d-\d{4})",
    MONTH: r"\d{4}-(?:0[1-9]|1[0-2])",
    MOMENT: r"\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?",
    YEAR: r"-?\d{3,4}",
    _YEAR_LIKE: r"-?\d{1,4}",
    ADDRESS: rf"(?=https?://){IRI}",
}
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:[0-5]\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?")
_DAYS: Final = frozenset({DATE, DAY_FIRST, MONTH_FIRST, MOMENT})
_BETWEEN: Final = "\x1f"


@cache
def _all_of(kind: Kind) -> re.Pattern[str]:
    pattern = _PATTERNS[kind]
    return re.compile(rf"(?>(?:{pattern}(?:{_BETWEEN}|\Z))+)", re.ASCII)


def fits(kind: Kind, cells: Collection[str]) -> bool:
    """Return whether all cells, none of them empty, are values of a kind."""
    if kind == TEXT or not cells:
        return True
    if kind == ANY_DATE:
        return all(written_date(cell, expected=True) is not None for cell in cells)
    # One search for all is several times as fast as one for each.
    joined = _BETWEEN.join(cells)
    if joined.count(_BETWEEN) != len(cells) - 1 or _all_of(kind).fullmatch(joined) is None:
        return False
    return kind not in _DAYS or all(_is_day(_day(cell, kind)) for cell in cells)


def _day(value: str, kind: Kind) -> str:
    if kind in {DATE, MOMENT}:
        return value[:10]
    first, second, year = re.split(r"[./-]", value)
    day, month = (first, second) if kind == DAY_FIRST else (second, first)
    return f"{year}-{month:0>2}-{day:0>2}"


def _is_day(text: str) -> bool:
    try:
        date(int(text[:4]), int(text[5:7]), int(text[8:]))
    except ValueError:
        return False
    return True


def _moment(value: str) -> str:
    parts = _MOMENT.fullmatch(value)
    return value if parts is None else f"{parts[1]}T{parts[2]}{parts[3] or ':00'}{parts[4] or ''}"


def _year(value: str) -> str:
    return f"-{value[1:]:0>4}" if value.startswith("-") else f"{value:0>4}"


_WRITTEN: Final[Mapping[Kind, Callable[[str], str]]] = {
    BOOLEAN: str.lower,
    MOMENT: _moment,
    **{kind: partial(written_number, mark=mark) for kind, mark in AS_PEOPLE_WRITE.items()},
    DAY_FIRST: lambda value: _day(value, DAY_FIRST),
    MONTH_FIRST: lambda value: _day(value, MONTH_FIRST),
    YEAR: _year,
}


def writer_of(kind: Kind) -> Callable[[str], str] | None:
    """Return what writes a value that fits a kind as its datatype demands, or None where it already is."""
    return _WRITTEN.get(kind)


def decimal_mark(kind: Kind) -> Mark:
    """Return the decimal mark of numbers of a kind."""
    return AS_PEOPLE_WRITE.get(kind, ".")


def is_address(value: str) -> bool:
    """Return whether a value is an IRI of the web."""
    return value.startswith("http") and fits(ADDRESS, [value])


_YEARS: Final = re.compile(
    r"(?:^|[_\s-])(?:year|yr|since)$|^(?:founded|established|born|died|built|opened)$", re.IGNORECASE
)
_CODE_WORDS: Final = re.compile(
    "phone|telephone|tel|fax|mobile|zip|zipcode|postcode|postalcode|postal|plz|isbn|issn|ean|iban|vat|sku"
)


@lru_cache(1 << 16)
def words_of(header: str) -> tuple[str, ...]:
    """Return the words of a header in lower case: `customerId`, `customer_id` and `Customer ID` have the same."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", header)
    return tuple(word.lower() for word in re.split(r"[\W_]+", spaced) if word)


def _holds_codes(header: str) -> bool:
    """Return whether a column holds codes of digits, such as phone numbers, which are not numbers."""
    words = words_of(header)
    return any(map(_CODE_WORDS.fullmatch, words)) or words[-1:] in {("code",), ("codes",)}


_USUAL: Final[tuple[tuple[Kind, ...], ...]] = (
    (BOOLEAN,),
    _NUMBERS,
    *((kind,) for kind in (POINT, COMMA, DATE, DAY_FIRST, MONTH_FIRST, MONTH, MOMENT, ADDRESS)),
    (_YEAR_LIKE, ANY_DATE),
)
"""Chains of kinds: all values of a kind are also values of the next in its chain."""
_MOST_UNITS: Final = 20
_ODD_SHARE: Final = 0.2
"""What share of the values of a column of numbers may be texts, if nobody has said what it holds."""
_MOST_ODD: Final = 100
_FEW: Final = 3


@dataclass(slots=True)
class Misfits:
    """Values that are not of the kind that was chosen for their column.

    Attributes:
        count: How many cells.
        example: The first of them.
        line: Its line.
    """

    count: int = 0
    example: str = ""
    line: int = 0

    def add(self, cells: Sequence[tuple[str, int]]) -> None:
        """Add cells, each with its line."""
        if cells and not self.count:
            self.example, self.line = cells[0]
        self.count += len(cells)


_NONE_YET: Final = {kind: Misfits() for kind in AS_PEOPLE_WRITE}


class KindSearch:
    """Finds the kind that all values of a column have.

    Args:
        header: The header of the column.
        plus: Whether numbers may begin with `+`: those of records do not, so that this is a text.
        chosen: The kinds that it may have, of which that counts which most values have; all kinds when empty, and then
            all values must have one.

    Attributes:
        count: How many values were added.
        units: The signs of money and percent in them.
    """

    def __init__(self, header: str, *, plus: bool = True, chosen: tuple[Kind, ...] = ()) -> None:
        usual = _USUAL if _YEARS.search(header) is None else ((YEAR,), *_USUAL)
        self._left = usual if not chosen else ()
        self._misfits = {kind: Misfits() for kind in chosen if kind != TEXT}
        self._plus = plus or bool(chosen)
        self._codes = not chosen and _holds_codes(header)
        # Tables may have very many columns, of which few need this.
        self._nearly: Mapping[Kind, Misfits] = _NONE_YET if not chosen and not self._codes else {}
        self.count = 0
        self._marked = False
        self.units: dict[str, None] = {}

    def add(self, cells: Iterable[str]) -> None:
        """Add distinct values; those that mean no value are left out."""
        if not self._left and not self._nearly:
            return
        values = [cell for cell in cells if cell not in MISSING]
        self.count += len(values)
        if not self._plus and any(value.startswith("+") for value in values):
            self._left = tuple(chain for chain in self._left if chain[0] not in {*_NUMBERS, POINT, COMMA})
        self._left = tuple(rest for chain in self._left if (rest := _fitting(chain, values)))
        self._look_for_odd_ones(values)
        self._look(values)

    def _look_for_odd_ones(self, values: Sequence[str]) -> None:
        """Count the values that are no numbers, as long as there are few."""
        odd = {
            kind: [value for value in values if not fits(kind, [value])]
            for kind in self._nearly
            if not fits(kind, values)
        }
        none = set[str].intersection(*map(set, odd.values())) if len(odd) == len(AS_PEOPLE_WRITE) else set[str]()
        if any(map(str.isdecimal, "".join(none))):
            # These are codes, or numbers that only people can read.
            self._nearly = {}
            return
        if odd and self._nearly is _NONE_YET:
            self._nearly = {kind: Misfits() for kind in AS_PEOPLE_WRITE}
        for kind, wrong in odd.items():
            self._nearly[kind].add([(value, 0) for value in wrong])
        if odd and self.count > _MOST_ODD:
            most = _ODD_SHARE * self.count
            self._nearly = {kind: misfits for kind, misfits in self._nearly.items() if misfits.count <= most}

    @property
    def is_chosen(self) -> bool:
        """Whether kinds were chosen, which some values may not be of."""
        return bool(self._misfits)

    def add_chosen(self, cells: Iterable[tuple[str, int]]) -> None:
        """Add the values of some rows where kinds were chosen, each with its line."""
        said = [(value, line) for value, line in cells if value not in MISSING]
        values = {value for value, _ in said}
        self.count += len(said)
        for kind, misfits in self._misfits.items():
            if not fits(kind, values):
                wrong = {value for value in values if not fits(kind, [value])}
                misfits.add([each for each in said if each[0] in wrong])
        self._look(values)

    def _look(self, values: Collection[str]) -> None:
        written = self._written
        if not self._marked and written:
            self._marked = any("." in value or "," in value for value in values)
        if written and len(self.units) < _MOST_UNITS and self._kinds.isdisjoint(_NUMBERS):
            self.units |= dict.fromkeys(filter(None, map(unit_in, values)))

    @property
    def _kinds(self) -> Set[Kind]:
        """The kinds that are still possible, the likeliest first."""
        if not self._misfits:
            return dict.fromkeys(chain[0] for chain in self._left if chain[0] != _YEAR_LIKE).keys()
        return _fewest(self._misfits)

    @property
    def _written(self) -> Set[Kind]:
        """The kinds of numbers as people write them that all values, or nearly all, may be."""
        found = self._kinds & AS_PEOPLE_WRITE.keys()
        if found or self._misfits:
            return found
        most = min(_ODD_SHARE * self.count, self.count - _FEW)
        return _fewest({kind: misfits for kind, misfits in self._nearly.items() if misfits.count <= most})

    def mostly(self, mark: Mark) -> Kind | None:
        """Return the kind of numbers that nearly all values are, given the mark of those that could have either."""
        kinds = [] if self._codes or self._left else [kind for kind in AS_PEOPLE_WRITE if kind in self._written]
        return next((kind for kind in kinds if AS_PEOPLE_WRITE[kind] == mark), next(iter(kinds), None))

    def misfits_of(self, kind: Kind) -> "Misfits":
        """Return the values that are not of a kind that was chosen, or that nearly all values are of."""
        return (self._misfits or self._nearly).get(kind, Misfits())

    @property
    def kind(self) -> Kind:
        """The kind of all values so far; text where they have none in common, or could be of several."""
        return self.kind_with(".")

    def kind_with(self, mark: Mark) -> Kind:
        """Return the kind of all values so far, given the decimal mark of numbers that could have either."""
        kinds = list(self._kinds)
        if (self._codes and BOOLEAN not in kinds) or self.ambiguous or not self.count:
            return TEXT
        if kinds and self.is_open and not self._kinds.isdisjoint(AS_PEOPLE_WRITE):
            return next((kind for kind in kinds if kind == COMMA or mark == "."), kinds[0])
        return next(iter(kinds), TEXT)

    @property
    def proven_mark(self) -> Mark | None:
        """The decimal mark that the values have, if only one is possible."""
        written = list(self._written)
        return AS_PEOPLE_WRITE[written[0]] if self.count and not self._codes and len(written) == 1 else None

    @property
    def is_open(self) -> bool:
        """Whether the values are numbers that would be others with another decimal mark."""
        return self._marked and len(self._written) == len(AS_PEOPLE_WRITE)

    @property
    def counted(self) -> bool:
        """Whether all values are whole numbers, even if they are taken for codes."""
        return bool(self.count) and INTEGER in self._kinds

    @property
    def ambiguous(self) -> bool:
        """Whether the values are dates, in which either the day or the month may come first."""
        return bool(self.count) and not self._misfits and {DAY_FIRST, MONTH_FIRST} <= set(self._kinds)


def _fewest(misfits: Mapping[Kind, Misfits]) -> Set[Kind]:
    """Return the kinds that fewest values are not of."""
    fewest = min((each.count for each in misfits.values()), default=0)
    return {kind: None for kind, each in misfits.items() if each.count == fewest}.keys()


def _fitting(chain: tuple[Kind, ...], values: Collection[str]) -> tuple[Kind, ...]:
    while chain and not fits(chain[0], values):
        chain = chain[1:]
    return chain
