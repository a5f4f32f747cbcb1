"""What many nodes have, asked in as few requests as the graph allows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kg_adapters.errors import KGError
from kg_adapters.models import NO_FEATURES, Count, EdgeDirection, NeighborPage
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Node, Triple
from kg_server.compose.outcomes import Edge, Fact, Failure, Outcome, distinct
from kg_server.concurrency import together
from kg_server.lines import Over

AT_ONCE: Final = 8
"""How many requests one step makes at a time where there is no batched one."""

FEWEST_VALUES: Final = 10
"""How many values of a node are read at least, however many nodes there are."""

GLANCE: Final = 200
"""How many neighbours of a node are looked at to find one among them."""

MOST_LOOKED_UP: Final = 1_000
"""For how many nodes it is looked up whether a set holds them."""

UNMENTIONED: Final = "The graph does not mention it."


@dataclass(frozen=True, slots=True)
class Membership:
    """Which nodes are in a set, of which that cannot be told, and the edges that were looked up to tell."""

    members: frozenset[Node]
    unsure: frozenset[Node]
    looked_up: tuple[Edge, ...] = ()


async def walk(graph: KGAdapter, nodes: Sequence[Node], over: Over, *, most: int, all_nodes: bool) -> Outcome:
    """Return the neighbours of nodes over one relation, at most `most` in all, each node with a fair share.

    One request serves all nodes; a second one those that have more than an equal share.
    """
    if not nodes:
        return Outcome("nodes", (), Count(0, exact=all_nodes), over, all_sources=all_nodes)
    direction: EdgeDirection = "in" if over.backwards else "out"
    relations = frozenset({over.relation})
    share = max(1, most // len(nodes))
    pages = dict(
        await graph.neighbors(NeighborRequest(tuple(nodes), direction=direction, relations=relations, limit=share))
    )
    fair = max(1, _fair_share([page.total.value for page in pages.values()], most))
    wider = [node for node, page in pages.items() if page.truncated and fair > len(page.triples)]
    if wider:
        pages.update(
            await graph.neighbors(NeighborRequest(tuple(wider), direction=direction, relations=relations, limit=fair))
        )
    facts = tuple(
        Fact(node, _far(triple, backwards=over.backwards))
        for node in nodes
        if node in pages
        for triple in pages[node].triples
    )
    failures = tuple(Failure(node, UNMENTIONED) for node in nodes if node not in pages)
    return Outcome(
        "nodes",
        facts,
        _neighbors_in_all(pages, facts, exact=all_nodes and not failures),
        over,
        tuple(nodes),
        all_nodes,
        tuple(node for node in nodes if node in pages and not pages[node].triples),
        failures,
    )


async def read(graph: KGAdapter, nodes: Sequence[Node], over: Over, *, most: int, all_nodes: bool) -> Outcome:
    """Return the values of one feature of nodes. A node that fails does not stop the others.

    Raises:
        KGError: All nodes failed; of the reasons the first.
    """
    limit = max(FEWEST_VALUES, most // max(1, len(nodes)))
    relations = frozenset({over.relation})
    asked = [partial(graph.features, FeatureRequest((node,), relations, limit)) for node in nodes]
    pages = dict(zip(nodes, await together(asked, at_once=AT_ONCE), strict=True))
    failed = {node: page for node, page in pages.items() if isinstance(page, KGError)}
    given = {node: page.get(node, NO_FEATURES) for node, page in pages.items() if not isinstance(page, KGError)}
    if failed and not given:
        raise next(iter(failed.values()))
    facts = tuple(Fact(node, feature.value) for node, page in given.items() for feature in page.features)
    whole = all(page.total.exact and page.total.value == len(page.features) for page in given.values())
    here = len(distinct(fact.item for fact in facts))
    return Outcome(
        "values",
        facts,
        Count(here, exact=whole and all_nodes and not failed),
        over,
        tuple(nodes),
        all_nodes,
        tuple(node for node, page in given.items() if not page.features),
        tuple(Failure(node, str(error)) for node, error in failed.items()),
    )


async def measure(graph: KGAdapter, nodes: Sequence[Node], over: Over | None, *, in_all: Count) -> Outcome:
    """Return the number of distinct neighbours of each node: over one relation, or over all of them both ways.

    Args:
        graph: The graph; it is asked once.
        nodes: The nodes.
        over: What to walk; None for everything.
        in_all: How many nodes there are, here or not.
    """
    if not nodes:
        degrees = {}
    elif over is None:
        degrees = dict(await graph.degrees(nodes))
    else:
        direction: EdgeDirection = "in" if over.backwards else "out"
        degrees = dict(await graph.degrees(nodes, direction=direction, relations=[over.relation]))
    return Outcome(
        "numbers",
        tuple(Fact(node, degrees[node].neighbors) for node in nodes if node in degrees),
        in_all,
        over,
        tuple(nodes),
        failures=tuple(Failure(node, UNMENTIONED) for node in nodes if node not in degrees),
    )


async def any_backwards(graph: KGAdapter, outcome: Outcome) -> bool:
    """Say whether the sources of a walk have neighbours over its relation in the other direction."""
    if outcome.over is None or not outcome.sources:
        return False
    direction: EdgeDirection = "out" if outcome.over.backwards else "in"
    degrees = await graph.degrees(outcome.sources, direction=direction, relations=[outcome.over.relation])
    return any(degree.neighbors.value for degree in degrees.values())


async def membership(graph: KGAdapter, nodes: Sequence[Node], outcome: Outcome) -> Membership:
    """Say which nodes a set holds, of which not everything was fetched.

    A set that was walked to is asked from the other end, with one request: a node belongs to it when it has an edge to
    one of the sources.
    """
    known = frozenset(nodes) & frozenset(outcome.nodes)
    others = [node for node in nodes if node not in known]
    if outcome.over is None or outcome.kind != "nodes" or outcome.failures or not outcome.all_sources:
        return Membership(known, frozenset(others))
    backwards = outcome.over.backwards
    direction: EdgeDirection = "out" if backwards else "in"
    asked, rest = others[:MOST_LOOKED_UP], others[MOST_LOOKED_UP:]
    pages = await graph.neighbors(
        NeighborRequest(tuple(asked), direction=direction, relations=frozenset({outcome.over.relation}), limit=GLANCE)
    )
    sources = frozenset(outcome.sources)
    linked = {
        node: Edge(Fact(source, node), outcome.over)
        for node, page in pages.items()
        for source in (_far(triple, backwards=not backwards) for triple in page.triples)
        if source in sources
    }
    cut = (node for node, page in pages.items() if page.truncated and node not in linked)
    return Membership(known.union(linked), frozenset((*cut, *rest)), tuple(linked.values()))


def _far(triple: Triple, *, backwards: bool) -> Node:
    return triple.head if backwards else triple.tail


def _fair_share(sizes: Iterable[int], most: int) -> int:
    """Return the largest share so that no more than `most` are taken when everyone takes up to it."""
    ordered = sorted(sizes)
    left = most
    for place, size in enumerate(ordered):
        share = left // (len(ordered) - place)
        if size > share:
            return share
        left -= size
    return ordered[-1] if ordered else 0


def _neighbors_in_all(pages: Mapping[Node, NeighborPage], facts: Sequence[Fact], *, exact: bool) -> Count:
    here = len({fact.item for fact in facts})
    if len(pages) == 1:
        (page,) = pages.values()
        return Count(page.total.value, exact=exact and page.total.exact)
    largest = max((page.total.value for page in pages.values()), default=0)
    whole = all(not page.truncated and page.total.exact for page in pages.values())
    return Count(max(here, largest), exact=exact and whole)
