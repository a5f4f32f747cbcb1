"""Relations and their inverses walked as one: what is stored as a child of one is the parent of the other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.cursors import past_the_end, read_cursor, write_cursor
from kg_adapters.models import Count, Degree, Direction, EdgeDirection, NeighborPage, RelationCount
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple, node_key
from kg_server.names import Names

MAX_COMPARED: Final = 5_000
"""How many facts are looked at to tell which are stored both ways; of more, only those as asked for are shown."""

OPPOSITE: Final[dict[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}


@dataclass(frozen=True, slots=True)
class BothWays:
    """What is stated around an entity over a relation or its inverse, each fact once and as it is stored.

    Args:
        entity: The entity.
        relation: The relation that was asked for.
        direction: Which way it was asked for.
        inverse: Its inverse; the same if it is symmetric.
        straight: The facts that are stored as asked for.
        turned: The facts that are stored over the inverse only.
        degree: The neighbours, and how many are stored over which relation, those that are stored both ways in each.
        complete: Whether these are all; otherwise there are more than `MAX_COMPARED`, and nothing is held here.
    """

    entity: Node
    relation: Iri
    direction: Direction
    inverse: Iri
    straight: tuple[Fact, ...]
    turned: tuple[Fact, ...]
    degree: Degree
    complete: bool

    def said(self, names: Names) -> str:
        """Return half a sentence on what is stored over the inverse only; nothing where there is none."""
        if not self.turned:
            return ""
        subject = f"{len(self.turned):,} of them " if self.straight else ""
        symmetric = self.relation == self.inverse
        how = "in the other direction" if symmetric else f"the other way, as {names.relation(self.inverse)}"
        return f", {subject}stored only {how}"

    def page(self, limit: int, cursor: str | None, graph: KGAdapter) -> NeighborPage:
        """Return up to `limit` facts from a cursor on, as stored before those over the inverse.

        Raises:
            InvalidRequest: The cursor is damaged, or belongs to another question or graph.
        """
        question = node_key(self.entity), self.relation.value, self.direction
        facts = (*self.straight, *self.turned)
        first = 0 if cursor is None else read_cursor(cursor, 1, question, graph.name)[0]
        if cursor is not None and first >= len(facts):
            raise past_the_end()
        end = first + limit
        behind = write_cursor((end,), question, graph.name) if end < len(facts) else None
        return NeighborPage(facts[first:end], Count(len(facts)), first > 0 or behind is not None, behind)


async def inverse_of(graph: KGAdapter, relation: Iri) -> Iri | None:
    """Return the relation that says the same backwards; the same one if it is symmetric, None if there is none."""
    return (await graph.profile()).inverse_of(relation)


async def both_ways(graph: KGAdapter, node: Node, relation: Iri, direction: Direction) -> BothWays | None:
    """Return what is stated around an entity over a relation or its inverse, values too, by one request.

    None where the relation has no inverse, or the graph does not mention the entity.
    """
    inverse = await inverse_of(graph, relation)
    if inverse is None:
        return None
    wanted = frozenset({relation, inverse})
    request = NeighborRequest((node,), "both", relations=wanted, limit=MAX_COMPARED, values=True)
    page = (await graph.neighbors(request)).get(node)
    if page is None:
        return None
    found = BothWays(node, relation, direction, inverse, (), (), Degree(Count(0), ()), complete=not page.truncated)
    if page.truncated:
        return found
    ahead = [fact for fact in page.facts if _leads(fact, node, relation, direction)]
    behind = [fact for fact in page.triples if _leads(fact, node, inverse, OPPOSITE[direction])]
    seen = dict[object, Fact]()
    for fact in ahead:
        seen.setdefault(_meaning(fact, found), fact)
    straight = tuple(seen.values())
    for fact in behind:
        seen.setdefault(_meaning(fact, found), fact)
    turned = tuple(seen.values())[len(straight) :]
    return replace(found, straight=straight, turned=turned, degree=_degree(node, dict.fromkeys((*ahead, *behind))))


async def degree_both_ways(
    graph: KGAdapter, node: Node, relation: Iri, direction: Direction
) -> tuple[Degree, BothWays | None]:
    """Count the distinct neighbours over a relation, whether they are stored with it or with its inverse.

    Where that is more than is compared, the count is of those that are stored as asked for, and a lower bound.
    """
    found = await both_ways(graph, node, relation, direction)
    if found is not None and found.complete:
        return found.degree, found
    straight = (await graph.degrees([node], direction=direction, relations=[relation]))[node]
    return straight if found is None else replace(
        straight, neighbors=Count(straight.neighbors.value, exact=False)
    ), None


async def without_twins(graph: KGAdapter, node: Node, page: NeighborPage) -> NeighborPage:
    """Return a page without the incoming triples that say what an outgoing one of it says already.

    Twins on different pages of a hub are both shown.
    """
    outgoing = {triple.tail for triple in page.triples if triple.head == node}
    if not any(triple.head != node and triple.head in outgoing for triple in page.triples):
        return page
    profile, stated = await graph.profile(), frozenset(page.facts)

    def is_twin(fact: Fact) -> bool:
        inverse = None if fact.head == node else profile.inverse_of(fact.relation)
        return inverse is not None and Triple(node, inverse, fact.head) in stated

    facts = tuple(fact for fact in page.facts if not is_twin(fact))
    twins = len(page.facts) - len(facts)
    return replace(page, facts=facts, total=replace(page.total, value=page.total.value - twins))


def _leads(fact: Fact, node: Node, relation: Iri, direction: Direction) -> bool:
    """Say whether a fact is one of an entity over a relation, in a direction."""
    if fact.relation != relation:
        return False
    return (direction != "in" and fact.head == node) or (direction != "out" and fact.tail == node)


def _meaning(fact: Fact, asked: BothWays) -> object:
    """Return what a fact says, whichever way it is stored."""
    if isinstance(fact, Attribute):
        return fact
    if asked.inverse == asked.relation:
        return frozenset((fact.head, fact.tail))
    return (fact.head, fact.tail) if fact.relation == asked.relation else (fact.tail, fact.head)


def _degree(node: Node, facts: Iterable[Fact]) -> Degree:
    ends: dict[tuple[EdgeDirection, Iri], set[Node]] = {}
    for direction, relation, end in _edges(node, facts):
        ends.setdefault((direction, relation), set()).add(end)
    # As adapters list them: outgoing before incoming.
    order = sorted(ends, key=lambda group: (group[0] == "in", group[1]))
    counts = tuple(RelationCount(relation, side, Count(len(ends[side, relation]))) for side, relation in order)
    return Degree(Count(len(set[Node]().union(*ends.values()) - {node})), counts)


def _edges(node: Node, facts: Iterable[Fact]) -> Iterator[tuple[EdgeDirection, Iri, Node]]:
    for fact in facts:
        if isinstance(fact, Triple):
            yield ("out", fact.relation, fact.tail) if fact.head == node else ("in", fact.relation, fact.head)
