"""Requests for sets, their answers, and the limits that bound them."""

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kg_adapters.algebra import (
    Best,
    DatePart,
    Function,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Measure,
    Members,
    Minus,
    NumberOf,
    Numbers,
    Reached,
    SetExpression,
    Step,
    TotalOf,
    Union,
    Values,
    require_nodes,
    require_summable,
)
from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Count
from kg_adapters.terms import Fact, Iri, Literal, Node, Term, literal_key, node_key


@dataclass(frozen=True, slots=True)
class Ends:
    """What a column of a table shows: all that a path reaches from a node."""

    path: HopPath


Column: TypeAlias = Ends | NumberOf | TotalOf


@dataclass(frozen=True, slots=True)
class Listed:
    """Which members has this set? The answer has `count` and `members`.

    The members come in the order of `term_key`; those of a `Best` by their measure first, the best first, and `without`
    counts the members of its set that have no measure, and `unfit` those of them that have another value.
    """

    of: SetExpression


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What do the measures of the members of a set of nodes come to? The answer has `value` and `count`.

    All different pairs of a member and a value of it are taken together (a node with two values counts twice; for the
    sum and the mean, equal numbers of a node such as `2` and `2.0` are one), and `count` is their number; of `NumberOf`
    there is one pair for every member from which its path reaches anything.
    The sum and the mean are numbers (`ValueOf` must be of kind `number`); the least and the greatest are the value that
    the graph holds (of numbers without a unit by all their digits), of equal ones the first by `literal_key`, or, of
    `NumberOf`, a number. Where there are no pairs the value is None. `without` counts the members that have no measure,
    and `unfit` those of them that have another value.

    Raises:
        InvalidRequest: Dates are to be added up, or the set holds values.
    """

    of: SetExpression
    by: Measure
    function: Function

    def __post_init__(self) -> None:
        require_nodes(self.of)
        require_summable(self.by, self.function)


@dataclass(frozen=True, slots=True)
class Grouped:
    """How do the members of a set of nodes fall into groups? The answer has `count` and `groups`.

    There is a group for every node and value that `by` reaches from any member, with the number of members from which
    it does; a member may be in several. The largest come first, or the smallest if `lowest`, then by `term_key`.
    `count` is the number of groups, and `without` counts the members that are in none.

    With `total` each group has what the values of its members come to, by which groups are ordered; `NumberOf` counts
    the different nodes and values that they lead to together. Only groups with a total are listed and are in `count`;
    `left_out` counts what has none, and `measured` the members in a group that have one.

    Args:
        of: The set.
        by: What leads to the groups.
        lowest: Whether the smallest come first.
        part: Up to which part dates are told apart, as texts of `values.date_up_to`; then only dates make groups, and
            `unfit` counts the members in none that have another value. A less precise date is a group of its own.
        total: What each group comes to; None for its number of members.
    """

    of: SetExpression
    by: HopPath
    lowest: bool = False
    part: DatePart | None = None
    total: NumberOf | TotalOf | None = None

    def __post_init__(self) -> None:
        require_nodes(self.of)


@dataclass(frozen=True, slots=True)
class Tabled:
    """What do these nodes have? The answer has `count` and `rows`: one for every member, as in `Listed`."""

    of: SetExpression
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        require_nodes(self.of)


@dataclass(frozen=True, slots=True)
class SharedBy:
    """What do some sets of nodes have in common? The answer has `count` and `shared`.

    A node or value is shared over a step where the step leads to it from a member of each of the sets; names and
    descriptions (`Vocabulary.texts`) do not count. They come by step, outgoing ones first, then by relation, then by
    `term_key`.

    Args:
        sets: The sets.
        inverses: Pairs of relations that say the same in opposite directions, with a symmetric one as both; the graph
            has statements with each of them. A step backwards over one is a step over the other.

    Raises:
        InvalidRequest: There are fewer than two sets, or one holds values.
    """

    sets: tuple[SetExpression, ...]
    inverses: tuple[tuple[Iri, Iri], ...] = ()

    def __post_init__(self) -> None:
        if len(self.sets) < 2:
            raise InvalidRequest("At least two sets are needed to have something in common.")
        for each in self.sets:
            require_nodes(each)

    @property
    def opposites(self) -> dict[Iri, Iri]:
        """The inverse of each relation that has one."""
        return {one: other for pair in self.inverses for one, other in (pair, pair[::-1])}

    def steps_of(self, step: Step) -> tuple[Step, ...]:
        """Return the steps that count as one: itself, and what leads the same way over the inverse."""
        inverse = self.opposites.get(step.relation)
        return (step,) if inverse is None else (step, Step(inverse, "in"))


SetQuestion: TypeAlias = Listed | Aggregated | Grouped | Tabled | SharedBy


@dataclass(frozen=True, slots=True)
class SetRequest:
    """A question about sets, and how much of its answer is wanted.

    Args:
        question: What is asked.
        limit: The most members, groups, rows or shared terms to return; 0 where only the count matters.
        cell_limit: The most terms in a cell of a row.
        witnesses: For how many of the first results the facts that show it are wanted.
        timeout_s: After how many seconds the answer is no longer wanted.
    """

    question: SetQuestion
    limit: int = 100
    cell_limit: int = 10
    witnesses: int = 3
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Group:
    """A node or value, and how many members of a set lead to it.

    With totals `size` says over how many values they are, and `total` what these come to; None where they are counted.
    """

    by: Term
    size: Count
    total: float | Literal | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What a node has in one column: the first terms by `term_key`, and how many there are.

    There are no terms for `NumberOf` and `TotalOf`; `total` is what they come to, None where they are counted.
    """

    terms: tuple[Term, ...]
    count: Count
    total: float | Literal | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A node, and what it has, column by column."""

    node: Node
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class SharedTerm:
    """A node or value that a step leads to from each of some sets."""

    step: Step
    term: Term


@dataclass(frozen=True, slots=True)
class Witness:
    """Why something is a result: facts of the graph, in the order in which they lead to it.

    The facts of a path come in its order, those of a set before those of what is done with it; of several ways to a
    result one is shown, of a difference what is in the first set. A member that is only listed needs no fact.
    """

    result: Term
    facts: tuple[Fact, ...]


NONE: Final = Count(0)


@dataclass(frozen=True, slots=True)
class Untotalled:
    """What has no total among the groups of members: groups, members in a group, and these with another value."""

    groups: Count = NONE
    members: Count = NONE
    unfit: Count = NONE


@dataclass(frozen=True, slots=True)
class Computed:
    """The answer to a question about sets; what it does not ask for is empty.

    Args:
        count: How many members, groups, rows, shared terms or measured pairs there are, listed here or not. Not exact
            where the graph answered a part only: then all of this answer is a lower bound.
        members: The first members.
        groups: The first groups.
        rows: The first rows.
        shared: The first shared terms.
        value: The sum or mean as a number, the least or greatest value as the graph holds it.
        without: How many members were left out since they have no measure or no group.
        unfit: How many of these have something that `ValueOf` does not compare: no number, or no date.
        partly: How many members that have a measure have such values besides, which are not taken into account.
        measured: How many members a sum, mean, least or greatest is of, or have what a `Best` is by; they may have more
            values than they are.
        values: How many values these are, of a `Best` or of groups with totals; of nodes that are counted 0.
        left_out: What of groups has no total.
        witnesses: The facts that show the first results: members, rows, of a group a member that is in it, of shared
            terms those of each set, of the least and the greatest a member that has it, of a sum or mean any members.
        without_witnesses: Why there are no such facts, where the graph did not give them; empty otherwise.
    """

    count: Count
    members: tuple[Term, ...] = ()
    groups: tuple[Group, ...] = ()
    rows: tuple[Row, ...] = ()
    shared: tuple[SharedTerm, ...] = ()
    value: float | Literal | None = None
    without: Count = NONE
    unfit: Count = NONE
    partly: Count = NONE
    measured: Count = NONE
    values: Count = NONE
    left_out: Untotalled = Untotalled()
    witnesses: tuple[Witness, ...] = ()
    without_witnesses: str = ""


def term_key(term: Term) -> tuple[bool, str, str, str]:
    """Return what orders terms: nodes by `node_key`, then values by `literal_key`."""
    if isinstance(term, Literal):
        return True, *literal_key(term)
    return False, node_key(term), "", ""


def parts_of(of: SetExpression) -> tuple[SetExpression, ...]:
    """Return the sets that a set is directly made of."""
    match of:
        case Members() | Instances():
            return ()
        case Union(sets) | Intersect(sets) | Minus(sets):
            return sets
        case Kept(starts, Linked(to=to)):
            return starts, to
        case Reached() | Values() | Kept() | Best():
            return (of.of,)


def grows(question: SetQuestion) -> bool:
    """Say whether more facts could only make the answer larger."""
    match question:
        case Aggregated():
            return False
        case Grouped(total=TotalOf()):
            return False
        case Tabled(columns=columns) if any(isinstance(column, TotalOf) for column in columns):
            return False
        case SharedBy(sets=sets):
            return all(map(_set_grows, sets))
        case Listed(of) | Tabled(of) | Grouped(of):
            return _set_grows(of)


def _set_grows(of: SetExpression) -> bool:
    if isinstance(of, Minus | Best) or (isinstance(of, Kept) and isinstance(of.condition, Numbers)):
        return False
    return all(map(_set_grows, parts_of(of)))


def at_least(computed: Computed) -> Computed:
    """Return an answer whose numbers are lower bounds; how many were left out is not known at all then."""
    return replace(
        computed,
        count=_lower(computed.count),
        without=Count(0, exact=False),
        unfit=Count(0, exact=False),
        partly=Count(0, exact=False),
        groups=tuple(replace(group, size=_lower(group.size)) for group in computed.groups),
        rows=tuple(
            replace(row, cells=tuple(replace(cell, count=_lower(cell.count)) for cell in row.cells))
            for row in computed.rows
        ),
    )


def _lower(count: Count) -> Count:
    return Count(count.value, exact=False)
