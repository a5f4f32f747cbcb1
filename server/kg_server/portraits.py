"""How candidates are told apart: description, types and, between namesakes, one telling fact."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from kg_adapters.models import Description
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_boundary.shown import shown_within
from kg_server.names import MAX_LABEL, Names, names_of
from kg_server.namesakes import Telling, telling_facts

MAX_TYPES: Final = 3


@dataclass(frozen=True, slots=True)
class Portraits:
    """What is known of some entities, asked for in batches."""

    descriptions: Mapping[Node, Description]
    facts: Mapping[Node, Telling]
    names: Names

    def of(self, node: Node) -> Iterator[str]:
        """Yield the entity with its label and id, and what there is to say of it."""
        yield self.names.entity(node)
        yield from filter(None, (self.description(node), self.kinds(node), self.fact(node)))

    def description(self, node: Node) -> str:
        """Return an entity's description on one line, or nothing."""
        described = self.descriptions.get(node)
        return shown_within((described.description if described is not None else None) or "", MAX_LABEL)

    def types(self, node: Node) -> str:
        """Return the first of its types, with their ids."""
        return ", ".join(map(self.names.entity, self._types(node)))

    def kinds(self, node: Node) -> str:
        """Return the labels of the first of its types, which serve as ids."""
        return ", ".join(map(self.names.shown_label, self._types(node)))

    def _types(self, node: Node) -> Sequence[Node]:
        described = self.descriptions.get(node)
        return () if described is None else described.types[:MAX_TYPES]

    def fact(self, node: Node) -> str:
        """Return what its namesakes do not share with it, or nothing."""
        fact = self.facts.get(node)
        if fact is None:
            return ""
        value = self.names.term(fact.value, MAX_LABEL, relation=fact.relation)
        return f"{self.names.relation(fact.relation)}: {value}"


async def portraits_of(
    graph: KGAdapter, nodes: Collection[Node], namesakes: Collection[Sequence[Node]], others: Collection[Node] = ()
) -> Portraits:
    """Return what tells entities apart.

    Args:
        graph: Where they are.
        nodes: The entities.
        namesakes: Groups of them that have one name.
        others: What else is shown with its label.
    """
    descriptions = await graph.describe(nodes)
    facts = await telling_facts(graph, namesakes)
    types = chain.from_iterable(described.types[:MAX_TYPES] for described in descriptions.values())
    told = chain.from_iterable(fact.terms for fact in facts.values())
    return Portraits(descriptions, facts, await names_of(graph, (*nodes, *types, *told, *others)))
