"""Describe what became of the tables of an import, and the options that change it."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kg_adapters.tables.edges import EdgePlan, EdgeSurvey
from kg_adapters.tables.plan import ColumnPlan, LinkPlan, Plan, TablePlan, repeated_id
from kg_adapters.tables.rows import SEVERAL
from kg_adapters.tables.survey import WHOLE, ColumnSurvey, TableSurvey
from kg_adapters.tables.values import BOOLEAN, TEXT
from kg_boundary.shown import counted, in_quotes, listed, shown_within

_LONGEST_HEADER: Final = 60
_LONGEST_OPTION: Final = 160


@dataclass(frozen=True, slots=True)
class LinkReport:
    """Where a column leads.

    Args:
        column: The column.
        to: The column that holds the ids, as `TABLE.COLUMN`.
        values: How many distinct values the column has.
        matched: How many of them are ids of rows; the others became entities without a row.
        share: The same as a share of one.
        example: One of the values.
        separator: What separates several ids in a cell; nothing where each cell is one.
        undo: The option that makes the column values again.
        declared: Whether the source declares the link.
        nested: Whether it leads to what is nested in the row, not to ids.
        made: Whether it leads to entities that its values became.
        spelled: How many values are ids but for case, blanks or leading zeros.
    """

    column: str
    to: str
    values: int
    matched: int
    share: float
    example: str
    separator: str
    undo: str
    declared: bool = False
    nested: bool = False
    made: bool = False
    spelled: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What was left out of a table, or may have been misread.

    Args:
        columns: The columns, or the rows.
        why: What was done with them, and why.
        option: The option that changes it; nothing where there is none.
        part: What of the table it is about.
    """

    columns: tuple[str, ...]
    why: str
    option: str = ""
    part: Literal["numbers", "links", "rows", "options"] = "rows"


@dataclass(frozen=True, slots=True)
class TableReport:
    """What became of a table.

    Args:
        path: The file.
        table: What the table is called, and the class of its rows.
        rows: How many rows it has; of a list of edges, how many edges.
        edges: Whether it is a list of edges.
        nested: Whether its rows are parts of those of another table.
        id: The column with the ids of rows; None where they are numbered.
        label: The column with their names.
        description: The column that describes them.
        aliases: The columns with further names.
        links: The columns that lead to rows.
        columns: The other columns, or the relations of edges, by the kind of their values.
        constant: Those with one value in all of the first rows.
        left_out: What was left out.
        numbers: The columns of numbers that could be misread, each with how one of them is read: `1.200 is 1,200`.
        doubts: What should be checked: numbers that could be others, almost numbers, almost links, rows that differ.
        repeats: How many further nested objects are equal to one of its rows.
        repeated: Which rows have the same id, and what was done about it; else empty.
    """

    path: str
    table: str
    rows: int
    edges: bool = False
    nested: bool = False
    id: str | None = None
    label: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] = ()
    links: tuple[LinkReport, ...] = ()
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    constant: frozenset[str] = frozenset()
    left_out: tuple[LeftOut, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    doubts: tuple[LeftOut, ...] = ()
    repeats: int = 0
    repeated: str = ""

    def lines(self, *, whole: bool = True) -> Iterator[str]:
        """Yield the lines that people read.

        Args:
            whole: Whether also those that nobody needs to check.
        """
        yield f"{self.path}: {self._rows()}."
        if self.numbers:
            yield f"  numbers: {listed((f'{_header(name)} ({told})' for name, told in self.numbers), ', ')}"
        yield from self._doubts("numbers")
        if whole:
            yield from self._links()
        yield from self._doubts("links")
        if self.repeated:
            yield f"  {self.repeated}"
        yield from self._doubts("rows")
        yield from self._doubts("options")
        if whole:
            yield from self._rest()

    def _doubts(self, part: str) -> Iterator[str]:
        yield from (_left_line(each) for each in self.doubts if each.part == part)

    def _links(self) -> Iterator[str]:
        for link in self.links:
            share = f"{link.share:.0%}".replace("100%", "all" if link.matched == link.values else ">99%")
            rest = link.values - link.matched
            behind = f"; {counted(rest, 'other has', 'others have')} no row there" if rest else ""
            if link.made:
                yield f"  {_header(link.column)}: each value is an entity of this class"
                continue
            if link.nested:
                yield f"  {_header(link.column)} → {_header(link.to)}: {counted(link.values, 'nested object')}"
                continue
            declared = ", as declared" if link.declared else ""
            if link.spelled:
                declared += f"; {link.spelled:,} with other case, blanks or leading zeros"
            several = _several(link.separator)
            yield (
                f"  {_header(link.column)} → {_header(link.to)}: {share} of {counted(link.values, 'value')}, such as "
                f"{in_quotes(link.example)}{several}{declared}{behind} ({_option(link.undo)})"
            )

    def _rest(self) -> Iterator[str]:
        told = dict(self.numbers)
        for kind, names in sorted(self.columns, key=lambda each: each[0] != BOOLEAN.name):
            if others := [name for name in names if name not in told]:
                yield f"  {kind}: {listed(map(_header, others), ', ')}"
        yield from map(_left_line, self.left_out)

    def _rows(self) -> str:
        if self.edges:
            return f"{counted(self.rows, 'edge')}, one in each row"
        if self.nested:
            different = f", different ones of {self.rows + self.repeats:,}" if self.repeats else ""
            name = f"; name: {_header(self.label)}" if self.label is not None else ""
            return f"{counted(self.rows, 'nested object')}{different}{name}"
        about = [f"id: {_header(self.id)}" if self.id is not None else f"numbered, 'row 1' to 'row {self.rows}'"]
        about += [f"name: {_header(self.label)}"] if self.label is not None else []
        about += [f"description: {_header(self.description)}"] if self.description is not None else []
        about += [f"other names: {listed(map(_header, self.aliases), ', ')}"] if self.aliases else []
        return f"{counted(self.rows, 'entity', 'entities')}, one in each row; {listed(about, '; ')}"


def _left_line(left: LeftOut) -> str:
    option = f" ({_option(left.option)})" if left.option else ""
    return f"  {left.why}: {listed(map(_header, left.columns), ', ')}{option}"


def report_of(table: TableSurvey, plan: Plan, edges: EdgeSurvey | None) -> TableReport:
    """Return what became of a table."""
    if isinstance(plan, EdgePlan):
        return _edge_report(table, plan, edges)
    columns = list(zip(table.columns, plan.columns, strict=True))
    kinds: dict[str, list[str]] = {}
    for _, column in columns:
        if column.is_value:
            kinds.setdefault(_kind_name(column), []).append(column.name)
    return TableReport(
        table.source.path,
        table.name,
        table.rows - len(plan.left_out),
        nested=table.source.nested,
        id=None if plan.key is None else table.names[plan.key],
        label=" ".join(table.names[each] for each in plan.full_name) or _named(plan, "label"),
        description=_named(plan, "description"),
        aliases=tuple(column.name for _, column in columns if column.role == "alias"),
        links=tuple(
            _link_report(table.name, survey, column, column.link)
            for survey, column in columns
            if column.link is not None
        ),
        columns=tuple((kind, tuple(names)) for kind, names in kinds.items()),
        constant=frozenset(survey.name for survey in table.columns if len(survey.examples) < 2),
        left_out=tuple(_left_out(table.name, columns)),
        numbers=tuple(
            (survey.name, survey.reading.told)
            for survey, column in columns
            if column.is_value and survey.reading is not None and survey.reading.says_more
        ),
        doubts=(*_doubts(table, columns), *_odd_rows(table, plan)),
        repeats=table.source.repeats.count,
        repeated=_repeated(table, plan),
    )


def _edge_report(table: TableSurvey, plan: EdgePlan, edges: EdgeSurvey | None) -> TableReport:
    kinds: dict[str, list[str]] = {}
    for relation, kind in plan.kinds.items():
        kinds.setdefault("edges" if kind is None else kind.name, []).append(relation)
    unread = () if plan.at is None else plan.at.unread
    left = LeftOut(unread, "left out, since an edge has no values", _flag("--id-column", f"{table.name}=COLUMN"))
    return TableReport(
        table.source.path,
        table.name,
        0 if edges is None else edges.edges,
        edges=True,
        columns=tuple((kind, tuple(names)) for kind, names in kinds.items()),
        left_out=(left,) if unread else (),
    )


def _named(plan: TablePlan, role: str) -> str | None:
    return next((column.name for column in plan.columns if column.role == role), None)


def _kind_name(column: ColumnPlan) -> str:
    read_as = f" ({column.kind.read_as})" if column.kind.read_as else ""
    return f"{column.kind.name}{read_as}{_several(column.separator)}"


def _several(separator: str) -> str:
    if not separator:
        return ""
    if separator == WHOLE:
        return f", each with {in_quotes(WHOLE)}"
    return ", several in a list" if separator == SEVERAL else f", several separated by {in_quotes(separator)}"


def _link_report(table: str, survey: ColumnSurvey, column: ColumnPlan, link: LinkPlan) -> LinkReport:
    return LinkReport(
        column.name,
        f"{link.table}.{link.column}".removesuffix("."),
        link.distinct,
        link.matched,
        round(link.matched / max(link.distinct, 1), 4),
        next(iter(survey.examples), "").partition(SEVERAL)[0],
        column.separator,
        _flag("--no-link", f"{table}.{column.name}"),
        link.declared,
        not link.column,
        bool(link.node_class),
        len(link.spelled),
    )


def _left_out(table: str, columns: Sequence[tuple[ColumnSurvey, ColumnPlan]]) -> Iterator[LeftOut]:
    empty = tuple(column.name for _, column in columns if column.role == "empty")
    if empty:
        yield LeftOut(empty, "no value in any row")
    blank = tuple(
        column.name
        for survey, column in columns
        if len(survey.blank) and column.role == "value" and column.kind != TEXT
    )
    if blank:
        yield LeftOut(blank, "cells with NA or the like, left out", _flag("--column", f"{table}.{blank[0]}=text"))
    recurring = tuple(survey.name for survey, column in columns if _recurs(survey, column))
    if recurring and not any(column.link is not None for _, column in columns):
        yield LeftOut(recurring, "texts that recur, and could be entities", _flag("--node", f"{table}.{recurring[0]}"))
    dates = tuple(column.name for survey, column in columns if survey.ambiguous and column.role == "value")
    if dates:
        option = _flag("--column", f"{table}.{dates[0]}=dmy")
        yield LeftOut(dates, "dates read as text, since day or month may come first", f"{option} or =mdy")


def _recurs(survey: ColumnSurvey, column: ColumnPlan) -> bool:
    """Return whether the texts of a column stand in so many rows each that they may name things."""
    distinct = 0 if survey.distinct is None else len(survey.distinct)
    return column.role == "value" and column.kind == TEXT and not column.separator and 1 < distinct * 2 <= survey.count


_IDLE: Final = {"--split": "no value holds what it says", "--no-link": "no value is an id of a row"}
"""Why options change nothing."""


def _doubts(table: TableSurvey, columns: Sequence[tuple[ColumnSurvey, ColumnPlan]]) -> Iterator[LeftOut]:
    """Yield what may have been misread in columns."""
    for survey, column in columns:
        name, reading, wrong = f"{table.name}.{column.name}", survey.reading, survey.misfits
        if column.is_value and reading is not None and reading.is_guess:
            other = "1.200,00" if reading.mark == "." else "1,200.00"
            why = f"numbers that could also be read as {reading.other}, which nothing in the file decides"
            yield LeftOut((column.name,), why, _flag("--numbers", f"{name}={other}"), "numbers")
        if wrong.count:
            place = f"such as {in_quotes(wrong.example)}" + (
                f" in {table.source.unit} {wrong.line:,}" if wrong.line else ""
            )
            why = f"{counted(wrong.count, 'value is', 'values are')} no {column.kind.name} and kept as text, {place}"
            yield LeftOut((column.name,), why, part="numbers")
        if column.is_value and survey.odd is not None:
            text, few, of = survey.odd
            why = f"text, though only {few:,} of {of:,} values looked at are no numbers, such as {in_quotes(text)}"
            yield LeftOut((column.name,), why, _flag("--column", f"{name}=number"), "numbers")
        for option in column.idle:
            yield LeftOut((column.name,), f"{option} changes nothing, since {_IDLE[option]}", part="options")
        if uneven := table.source.uneven.get(column.name):
            yield LeftOut(
                (column.name,),
                f"each value is kept once, though {counted(uneven, 'list repeats', 'lists repeat')} some",
            )
        if (near := column.near) is not None:
            why = f"{near.matched} of {near.distinct} values are ids of {_header(near.to)}, too few for a link"
            if near.spelled is not None:
                cell, key = map(in_quotes, near.spelled)
                how = f"some with other case, blanks or leading zeros, such as {cell} for {key}"
                why = f"{near.matched} of {near.distinct} values are ids of {_header(near.to)}, {how}"
            yield LeftOut((column.name,), why, _flag("--link", f"{name}={near.to}"), "links")


def _odd_rows(table: TableSurvey, plan: TablePlan) -> Iterator[LeftOut]:
    """Yield the rows that are not like the others."""
    odd, unit = table.odd, table.source.unit
    for rows, why, option in (
        (odd.sums if plan.left_out else (), "left out, as these rows sum the ones above", "--keep-totals"),
        (odd.remarks if plan.left_out else (), "left out, as these rows are remarks", "--keep-totals"),
        ((*(() if plan.left_out else odd.sums), *odd.called_sums), "rows that look like totals count as any other", ""),
        (odd.bare, "rows with a first cell only count as any other", ""),
    ):
        if rows:
            yield LeftOut(tuple(f"{unit} {row.line:,}, {in_quotes(row.text)}" for row in rows), why, option)


def _repeated(table: TableSurvey, plan: TablePlan) -> str:
    """Return which id is in two rows, or which row has none in a column of ids."""
    place = repeated_id(table, plan)
    repeat = None if place is None else table.columns[place].repeat
    if place is None or repeat is None:
        return ""
    source = table.source
    lines = f"{source.unit} {repeat[0]:,} and {source.unit} {repeat[1]:,}"
    said = f"{_header(table.names[place])} is the same in {lines}"
    if plan.key is not None:
        return f"{said}; rows with the same id become one entity."
    flag = _flag("--id-column", table.names[place])
    return f"{said}, so the rows are numbered. To make rows with the same id one entity: {_option(flag)}."


def _header(text: str) -> str:
    return shown_within(text, _LONGEST_HEADER)


def _option(text: str) -> str:
    return shown_within(text, _LONGEST_OPTION)


def _flag(name: str, value: str) -> str:
    return shlex.join([name, value])
