"""Plan what becomes of all tables of an import: ids, names, and where each column leads."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from kg_adapters.errors import InvalidSource
from kg_adapters.tables.distinct_texts import Hashes
from kg_adapters.tables.edges import EdgeColumns, EdgePlan, EdgeSurvey, edge_columns
from kg_adapters.tables.iris import ENTITY, own_space
from kg_adapters.tables.links import (
    Match,
    Near,
    SampledColumns,
    Target,
    best_match,
    has_same_name,
    is_named_for,
    match_of,
    names_table,
    near_match,
)
from kg_adapters.tables.options import TableOptions, names_column
from kg_adapters.tables.rows import SEVERAL, Joined
from kg_adapters.tables.survey import ID_NAMES, NAMES, SEPARATORS, SUREST_ID_NAMES, WHOLE, ColumnSurvey, TableSurvey
from kg_adapters.tables.values import ADDRESS, INTEGER, TEXT, Kind, words_of
from kg_boundary.shown import in_quotes

Role: TypeAlias = Literal["id", "label", "description", "alias", "value", "link", "empty", "unused"]

_DESCRIPTIONS: Final = frozenset({"description", "summary", "abstract", "comment"})
_ALIASES: Final = re.compile(
    "alias|aliases|(?:alt|alternate|alternative|other)names?|alsoknownas|aka|synonyms?|nicknames?|(?:skos)?altlabels?"
)
_FULL_NAME: Final = (
    frozenset({"firstname", "givenname", "forename", "fname"}),
    frozenset({"lastname", "familyname", "surname", "lname"}),
)
"""How columns are called that name a person only together."""
_SEPARATORS: Final = ("", *SEPARATORS, SEVERAL, WHOLE)
_LEAST_DISTINCT: Final = 0.8
_LONGEST_NAME: Final = 80
_LIKELY_ID_KINDS: Final = frozenset({TEXT, INTEGER, ADDRESS})


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """Where a column leads.

    Args:
        table: The table that it leads to.
        column: The column there that holds the ids.
        space: What the IRIs of its rows begin with.
        distinct: How many distinct values the column has.
        matched: How many of them are ids of rows.
        declared: Whether the source declares it.
        unmatched: The others, as hashes.
        spelled: Values that are spelled in another way than the ids that they mean, each with its id.
        node_class: The class of the entities that its values become; nothing where they are ids of rows.
    """

    table: str
    column: str
    space: str
    distinct: int
    matched: int
    declared: bool = False
    unmatched: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    spelled: Mapping[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)
    node_class: str = ""


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """What becomes of a column.

    Args:
        name: Its header.
        role: What it is for.
        kind: The kind of its values.
        separator: What separates the values in a cell; nothing where each cell is one.
        link: Where it leads, if it does.
        joined: Whether it is made of other columns.
        near: A link that would have been made if more of its values were ids.
        units: The signs of money and percent in its cells.
        misfits: How many of its cells are not of its kind, which was chosen; they are texts.
        is_value: Whether it is a value of its row; a column of ids may be one too.
        idle: The options about it that change nothing.
    """

    name: str
    role: Role
    kind: Kind = TEXT
    separator: str = ""
    link: LinkPlan | None = None
    joined: bool = False
    near: Near | None = None
    units: tuple[str, ...] = ()
    misfits: int = 0
    is_value: bool = False
    idle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What becomes of a table with an entity in each row.

    Args:
        columns: What becomes of each column.
        key: The column with the ids of rows; None where rows are numbered.
        space: What the IRIs of rows begin with.
        joined: What each of the last columns is made of that the source does not have.
        full_name: The columns with the given and the family name of each row; none where one column names it.
        left_out: The lines of rows that are left out, since they sum others or remark on the table.
    """

    columns: tuple[ColumnPlan, ...]
    key: int | None
    space: str
    joined: Joined = ()
    full_name: tuple[int, ...] = ()
    left_out: frozenset[int] = frozenset()

    def place_of(self, role: Role) -> int | None:
        """Return the first column with a role."""
        return next((place for place, column in enumerate(self.columns) if column.role == role), None)


Plan: TypeAlias = TablePlan | EdgePlan


def plan_tables(
    tables: Sequence[TableSurvey], edges: Mapping[int, EdgeSurvey], options: TableOptions
) -> tuple[Plan, ...]:
    """Return what becomes of each table, given all of them.

    Args:
        tables: What is known about each.
        edges: By their places, what is known about those that are lists of edges.
        options: Their options.

    Raises:
        InvalidSource: A column that was named is in no table.
    """
    options.check([(table.name, table.names) for table in tables])
    for table in tables:
        for column in table.columns:
            _check_misfits(table, column)
    return _Planning(tables, edges, options).plans()


def _check_misfits(table: TableSurvey, column: ColumnSurvey) -> None:
    wrong = column.misfits
    if wrong.count * 2 > column.values:
        raise InvalidSource(
            f"{table.source.place(wrong.line)}: {in_quotes(wrong.example)} is not of the kind that was chosen for "
            f"{in_quotes(column.name)}, nor are {wrong.count:,} of its {column.values:,} values. Choose another kind, "
            "or none."
        )


def edges_in(table: TableSurvey, options: TableOptions) -> EdgeColumns | None:
    """Return where a table has its edges, or None where it has an entity in each row."""
    source = table.source
    rows = source.nested or source.key or source.links or options.id_column(table.name, table.names) is not None
    return None if rows else edge_columns(table)


class _Planning:
    """The planning of one import."""

    def __init__(self, tables: Sequence[TableSurvey], edges: Mapping[int, EdgeSurvey], options: TableOptions) -> None:
        self._tables = tables
        self._edges = edges
        self._options = options
        rows = [place for place in range(len(tables)) if place not in edges]
        candidates = {place: list(self._candidates(tables[place])) for place in rows}
        # A table that has the same ids is not referred to: its rows are the same.
        self._referring = {
            (place, each)
            for place in rows
            for each, column in enumerate(tables[place].columns)
            if column.joined or not tables[place].is_unique(each)
        }
        self._places = [(place, each) for place in rows for each in range(len(tables[place].columns))]
        self._sampled = SampledColumns([tables[place].columns[each] for place, each in self._places])
        self._keys = {place: self._key(place, candidates) for place in rows}
        self._targets = {place: target_of(tables[place], key) for place, key in self._keys.items() if key is not None}
        self._shared = defaultdict[tuple[int, int], list[Target]](list)
        for target in self._targets.values():
            for column in self._sharing(target):
                self._shared[column].append(target)

    def plans(self) -> tuple[Plan, ...]:
        """Return what becomes of each table."""
        plans = [
            self._edge_plan(table, self._edges[place]) if place in self._edges else self._table_plan(place)
            for place, table in enumerate(self._tables)
        ]
        return tuple(plans)

    def _candidates(self, table: TableSurvey) -> Iterator[int]:
        """Yield the columns that may hold the ids of rows; that which was chosen alone."""
        if table.source.nested or self._options.numbers_rows(table.name, table.names):
            return
        chosen = self._options.id_column(table.name, table.names) or table.source.key
        if chosen is not None:
            yield table.names.index(chosen)
            return
        linked = table.source.links
        unique = [place for place, name in enumerate(table.names) if table.is_unique(place) and name not in linked]
        named = [place for name in ID_NAMES for place in unique if table.columns[place].plain == name]
        if named:
            yield named[0]
            return
        yield from (place for place in unique if table.columns[place].kind in _LIKELY_ID_KINDS or place == unique[0])

    def _key(self, place: int, candidates: Mapping[int, Sequence[int]]) -> int | None:
        """Return the column with the ids of a table's rows, or None where they are numbered."""
        table, mine = self._tables[place], candidates[place]
        if len(mine) == 1 and (self._options.id_column(table.name, table.names) or table.source.key):
            return mine[0]
        mine = [each for each in mine if not self._is_of_another(table, each, candidates)]
        if not mine:
            return None
        first, column = mine[0], table.columns[mine[0]]
        sure = first == 0 or column.plain in ID_NAMES or words_of(column.name)[-1:] == ("id",)
        if sure and not column.joined and len(mine) == 1:
            return first
        used = {each: self._references(place, each) for each in mine}
        if max(used.values()) > used[first]:
            return max(mine, key=lambda each: used[each])
        return first if (sure and not column.joined) or used[first] else None

    def _is_of_another(self, table: TableSurvey, place: int, candidates: Mapping[int, Sequence[int]]) -> bool:
        """Return whether a column holds the ids of another table, each once by chance or because one row is for one."""
        column = table.columns[place]
        if column.plain in ID_NAMES or names_table(column.name, table.name):
            return False
        for other, places in candidates.items():
            owner = self._tables[other]
            if owner is table or not names_table(column.name, owner.name):
                continue
            for each in places:
                match = match_of(column, target_of(owner, each), "")
                if match.matched == match.distinct:
                    return True
        return False

    def _references(self, place: int, key: int) -> int:
        """Return how many columns would refer to a table's rows if its ids were in this column."""
        target = target_of(self._tables[place], key)
        return sum(
            best_match(self._tables[other].name, self._tables[other].columns[each], [target], _SEPARATORS) is not None
            for other, each in self._sharing(target)
            if (other, each) != (place, key) and (other, each) in self._referring
        )

    def _sharing(self, target: Target) -> Iterator[tuple[int, int]]:
        """Yield the columns, by table and place, that may refer to ids."""
        yield from (self._places[number] for number in self._sampled.sharing(target.ids))

    def _table_plan(self, place: int) -> TablePlan:
        table, key = self._tables[place], self._keys[place]
        plain = [column.plain for column in table.columns]
        others = [each for each in range(len(plain)) if each != key and not self._is_chosen(table, each)]
        columns = [
            replace(self._column(place, each), idle=tuple(self._idle(place, each))) for each in range(len(plain))
        ]
        linked = {
            each
            for each, column in enumerate(columns)
            if (link := column.link) is not None
            and (link.declared or self._options.link_of(table.name, table.columns[each].name))
        }
        label, full_name = self._names_of(place, columns, others, linked)
        roles: dict[int | None, Role] = {
            next((each for each in others if plain[each] in _DESCRIPTIONS), None): "description",
            label: "label",
            key: "id",
        }
        columns = [
            replace(
                column, role=roles[each], link=column.link if each in linked else None, separator="", is_value=False
            )
            if each in roles
            else column
            for each, column in enumerate(columns)
        ]
        for each in (key, label):
            if each is not None and each not in linked and self._is_value(table, table.columns[each]):
                columns[each] = replace(
                    _value(table.columns[each]), role=roles[each], near=columns[each].near, idle=columns[each].idle
                )
        own = key is None or target_of(table, key).own
        space = own_space(table.name) if own else ENTITY
        left_out = frozenset[int]() if self._options.keep_totals else frozenset(row.line for row in table.odd.left_out)
        return TablePlan(tuple(columns), key, space, table.joined, full_name, left_out)

    def _names_of(
        self, place: int, columns: Sequence[ColumnPlan], others: Sequence[int], linked: Collection[int]
    ) -> tuple[int | None, tuple[int, ...]]:
        """Return the column that names rows, or those that do so together, of columns that are no ids."""
        table, key = self._tables[place], self._keys[place]
        plain = [column.plain for column in table.columns]
        label = next((each for name in NAMES for each in others if plain[each] == name and each not in linked), None)
        parts = [each for names in _FULL_NAME for each in others if plain[each] in names]
        # A person's title is no name.
        full_name = tuple(parts) if len(parts) == len(_FULL_NAME) and (label is None or plain[label] == "title") else ()
        if full_name:
            label = None
        elif label is None and not table.source.nested and not (key is not None and _are_names(table.columns[key])):
            # Names come first, or right after the id; in later columns, descriptions may be distinct too.
            label = next((each for each in others[:1] if _names_rows(table, each, columns[each])), None)
        return label, full_name

    def _is_chosen(self, table: TableSurvey, place: int) -> bool:
        """Return whether it was said that a column holds something else than texts or names."""
        name = table.columns[place].name
        made = self._options.makes_nodes(table.name, name)
        return made or not {TEXT}.issuperset(self._options.kind_of(table.name, name))

    def _is_value(self, table: TableSurvey, column: ColumnSurvey) -> bool:
        """Return whether the ids or names of rows are values too, as the years of a time series are."""
        if self._options.kind_of(table.name, column.name):
            return True
        # What is called a name is asked for as such.
        called = column.plain in {*ID_NAMES, *NAMES} or words_of(column.name)[-1:] in {("id",), ("key",)}
        return not (called or column.joined or column.kind == ADDRESS)

    def _column(self, place: int, each: int) -> ColumnPlan:
        """Return what becomes of a column that is neither id nor name."""
        table = self._tables[place]
        column = table.columns[each]
        chosen = self._options.kind_of(table.name, column.name)
        if column.joined:
            return self._joined_column(place, each)
        if not column.count or (column.says_nothing and not chosen):
            return ColumnPlan(column.name, "empty")
        separator = self._options.separator_of(table.name, column.name) or (SEVERAL if column.several else "")
        link = self._certain_link(table, column)
        if link is not None:
            return ColumnPlan(column.name, "link", TEXT, separator, link)
        if _ALIASES.fullmatch(column.plain) is not None:
            found = separator or next((sign for sign in SEPARATORS if sign in column.parts), "")
            return ColumnPlan(column.name, "alias", separator=found)
        match = self._match(place, each, separator)
        if match is None:
            may_link = self._options.may_link(table.name, column.name)
            near = near_match(table.name, column, self._shared[place, each]) if may_link else None
            return replace(_value(column), separator=separator, near=near)
        return ColumnPlan(column.name, "link", TEXT, match.separator, _link(table, column, match))

    def _idle(self, place: int, each: int) -> Iterator[str]:
        """Yield the options about a column that change nothing."""
        table, column = self._tables[place], self._tables[place].columns[each]
        if self._options.separator_of(table.name, column.name) and not column.split:
            yield "--split"
        named = any(names_column(text, table.name, column.name) for text in self._options.no_links)
        if named and column.name not in table.source.links:
            found = best_match(table.name, column, self._shared[place, each], _SEPARATORS)
            if found is None:
                yield "--no-link"

    def _certain_link(self, table: TableSurvey, column: ColumnSurvey) -> LinkPlan | None:
        """Return where a column leads to what is nested in its rows, or to entities that its values become."""
        to, at = table.source.links.get(column.name, ("", ""))
        if to and not at:
            rows = len(column.parts.get(SEVERAL, column.distinct if column.distinct is not None else ()))
            return LinkPlan(to, at, own_space(to), rows, rows, declared=True)
        if self._options.makes_nodes(table.name, column.name):
            return LinkPlan(column.name, "", own_space(column.name), 0, 0, node_class=column.name)
        return None

    def _joined_column(self, place: int, each: int) -> ColumnPlan:
        """Return what becomes of a column that is made of others: it is named after the rows that it leads to."""
        table = self._tables[place]
        column = table.columns[each]
        match = self._match(place, each, "")
        if match is None:
            return ColumnPlan(column.name, "unused", joined=True)
        ends = [to for header, (to, _) in table.source.links.items() if header in table.source.joined]
        to = match.target.table
        name = to if to not in table.names and ends.count(to) <= 1 else column.name
        if not self._options.may_link(table.name, name):
            return ColumnPlan(column.name, "unused", joined=True)
        return ColumnPlan(name, "link", link=_link(table, column, match), joined=True)

    def _match(self, place: int, each: int, separator: str) -> Match | None:
        table, options = self._tables[place], self._options
        column = table.columns[each]
        wanted = options.link_of(table.name, column.name)
        declared = table.source.links.get(column.name)
        chosen = options.kind_of(table.name, column.name)
        if not wanted and (chosen or not options.may_link(table.name, column.name)):
            return None
        for target in self._targets.values():
            if wanted and names_column(wanted, target.table, target.column):
                whole = WHOLE if target.counted and WHOLE in column.parts else ""
                return match_of(column, target, separator or whole)
            if not wanted and declared == (target.table, target.column):
                return match_of(column, target, separator)
        separators = (separator,) if separator or column.joined else _SEPARATORS
        return best_match(table.name, column, self._shared[place, each], separators)

    def _edge_plan(self, table: TableSurvey, edges: EdgeSurvey) -> EdgePlan:
        at = edge_columns(table)
        assert at is not None  # noqa: S101 - it was surveyed as a list of edges
        ids = [target.ids for target in self._targets.values()]
        known = np.unique(np.concatenate([np.zeros(0, np.int64), *ids]))
        kinds = edges.kinds(known)
        sides = ((table.columns[at.head].name, edges.heads), (table.columns[at.tail].name, edges.tails(kinds)))
        spaces = [self._space(header if at.header else "", ends) for header, ends in sides]
        return EdgePlan(kinds, (spaces[0], spaces[1]), known, at)

    def _space(self, header: str, ends: Hashes) -> str:
        """Return what the IRIs of an edge list's nodes begin with: those of a table whose numbers they are."""
        column = ColumnSurvey(header, distinct=ends)
        counted = [target for target in self._targets.values() if target.counted]
        fitting = [target for target in counted if match_of(column, target, "").share >= _LEAST_KNOWN]
        named = [target for target in fitting if is_named_for(header, target) or has_same_name(header, target)]
        found = named or fitting
        return own_space(found[0].table) if len(found) == 1 else ENTITY


_LEAST_KNOWN: Final = 0.95


def target_of(table: TableSurvey, place: int) -> Target:
    """Return a column as one of ids that others may refer to."""
    column = table.columns[place]
    ids = np.zeros(0, np.int64) if column.distinct is None else column.distinct
    # Every table numbers its rows from the start, as databases number keys; other ids mean the same everywhere.
    own = column.counted or column.joined or column.name == table.source.key
    return Target(table.name, column.name, ids, column.counted, own)


def without_linked_values(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    """Return plans in which ids are no values that are called like links to them."""
    rows = [plan for plan in plans if isinstance(plan, TablePlan)]
    links = {column.name for plan in rows for column in plan.columns if column.link is not None}
    return tuple(_without_values(plan, links) if isinstance(plan, TablePlan) else plan for plan in plans)


def _without_values(plan: TablePlan, links: Collection[str]) -> TablePlan:
    columns = (
        replace(each, is_value=False) if each.role == "id" and each.name in links else each for each in plan.columns
    )
    return replace(plan, columns=tuple(columns))


def _value(column: ColumnSurvey) -> ColumnPlan:
    units = column.reading.units if column.reading is not None else ()
    kind = column.kind if column.mostly is None else column.mostly
    return ColumnPlan(column.name, "value", kind, units=units, misfits=column.misfits.count, is_value=True)


def _link(table: TableSurvey, column: ColumnSurvey, match: Match) -> LinkPlan:
    target = match.target
    return LinkPlan(
        target.table,
        target.column,
        own_space(target.table) if target.own else ENTITY,
        match.distinct,
        match.matched,
        table.source.links.get(column.name) == (target.table, target.column),
        frozenset(match.unmatched.tolist()),
    )


def _names_rows(table: TableSurvey, place: int, plan: ColumnPlan) -> bool:
    column = table.columns[place]
    if plan.role != "value" or plan.kind != TEXT or plan.separator or column.count * 2 <= table.rows:
        return False
    if column.distinct is None or len(column.distinct) < _LEAST_DISTINCT * column.count:
        return False
    lettered = any(map(str.isalpha, "".join(column.examples)))
    return lettered and column.characters <= _LONGEST_NAME * column.count


def _are_names(column: ColumnSurvey) -> bool:
    """Return whether ids are what people call the rows: words, not codes or numbers."""
    if column.plain in ID_NAMES:
        return False
    return column.plain in NAMES or column.worded > 0.5


def repeated_id(table: TableSurvey, plan: TablePlan) -> int | None:
    """Return the column in which an id stands twice: that of the ids, or else the first with such a name."""
    if plan.key is not None:
        return plan.key if table.columns[plan.key].repeat is not None else None
    named = (place for place, column in enumerate(table.columns) if column.plain in SUREST_ID_NAMES)
    first = next(named, None)
    return first if first is not None and table.columns[first].repeat is not None else None
