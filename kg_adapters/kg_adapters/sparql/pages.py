"""Pages of neighbours from counts: which places of which groups a page shows, before any neighbour is fetched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kg_adapters.cursors import past_the_end
from kg_adapters.models import Count, NeighborPage
from kg_adapters.paging import cursor_at
from kg_adapters.requests import NeighborRequest
from kg_adapters.sparql.queries.edges import Group, Span
from kg_adapters.terms import Node, Triple


@dataclass(frozen=True, slots=True)
class Held:
    """Some neighbours of a group in their order, from the place `start` on."""

    nodes: Sequence[Node]
    start: int = 0

    def at(self, place: int) -> Node | None:
        """Return the neighbour in a place; None where it is not held."""
        inside = 0 <= place - self.start < len(self.nodes)
        return self.nodes[place - self.start] if inside else None


@dataclass(frozen=True)
class PagePlan:
    """What one page of an entity shows.

    Args:
        entity: Whose neighbours.
        counts: How many neighbours each group has.
        sizes: How many of them are listed.
        query: What was asked.
        graph: What people call the graph.
        offset: How many triples the pages before showed.

    Raises:
        InvalidRequest: There are no more than `offset`.
    """

    entity: Node
    counts: Mapping[Group, int]
    sizes: Mapping[Group, int]
    query: NeighborRequest
    graph: str
    offset: int = 0
    places: Sequence[tuple[Group, int]] = field(init=False)

    def __post_init__(self) -> None:
        if self.offset and self.offset >= self.listed:
            raise past_the_end()
        shown = islice(_in_turns(self.sizes), self.offset, self.offset + self.query.limit)
        object.__setattr__(self, "places", tuple(shown))

    @property
    def listed(self) -> int:
        """How many triples all pages show together."""
        return sum(self.sizes.values())

    def spans(self) -> Iterator[Span]:
        """Yield the part of each group that the page shows."""
        first: dict[Group, int] = {}
        last: dict[Group, int] = {}
        for group, place in self.places:
            first.setdefault(group, place)
            last[group] = place
        for group, start in first.items():
            yield Span(self.entity, group, start, last[group] + 1)

    def page(self, held: Mapping[Group, Held], *, exact: bool) -> NeighborPage:
        """Return the page; a neighbour that is not held, because it vanished meanwhile, is left out.

        Args:
            held: The neighbours by group.
            exact: Whether the counts are all there is.
        """
        nothing = Held(())
        found = ((group, held.get(group, nothing).at(place)) for group, place in self.places)
        triples = tuple(self._triple(group, far) for group, far in found if far is not None)
        total, end = sum(self.counts.values()), self.offset + self.query.limit
        missing = end < self.listed or self.listed < total or len(triples) < len(self.places) or not exact
        cursor = cursor_at(end, self.query, self.entity, self.graph) if end < self.listed else None
        return NeighborPage(triples, Count(total, exact=exact), truncated=missing, cursor=cursor)

    def _triple(self, group: Group, far: Node) -> Triple:
        if group.inverse:
            return Triple(far, group.relation, self.entity)
        return Triple(self.entity, group.relation, far)


def _in_turns(sizes: Mapping[Group, int]) -> Iterator[tuple[Group, int]]:
    """Yield the first place of every group, then the second of those that have one, and so on."""
    going, place = sorted(group for group, size in sizes.items() if size), 0
    while going:
        for group in going:
            yield group, place
        place += 1
        going = [group for group in going if sizes[group] > place]
