"""Write the statements of a table with an entity in each row, by its plan."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kg_adapters.files.rdf import Problem
from kg_adapters.files.rows import StatementColumn
from kg_adapters.labels import RDF_TYPE
from kg_adapters.tables.iris import ALIAS, CLASS, COMMENT, LABEL, RELATION, UNIT, escaped, node_of
from kg_adapters.tables.numbers import unit_in
from kg_adapters.tables.plan import ColumnPlan, LinkPlan, TablePlan
from kg_adapters.tables.rows import Batch, SourceTable, blank_joined
from kg_adapters.tables.survey import parted
from kg_adapters.tables.values import ANY_DATE, MISSING, TEXT, fits, is_address, writer_of
from kg_adapters.terms import XSD_STRING
from kg_adapters.written_dates import written_date

_MOST_CACHED: Final = 100_000


class TableWriter:
    """Writes the rows of one table, with an entity in each.

    Args:
        table: The table.
        plan: What becomes of it.
        problem: Called for every row that has no id.
    """

    def __init__(self, table: SourceTable, plan: TablePlan, problem: Problem) -> None:
        self._table = table
        self._plan = plan
        self._problem = problem
        self._class = CLASS + escaped(table.name)
        self._rows = self._said = 0
        self._links = {
            place: _LinkWriter(link, joined=column.joined)
            for place, column in enumerate(plan.columns)
            if (link := column.link) is not None
        }

    def statements(self, batch: Batch) -> list[StatementColumn]:
        """Return the statements of some rows; at first, also the names of the class and of the relations."""
        begun = bool(self._said)
        self._said += len(batch.lines)
        return [*([] if begun else self._headers()), *self._statements(batch)]

    def _headers(self) -> list[StatementColumn]:
        names = {self._class: self._table.name}
        names |= {
            node_of(RELATION, column.name): column.name
            for column in self._plan.columns
            if (column.is_value or column.link is not None) and not is_address(column.name)
        }
        return [StatementColumn(LABEL, list(names), list(names.values()), XSD_STRING.value)]

    def _statements(self, batch: Batch) -> Iterator[StatementColumn]:
        keys, nodes = self._nodes(batch)
        there = [node for node in nodes if node]
        yield StatementColumn(RDF_TYPE.value, there, [self._class] * len(there), None)
        yield self._labels(batch, keys, nodes)
        whole = len(there) == len(nodes)
        for place, column in enumerate(self._plan.columns):
            cells = batch.cells(place)
            if column.role in {"id", "label", "empty", "unused"} and column.link is None and not column.is_value:
                continue
            if not whole:
                cells = [cell if node else "" for node, cell in zip(nodes, cells, strict=True)]
            yield from self._column(place, column, nodes, cells)

    def _nodes(self, batch: Batch) -> tuple[Sequence[str], list[str]]:
        """Return the id of each row, and its IRI; nothing where it has no id."""
        space, key = self._plan.space, self._plan.key
        if key is None:
            first = self._rows + 1
            self._rows += len(batch.lines)
            keys: Sequence[str] = list(map(str, range(first, self._rows + 1)))
            return keys, [space + each for each in keys]
        keys = batch.cells(key)
        for line, each in zip(batch.lines, keys, strict=True):
            if not each:
                self._problem(f"{self._table.place(line)}: the id column is empty.", ValueError())
        return keys, [node_of(space, each) if each else "" for each in keys]

    def _labels(self, batch: Batch, keys: Sequence[str], nodes: Sequence[str]) -> StatementColumn:
        named = self._plan.full_name or [place for place in (self._plan.place_of("label"),) if place is not None]
        cells = [batch.cells(place) for place in named] or [[""] * len(nodes)]
        labels = [" ".join(filter(None, parts)) for parts in zip(*cells, strict=True)]
        said = [
            (node, label or (key if self._plan.key is not None else f"row {key}"))
            for node, label, key in zip(nodes, labels, keys, strict=True)
            if node and (label or not (self._table.nested or is_address(key)))
        ]
        return StatementColumn(LABEL, [node for node, _ in said], [text for _, text in said], XSD_STRING.value)

    def _column(
        self, place: int, column: ColumnPlan, nodes: list[str], cells: Sequence[str]
    ) -> Iterator[StatementColumn]:
        if column.separator:
            parts = [
                (node, part) for node, cell in zip(nodes, cells, strict=True) for part in parted(cell, column.separator)
            ]
            nodes, cells = [node for node, _ in parts], [part for _, part in parts]
        relation = {"description": COMMENT, "alias": ALIAS}.get(column.role) or node_of(RELATION, column.name)
        if place in self._links:
            yield from self._links[place].statements(relation, nodes, cells)
            return
        heads, tails = _said(nodes, cells, _NOTHING if column.kind == TEXT else MISSING)
        write = writer_of(column.kind)
        if column.misfits or column.units or column.kind == ANY_DATE:
            yield from self._mixed(column, relation, heads, tails)
            return
        if write is not None:
            tails = _each_once(write, tails)
        yield StatementColumn(relation, heads, tails, column.kind.datatype)

    def _mixed(
        self, column: ColumnPlan, relation: str, heads: list[str], tails: list[str]
    ) -> Iterator[StatementColumn]:
        """Yield the statements of values of which some are not of the kind of their column, or have a unit."""
        write = writer_of(column.kind) or str
        written = {cell: _value_of(column, cell, write) for cell in set(tails)}
        for datatype in sorted({each for _, each in written.values()}):
            said = [
                (head, written[tail][0])
                for head, tail in zip(heads, tails, strict=True)
                if written[tail][1] == datatype
            ]
            yield StatementColumn(relation, [head for head, _ in said], [text for _, text in said], datatype)


def _value_of(column: ColumnPlan, cell: str, write: Callable[[str], str]) -> tuple[str, str]:
    """Return the text of a value and its datatype, which is the unit of a quantity."""
    if column.misfits and not fits(column.kind, [cell]):
        return cell, TEXT.datatype
    if column.kind == ANY_DATE and (date := written_date(cell, expected=True)) is not None:
        return date.value, date.datatype.value
    # In a column with one unit, a number without it has the same.
    unit = column.units[0] if len(column.units) == 1 else unit_in(cell) if column.units else ""
    return write(cell), node_of(UNIT, unit) if unit else column.kind.datatype


_NOTHING: Final = frozenset({""})


def _said(nodes: list[str], cells: Sequence[str], missing: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return the cells that are not blank, and the nodes that they are about."""
    if missing.isdisjoint(cells):
        return nodes, list(cells)
    kept = [cell not in missing for cell in cells]
    heads, tails = ([each for each, keep in zip(texts, kept, strict=True) if keep] for texts in (nodes, cells))
    return heads, tails


def _each_once(function: Callable[[str], str], cells: Sequence[str]) -> list[str]:
    """Return the results of a function for all cells, of which many may be equal."""
    found = {cell: function(cell) for cell in set(cells)}
    return [found[cell] for cell in cells]


class _LinkWriter:
    """Writes where a column leads; a text that is not the id of a row becomes a node of that name.

    Args:
        link: Where it leads.
        joined: Whether the column is made of others.
    """

    def __init__(self, link: LinkPlan, *, joined: bool) -> None:
        self._link = link
        self._joined = joined
        self._known: dict[str, str] = {}
        self._named: set[str] = set()

    def statements(self, relation: str, nodes: list[str], cells: Sequence[str]) -> Iterator[StatementColumn]:
        """Yield the statements of some cells."""
        unmatched = self._link.unmatched
        said, made = set(cells) - {""}, self._link.node_class
        fresh = said if made else {cell for cell in said if hash(cell) in unmatched} if unmatched else set[str]()
        blank = blank_joined(fresh) if self._joined else fresh & MISSING
        missing = _NOTHING | blank
        heads, ends = _said(nodes, cells, missing)
        if len(self._known) > _MOST_CACHED:
            self._known.clear()
        space, known = self._link.space, self._known
        spelled = self._link.spelled
        known |= {cell: node_of(space, spelled.get(cell, cell)) for cell in set(ends) if cell not in known}
        yield StatementColumn(relation, heads, [known[cell] for cell in ends], None)
        names = [cell for cell in fresh - blank - self._named if not is_address(cell)]
        if names:
            self._named.update(names)
            yield StatementColumn(LABEL, [known[cell] for cell in names], names, XSD_STRING.value)
            if made:
                kind = CLASS + escaped(made)
                yield StatementColumn(LABEL, [kind], [made], XSD_STRING.value)
                yield StatementColumn(RDF_TYPE.value, [known[cell] for cell in names], [kind] * len(names), None)
