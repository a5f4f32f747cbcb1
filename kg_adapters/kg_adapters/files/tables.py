"""Read CSV and TSV as graphs: lists of edges, and tables with an entity in each row."""

import csv
import io
import shlex
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.files.rdf import Problem
from kg_adapters.files.table_columns import (
    TEXT,
    Column,
    Kind,
    TableContent,
    TablePlan,
    entity_of,
    guessed_id,
    is_address,
    kind_of,
    label_of,
    literal_of,
    named_id,
    plain_header,
    relation_of,
)
from kg_adapters.open_options import ReadingLimits, Refused, setting
from kg_boundary.shown import counted, in_quotes, listed

_HEADS: Final = frozenset({"head", "subject", "source", "from", "start", "h", "s", "src", "startid", "entity1"})

_RELATIONS: Final = frozenset(
    {"relation", "predicate", "property", "edge", "relationship", "r", "p", "rel", "label", "type", "kind"}
)

_TAILS: Final = frozenset({"tail", "object", "target", "to", "end", "t", "o", "dst", "endid", "entity2", "destination"})

_FEWEST_EDGES: Final = 3

Edge: TypeAlias = tuple[str, str, str]
"""The head, the relation and the tail, none of them empty."""


class EdgeList:
    """All edges of a file.

    A relation leads to values where all its tails look like values of one kind, and none is the head of an edge.
    """

    def __init__(self, edges: Sequence[Edge]) -> None:
        self._edges = edges
        heads = {head for head, _, _ in edges}
        tails: dict[str, set[str]] = {}
        for _, relation, tail in edges:
            tails.setdefault(relation, set()).add(tail)
        self._kinds = {relation: _value_kind(relation, ends, heads) for relation, ends in tails.items()}

    @property
    def told(self) -> str:
        """What the relations lead to, in words."""
        kinds = (f"{name} ({'edges' if kind is None else kind.name})" for name, kind in self._kinds.items())
        return f"Relations: {listed(kinds, ', ') or 'none'}."

    def statements(self) -> Iterator[ox.Quad]:
        """Yield each edge, and the name of each thing once."""
        named: set[str] = set()
        for head, relation, tail in self._edges:
            kind, leads = self._kinds[relation], relation_of(relation)
            ends = [(head, entity_of(head)), (relation, leads)]
            if kind is None:
                ends.append((tail, entity_of(tail)))
                yield ox.Quad(entity_of(head), leads, entity_of(tail))
            else:
                yield ox.Quad(entity_of(head), leads, literal_of(tail, kind))
            yield from (label_of(node, text) for text, node in ends if not is_address(text) and text not in named)
            named.update(text for text, _ in ends)


def _value_kind(name: str, tails: set[str], heads: set[str]) -> Kind | None:
    """Return the kind of values that a relation has, or None where it leads to entities."""
    kind = kind_of(name, tails)
    return None if kind == TEXT or kind.datatype.endswith("anyURI") or not heads.isdisjoint(tails) else kind


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """Where a list of edges has what.

    Args:
        head: The column of the heads.
        relation: That of the relations, if there is one.
        tail: That of the tails.
        header: Whether the first row is a header.
        unread: The headers of columns that say nothing here.
    """

    head: int
    relation: int | None
    tail: int
    header: bool = True
    unread: tuple[str, ...] = ()


def edge_columns(table: TableContent) -> EdgeColumns | None:
    """Return where a table has its edges, or None where it is no list of edges."""
    names = [plain_header(name) for name in table.first]
    head, tail, relation = (_first(names, known) for known in (_HEADS, _TAILS, _RELATIONS))
    if head is not None and tail is not None:
        others = [place for place, column in enumerate(table.columns) if column.values and place not in {head, tail}]
        if relation is None:
            texts = [place for place in others if kind_of(names[place], table.columns[place].values) == TEXT]
            relation = texts[0] if len(texts) == 1 else None
        unread = tuple(table.names[place] for place in others if place != relation)
        return EdgeColumns(head, relation, tail, unread=unread)
    if len(names) != 3 or len(table.lines) + 1 < _FEWEST_EDGES or not table.even:
        return None
    # What a header calls the relations is none of them.
    relations = table.cells(1, first=True)
    repeats = len(set(relations)) * 2 <= len(relations) and relations[0] in relations[1:]
    return EdgeColumns(0, 1, 2, header=False) if repeats and kind_of("", relations) == TEXT else None


def _first(names: Sequence[str], known: frozenset[str]) -> int | None:
    return next((place for place, name in enumerate(names) if name in known), None)


_SIGNS: Final = {".tsv": "\t"}

# Wider ones are matrices, of which each cell would be a relation of its own.
_MOST_COLUMNS: Final = 25_000

_SNIFFED: Final = 1 << 16

_UTF_16: Final = (BOM_UTF16_LE, BOM_UTF16_BE)


class TableReader:
    """Reads one table as a whole.

    Args:
        path: The file, for messages.
        name: What people call it; its rows are of the class that is called so.
        problem: Called for every row that cannot be read; it raises, or lets the rest be read.
        note: Called with what was guessed.
        limits: How long a cell may be.
        id_column: The column with the ids of rows, as its header says; guessed when None.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        problem: Problem,
        note: Callable[[str], None],
        limits: ReadingLimits,
        id_column: str | None = None,
    ) -> None:
        self._path = path
        self._stem = Path(name).name.partition(".")[0] or "table"
        self._problem = problem
        self._note = note
        self._limits = limits
        self._id_column = id_column

    def read(self, stream: IO[bytes], ending: str) -> Iterator[ox.Quad]:
        """Yield the statements.

        Raises:
            InvalidSource: It is not UTF-8, or has not the column that holds the ids.
            Refused: It has too many columns.
        """
        try:
            table = self._table(io.TextIOWrapper(stream, "utf-8-sig", newline=""), ending)
        except UnicodeDecodeError as error:
            encoding = "utf-16" if error.object.startswith(_UTF_16) else "latin1"
            raise self._other_encoding(error.reason, encoding) from error
        if table is None:
            self._problem(f"{self._path} is empty: a table is a header and rows below it.", ValueError())
            return
        if not table.lines and table.even:
            self._problem(f"{self._path} has a header and no row below it.", ValueError())
            return
        edges = None if self._id_column is not None else edge_columns(table)
        yield from self._entities(table) if edges is None else self._edges(table, edges)

    def _table(self, text: io.TextIOWrapper, ending: str) -> TableContent | None:
        table: TableContent | None = None
        for line, cells in self._rows(text, ending):
            if table is None:
                if len(cells) > _MOST_COLUMNS:
                    raise Refused(
                        f"line {line:,}: it has {len(cells):,} columns, and at most {_MOST_COLUMNS:,} are read; a "
                        "table with the columns head,relation,tail may hold any number of values"
                    )
                table = TableContent(line, cells)
                continue
            width = len(table.columns)
            table.even = table.even and len(cells) == width
            if any(cells[width:]):
                place = f"{self._path}, line {line:,}"
                self._problem(f"{place}: it has {len(cells)} cells, and the header {width}.", ValueError())
            else:
                table.add(line, cells)
        return table

    def _rows(self, text: io.TextIOWrapper, ending: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of each row that has any, and the line that it ends in."""
        csv.field_size_limit(self._limits.literal_bytes)
        lines = _Lines(text)
        if "\0" in lines.first:
            raise self._other_encoding("it holds zero bytes", "utf-16")
        sign = _SIGNS.get(ending) or max(
            ",;\t|", key=lambda each: sum(map(len, csv.reader([lines.first[:_SNIFFED]], delimiter=each)))
        )
        rows = csv.reader(lines, delimiter=sign)
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

    def _edges(self, table: TableContent, at: EdgeColumns) -> Iterator[ox.Quad]:
        edges: list[Edge] = []
        lines = chain([] if at.header else [table.line], table.lines)
        heads, tails = (table.cells(place, first=not at.header) for place in (at.head, at.tail))
        relations = [""] * len(heads) if at.relation is None else table.cells(at.relation, first=not at.header)
        for line, head, relation, tail in zip(lines, heads, relations, tails, strict=True):
            if head and tail:
                edges.append((head, relation or self._stem, tail))
            else:
                self._problem(f"{self._path}, line {line:,}: an edge needs a head and a tail.", ValueError())
        read = EdgeList(edges)
        yield from read.statements()
        left = f" Left out: {listed(at.unread, ', ')}." if at.unread else ""
        self._note(f"{self._path}: {counted(len(edges), 'edge')}, one in each row. {read.told}{left}")

    def _entities(self, table: TableContent) -> Iterator[ox.Quad]:
        ids = self._chosen(table.names) if self._id_column is not None else guessed_id(table)
        self._tell_repeats(table, ids)
        plan = TablePlan(table, ids, self._stem)
        for line, key in zip(table.lines, plan.keys, strict=True):
            if not key:
                self._problem(f"{self._path}, line {line:,}: the id column is empty.", ValueError())
        yield from plan.statements()
        count = len(table.lines)
        self._note(f"{self._path}: {counted(count, 'entity', 'entities')}, one in each row. {plan.told}")

    def _tell_repeats(self, table: TableContent, key: int | None) -> None:
        """Say where an id stands in two rows, or in a column of ids none."""
        place = named_id(table.names) if key is None else key
        repeat = None if place is None else _repeat(table.columns[place])
        if place is None or repeat is None:
            return
        value, *rows = repeat
        first, again = (table.lines[row] for row in rows)
        said = f"{self._path}, line {again:,}: the id {in_quotes(value)} is in line {first:,} too"
        if key is not None:
            self._note(f"{said}; rows with the same id become one entity.")
        else:
            flag = shlex.join(["--id-column", table.names[place]])
            self._note(f"{said}, so the rows are numbered. To make rows with the same id one entity: {flag}.")

    def _chosen(self, names: Sequence[str]) -> int:
        wanted = self._id_column or ""
        for place, name in enumerate(names):
            if name == wanted or plain_header(name) == plain_header(wanted):
                return place
        known = ", ".join(map(in_quotes, names[:20]))
        raise InvalidSource(f"{self._path} has no column {in_quotes(wanted)}. It has {known}.")


def _repeat(ids: Column) -> tuple[str, int, int] | None:
    """Return the first id that is in two rows, with their numbers, or None where all ids differ."""
    firsts: dict[str, int] = {}
    found = ((value, firsts.setdefault(value, row), row) for row, value in zip(ids.rows, ids.values, strict=True))
    return next((each for each in found if each[1] != each[2]), None)


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
