"""Check which facts of a memory their graphs still hold: a graph of the same name may have other content by now."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, TypeAlias, TypeVar

import anyio

from kg_adapters.calls import time_left_s
from kg_adapters.errors import KGError
from kg_adapters.links import same_things
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Triple
from kg_server.elsewhere import opened_all, with_links
from kg_server.graphs import GraphSet, OpenedGraph
from kg_server.memory.store import KeptFact

T = TypeVar("T")

_SHARE: Final = 0.5
"""What part of the time that is left may pass before facts count as they were kept."""

_Facts: TypeAlias = Mapping[str, Collection[KeptFact]]
"""Facts by the names of their graphs."""


@dataclass(frozen=True, slots=True)
class Rechecked:
    """The result of checking verified facts again.

    Args:
        lost: Those that their graphs do not hold any more.
        unasked: The graphs whose facts count as they were kept: those behind a network, and those that failed.
    """

    lost: frozenset[KeptFact] = frozenset()
    unasked: tuple[str, ...] = ()


async def recheck(graphs: GraphSet, facts: Iterable[KeptFact]) -> Rechecked:
    """Check facts that were verified again, in their graphs; a graph behind a network is not asked."""
    of: dict[str, list[KeptFact]] = {}
    for fact in facts:
        if fact.verified:
            of.setdefault(fact.graph or graphs.first.name, []).append(fact)
    missing: dict[str, Collection[KeptFact]] = {}
    with anyio.move_on_after(time_left_s(math.inf) * _SHARE):
        asked = [each for each in graphs.all if each.name in of and not each.remote]
        found = await graphs.ask_each(lambda here: _missing(here, of[here.name]), asked)
        answered = {name: each for name, each in found.items() if not isinstance(each, KGError)}
        if graphs.several and any(answered.values()):
            answered = await _missing_by_links(graphs, answered)
        missing = answered
    lost = frozenset[KeptFact]().union(*missing.values())
    return Rechecked(lost, tuple(name for name in of if name not in missing))


async def _missing(here: OpenedGraph, kept: Collection[KeptFact]) -> Collection[KeptFact]:
    """Return the facts that a graph does not hold."""
    held = await here.adapter.contains([_fact(each) for each in kept])
    return [each for each in kept if _fact(each) not in held]


async def _missing_by_links(graphs: GraphSet, missing: _Facts) -> dict[str, Collection[KeptFact]]:
    """Return the facts that a graph does not hold under its own terms for the same things either.

    Where what links them is not known, because a graph is down, a graph with such facts is left out.
    """
    opened = await opened_all(graphs)
    left = {name: kept for name, kept in missing.items() if not kept}
    ends = {end for kept in missing.values() for each in kept for end in (each.head, each.tail) if isinstance(end, Iri)}
    try:
        if len(opened) < len(graphs.all):
            return left
        things = await same_things(*with_links(opened), ends)
        for name in missing.keys() - left.keys():
            own = {term: thing.terms.get(name) or (term,) for term, thing in things.items()}
            meant = {each: _facts(each, own) for each in missing[name]}
            held = await opened[name].adapter.contains([fact for facts in meant.values() for fact in facts])
            left[name] = [each for each, facts in meant.items() if held.isdisjoint(facts)]
    except KGError:
        # Without what links them, facts count as they were kept.
        return left
    return left


def _facts(kept: KeptFact, own: Mapping[Iri, Sequence[Iri]]) -> Sequence[Fact]:
    """Return what a fact is by each of a graph's own terms for its ends."""

    def terms(end: T) -> Sequence[T | Iri]:
        return own[end] if isinstance(end, Iri) else (end,)

    return [_fact(replace(kept, head=head, tail=tail)) for head, tail in product(terms(kept.head), terms(kept.tail))]


def _fact(kept: KeptFact) -> Fact:
    if isinstance(kept.tail, Literal):
        return Attribute(kept.head, kept.relation, kept.tail)
    return Triple(kept.head, kept.relation, kept.tail)
