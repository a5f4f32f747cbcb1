"""Union, Intersect and Minus. What was not fetched of a set is looked up, so that a hub does not spoil the result."""

from collections.abc import Sequence
from dataclasses import dataclass

from kg_adapters.errors import InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_server.compose.outcomes import Edge, Item, Outcome, distinct, found_items, identity
from kg_server.compose.syntax import SetFunction
from kg_server.compose.walking import membership


@dataclass(frozen=True, slots=True)
class _Shared:
    """Which items are in another set too, whether that is unsure for any of the rest, and what was looked up."""

    items: tuple[Item, ...]
    unsure: bool
    looked_up: tuple[Edge, ...]


async def combine(graph: KGAdapter, function: SetFunction, sets: Sequence[Outcome]) -> Outcome:
    """Return what a set function makes of two or more sets, all of nodes or all of values.

    Raises:
        InvalidRequest: Something is to be taken away, and it cannot be told whether all of it is.
    """
    if function == "Union":
        return _union(sets)
    if function == "Intersect":
        return await _intersection(graph, sets)
    return await _difference(graph, sets[0], sets[1:])


def _union(sets: Sequence[Outcome]) -> Outcome:
    items = distinct(item for each in sets for item in each.items)
    failures = tuple(failure for each in sets for failure in each.failures)
    return found_items(items, sets[0].kind, exact=all(each.complete for each in sets), failures=failures)


async def _intersection(graph: KGAdapter, sets: Sequence[Outcome]) -> Outcome:
    """Start from the smallest set that is known whole, and keep what is in all others."""
    first = min(sets, key=lambda each: (not each.complete, len(each.items)))
    kept, exact = first.items, first.complete
    looked_up: list[Edge] = []
    for other in sets:
        if other is not first:
            shared = await _shared(graph, kept, other)
            kept, exact = shared.items, exact and not shared.unsure
            looked_up.extend(shared.looked_up)
    return found_items(kept, first.kind, exact=exact, looked_up=looked_up)


async def _difference(graph: KGAdapter, first: Outcome, others: Sequence[Outcome]) -> Outcome:
    kept = first.items
    for other in others:
        shared = await _shared(graph, kept, other)
        if shared.unsure:
            raise InvalidRequest(
                f"Minus cannot tell what to take away: of that set only {len(other.items):,} are known here, of "
                f"{other.total}. Take away something smaller, or intersect it first with what you start from."
            )
        gone = {identity(item) for item in shared.items}
        kept = tuple(item for item in kept if identity(item) not in gone)
    return found_items(kept, first.kind, exact=first.complete)


async def _shared(graph: KGAdapter, items: Sequence[Item], other: Outcome) -> _Shared:
    """Return which items are in another set."""
    keys = {identity(item) for item in other.items}
    inside = {identity(item) for item in items} & keys
    unsure = not other.complete and len(inside) < len(items)
    looked_up: tuple[Edge, ...] = ()
    if unsure and other.kind == "nodes":
        found = await membership(graph, found_items(items, "nodes", exact=True).nodes, other)
        inside, unsure, looked_up = set(found.members), bool(found.unsure), found.looked_up
    return _Shared(tuple(item for item in items if identity(item) in inside), unsure, looked_up)
