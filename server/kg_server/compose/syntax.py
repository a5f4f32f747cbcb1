"""The tree that an expression is read into. Where something stood in the text does not count when trees compare."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from typing import Literal as Choice

Function: TypeAlias = Choice["Retrieve", "Feature", "Neighbor", "Degree", "Count", "Union", "Intersect", "Minus"]
SetFunction: TypeAlias = Choice["Union", "Intersect", "Minus"]
Kind: TypeAlias = Choice["nodes", "values", "numbers"]

FUNCTIONS: Final[Mapping[str, Function]] = {
    "retrieve": "Retrieve",
    "feature": "Feature",
    "neighbor": "Neighbor",
    "neighbour": "Neighbor",
    "getneighbor": "Neighbor",
    "getneighbour": "Neighbor",
    "degree": "Degree",
    "count": "Count",
    "union": "Union",
    "intersect": "Intersect",
    "minus": "Minus",
}
"""The functions by their names in lower case."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text, from the character `start` up to and without `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Words:
    """What to look for, or the id or label of a relation or feature."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class EntityRef:
    """The id of an entity, as it was written."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class RetrieveCall:
    """`Retrieve[text]`: the entity that a text names."""

    text: Words
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class FeatureCall:
    """`Feature[node, feature]`: the values of each node."""

    node: "Operand"
    feature: Words
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NeighborCall:
    """`Neighbor[node, relation]`: the tails of each node's triples, or the heads when walked backwards."""

    node: "Operand"
    relation: Words
    backwards: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class DegreeCall:
    """`Degree[node, relation]`: how many neighbours each node has; over everything, both ways, without a relation."""

    node: "Operand"
    relation: Words | None
    backwards: bool
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


Call: TypeAlias = RetrieveCall | FeatureCall | NeighborCall | DegreeCall | CountCall | SetCall
Operand: TypeAlias = Call | EntityRef


def kind_of(operand: Operand) -> Kind:
    """Return what an operand gives."""
    match operand:
        case EntityRef() | RetrieveCall() | NeighborCall():
            return "nodes"
        case FeatureCall():
            return "values"
        case DegreeCall() | CountCall():
            return "numbers"
        case SetCall():
            return kind_of(operand.operands[0])


def operands_of(call: Call) -> tuple[Operand, ...]:
    """Return the operands that must be known before a call can be worked out."""
    match call:
        case RetrieveCall():
            return ()
        case CountCall():
            return (call.of,)
        case SetCall():
            return call.operands
        case FeatureCall() | NeighborCall() | DegreeCall():
            return (call.node,)


def entities_in(operand: Operand) -> Iterator[EntityRef]:
    """Yield the ids of entities in a tree, with repeats."""
    if isinstance(operand, EntityRef):
        yield operand
    else:
        for each in operands_of(operand):
            yield from entities_in(each)
