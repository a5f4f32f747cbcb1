"""Find the columns of which cells are ids of another table but for case, blanks or leading zeros."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from kg_adapters.errors import InvalidSource
from kg_adapters.folding import fold
from kg_adapters.tables.iris import ENTITY, own_space
from kg_adapters.tables.links import SHARE, Near, Target, has_same_name, is_named_for
from kg_adapters.tables.options import TableOptions, names_column
from kg_adapters.tables.plan import LinkPlan, Plan, TablePlan, target_of, without_linked_values
from kg_adapters.tables.survey import NAMES, TableSurvey
from kg_adapters.tables.values import MISSING, TEXT
from kg_boundary.shown import in_quotes

_ZEROS: Final = re.compile(r"(?<![\d.,])0+(?=\d)")
_LEAST_SHARE: Final = 0.5
_WHOLE: Final = re.compile(r"(?<=\d)\.0+$")


@dataclass(frozen=True, slots=True)
class NearLink:
    """A column that is named for the ids of a table, of which not all cells are such ids.

    Args:
        table: The place of its table.
        column: Its own place there.
        to: The place of the table with the ids.
        key: The place of the ids there.
        wanted: Whether an option demands that it leads there.
        may_join: Whether it may lead there without one.
    """

    table: int
    column: int
    to: int
    key: int
    wanted: bool
    may_join: bool


@dataclass(frozen=True, slots=True)
class _Ids:
    """The ids of a table, as they are written and folded."""

    exact: frozenset[str]
    folded: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        folded = dict[str, list[str]]()
        for each in ids:
            folded.setdefault(_folded(each), []).append(each)
        return cls(frozenset(ids), folded)

    def spelled(self, cells: Sequence[str]) -> dict[str, str]:
        """Return the cells that are no ids, each with the only id that it is but for case, blanks or leading zeros."""
        near = ((cell, self.folded.get(_folded(cell), ())) for cell in cells if cell not in self.exact)
        return {cell: found[0] for cell, found in near if len(found) == 1}


def near_links(tables: Sequence[TableSurvey], plans: Sequence[Plan], options: TableOptions) -> Iterator[NearLink]:
    """Yield the columns whose cells should be compared with ids."""
    rows = [(place, plan) for place, plan in enumerate(plans) if isinstance(plan, TablePlan)]
    targets = [(place, plan.key) for place, plan in rows if plan.key is not None]
    for place, plan in rows:
        for each, column in enumerate(plan.columns):
            survey = tables[place].columns[min(each, len(tables[place].columns) - 1)]
            linked = column.link is not None and not column.link.unmatched
            unread = column.role == "empty" or (column.role == "id" and column.link is None)
            if linked or unread or column.joined or column.separator:
                continue
            option = options.link_of(tables[place].name, column.name)
            kinds = options.kind_of(tables[place].name, column.name)
            names = column.role == "label" and survey.plain in NAMES
            free = column.role in {"link", "value", "label"} and not names and not kinds
            may_join = free and options.may_link(tables[place].name, column.name)
            for to, key in targets:
                target = target_of(tables[to], key)
                wanted = bool(option) and names_column(option, target.table, target.column)
                named = is_named_for(survey.name, target) or has_same_name(survey.name, target)
                if wanted or (named and not option and (to, key) != (place, each)):
                    yield NearLink(place, each, to, key, wanted, may_join)


def with_near(
    tables: Sequence[TableSurvey],
    plans: Sequence[Plan],
    links: Sequence[NearLink],
    cells: Mapping[tuple[int, int], Sequence[str]],
) -> tuple[Plan, ...]:
    """Return plans that say which columns are almost links, and that join those which an option demands.

    Args:
        tables: What is known about each table.
        plans: What becomes of each.
        links: The columns whose cells are compared with ids.
        cells: The distinct cells of columns, by the places of the table and the column; none of those with very many.

    Raises:
        InvalidSource: A link is demanded between columns that have nothing in common.
    """
    found = list(plans)
    keys = {(each.to, each.key) for each in links}
    known = {key: _Ids.of(cells[key]) for key in keys if key in cells}
    for link in links:
        plan, mine, ids = found[link.table], cells.get((link.table, link.column)), known.get((link.to, link.key))
        if mine is None or ids is None or not isinstance(plan, TablePlan):
            continue
        written = [cell for cell in mine if cell not in MISSING]
        spelled = ids.spelled(written)
        matched = sum(cell in ids.exact for cell in written) + len(spelled)
        target = target_of(tables[link.to], link.key)
        to = f"{target.table}.{target.column}"
        column = plan.columns[link.column]
        if link.wanted and not matched:
            raise InvalidSource(
                f"No value of {tables[link.table].name}.{column.name} is an id of {to}, such as "
                f"{in_quotes(next(iter(written), ''))}. Leave out --link, or name another column."
            )
        if not spelled or matched < _LEAST_SHARE * len(written):
            continue
        old = column.link or _unmatched_link(target, [each for each in written if each not in ids.exact], len(written))
        sure = matched >= SHARE * len(written) and link.may_join
        if link.wanted or sure:
            joined = _joined(old, spelled, matched)
            column = replace(column, role="link", kind=TEXT, is_value=False, link=joined, near=None)
        else:
            idle = tuple(option for option in column.idle if option != "--no-link")
            near = Near(to, len(written), matched, next(iter(spelled.items())))
            column = replace(column, near=near, idle=idle)
        columns = tuple(column if each == link.column else other for each, other in enumerate(plan.columns))
        found[link.table] = replace(plan, columns=columns)
    return without_linked_values(found)


def _unmatched_link(target: Target, unmatched: Sequence[str], distinct: int) -> LinkPlan:
    """Return a link of a column to ids, given those of its distinct cells that are none."""
    space = own_space(target.table) if target.own else ENTITY
    rest = frozenset(map(hash, unmatched))
    return LinkPlan(target.table, target.column, space, distinct, distinct - len(rest), unmatched=rest)


def _joined(link: LinkPlan, spelled: Mapping[str, str], matched: int) -> LinkPlan:
    return replace(link, spelled=spelled, matched=matched, unmatched=link.unmatched - {*map(hash, spelled)})


def _folded(cell: str) -> str:
    return _ZEROS.sub("", _WHOLE.sub("", fold(cell).replace(" ", "")))
