"""What a table and its rows are, wherever they come from, and the reader of CSV and TSV."""

import csv
import io
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Final, TypeAlias

from kg_adapters.errors import InvalidSource
from kg_adapters.files.rdf import Problem
from kg_adapters.files.sources import Source
from kg_adapters.open_options import ReadingLimits, Refused, setting
from kg_adapters.tables.values import MISSING

Joined: TypeAlias = tuple[tuple[int, ...], ...]
"""Columns that are an id together, for each further column that is made of them."""


@dataclass(slots=True)
class Repeats:
    """Counts records that are equal to others.

    Attributes:
        count: How many there are so far.
    """

    count: int = 0


@dataclass(frozen=True, slots=True)
class SourceTable:
    """What a source declares about a table.

    Args:
        name: What it is called, unlike any other table of the source; its rows are of the class of this name.
        path: Where it is, for messages.
        columns: The headers, none twice. Of records, those met so far; further ones come behind them.
        unit: What the numbers of rows count, for messages.
        first: The header as it was written, and its line, where it might be a row.
        commas: Whether numbers have a decimal comma where nothing in the table shows it.
        exact: The columns with numbers that the source has as such, not as texts.
        several: Whether cells may hold several values, separated by `SEVERAL`.
        nested: Whether its rows are parts of the rows of another table, which lead to them; they are numbered.
        key: The column that the source declares to hold the ids of rows, which are valid in this table only.
        links: The table and column that the source declares each of these columns to refer to; no column where cells
            hold the numbers of rows.
        joined: The headers of columns that are made of others.
        repeats: The further records that are equal to one of its rows, and not rows themselves.
        uneven: How many cells of columns hold a value more than once, of which a graph keeps one.
    """

    name: str
    path: str
    columns: tuple[str, ...]
    unit: str = "line"
    first: tuple[int, tuple[str, ...]] | None = None
    commas: bool = False
    exact: Collection[str] = ()
    several: bool = False
    nested: bool = False
    key: str | None = None
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    joined: tuple[str, ...] = ()
    repeats: Repeats = field(default_factory=Repeats)
    uneven: Mapping[str, int] = field(default_factory=dict[str, int])

    def place(self, row: int) -> str:
        """Return how messages name a row."""
        return f"{self.path}, {self.unit} {row:,}"


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a table.

    Args:
        lines: The line of each row, or its number; shape [r].
        columns: The cells of each column; shape [c][r].
        even: Whether all rows had as many cells as there are columns.
    """

    lines: Sequence[int]
    columns: Sequence[Sequence[str]]
    even: bool

    def cells(self, place: int) -> Sequence[str]:
        """Return the cells of a column, which are empty if its table has got it later."""
        return self.columns[place] if place < len(self.columns) else [""] * len(self.lines)

    def joined(self, group: Sequence[int]) -> Sequence[str]:
        """Return the cells of several columns as one."""
        return list(map(joined_cell, zip(*map(self.cells, group), strict=True)))

    def without(self, lines: Collection[int]) -> "Batch":
        """Return the same rows without those of some lines."""
        if not lines or not any(line in lines for line in self.lines):
            return self
        kept = [place for place, line in enumerate(self.lines) if line not in lines]
        columns = tuple([cells[place] for place in kept] for cells in self.columns)
        return Batch([self.lines[place] for place in kept], columns, self.even)

    def with_joined(self, groups: Joined, width: int) -> "Batch":
        """Return the same rows with a further column for each group of the first columns."""
        if not groups:
            return self
        return Batch(self.lines, (*map(self.cells, range(width)), *map(self.joined, groups)), self.even)


_BETWEEN: Final = "/"


def joined_cell(cells: Sequence[str]) -> str:
    """Return an id of several cells as one; nothing where one of them is missing."""
    if not all(cells):
        return ""
    joined = _BETWEEN.join(cells)
    if "%" not in joined and joined.count(_BETWEEN) == len(cells) - 1:
        return joined
    return _BETWEEN.join(map(_escaped, cells))


def _escaped(cell: str) -> str:
    return cell.replace("%", "%25").replace(_BETWEEN, "%2F")


_NO_PART: Final = frozenset(map(_escaped, MISSING))


def blank_joined(cells: Iterable[str]) -> set[str]:
    """Return those of joined cells in which one means no value, such as `NA`."""
    return {cell for cell in cells if not _NO_PART.isdisjoint(cell.split(_BETWEEN))}


def joined_header(headers: Sequence[str]) -> str:
    """Return the header of a column that is made of others."""
    return ", ".join(headers)


SEVERAL: Final = "\x1e"
"""What separates the values in a cell of records."""
TableBatch: TypeAlias = tuple[SourceTable, Batch]
"""Some rows of a table; those of several tables may take turns."""

_ROWS: Final = 4_096
_CELLS: Final = 1 << 18
_CHARACTERS: Final = 1 << 22


def batches(table: SourceTable, rows: Iterable[tuple[int, Sequence[str]]], problem: Problem) -> Iterator[TableBatch]:
    """Yield the rows of a table in batches of bounded size; none where there are no rows.

    Args:
        table: The table.
        rows: The cells of each row, nothing for a missing one, and its line. A row may be shorter than the header.
        problem: Called for every row that has more cells than the table has columns; such a row is left out.
    """
    width = len(table.columns)
    lines, taken, characters, even = list[int](), list[Sequence[str]](), 0, True
    for line, cells in rows:
        if len(cells) != width:
            even = False
            if any(cells[width:]):
                problem(f"{table.place(line)}: it has {len(cells)} cells, and the header {width}.", ValueError())
                continue
            cells = (*cells[:width], *[""] * (width - len(cells)))  # noqa: PLW2901 - the row, completed
        lines.append(line)
        taken.append(cells)
        characters += sum(map(len, cells))
        if is_batch(len(taken), width, characters):
            yield table, Batch(lines, list(zip(*taken, strict=True)), even)
            lines, taken, characters = [], [], 0
    if taken or not even:
        yield table, Batch(lines, list(zip(*taken, strict=True)) or [()] * width, even)


def is_batch(rows: int, width: int, characters: int) -> bool:
    """Return whether so many rows are as large as a batch may be."""
    return rows >= _ROWS or rows * width >= _CELLS or characters >= _CHARACTERS


_SIGNS: Final = {".tsv": "\t"}
# Wider ones are matrices, of which each column would become a relation.
_MOST_COLUMNS: Final = 25_000
_SNIFFED: Final = 1 << 16
_UTF_16: Final = (BOM_UTF16_LE, BOM_UTF16_BE)


def stem_of(name: str) -> str:
    """Return the name of the table in a file of this name."""
    return Path(name).name.partition(".")[0] or "table"


def csv_batches(source: Source, stream: IO[bytes], problem: Problem, limits: ReadingLimits) -> Iterator[TableBatch]:
    """Yield the rows of the table in a file of CSV or TSV.

    Args:
        source: The file.
        stream: Its content.
        problem: Called for every row that cannot be read, and for a table without rows; it raises, or reading goes on.
        limits: How long a cell may be.

    Raises:
        InvalidSource: It is not UTF-8.
        Refused: It has too many columns.
    """
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    path = source.path
    file = _CsvFile(text, path, problem, limits)
    rows = file.rows(_SIGNS.get(source.ending))
    line, cells = next(rows, (0, list[str]()))
    if not cells:
        problem(f"{path} is empty: a table is a header and rows below it.", ValueError())
        return
    check_width(len(cells), f"line {line:,}: it")
    table = SourceTable(
        stem_of(source.name), str(path), distinct(cells), first=(line, tuple(cells)), commas=file.sign == ";"
    )
    empty = True
    for each in batches(table, rows, problem):
        empty = False
        yield each
    if empty:
        problem(f"{path} has a header and no row below it.", ValueError())


def check_width(columns: int, place: str) -> None:
    """Make sure that a table has not too many columns.

    Raises:
        Refused: It has.
    """
    if columns > _MOST_COLUMNS:
        raise Refused(
            f"{place} has {columns:,} columns, and at most {_MOST_COLUMNS:,} are read; a table with the columns "
            "head,relation,tail may hold any number of values"
        )


def distinct(headers: Sequence[str]) -> tuple[str, ...]:
    """Return headers that are distinct and not empty."""
    names: dict[str, None] = {}
    for place, header in enumerate(headers, start=1):
        name = header or f"column {place}"
        while name in names:
            name = f"{name} {place}"
        names[name] = None
    return tuple(names)


class _CsvFile:
    """Reads rows of CSV.

    Attributes:
        sign: What separates cells.
    """

    def __init__(self, text: io.TextIOWrapper, path: Path, problem: Problem, limits: ReadingLimits) -> None:
        self._text = text
        self._path = path
        self._problem = problem
        self._limits = limits
        self.sign = ","

    def rows(self, sign: str | None) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of each row that has any, and the line that it ends in."""
        try:
            yield from self._rows(sign)
        except UnicodeDecodeError as error:
            encoding = "utf-16" if error.object.startswith(_UTF_16) else "latin1"
            raise self._other_encoding(error.reason, encoding) from error

    def _rows(self, sign: str | None) -> Iterator[tuple[int, list[str]]]:
        csv.field_size_limit(self._limits.literal_bytes)
        lines = _Lines(self._text)
        if "\0" in lines.first:
            raise self._other_encoding("it holds zero bytes", "utf-16")
        self.sign = sign or max(
            ",;\t|", key=lambda each: sum(map(len, csv.reader([lines.first[:_SNIFFED]], delimiter=each)))
        )
        rows = csv.reader(lines, delimiter=self.sign)
        while True:
            start = rows.line_num + 1
            try:
                cells = next(rows, None)
            except csv.Error as error:
                cause = f"is a quote not closed? Else {setting('imports.literal_mb')} allows more"
                self._problem(f"{self._path}, line {start:,}: {error}; {cause}.", error)
                continue
            if cells is None:
                return
            if lines.ended:
                self._problem(f"{self._path}, line {start:,}: a quote in this row is never closed.", ValueError())
                return
            cells = [cell.strip() for cell in cells]
            if any(cells):
                yield rows.line_num, cells

    def _other_encoding(self, reason: str, encoding: str) -> InvalidSource:
        return InvalidSource(
            f"{self._path} is not UTF-8 text: {reason}. Save it as UTF-8 (iconv -f {encoding} -t utf-8)."
        )


class _Lines:
    """The lines of a text.

    Attributes:
        first: The first one.
        ended: Whether more were wanted than there are, as happens within quotes that are never closed.
    """

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self.first = text.readline()
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        yield from chain([self.first], self._text)
        self.ended = True
