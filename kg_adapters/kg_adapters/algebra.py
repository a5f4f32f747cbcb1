"""Sets of nodes, and of values, as expressions over ids: what `SupportsSets.compute` works out.

Every expression is a frozen value and stands for one set of terms of the graph. Nodes are the same when their ids are,
values when text, datatype and language are.

A **hop** leads from a node over one edge or to one value. It is a set of alternatives, each a relation in one direction
(so that a relation and its inverse, or both ways of one relation, are one hop). `ANY` is a hop over every relation both
ways, but, where it leads to values, for names and descriptions (`Vocabulary.texts`). A **path** is one or more hops;
all but the last lead to nodes. What a path reaches from a node is a set: however many ways lead to a term, it counts
once. A node reaches itself where edges lead back to it.

Values that are added up or shown in a table are no set: each way through nodes has its own. Where two nodes that a path
leads to both have the value 10.0, or two ways lead to the node that has it, it counts twice. Of equal values at the
end of one way one counts. Where the last hop is repeated, its ways are not told apart.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import EdgeDirection
from kg_adapters.terms import Iri, Literal, Node

Operator: TypeAlias = Choice["=", "!=", "<", "<=", ">", ">=", "~"]
ComparedKind: TypeAlias = Choice["number", "date"]
Zone: TypeAlias = Choice["none", "utc", "other"]
Function: TypeAlias = Choice["sum", "mean", "min", "max", "count"]
DatePart: TypeAlias = Choice["year", "month", "day"]


def _require(claim: object, problem: str) -> None:
    if not claim:
        raise InvalidRequest(problem)


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """A relation, walked from head to tail (`out`) or from tail to head (`in`). Only `out` leads to values."""

    relation: Iri
    direction: EdgeDirection = "out"


@dataclass(frozen=True, slots=True)
class Hop:
    """One step along any of some alternatives; along every relation both ways where `steps` is None.

    `repeated` walks one or more such steps, through nodes; a node is reached by itself only if steps lead back to it.
    Relations that are walked repeatedly in both directions should lead to nodes only: from a value that nodes share,
    SPARQL walks back to the others.

    Raises:
        InvalidRequest: There is no alternative, or every relation is to be walked repeatedly.
    """

    steps: tuple[Step, ...] | None
    repeated: bool = False

    def __post_init__(self) -> None:
        if self.steps is None:
            _require(not self.repeated, "Only named relations can be walked any number of times.")
        else:
            _require(self.steps, "A hop needs a relation.")


ANY: Final = Hop(None)


@dataclass(frozen=True, slots=True)
class HopPath:
    """Hops one behind the other.

    Raises:
        InvalidRequest: There is none.
    """

    hops: tuple[Hop, ...]

    def __post_init__(self) -> None:
        _require(self.hops, "A path needs a hop.")

    def backwards(self) -> "HopPath":
        """Return the path that leads back from where this one leads to."""
        return HopPath(tuple(Hop(_turned(hop.steps), hop.repeated) for hop in reversed(self.hops)))


def _turned(steps: tuple[Step, ...] | None) -> tuple[Step, ...] | None:
    return steps and tuple(Step(step.relation, "in" if step.direction == "out" else "out") for step in steps)


@dataclass(frozen=True, slots=True)
class ValueOf:
    """What a node is measured by: the values at the end of a path that are numbers, quantities of one unit, or dates.

    Numbers of all numeric datatypes compare with each other, as 64-bit floating point numbers; quantities only with
    those of the same `unit`, which is their datatype (`profile.is_unit`), and then only these count. Dates, years,
    months and points in time (`profile.kind_of`) compare as `values.order_of` says: `1977` stands before `1977-01-01`,
    and times in all zones stand in the order of time (`dates`). Values of another kind, or that are not what their
    datatype says, do not count. A node may have several values, or none.
    """

    path: HopPath
    kind: ComparedKind = "number"
    unit: Iri | None = None

    def __post_init__(self) -> None:
        _require(self.unit is None or self.kind == "number", "Only numbers have a unit.")


def counts_values(path: HopPath) -> bool:
    """Say whether the values that a path reaches count among its ends: not where its last hop names no relation."""
    return path.hops[-1].steps is not None


@dataclass(frozen=True, slots=True)
class NumberOf:
    """How many different nodes and values a path reaches from a node; over every relation only nodes count."""

    path: HopPath


@dataclass(frozen=True, slots=True)
class TotalOf:
    """What the values of a node come to: those that a path leads to, once for each way, as one number or value.

    `count` counts all of them, whatever `by` compares; the others are over the values that `by` compares. The least
    and the greatest are values that the graph holds. A node without such values has no total.

    Raises:
        InvalidRequest: Dates are to be added up.
    """

    by: ValueOf
    function: Function

    def __post_init__(self) -> None:
        require_summable(self.by, self.function)

    @property
    def path(self) -> HopPath:
        """The path to the values."""
        return self.by.path


Measure: TypeAlias = ValueOf | NumberOf | TotalOf


def require_summable(by: Measure, function: Function) -> None:
    """Refuse to add dates up.

    Raises:
        InvalidRequest: The measure is a date, and the function a sum or mean.
    """
    is_date = isinstance(by, ValueOf) and by.kind == "date" and function in {"sum", "mean"}
    _require(not is_date, "Dates have no sum and no mean; Min and Max give the first and the last.")


@dataclass(frozen=True, slots=True)
class Has:
    """True of a node from which a path reaches anything, be it a node or a value."""

    path: HopPath


@dataclass(frozen=True, slots=True)
class Linked:
    """True of a node from which a path reaches a member of a set, of nodes or of values."""

    path: HopPath
    to: "SetExpression"


@dataclass(frozen=True, slots=True)
class Meets:
    """True of a node from which two paths reach the same node or value."""

    path: HopPath
    other: HopPath


@dataclass(frozen=True, slots=True)
class Compares:
    """True of a node of which some value at the end of a path stands in a relation to a given one.

    The kind of the given value (`values.value_kind`) says what is compared:

    - *number*: the values that are numbers, as in `ValueOf`; of a quantity those of the same unit; not with `~`.
    - *date*: the values that are dates, with the whole year, month or day that is given, or with the moment: so
      `1977-05-01` is `=` to `1977`, `>=` to it and not `>`. Times are moments, in UTC where they have no zone. A value
      that is less precise than what is given compares only where that is certain: `1978` is `>` `1977-05-01`, and
      `1977` is neither `<`, `=` nor `>`, but `<=` `1977-12-31`. It counts `possibly` where it may. Not with `~`.
    - *any other*: the text of every value, whatever its datatype and language, in lower case; `~` is true where it
      contains the given text.

    `!=` is true where some value of the kind is not equal. A node without values of the kind is never kept.
    """

    path: HopPath
    operator: Operator
    value: Literal
    possibly: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """True of a node from which a path reaches as many ends as said, counted as in `NumberOf`; none count as 0."""

    path: HopPath
    operator: Operator
    number: int

    def __post_init__(self) -> None:
        _require(self.operator != "~", "~ looks for a text in texts; this is a number of nodes.")


@dataclass(frozen=True, slots=True)
class Outranks:
    """Holds for a node if one of its values of a measure compares as stated with one of another measure.

    Both are ordered as in `ValueOf`: so of dates `1977` is not `=` to `1977-01-01`, but less.
    """

    by: ValueOf
    other: ValueOf
    operator: Operator

    def __post_init__(self) -> None:
        same = (self.by.kind, self.by.unit) == (self.other.kind, self.other.unit)
        _require(same, "Values of different kinds or units do not compare.")
        _require(self.operator != "~", "~ looks for a text in texts; these are numbers or dates.")


@dataclass(frozen=True, slots=True)
class Timed:
    """True of a node of which some value at the end of a path is a point in time in one of these zones.

    The values are those of `dateTime` with a year of four digits.
    """

    path: HopPath
    zones: tuple[Zone, ...]


Condition: TypeAlias = Has | Linked | Meets | Compares | Numbers | Outranks | Timed


@dataclass(frozen=True, slots=True)
class Members:
    """These nodes, whether the graph mentions them or not."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Instances:
    """The nodes that are said to be of a class (`Vocabulary.types`), or, unless `subclasses` is false, of a subclass.

    A subclass is what leads to the class over any number of edges of `Vocabulary.subclasses`.
    """

    owner: Node
    subclasses: bool = True


@dataclass(frozen=True, slots=True)
class Reached:
    """The nodes that a path reaches from any member of a set."""

    of: "SetExpression"
    path: HopPath

    def __post_init__(self) -> None:
        require_nodes(self.of)


@dataclass(frozen=True, slots=True)
class Values:
    """The values that a path reaches from any member of a set."""

    of: "SetExpression"
    path: HopPath

    def __post_init__(self) -> None:
        require_nodes(self.of)


@dataclass(frozen=True, slots=True)
class Union:
    """What is in any of some sets, which are all of nodes or all of values."""

    sets: "tuple[SetExpression, ...]"

    def __post_init__(self) -> None:
        _require_alike(self.sets)


@dataclass(frozen=True, slots=True)
class Intersect:
    """What is in each of some sets, which are all of nodes or all of values."""

    sets: "tuple[SetExpression, ...]"

    def __post_init__(self) -> None:
        _require_alike(self.sets)


@dataclass(frozen=True, slots=True)
class Minus:
    """What is in the first of some sets and in none of the others; all of nodes or all of values."""

    sets: "tuple[SetExpression, ...]"

    def __post_init__(self) -> None:
        _require_alike(self.sets)


@dataclass(frozen=True, slots=True)
class Kept:
    """The members of a set of nodes of which a condition is true."""

    of: "SetExpression"
    condition: Condition

    def __post_init__(self) -> None:
        require_nodes(self.of)


@dataclass(frozen=True, slots=True)
class Best:
    """The `n` members of a set of nodes that measure most (least, where `lowest`), and all that equal the last of them.

    Of several values of a node its best counts: the greatest, or the least where `lowest`; `TotalOf` takes them
    together. A node without a value, or from which a path reaches nothing, is never among them.

    Raises:
        InvalidRequest: `n` is below 1, or the set holds values.
    """

    of: "SetExpression"
    by: Measure
    n: int = 1
    lowest: bool = False

    def __post_init__(self) -> None:
        require_nodes(self.of)
        _require(self.n >= 1, f"The number of the best must be at least 1; it is {self.n}.")


SetExpression: TypeAlias = Members | Instances | Reached | Values | Union | Intersect | Minus | Kept | Best


def holds_values(expression: SetExpression) -> bool:
    """Say whether a set holds values; otherwise it holds nodes."""
    match expression:
        case Values():
            return True
        case Union() | Intersect() | Minus():
            return holds_values(expression.sets[0])
        case _:
            return False


def owner_of(of: SetExpression) -> Node | None:
    """Return the class whose instances a set is chosen from; None where it is not chosen from those of one class."""
    while isinstance(of, Kept | Minus | Best):
        of = of.sets[0] if isinstance(of, Minus) else of.of
    return of.owner if isinstance(of, Instances) else None


def require_nodes(of: SetExpression) -> None:
    """Refuse a set of values where one of nodes is needed.

    Raises:
        InvalidRequest: The set holds values.
    """
    _require(not holds_values(of), "This starts from nodes, but the set holds values.")


def _require_alike(sets: tuple[SetExpression, ...]) -> None:
    _require(sets, "At least one set is needed.")
    _require(len({holds_values(each) for each in sets}) == 1, "Sets of nodes and sets of values do not mix.")
