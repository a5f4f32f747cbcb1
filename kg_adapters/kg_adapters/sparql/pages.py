"""Pages of facts from counts: which places of which groups a page shows, before any far end is fetched."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Self

from kg_adapters.models import Count, NeighborPage
from kg_adapters.requests import NeighborRequest, cursor_at, past_the_end
from kg_adapters.sparql.queries.groups import Group, Span
from kg_adapters.terms import Attribute, Fact, Literal, Node, Term, Triple, literal_key, node_key


@dataclass(frozen=True, slots=True)
class Held:
    """Some far ends of a group in their order, from the place `start` on."""

    ends: Sequence[Term]
    start: int = 0

    @classmethod
    def of(cls, ends: Iterable[Term], start: int = 0) -> Self:
        """Return far ends as the protocol orders them."""
        return cls(sorted(ends, key=_order), start)

    def at(self, place: int) -> Term | None:
        """Return the far end in a place; None where it is not held."""
        inside = 0 <= place - self.start < len(self.ends)
        return self.ends[place - self.start] if inside else None


@dataclass(frozen=True)
class PagePlan:
    """What one page of an entity shows.

    Args:
        entity: Whose facts.
        counts: How many far ends each group has.
        sizes: How many of them are listed.
        query: What was asked.
        graph: What people call the graph.
        offset: How many facts the pages before showed.

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
        """How many facts all pages show together."""
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
        """Return the page; a fact whose far end is not held, because it vanished meanwhile, is left out.

        Args:
            held: The far ends by group.
            exact: Whether the counts are all there is.
        """
        nothing = Held(())
        found = ((group, held.get(group, nothing).at(place)) for group, place in self.places)
        facts = tuple(self._fact(group, far) for group, far in found if far is not None)
        total, end = sum(self.counts.values()), self.offset + self.query.limit
        missing = end < self.listed or self.listed < total or len(facts) < len(self.places) or not exact
        cursor = cursor_at(end, self.query, self.entity, self.graph) if end < self.listed else None
        return NeighborPage(facts, Count(total, exact=exact), truncated=missing, cursor=cursor)

    def _fact(self, group: Group, far: Term) -> Fact:
        if isinstance(far, Literal):
            return Attribute(self.entity, group.relation, far)
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


def _order(term: Term) -> tuple[str, str, str]:
    return literal_key(term) if isinstance(term, Literal) else (node_key(term), "", "")
