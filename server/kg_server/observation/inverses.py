"""Facts that a graph stores both ways, over a relation and over its inverse, stand in an observation once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Fact, Iri, Triple
from kg_server.observation.groups import Group, Key

InverseOf: TypeAlias = Callable[[Iri], Iri | None]


def no_inverse(relation: Iri) -> Iri | None:
    """Return the inverse of a relation in a graph of which nothing is known."""
    del relation
    return None


async def inverses_in(graph: KGAdapter) -> InverseOf:
    """Return what gives the inverse of a relation by the profile of a graph; of a remote one nothing is asked."""
    return no_inverse if graph.remote else (await graph.profile()).inverse_of


def one_way(fact: Fact, inverse_of: InverseOf) -> Fact:
    """Return the same fact for both ways in which it may be stored."""
    if not isinstance(fact, Triple) or (inverse := inverse_of(fact.relation)) is None:
        return fact
    turned = Triple(fact.tail, inverse, fact.head)
    return min(fact, turned, key=lambda each: (each.relation.value, str(each.head)))


def once(groups: Sequence[Group], inverse_of: InverseOf) -> list[Group]:
    """Return groups of which none repeats over the inverse relation what one before it says of the same entity.

    Args:
        groups: The groups, the best first.
        inverse_of: Gives the relation that says the same backwards, or None.
    """
    kept: dict[Key, Group] = {}
    for group in groups:
        inverse = inverse_of(group.relation)
        other = None if inverse is None else kept.get((group.near, inverse, not group.inverse))
        if other is None:
            kept[group.key] = group
            continue
        more = tuple(far for far in group.far if far not in other.far)
        # Of large groups only the best far ends are known: those of one may all be among the others of the other.
        seen_whole = other.count == len(other.far)
        if more and (seen_whole or len(more) == len(group.far) or group.count > other.count):
            kept[group.key] = replace(group, far=more, count=group.count - len(group.far) + len(more))
    return list(kept.values())
