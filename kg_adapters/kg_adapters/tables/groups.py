"""Find the columns that are an id of rows together, and those that may refer to them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from kg_adapters.tables.links import SHARE, Target, match_of
from kg_adapters.tables.rows import Joined
from kg_adapters.tables.survey import ColumnSurvey, TableSurvey

_MOST_GROUPS: Final = 10


def joined_groups(table: TableSurvey, others: Sequence[TableSurvey]) -> Joined:
    """Return the pairs of columns that may be an id together that another table refers to; the likeliest first."""
    if table.source.nested:
        return ()
    found = set[tuple[int, tuple[int, int]]]()
    for other in others:
        there = {column.name: column for column in other.columns}
        held = sorted(
            (len(column.distinct), place)
            for place, column in enumerate(table.columns)
            if column.distinct is not None and _holds(column, there.get(column.name))
        )
        found.update(_smallest_pairs(held, table.rows))
    return tuple(pair for _, pair in sorted(found)[:_MOST_GROUPS])


def _smallest_pairs(columns: Sequence[tuple[int, int]], least: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the products of the sizes of two columns, and their places; for each column the smallest that suffice.

    Args:
        columns: The size and the place of each column with values, sorted.
        least: The least product that suffices.
    """
    for number, (size, place) in enumerate(columns):
        enough = bisect_left(columns, (-(-least // size), 0), lo=number + 1)
        for other_size, other in columns[enough : enough + _MOST_GROUPS]:
            yield size * other_size, (min(place, other), max(place, other))


def referring_groups(table: TableSurvey, keys: Sequence[tuple[TableSurvey, Joined]]) -> Joined:
    """Return the columns of a table that may refer to columns of others that are an id together."""
    there = {column.name: column for column in table.columns}
    referring = (
        tuple(table.names.index(owner.names[place]) for place in group)
        for owner, groups in keys
        for group in groups
        if all(_holds(owner.columns[place], there.get(owner.names[place])) for place in group)
    )
    return tuple(dict.fromkeys(referring))


def _holds(column: ColumnSurvey, other: ColumnSurvey | None) -> bool:
    """Return whether a column holds nearly all values of another one."""
    if other is None or column.joined or column.several or column.says_nothing or column.distinct is None:
        return False
    return match_of(other, Target("", "", column.distinct, False, False), "").share >= SHARE
