"""Decide whether a column of one table refers to the rows of another: by its values, and by its name."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.tables.distinct_texts import Hashes
from kg_adapters.tables.survey import ID_NAMES, WHOLE, ColumnSurvey
from kg_adapters.tables.values import ADDRESS, AS_PEOPLE_WRITE, INTEGER, TEXT, words_of

SHARE: Final = 0.95
"""What share of a column's distinct values must be ids of the rows that it leads to."""
_SHARE_OF_SAME_NAME: Final = 0.5
_SHARE_OF_NEAR: Final = 0.5
_CONVINCING: Final = 6
"""How many characters beyond the first, of all distinct values together, codes have that are hardly equal by chance."""

_BEHIND: Final = re.compile("ids?|codes?|keys?|refs?|no|nr|num|number|fk|pk|u?uid|guid|iri|uri|names?|list")
_ROLES: Final = re.compile(
    "parent|manager|boss|supervisor|predecessor|successor|previous|next|refs?|reports|spouse|mother|father|partner|"
    "mentor|leader|head|friends?|related|similar|replaces"
)
"""Names of columns that refer to other rows of the same table."""


@dataclass(frozen=True, slots=True)
class Target:
    """A column of ids that others may refer to.

    Args:
        table: The name of its table.
        column: Its header.
        ids: Its values.
        counted: Whether they are numbers, which many tables share by chance.
        own: Whether they are valid in their own table only.
    """

    table: str
    column: str
    ids: Hashes
    counted: bool
    own: bool


@dataclass(frozen=True, slots=True)
class Match:
    """How a column fits a column of ids.

    Args:
        target: The column of ids.
        separator: What separates the ids in a cell; nothing where each cell is one.
        distinct: How many distinct values the column has.
        matched: How many of them are ids.
        unmatched: The others.
    """

    target: Target
    separator: str
    distinct: int
    matched: int
    unmatched: Hashes

    @property
    def share(self) -> float:
        """The share of distinct values that are ids."""
        return self.matched / max(self.distinct, 1)


@dataclass(frozen=True, slots=True)
class Near:
    """A column of ids that many values of another column are, but too few to be sure.

    Args:
        to: The column of ids, as `TABLE.COLUMN`.
        distinct: How many distinct values the other column has.
        matched: How many of them are ids.
        spelled: One of these that is an id but for case, blanks or leading zeros, and the id; None where all are exact.
    """

    to: str
    distinct: int
    matched: int
    spelled: tuple[str, str] | None = None


def match_of(column: ColumnSurvey, target: Target, separator: str) -> Match:
    """Return how the values of a column fit a column of ids; blank ones are left out unless they are ids."""
    values = _values(column, separator)
    found = _in_sorted(values, target.ids)
    rest = values[~found]
    said = rest[~np.isin(rest, column.blank)]
    return Match(target, separator, len(values) - len(rest) + len(said), len(values) - len(rest), rest)


def _in_sorted(values: Hashes, ids: Hashes) -> npt.NDArray[np.bool_]:
    """Return which values are among ids; a search is several times as fast as sorting both again."""
    if not len(ids):
        return np.zeros(len(values), np.bool_)
    found: npt.NDArray[np.bool_] = ids[np.minimum(np.searchsorted(ids, values), len(ids) - 1)] == values
    return found


def _values(column: ColumnSurvey, separator: str) -> Hashes:
    if separator and separator in column.parts:
        return column.parts[separator]
    return np.zeros(0, np.int64) if column.distinct is None else column.distinct


_SAMPLED: Final = 64
"""Of how many distinct values of a column it is looked whether ids are among them; half of them at least must be."""


class SampledColumns:
    """Finds the columns that may refer to ids, many times as fast as by comparing each with all of its values.

    Args:
        columns: The columns.
    """

    def __init__(self, columns: Sequence[ColumnSurvey]) -> None:
        sampled = [_sampled(column) for column in columns]
        numbers = np.repeat(np.arange(len(columns)), [len(each) for each in sampled])
        values = np.concatenate([np.zeros(0, np.int64), *sampled])
        order = np.argsort(values, kind="stable")
        self._values, self._numbers = values[order], numbers[order]

    def sharing(self, ids: Hashes) -> Sequence[int]:
        """Return the places of the columns that have some of their sampled values among ids, in order."""
        if len(ids) < len(self._values):
            firsts, ends = (np.searchsorted(self._values, ids, side) for side in ("left", "right"))
            found = [self._numbers[first:end] for first, end in zip(firsts, ends, strict=True) if first < end]
            numbers = np.concatenate([np.zeros(0, np.int64), *found])
        else:
            numbers = self._numbers[_in_sorted(self._values, ids)]
        return [int(number) for number in np.unique(numbers)]


def _sampled(column: ColumnSurvey) -> Hashes:
    """Return some distinct values of a column, and of the parts of its cells: hashes, so that any are a fair sample."""
    every = [column.distinct, *column.parts.values()]
    return np.concatenate([np.zeros(0, np.int64), *(each[:_SAMPLED] for each in every if each is not None)])


def best_match(table: str, column: ColumnSurvey, targets: Iterable[Target], separators: Iterable[str]) -> Match | None:
    """Return the ids that a column refers to, or None.

    Args:
        table: The table of the column.
        column: The column.
        targets: What it may refer to.
        separators: What may separate several ids in a cell; nothing where each cell is one.
    """
    tried = list(separators)
    found = [match for target in targets for match in _matches(table, column, target, tried)]
    return max(found, key=lambda match: (is_named_for(column.name, match.target), match.share), default=None)


def _matches(table: str, column: ColumnSurvey, target: Target, separators: Iterable[str]) -> Iterator[Match]:
    for separator in separators:
        if (separator and separator not in column.parts) or not _may_refer(table, column, target, separator):
            continue
        match = match_of(column, target, separator)
        if match.matched and _refers(table, column, match):
            yield match
            return


def _may_refer(table: str, column: ColumnSurvey, target: Target, separator: str) -> bool:
    """Return whether a column may refer to ids, given its name and the kind of its values."""
    same = has_same_name(column.name, target)
    if column.joined:
        return same and target.table != table
    whole = column.kind == INTEGER or separator == WHOLE
    # Ids that are separated by commas may look like numbers.
    likely = {TEXT, ADDRESS, *(AS_PEOPLE_WRITE if separator else ())}
    if column.kind not in likely and not whole and not same:
        return False
    return not (target.counted or whole) or same or _is_named(table, column, target)


def _refers(table: str, column: ColumnSurvey, match: Match) -> bool:
    """Return whether so many values of a column that may refer to ids are such ids that it does."""
    target = match.target
    named = _is_named(table, column, target)
    if named and not column.joined and has_same_name(column.name, target):
        return match.share >= _SHARE_OF_SAME_NAME
    if named:
        return match.share >= SHARE
    if target.table == table:
        # A column in which each id stands once is most likely a copy of the ids.
        copied = match.distinct == len(target.ids) == column.count
        return match.matched == match.distinct and not copied
    mean = column.characters / max(column.count, 1)
    return match.share >= SHARE and match.distinct * (mean - 1) >= _CONVINCING


def _is_named(table: str, column: ColumnSurvey, target: Target) -> bool:
    """Return whether a column is called for the ids, or for other rows of its own table."""
    if has_same_name(column.name, target) or is_named_for(column.name, target):
        return True
    return target.table == table and any(map(_ROLES.fullmatch, words_of(column.name)))


def near_match(table: str, column: ColumnSurvey, targets: Iterable[Target]) -> Near | None:
    """Return the codes of another table that half of a column's texts are or more, but too few for a link."""
    if column.kind != TEXT or column.joined:
        return None
    mean = column.characters / max(column.count, 1)
    found = [match_of(column, target, "") for target in targets if not target.counted and target.table != table]
    near = [each for each in found if _SHARE_OF_NEAR <= each.share < SHARE and each.matched * (mean - 1) >= _CONVINCING]
    best = max(near, key=lambda match: match.share, default=None)
    return None if best is None else Near(f"{best.target.table}.{best.target.column}", best.distinct, best.matched)


def has_same_name(header: str, target: Target) -> bool:
    """Return whether a column is called as a column of ids is, by more than that it holds ids."""
    return words_of(header) == words_of(target.column) and not _is_general(target.column)


def _is_general(header: str) -> bool:
    name = "".join(words_of(header))
    return name in ID_NAMES or _BEHIND.fullmatch(name) is not None


def is_named_for(header: str, target: Target) -> bool:
    """Return whether a column is named after the rows of a table: `customer_id`, `homeCustomer` for customers."""
    words = words_of(header)
    bare = _without_ending(words)
    table = words_of(target.table)
    if not bare or not table:
        return False
    # A number called `orders` counts them.
    plural = bare == words and words[-1] == table[-1] != _singular(table[-1])
    if bare[-len(table) :] in {table, (*table[:-1], _singular(table[-1]))} and not (target.counted and plural):
        return True
    if bare[-len(table) :] == table[-1:] and bare != words:
        return True
    return not _is_general(target.column) and bare == _without_ending(words_of(target.column))


def names_table(header: str, table: str) -> bool:
    """Return whether a column of ids is named after a table."""
    bare, words = _without_ending(words_of(header)), words_of(table)
    return bool(words) and _singular(bare[-1] if bare else "") == _singular(words[-1])


def _without_ending(words: tuple[str, ...]) -> tuple[str, ...]:
    while len(words) > 1 and _BEHIND.fullmatch(words[-1]) is not None:
        words = words[:-1]
    return words


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
