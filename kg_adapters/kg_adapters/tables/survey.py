"""Read a table once, in bounded memory, for what the plan of all tables needs to know about its columns."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from kg_adapters.tables.distinct_texts import MOST_DISTINCT, DistinctTexts, Hashes
from kg_adapters.tables.numbers import FileMark, Mark, NumberReading, mark_of, telling_example
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.rows import SEVERAL, Batch, Joined, SourceTable, blank_joined, joined_header
from kg_adapters.tables.totals import OddRows, RowsKept
from kg_adapters.tables.values import (
    AS_PEOPLE_WRITE,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    MISSING,
    NUMBERS,
    TEXT,
    Kind,
    KindSearch,
    Misfits,
    decimal_mark,
    fits,
    is_address,
    words_of,
)

SEPARATORS: Final = ("|", ";", ",")
WHOLE: Final = ".0"
"""What stands behind each number of a column that pandas wrote, where cells are empty: `3.0` for the id 3."""
ID_NAMES: Final = ("id", "identifier", "iri", "uri", "key", "code", "qid", "ident", "geonameid")
"""How columns of ids are called, the surest name first."""
SUREST_ID_NAMES: Final = ID_NAMES[:4]
NAMES: Final = ("name", "label", "title", "fullname", "displayname", "preflabel", "rdfslabel")
"""How columns of names are called, the surest first."""
_LONGEST_ID: Final = 80
_MOST_OF_TABLE: Final = 64_000_000
"""How many distinct cells of all columns of a table are collected, of 8 bytes each."""
_MOST_PARTS: Final = 1_000_000
_EXAMPLES: Final = 3
_LONGEST_EXAMPLE: Final = 40
_SAMPLE: Final = 1_000
_MEASURES: Final = frozenset({DECIMAL, DOUBLE, BOOLEAN})


def plain(header: str) -> str:
    """Return a header as it is compared: letters and digits in lower case."""
    return re.sub(r"[^a-z0-9]", "", header.lower())


@dataclass(frozen=True, slots=True)
class ColumnSurvey:
    """What is known about a column.

    Args:
        name: Its header.
        kind: The kind of its values.
        ambiguous: Whether they are dates of which nobody knows whether the day stands first.
        counted: Whether they are whole numbers, even if they are taken for codes.
        count: How many cells are not empty.
        characters: How many characters these have.
        distinct: The distinct cells that are not empty; None where they can be no ids, or are too many.
        blank: Those of them that mean no value, such as `NA`.
        parts: By what may separate values in a cell, the distinct parts.
        worded: How many of a sample of cells are words, not codes or numbers, as a share.
        examples: The first distinct cells.
        several: Whether cells of records hold several values.
        split: Whether any cell holds what an option says separates values.
        repeat: The lines of the first two rows with the same cell, where the column is called as ids are.
        joined: Whether it is made of other columns.
        reading: How its numbers are read, if they are numbers.
        misfits: The values that are not of the kind that was chosen for it.
        values: How many values were looked at for their kind.
        mostly: The kind of numbers that nearly all of its values are, if not all.
        odd: If it is text and most of its values are numbers, one that is not, and how many of how many looked at.
    """

    name: str
    kind: Kind = TEXT
    ambiguous: bool = False
    counted: bool = False
    count: int = 0
    characters: int = 0
    distinct: Hashes | None = None
    blank: Hashes = field(default_factory=lambda: np.zeros(0, np.int64))
    parts: Mapping[str, Hashes] = field(default_factory=dict[str, Hashes])
    worded: float = 0.0
    examples: tuple[str, ...] = ()
    several: bool = False
    split: bool = False
    repeat: tuple[int, int] | None = None
    joined: bool = False
    reading: NumberReading | None = None
    misfits: Misfits = field(default_factory=Misfits)
    values: int = 0
    mostly: Kind | None = None
    odd: tuple[str, int, int] | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether no cell holds a value."""
        return self.distinct is not None and len(self.blank) == len(self.distinct)

    @property
    def plain(self) -> str:
        """The header as it is compared."""
        return plain(self.name)

    def differs_in(self, rows: int) -> bool:
        """Return whether each of so many rows has a different cell."""
        return self.distinct is not None and rows == self.count == len(self.distinct)


@dataclass(frozen=True, slots=True)
class TableSurvey:
    """What is known about a table.

    Args:
        source: What its source declares about it.
        rows: How many there are below the header.
        columns: Its columns.
        even: Whether all rows have as many cells as the header.
        repeated: Whether the second cell of the header is in the second column again, and half of that column repeats.
        joined: What each of the last columns is made of that the source does not have.
        odd: Its rows that are not like the others.
    """

    source: SourceTable
    rows: int
    columns: tuple[ColumnSurvey, ...]
    even: bool = True
    repeated: bool = False
    joined: Joined = ()
    odd: OddRows = field(default_factory=OddRows)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.source.name

    @property
    def names(self) -> tuple[str, ...]:
        """The headers."""
        return tuple(column.name for column in self.columns)

    def with_joined(self, joined: "TableSurvey") -> "TableSurvey":
        """Return the same with further columns, which are made of others."""
        return replace(self, columns=(*self.columns, *joined.columns), joined=(*self.joined, *joined.joined))

    def is_unique(self, place: int) -> bool:
        """Return whether every row has a different cell in a column."""
        return self.columns[place].differs_in(self.rows)


def parted(cell: str, sign: str) -> list[str]:
    """Return the values in a cell."""
    return [part for each in cell.split(sign) if (part := each.strip())]


class _ColumnSearch:
    """Collects what is known about a column.

    Args:
        header: Its header.
        search: Finds its kind.
        watched: Whether the lines of cells that repeat are wanted.
        likely_id: Whether its cells may be ids, whatever they look like.
        separator: What separates the values in a cell; looked for when empty.
        joined: Whether it is made of other columns.

    Attributes:
        likely_id: As given.
        kinds: As given.
    """

    def __init__(
        self, header: str, search: KindSearch, *, watched: bool, likely_id: bool, separator: str, joined: bool
    ) -> None:
        self.header = header
        self._joined = joined
        self.kinds = search
        self.likely_id = likely_id
        self._count = self._characters = self._distinct_characters = self._met = 0
        self._distinct: DistinctTexts | None = DistinctTexts()
        self._separator = separator
        self._signs: tuple[str, ...] = () if joined else SEPARATORS
        if separator:
            # A text in a record may hold several ids too.
            self._signs = (SEVERAL, *SEPARATORS) if separator == SEVERAL else (separator,)
        self._several = False
        self._whole = True
        self._parts: dict[str, DistinctTexts] = {}
        self._sample: dict[str, None] = {}
        self._blank = set[str]()
        self._order: list[Hashes] | None = [] if watched else None

    def add(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        distinct = set(cells)
        empty = cells.count("") if "" in distinct else 0
        distinct.discard("")
        self._count += len(cells) - empty
        if self._count > MOST_DISTINCT:
            self._order = None
        if self._order is not None:
            self._order.append(np.fromiter((hash(cell) if cell else 0 for cell in cells), np.int64, len(cells)))
        if not distinct:
            return
        text = "".join(cells)
        self._characters += len(text)
        if len(self._sample) < _SAMPLE:
            self._sample.update(dict.fromkeys(cell for cell in cells[:_SAMPLE] if cell))
        self._blank |= blank_joined(distinct) if self._joined else MISSING & distinct
        sign = self._separator
        several = bool(sign) and sign in text
        self._several = self._several or several
        if self.kinds.is_chosen:
            parts = (parted(cell, sign) if several else [cell] for cell in cells)
            self.kinds.add_chosen((part, line) for line, each in zip(lines, parts, strict=True) for part in each)
        else:
            self.kinds.add({part for cell in distinct for part in parted(cell, sign)} if several else distinct)
        self._collect(distinct)

    def _collect(self, distinct: Collection[str]) -> None:
        if self._distinct is None:
            return
        self._met += len(distinct)
        joined = "\x1f".join(distinct)
        self._distinct_characters += len(joined)
        kind = self.kinds.kind
        self._whole = self._whole and (kind != DECIMAL or all(map(_is_whole, distinct)))
        signs = (*self._signs, WHOLE) if kind == DECIMAL and self._whole else self._signs
        measures = kind in _MEASURES and WHOLE not in signs
        if not self.likely_id and (measures or self._distinct_characters > _LONGEST_ID * self._met):
            self.drop()
            return
        for sign in signs:
            if sign in joined and sign not in self._parts:
                # So far, each cell was one part.
                self._parts[sign] = self._distinct.copy(_MOST_PARTS)
            if sign in self._parts:
                self._parts[sign].add({part for cell in distinct for part in parted(cell, sign)})
        self._distinct.add(distinct)

    @property
    def size(self) -> int:
        """How many texts are kept."""
        return sum(each.size for each in (*self._parts.values(), *filter(None, [self._distinct])))

    @property
    def is_watched(self) -> bool:
        """Whether the lines of cells that repeat are still wanted."""
        return self._order is not None

    def compact(self) -> None:
        """Keep each distinct cell once."""
        for each in (*self._parts.values(), *filter(None, [self._distinct])):
            each.sorted()

    def drop(self) -> None:
        """Collect no more cells."""
        self._distinct = None
        self._parts.clear()

    def _splits(self, sign: str) -> bool:
        return sign != WHOLE or (self._whole and self.kinds.kind == DECIMAL)

    def survey(self, lines: Sequence[Hashes], mark: FileMark | None = None) -> ColumnSurvey:
        """Return what is known.

        Args:
            lines: The lines of all rows.
            mark: The decimal mark of numbers that could have either; None where numbers are not written as texts.
        """
        distinct = None if self._distinct is None or self._distinct.too_many else self._distinct.sorted()
        sample = list(self._sample)[:_SAMPLE]
        examples = [text for text in sample if text not in MISSING]
        kind = self.kinds.kind_with("." if mark is None else mark.mark)
        mostly = self.kinds.mostly("." if mark is None else mark.mark) if kind == TEXT else None
        return ColumnSurvey(
            self.header,
            kind,
            self.kinds.ambiguous,
            self.kinds.counted,
            self._count,
            self._characters,
            distinct,
            np.array(sorted(map(hash, self._blank)), dtype=np.int64),
            {sign: parts.sorted() for sign, parts in self._parts.items() if not parts.too_many and self._splits(sign)},
            sum(map(_is_worded, sample)) / max(len(sample), 1),
            tuple(
                text if len(text) <= _LONGEST_EXAMPLE else f"{text[:_LONGEST_EXAMPLE]}…"
                for text in examples[:_EXAMPLES]
            ),
            self._several and self._separator == SEVERAL,
            self._several and self._separator != SEVERAL,
            _first_repeat(self._order, lines[-len(self._order) :]) if self._order else None,
            self._joined,
            None if mark is None else self._reading(mostly or kind, examples, mark),
            self.kinds.misfits_of(mostly or kind),
            self.kinds.count,
            mostly,
            _odd_number(examples) if kind == TEXT and mostly is None and not self.kinds.counted else None,
        )

    def _reading(self, kind: Kind, cells: Sequence[str], mark: FileMark) -> NumberReading | None:
        if kind not in NUMBERS or not cells:
            return None
        read = [cell for cell in cells if fits(kind, [cell])] or cells
        units, is_open = tuple(self.kinds.units), self.kinds.is_open
        return NumberReading(telling_example(read), decimal_mark(kind), units, is_open, is_open and mark.is_guess)


def _odd_number(cells: Sequence[str]) -> tuple[str, int, int] | None:
    """Return the first cell that is no number where most are, and how many of how many are none."""
    none = [cell for cell in cells if not any(fits(kind, [cell]) for kind in AS_PEOPLE_WRITE)]
    few = 0 < len(none) * 2 < len(cells)
    return (none[0], len(none), len(cells)) if few else None


def _is_whole(text: str) -> bool:
    return text.endswith(WHOLE) or text in MISSING


def _is_worded(text: str) -> bool:
    if is_address(text) or text.isupper():
        return False
    return any(map(str.isalpha, text)) and not any(map(str.isdigit, text))


def _first_repeat(order: Sequence[Hashes], lines: Sequence[Hashes]) -> tuple[int, int] | None:
    """Return the lines of the first row whose cell stood in a row before, and of that row."""
    cells, places = np.concatenate(order), np.concatenate(lines)
    said = np.flatnonzero(cells)
    _, firsts, numbers = np.unique(cells[said], return_index=True, return_inverse=True)
    again = np.flatnonzero(firsts[numbers] != np.arange(len(said)))
    if not len(again):
        return None
    return int(places[said[firsts[numbers[again[0]]]]]), int(places[said[again[0]]])


class TableSearch:
    """Collects what is known about the columns of a table.

    Args:
        table: The table.
        options: The options of tables.
    """

    def __init__(self, table: SourceTable, options: TableOptions) -> None:
        self._table = table
        self._options = options
        self._chosen = options.id_column(table.name, table.columns)
        self._searches: list[_ColumnSearch] = []
        self._lines: list[Hashes] = []
        self._rows = 0
        self._even = True
        # People write totals below tables, programs do not.
        self._kept = RowsKept() if table.first is not None else None

    def add(self, table: SourceTable, batch: Batch) -> None:
        """Add some rows; the table may have got further columns."""
        self._table = table
        self._even = self._even and batch.even
        self._rows += len(batch.lines)
        if self._kept is not None:
            self._kept.add(batch)
        known = len(self._searches)
        self._searches += [
            _search(table, place, header, self._options, self._chosen)
            for place, header in enumerate(table.columns[known:], start=known)
        ]
        for search, cells in zip(self._searches, batch.columns, strict=True):
            search.add(cells, batch.lines)
        if any(search.is_watched for search in self._searches):
            self._lines.append(np.array(batch.lines, dtype=np.int64))
        else:
            self._lines.clear()
        if sum(search.size for search in self._searches) > _MOST_OF_TABLE:
            self._bound()

    def _bound(self) -> None:
        """Collect no more cells of the columns with most distinct ones, ids last, until half of the limit is free."""
        for search in self._searches:
            search.compact()
        while sum(search.size for search in self._searches) > _MOST_OF_TABLE // 2:
            max(self._searches, key=lambda each: (bool(each.size) and not each.likely_id, each.size)).drop()

    def survey(self) -> TableSurvey:
        """Return what is known."""
        table = self._table
        written = (search.kinds for search in self._searches if search.header not in table.exact)
        proven: list[Mark] = [mark for kinds in written if (mark := kinds.proven_mark) is not None]
        file = mark_of([self._options.mark] if self._options.mark else proven, commas=table.commas)
        columns = tuple(
            search.survey(self._lines, None if search.header in table.exact else file) for search in self._searches
        )
        repeats = _repeats(table, columns, self._rows)
        kinds = [(place, column.kind) for place, column in enumerate(columns)]
        marks: dict[int, Mark] = {place: decimal_mark(kind) for place, kind in kinds if kind in NUMBERS}
        odd = OddRows() if self._kept is None else self._kept.odd_rows(marks)
        return TableSurvey(table, self._rows, columns, self._even, repeats, odd=odd)


class JoinedSearch:
    """Collects what is known about groups of columns of a table, each as one column.

    Args:
        groups: The columns.
        ids: Whether only groups are wanted that are different in each row.
    """

    def __init__(self, groups: Joined, *, ids: bool) -> None:
        self._ids = ids
        self._rows = 0
        self._searches = {group: _joined_search() for group in groups}

    @property
    def has_groups(self) -> bool:
        """Whether any group is still wanted."""
        return bool(self._searches)

    def add(self, batch: Batch) -> None:
        """Add some rows."""
        self._rows += len(batch.lines)
        for group, search in list(self._searches.items()):
            cells = batch.joined(group)
            if self._ids and ("" in cells or len(set(cells)) < len(cells)):
                del self._searches[group]
            else:
                search.add(cells, batch.lines)

    def survey(self, table: SourceTable) -> TableSurvey:
        """Return what is known about the columns that are made of others, and nothing about these."""
        found = {group: search.survey(()) for group, search in self._searches.items()}
        kept = {
            group: replace(column, name=joined_header([table.columns[place] for place in group]))
            for group, column in found.items()
            if not self._ids or column.differs_in(self._rows)
        }
        return TableSurvey(table, self._rows, tuple(kept.values()), joined=tuple(kept))


def _joined_search() -> _ColumnSearch:
    search = KindSearch("", chosen=(TEXT,))
    return _ColumnSearch("", search, watched=False, likely_id=True, separator="", joined=True)


def _search(table: SourceTable, place: int, header: str, options: TableOptions, chosen: str | None) -> _ColumnSearch:
    kinds = options.kind_of(table.name, header)
    called = plain(header) in ID_NAMES or words_of(header)[-1:] == ("id",)
    likely = place == 0 or called or header in {chosen, table.key, *table.links, *table.joined}
    return _ColumnSearch(
        header,
        KindSearch(header, plus=not table.several, chosen=kinds),
        watched=header == chosen or plain(header) in SUREST_ID_NAMES,
        likely_id=likely,
        separator=options.separator_of(table.name, header) or (SEVERAL if table.several else ""),
        joined=header in table.joined,
    )


def _repeats(table: SourceTable, columns: Sequence[ColumnSurvey], rows: int) -> bool:
    if len(columns) < 2 or table.first is None:
        return False
    first, distinct = table.first[1][1], columns[1].distinct
    return distinct is not None and hash(first) in distinct and len(distinct) * 2 <= rows + 1
