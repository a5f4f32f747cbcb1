"""Relations and their inverses walked as one: what is stored as a child of one is the parent of the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.models import Count, Degree, Direction, EdgeDirection, NeighborPage, RelationCount
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Node, Triple
from kg_server.names import Names

MAX_COMPARED: Final = 5_000
"""How many triples are looked at to tell which are stored both ways; of more, only those as asked for are counted."""

OPPOSITE: Final[dict[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}


@dataclass(frozen=True, slots=True)
class Walked:
    """How many neighbours one relation has, with those that only its inverse has.

    Args:
        degree: All of them, each relation in the direction in which it is stored.
        straight: How many are stored as asked for.
        relation: The relation that was asked for; None where none was.
        inverse: Its inverse, where it has more.
        more: How many more the inverse has.
    """

    degree: Degree
    straight: int = 0
    relation: Iri | None = None
    inverse: Iri | None = None
    more: int = 0

    def said(self, names: Names) -> str:
        """Return a sentence on what is stored which way, where some is only stored backwards; nothing otherwise."""
        if self.relation is None or self.inverse is None or not self.more:
            return ""
        first = f" {self.straight:,} stored as {names.relation(self.relation)}"
        if self.relation == self.inverse:
            return f"{first}, {self.more:,} more the other way round."
        return f"{first}, {self.more:,} more as {names.relation(self.inverse)} of the other."


async def inverse_of(graph: KGAdapter, relation: Iri) -> Iri | None:
    """Return the relation that says the same backwards; the same one if it is symmetric, None if there is none."""
    return (await graph.profile()).inverse_of(relation)


async def degree_both_ways(graph: KGAdapter, node: Node, relation: Iri, direction: Direction) -> Walked:
    """Count the distinct neighbours over a relation, whether they are stored with it or with its inverse."""
    inverse = await inverse_of(graph, relation)
    straight = (await graph.degrees([node], direction=direction, relations=[relation]))[node]
    if inverse is None:
        return Walked(straight, relation=relation)
    back: Direction = OPPOSITE[direction]
    request = NeighborRequest((node,), "both", relations=frozenset({relation, inverse}), limit=MAX_COMPARED)
    pages = await graph.neighbors(request)
    page = pages[node]
    if page.truncated:
        return Walked(Degree(Count(straight.neighbors.value, exact=False), straight.relations), relation=relation)
    ahead = far_ends(page, node, relation, direction)
    behind = far_ends(page, node, inverse, back)
    more = behind - ahead
    counts = list(straight.relations)
    sides: Sequence[EdgeDirection] = ("out", "in") if back == "both" else (back,)
    for side in sides if inverse != relation or direction != "both" else ():
        size = len(far_ends(page, node, inverse, side))
        if size:
            counts.append(RelationCount(inverse, side, Count(size)))
    degree = Degree(Count(len((ahead | behind) - {node})), tuple(counts))
    return Walked(degree, len(ahead), relation, inverse, len(more))


def far_ends(page: NeighborPage, node: Node, relation: Iri, direction: Direction) -> set[Node]:
    """Return what a page of triples leads to over a relation, in a direction."""
    return {
        _other(triple, node)
        for triple in page.triples
        if triple.relation == relation
        and ((direction != "in" and triple.head == node) or (direction != "out" and triple.tail == node))
    }


def _other(triple: Triple, node: Node) -> Node:
    return triple.tail if triple.head == node else triple.head
