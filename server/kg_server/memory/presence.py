"""Whether the graph holds statements, asked so that a hub costs no more than any other node."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kg_adapters.models import EdgeDirection
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node, Triple, node_key

GLANCE: Final = 100
"""How many triples of one entity and relation are looked at before the other end is tried."""

SCAN_PAGE: Final = 1_000
MAX_SCAN: Final = 20_000
"""How many triples are looked at when both ends are hubs."""


@dataclass(frozen=True, slots=True)
class Presence:
    """Which triples the graph holds, and which could not be checked because both ends are too large."""

    present: frozenset[Triple]
    unchecked: frozenset[Triple] = frozenset()


async def presence_of(graph: KGAdapter, triples: Collection[Triple]) -> Presence:
    """Look up triples: one request for their heads, one for the tails of those that it leaves open.

    Only a triple between two hubs, over a relation that makes hubs of both, is searched for, on its smaller side.
    """
    present, unsure = await _glance(graph, triples, "out")
    if unsure:
        more, unsure = await _glance(graph, unsure, "in")
        present |= more
    found = {triple: await _scan(graph, triple) for triple in sorted(unsure, key=str)}
    return Presence(
        frozenset(present | {triple for triple, there in found.items() if there}),
        frozenset(triple for triple, there in found.items() if there is None),
    )


async def _glance(
    graph: KGAdapter, triples: Collection[Triple], direction: EdgeDirection
) -> tuple[set[Triple], set[Triple]]:
    """Return the triples that are there, and those that may be among what was not looked at."""
    if not triples:
        return set(), set()
    relations = {triple.relation for triple in triples}
    pages = await graph.neighbors(
        list(dict.fromkeys(_end(triple, direction) for triple in triples)),
        direction=direction,
        relations=relations,
        limit_per_relation=GLANCE,
        limit=GLANCE * len(relations),
    )
    seen = {triple for page in pages.values() for triple in page.triples}
    sizes = {node: Counter(triple.relation for triple in page.triples) for node, page in pages.items()}
    present = {triple for triple in triples if triple in seen}
    return present, {triple for triple in triples if triple not in seen and _is_cut(sizes, triple, direction)}


def _is_cut(sizes: Mapping[Node, Counter[Iri]], triple: Triple, direction: EdgeDirection) -> bool:
    counts = sizes.get(_end(triple, direction))
    return counts is not None and counts[triple.relation] >= GLANCE


async def _scan(graph: KGAdapter, triple: Triple) -> bool | None:
    """Say whether a triple is in the graph, or None where that would take too long."""
    direction = await _smaller_side(graph, triple)
    wanted = node_key(triple.tail if direction == "out" else triple.head)
    cursor: str | None = None
    for _ in range(MAX_SCAN // SCAN_PAGE):
        end = _end(triple, direction)
        pages = await graph.neighbors(
            [end], direction=direction, relations=[triple.relation], limit=SCAN_PAGE, cursor=cursor
        )
        page = pages[end]
        if triple in page.triples:
            return True
        last = page.triples[-1] if page.triples else triple
        # Neighbours over one relation come in the order of their keys.
        if page.cursor is None or node_key(last.tail if direction == "out" else last.head) > wanted:
            return False
        cursor = page.cursor
    return None


async def _smaller_side(graph: KGAdapter, triple: Triple) -> EdgeDirection:
    out = await graph.degrees([triple.head], direction="out", relations=[triple.relation])
    into = await graph.degrees([triple.tail], direction="in", relations=[triple.relation])
    return "out" if out[triple.head].neighbors.value <= into[triple.tail].neighbors.value else "in"


def _end(triple: Triple, direction: EdgeDirection) -> Node:
    return triple.head if direction == "out" else triple.tail
