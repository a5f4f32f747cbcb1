"""What a query is about: groups of facts around entities, which of them count, and which parts of them are wanted."""

from dataclasses import dataclass
from typing import Literal as Choice
from typing import NamedTuple, Self, TypeAlias

from kg_adapters.models import Direction, EdgeDirection
from kg_adapters.terms import Iri, Node

Side: TypeAlias = Choice["out", "value", "in"]
"""Where the far end of a fact stands: an edge's tail, a value, or an edge's head."""


class Group(NamedTuple):
    """A direction, a relation, and whether it leads to values; groups sort as the protocol lists them."""

    inverse: bool
    relation: Iri
    literal: bool = False

    @classmethod
    def on(cls, side: Side, relation: Iri) -> Self:
        """Return the group of a relation on one side."""
        return cls(side == "in", relation, side == "value")

    @property
    def side(self) -> Side:
        """The side in words."""
        if self.inverse:
            return "in"
        return "value" if self.literal else "out"

    @property
    def direction(self) -> EdgeDirection:
        """The direction in words."""
        return "in" if self.inverse else "out"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which facts of an entity count: edges of a direction, values or none, over some relations (None for all)."""

    direction: Direction
    relations: frozenset[Iri] | None = None
    values: bool = False

    @property
    def edges(self) -> tuple[EdgeDirection, ...]:
        """The directions of edges one by one, outgoing first."""
        return ("out", "in") if self.direction == "both" else (self.direction,)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides of all that counts."""
        return (*self.edges, "value") if self.values and self.direction != "in" else self.edges

    @property
    def is_empty(self) -> bool:
        """Whether nothing can count."""
        return self.relations is not None and not self.relations


@dataclass(frozen=True, slots=True)
class Span:
    """The far ends of one group from the place `start` up to the place `stop`."""

    entity: Node
    group: Group
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Which far ends come along with the counts of the groups.

    Args:
        group_size: All of the groups with at most so many.
        rows: But not more than so many edges, and so many values.
        sampled_rows: Of the larger groups together so many, those that sort first, and at least one of each.
        spans: Or exactly these, instead of all that.
    """

    group_size: int = 0
    rows: int = 0
    sampled_rows: int = 0
    spans: tuple[Span, ...] = ()
