"""Tables as graphs, from CSV and TSV: lists of edges, and tables with an entity in each row.

An edge list has columns such as `head,relation,tail`, or three columns without a header whose second one repeats. In
any other table each row is an entity, called by its id column, and every other column a relation. What has no IRI gets
one below `urn:table:`, in which it stands percent-encoded, and a label as it was written.
"""

import csv
import io
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import quote

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.labels import RDF_TYPE
from kg_adapters.local.reading.edge_list import Edge, EdgeList
from kg_adapters.local.reading.rdf_lines import Problem
from kg_adapters.local.reading.table_plan import (
    CLASS,
    TablePlan,
    guessed_id,
    label_of,
    named_id,
    plain_header,
)
from kg_adapters.local.reading.table_values import TEXT, kind_of
from kg_adapters.reading_limits import ReadingLimits
from kg_boundary.shown import counted, in_quotes, listed

_TYPE: Final = ox.NamedNode(RDF_TYPE.value)
_HEADS: Final = frozenset({"head", "subject", "source", "from", "start", "h", "s", "src", "startid", "entity1"})
_RELATIONS: Final = frozenset(
    {"relation", "predicate", "property", "edge", "relationship", "r", "p", "rel", "label", "type", "kind"}
)
_TAILS: Final = frozenset({"tail", "object", "target", "to", "end", "t", "o", "dst", "endid", "entity2", "destination"})
_SIGNS: Final = {".tsv": "\t"}
_WITH_A_ROW: Final = 2
_LEAST_ROWS: Final = 3


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with the line that it ends in."""

    line: int
    cells: list[str]


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
        """
        text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        try:
            rows = list(self._rows(text, ending))
        except UnicodeDecodeError as error:
            raise InvalidSource(
                f"{self._path} is not UTF-8 text: {error.reason}. Save it as UTF-8 (iconv -f latin1 -t utf-8)."
            ) from error
        if len(rows) < _WITH_A_ROW:
            missing = "has a header and no row below it" if rows else "is empty: a table is a header and rows below it"
            self._problem(f"{self._path} {missing}.", ValueError())
            return
        edges = None if self._id_column is not None else _edge_columns(rows)
        if edges is not None:
            yield from self._edges(rows[edges.header :], edges)
        else:
            yield from self._entities(rows[0], self._whole(rows[1:], len(rows[0].cells)))

    def _rows(self, text: io.TextIOWrapper, ending: str) -> Iterator[_Row]:
        csv.field_size_limit(self._limits.literal_bytes)
        first = text.readline(1 << 20)
        sign = _SIGNS.get(ending) or max(",;\t|", key=lambda each: sum(map(len, csv.reader([first], delimiter=each))))
        rows = csv.reader(_chained(first, text), delimiter=sign)
        while True:
            try:
                cells = next(rows, None)
            except csv.Error as error:
                self._problem(f"{self._path}, line {rows.line_num:,}: {error}.", error)
                continue
            if cells is None:
                return
            if any(cell.strip() for cell in cells):
                yield _Row(rows.line_num, [cell.strip() for cell in cells])

    def _whole(self, rows: Sequence[_Row], width: int) -> Iterator[_Row]:
        for row in rows:
            if len(row.cells) > width and any(row.cells[width:]):
                place = f"{self._path}, line {row.line:,}"
                self._problem(f"{place}: it has {len(row.cells)} cells, and the header {width}.", ValueError())
            else:
                yield _Row(row.line, (row.cells + [""] * width)[:width])

    def _edges(self, rows: Sequence[_Row], at: "_Edges") -> Iterator[ox.Quad]:
        edges: list[Edge] = []
        for row in self._whole(rows, at.width):
            head, tail = row.cells[at.head], row.cells[at.tail]
            if head and tail:
                edges.append((head, at.name_of(row, self._stem), tail))
            else:
                self._problem(f"{self._path}, line {row.line:,}: an edge needs a head and a tail.", ValueError())
        read = EdgeList(edges)
        yield from read.statements()
        left = f" Left out: {listed(at.unread, ', ')}." if at.unread else ""
        self._note(f"{self._path}: {counted(len(edges), 'edge')}, one in each row. {read.told}{left}")

    def _entities(self, header: _Row, rows: Iterator[_Row]) -> Iterator[ox.Quad]:
        names = _headers(header.cells)
        whole = list(rows)
        columns = [[row.cells[place] for row in whole] for place in range(len(names))]
        ids = self._chosen(names) if self._id_column is not None else guessed_id(names, columns)
        self._tell_repeats(names, columns, ids, [row.line for row in whole])
        plan = TablePlan(names, columns, ids, self._stem)
        kind = ox.NamedNode(CLASS + quote(self._stem, safe=""))
        yield label_of(kind, self._stem)
        for place in plan.stated:
            yield label_of(plan.relations[place], names[place])
        for number, row in enumerate(whole, start=1):
            key = str(number) if plan.key is None else row.cells[plan.key]
            if not key:
                self._problem(f"{self._path}, line {row.line:,}: the id column is empty.", ValueError())
                continue
            node = plan.node(key)
            yield ox.Quad(node, _TYPE, kind)
            yield from plan.statements(node, key, row.cells)
        self._note(f"{self._path}: {counted(len(whole), 'entity', 'entities')}, one in each row. {plan.told}")

    def _tell_repeats(
        self, names: Sequence[str], columns: Sequence[Sequence[str]], key: int | None, lines: Sequence[int]
    ) -> None:
        """Say where an id stands in two rows, or in a column of ids none."""
        place = named_id(names) if key is None else key
        repeat = None if place is None else _repeat(columns[place])
        if place is None or repeat is None:
            return
        first, again = (lines[row] for row in repeat)
        said = f"{self._path}, line {again:,}: the id {in_quotes(columns[place][repeat[1]])} is in line {first:,} too"
        if key is not None:
            self._note(f"{said}; rows with the same id become one entity.")
        else:
            flag = shlex.join(["--id-column", names[place]])
            self._note(f"{said}, so the rows are numbered. To make rows with the same id one entity: {flag}.")

    def _chosen(self, names: Sequence[str]) -> int:
        wanted = self._id_column or ""
        for place, name in enumerate(names):
            if name == wanted or plain_header(name) == plain_header(wanted):
                return place
        known = ", ".join(map(in_quotes, names[:20]))
        raise InvalidSource(f"{self._path} has no column {in_quotes(wanted)}. It has {known}.")


@dataclass(frozen=True, slots=True)
class _Edges:
    """Where an edge list has what.

    Args:
        head: The column of the heads.
        relation: That of the relations, if there is one.
        tail: That of the tails.
        width: How many columns there are.
        header: How many rows come before the first edge.
        unread: The headers of columns that say nothing here.
    """

    head: int
    relation: int | None
    tail: int
    width: int
    header: int
    unread: tuple[str, ...] = ()

    def name_of(self, row: _Row, otherwise: str) -> str:
        return otherwise if self.relation is None else row.cells[self.relation] or otherwise


def _edge_columns(rows: Sequence[_Row]) -> _Edges | None:
    names = [plain_header(name) for name in rows[0].cells]
    head, tail, relation = (_first(names, known) for known in (_HEADS, _TAILS, _RELATIONS))
    if head is not None and tail is not None:
        others = _filled(rows[1:], [place for place in range(len(names)) if place not in {head, tail}])
        if relation is None:
            texts = [place for place, cells in others.items() if kind_of(names[place], cells) == TEXT]
            relation = texts[0] if len(texts) == 1 else None
        headers = _headers(rows[0].cells)
        unread = tuple(headers[place] for place in others if place != relation)
        return _Edges(head, relation, tail, len(names), 1, unread)
    if len(names) != 3 or len(rows) < _LEAST_ROWS or any(len(row.cells) != 3 for row in rows):
        return None
    # What a header calls the relations is none of them.
    relations = [row.cells[1] for row in rows]
    repeats = len(set(relations)) * 2 <= len(relations) and relations[0] in relations[1:]
    return _Edges(0, 1, 2, 3, 0) if repeats and kind_of("", relations) == TEXT else None


def _filled(rows: Sequence[_Row], places: Sequence[int]) -> dict[int, list[str]]:
    """Return those of some columns that hold anything, each with its cells."""
    columns = {place: [row.cells[place] for row in rows if len(row.cells) > place] for place in places}
    return {place: cells for place, cells in columns.items() if any(cells)}


def _headers(cells: Sequence[str]) -> list[str]:
    names: list[str] = []
    known: set[str] = set()
    for place, cell in enumerate(cells, start=1):
        name = cell or f"column {place}"
        names.append(name if name not in known else f"{name} {place}")
        known.add(names[-1])
    return names


def _repeat(ids: Sequence[str]) -> tuple[int, int] | None:
    """Return the first two rows with the same id, or None where all ids differ."""
    firsts: dict[str, int] = {}
    pairs = ((firsts.setdefault(each, row), row) for row, each in enumerate(ids) if each)
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


def _chained(first: str, text: io.TextIOWrapper) -> Iterator[str]:
    yield first
    yield from text


def _first(names: Sequence[str], known: frozenset[str]) -> int | None:
    return next((place for place, name in enumerate(names) if name in known), None)
