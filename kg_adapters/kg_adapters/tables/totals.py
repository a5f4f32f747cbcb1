"""Find the rows of a table that sum the rows above them, and those that only remark on it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from kg_adapters.tables.numbers import Mark, written_number
from kg_adapters.tables.rows import Batch
from kg_adapters.tables.values import MISSING

_TOTALS: Final = frozenset(
    {"total", "totals", "sum", "sums", "summe", "gesamt", "gesamtsumme", "insgesamt", "subtotal", "zwischensumme"}
    | {
        "totale",
        "totaal",
        "totalt",
        "somme",
        "suma",
        "soma",
        "summa",
        "razem",
        "ukupno",
        "итого",
        "всего",
        "合計",
        "总计",
    }
)
_MOST_WORDS: Final = 3
_LONGEST_NAME: Final = 6
_MOST_CELLS: Final = 200_000
_MOST_CHARACTERS: Final = 1 << 22
_LABELS: Final = 2
"""In how many of the first columns such a row is called a total."""
_FEWEST_ADDED: Final = 2
_LAST: Final = 3
_FEWEST_CELLS: Final = 3


class OddRow(NamedTuple):
    """A row that is not like the others.

    Args:
        line: Its line.
        text: What it is called.
    """

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class OddRows:
    """The rows of a table that are not like the others.

    Args:
        sums: Those that sum rows above them.
        called_sums: Those that are called totals, though nothing in them is such a sum.
        remarks: Those at the end that have a first cell only, which tells where the table comes from or the like.
        bare: Others at the end that have a first cell only.
    """

    sums: tuple[OddRow, ...] = ()
    called_sums: tuple[OddRow, ...] = ()
    remarks: tuple[OddRow, ...] = ()
    bare: tuple[OddRow, ...] = ()

    @property
    def left_out(self) -> tuple[OddRow, ...]:
        """The rows that are not read without an option."""
        return (*self.sums, *self.remarks)


class RowsKept:
    """Keeps the rows of a table of moderate length, to look at them once all are known."""

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._cells = self._characters = 0

    def add(self, batch: Batch) -> None:
        """Add some rows; of a long table none is kept."""
        self._cells += len(batch.lines) * len(batch.columns)
        if self._cells <= _MOST_CELLS:
            self._characters += sum(sum(map(len, cells)) for cells in batch.columns)
        if self._cells > _MOST_CELLS or self._characters > _MOST_CHARACTERS:
            self._batches.clear()
        else:
            self._batches.append(batch)

    def odd_rows(self, marks: Mapping[int, Mark]) -> OddRows:
        """Return the rows that are not like the others.

        Args:
            marks: The columns of numbers, each with its decimal mark.
        """
        rows = [row for batch in self._batches for row in zip(batch.lines, *batch.columns, strict=True)]
        sums, called = list[OddRow](), list[OddRow]()
        added = {place: _Sum() for place in marks}
        for line, *cells in rows:
            name = next((cell for cell in cells[:_LABELS] if _is_total(cell)), None)
            numbers = dict(_numbers(cells, marks))
            if name is None:
                for place, number in numbers.items():
                    added[place].add(number)
            elif any(added[place].is_sum(number) for place, number in numbers.items()):
                sums.append(OddRow(line, name))
                for each in added.values():
                    each.begin_part()
            else:
                called.append(OddRow(line, name))
        last = [OddRow(line, cells[0]) for line, *cells in rows[-_LAST:] if _is_bare(cells)]
        remarks, bare = (tuple(row for row in last if _is_remark(row.text) is kind) for kind in (True, False))
        return OddRows(tuple(sums), tuple(called), remarks, bare)


class _Sum:
    """The sums of a column so far: of all its numbers, and of those since the last total."""

    def __init__(self) -> None:
        self._whole, self._part = Decimal(0), Decimal(0)
        self._count = self._of_part = 0

    def add(self, number: Decimal) -> None:
        self._whole += number
        self._part += number
        self._count += 1
        self._of_part += 1

    def begin_part(self) -> None:
        self._part, self._of_part = Decimal(0), 0

    def is_sum(self, number: Decimal) -> bool:
        """Return whether a number that is not 0 is the sum of several."""
        whole = self._count >= _FEWEST_ADDED and number == self._whole
        return bool(number) and (whole or (self._of_part >= _FEWEST_ADDED and number == self._part))


def _is_total(cell: str) -> bool:
    words = cell.casefold().strip(" :=.*").split()
    return len(words) <= _MOST_WORDS and not _TOTALS.isdisjoint(words)


def _is_bare(cells: Sequence[str]) -> bool:
    return len(cells) >= _FEWEST_CELLS and " " in cells[0] and not any(cells[1:])


def _is_remark(text: str) -> bool:
    return ": " in text or text.startswith(("*", "(", "©")) or len(text.split()) > _LONGEST_NAME


def _numbers(cells: Sequence[str], marks: Mapping[int, Mark]) -> Iterator[tuple[int, Decimal]]:
    for place, mark in marks.items():
        if cells[place] not in MISSING:
            try:
                yield place, Decimal(written_number(cells[place], mark))
            except InvalidOperation:
                continue
