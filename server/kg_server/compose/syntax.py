"""The tree that an expression is read into. Where something stood in the text does not count when trees compare."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.algebra import Operator
from kg_server.pointing import MisreadExpression

SetFunction: TypeAlias = Choice["Union", "Intersect", "Minus"]
WalkFunction: TypeAlias = Choice["Feature", "Neighbor", "Degree"]
BestFunction: TypeAlias = Choice["Top", "Bottom"]
TotalFunction: TypeAlias = Choice["Sum", "Mean", "Min", "Max"]
OtherFunction: TypeAlias = Choice["Retrieve", "Type", "Count", "Where", "Group", "Share", "Table"]
Function: TypeAlias = SetFunction | WalkFunction | BestFunction | TotalFunction | OtherFunction
Kind: TypeAlias = Choice["nodes", "values", "numbers", "groups", "rows"]
Mark: TypeAlias = Choice["", "-", "~"]

_NAMES: Final[tuple[Function, ...]] = (
    *("Retrieve", "Feature", "Neighbor", "Degree", "Count", "Union", "Intersect", "Minus"),
    *("Type", "Where", "Top", "Bottom", "Sum", "Mean", "Min", "Max", "Group", "Share", "Table"),
)
PAPER: Final = frozenset(_NAMES[:4])
"""The functions of the paper."""

FUNCTIONS: Final[Mapping[str, Function]] = {
    **{name.lower(): name for name in _NAMES},
    "neighbour": "Neighbor",
    "getneighbor": "Neighbor",
    "getneighbour": "Neighbor",
}
"""The functions by their names in lower case."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text, from the character `start` up to and without `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Words:
    """What to look for, or the id or label of a relation, feature or class; `quoted` of the value of a condition."""

    text: str
    span: Span = field(compare=False)
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Leg:
    """One relation of a route: walked forward, backwards (`-`) or both ways (`~`), once or repeatedly (`+`)."""

    name: Words
    mark: Mark = ""
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """Relations one behind the other, and the text that they stand in, which may be the name of one relation."""

    legs: tuple[Leg, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class EntityRef:
    """The id or name of an entity, as it was written."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class RetrieveCall:
    """`Retrieve[text]`: the entities that a text names."""

    text: Words
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class TypeCall:
    """`Type[class]`: the instances of a class, those of its subclasses too."""

    owner: Words
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class FeatureCall:
    """`Feature[node, feature]`: the values of each node; all of them without a feature."""

    node: "Operand"
    route: Route | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NeighborCall:
    """`Neighbor[node, relation]`: what a route leads to from the nodes; all that is next to them without one."""

    node: "Operand"
    route: Route | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class DegreeCall:
    """`Degree[node, relation]`: how many neighbours each node has; over everything, both ways, without a relation."""

    node: "Operand"
    route: Route | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class CountCall:
    """`Count[…]`: how many different nodes or values there are."""

    of: "Operand"
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class SetCall:
    """`Union[…, …]`, `Intersect[…, …]` and `Minus[…, …]` of two or more sets."""

    function: SetFunction
    operands: tuple["Operand", ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition of `Where`: that a route leads anywhere, or how what it leads to compares with a value or a set."""

    route: Route
    operator: Operator | None = None
    value: "Words | Operand | None" = None


@dataclass(frozen=True, slots=True)
class WhereCall:
    """`Where[set, condition, …]`: the members of which all conditions are true."""

    node: "Operand"
    clauses: tuple[Clause, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class BestCall:
    """`Top[set, by, n]` and `Bottom[set, by, n]`."""

    function: BestFunction
    node: "Operand"
    route: Route
    n: int
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class TotalCall:
    """`Sum[set, by]`, `Mean`, `Min` and `Max`."""

    function: TotalFunction
    node: "Operand"
    route: Route
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class GroupCall:
    """`Group[set, by]`: how many members lead to each node or value."""

    node: "Operand"
    route: Route
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class TableCall:
    """`Table[set, by, …]`: one row for every member."""

    node: "Operand"
    routes: tuple[Route, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ShareCall:
    """`Share[a, b, …]`: what all of them have in common."""

    operands: tuple["Operand", ...]
    span: Span = field(compare=False)


Call: TypeAlias = (
    RetrieveCall
    | TypeCall
    | FeatureCall
    | NeighborCall
    | DegreeCall
    | CountCall
    | SetCall
    | WhereCall
    | BestCall
    | TotalCall
    | GroupCall
    | TableCall
    | ShareCall
)
Operand: TypeAlias = Call | EntityRef


@dataclass(frozen=True, slots=True)
class Refused:
    """A part of an expression that cannot be read, and why."""

    reason: MisreadExpression
    span: Span


def kind_of(operand: Operand) -> Kind:
    """Return what an operand gives."""
    match operand:
        case EntityRef() | RetrieveCall() | NeighborCall() | TypeCall() | WhereCall() | BestCall():
            return "nodes"
        case FeatureCall():
            return "values"
        case DegreeCall() | CountCall() | TotalCall():
            return "numbers"
        case SetCall():
            return kind_of(operand.operands[0])
        case GroupCall():
            return "groups"
        case TableCall() | ShareCall():
            return "rows"


def operands_of(call: Call) -> tuple[Operand, ...]:
    """Return the operands that must be known before a call can be worked out."""
    match call:
        case RetrieveCall() | TypeCall():
            return ()
        case CountCall():
            return (call.of,)
        case SetCall() | ShareCall():
            return call.operands
        case WhereCall():
            values = (clause.value for clause in call.clauses)
            return (call.node, *(value for value in values if value is not None and not isinstance(value, Words)))
        case _:
            return (call.node,)


def entities_in(operand: Operand) -> Iterator[EntityRef]:
    """Yield the ids and names of entities in a tree, with repeats."""
    if isinstance(operand, EntityRef):
        yield operand
    else:
        for each in operands_of(operand):
            yield from entities_in(each)


def calls_in(operand: Operand) -> Iterator[Call]:
    """Yield the calls of a tree, outer ones first."""
    if not isinstance(operand, EntityRef):
        yield operand
        for each in operands_of(operand):
            yield from calls_in(each)
