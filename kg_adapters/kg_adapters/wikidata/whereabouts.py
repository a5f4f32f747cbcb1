"""Where entities are: merged into another one, or at the scholarly endpoint."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from kg_adapters.models import NeighborPage
from kg_adapters.terms import Attribute, Fact, Node, Triple

MAX_KNOWN: Final = 10_000

T = TypeVar("T")


class Whereabouts:
    """Remembers where entities were found; the least recently learned is forgotten first."""

    def __init__(self) -> None:
        self._merged: OrderedDict[Node, Node] = OrderedDict()
        self._scholarly: OrderedDict[Node, None] = OrderedDict()

    def learn_merged(self, merged: Mapping[Node, Node]) -> None:
        """Remember what was merged into what."""
        self._merged.update(merged)
        while len(self._merged) > MAX_KNOWN:
            self._merged.popitem(last=False)

    def learn_scholarly(self, nodes: Iterable[Node]) -> None:
        """Remember what stands at the scholarly endpoint."""
        self._scholarly.update(dict.fromkeys(nodes))
        while len(self._scholarly) > MAX_KNOWN:
            self._scholarly.popitem(last=False)

    def current(self, node: Node) -> Node:
        """Return the entity that a node is part of now: itself, as far as is known."""
        return self._merged.get(node, node)

    def all_current(self, nodes: Iterable[Node]) -> Sequence[Node]:
        """Return the entities that nodes are part of now, each once."""
        return list(dict.fromkeys(map(self.current, nodes)))

    def is_scholarly(self, node: Node) -> bool:
        """Say whether a node is known to stand at the scholarly endpoint."""
        return self.current(node) in self._scholarly

    def placed(self, triple: Triple) -> tuple[Triple, bool]:
        """Return a triple between what its ends are part of now, and whether it stands at the scholarly endpoint."""
        now = Triple(self.current(triple.head), triple.relation, self.current(triple.tail))
        return now, self.is_scholarly(triple.head)

    def answers(self, nodes: Iterable[Node], found: Mapping[Node, T]) -> dict[Node, T]:
        """Return by node what was found of the entity that it is part of."""
        return {node: found[self.current(node)] for node in nodes if self.current(node) in found}


def renamed(page: NeighborPage, entity: Node, name: Node) -> NeighborPage:
    """Return the page of an entity with another id for it in its facts."""
    if entity == name:
        return page
    return replace(page, facts=tuple(_renamed(fact, entity, name) for fact in page.facts))


def _renamed(fact: Fact, entity: Node, name: Node) -> Fact:
    head = name if fact.head == entity else fact.head
    if isinstance(fact, Attribute):
        return Attribute(head, fact.relation, fact.tail)
    return Triple(head, fact.relation, name if fact.tail == entity else fact.tail)
