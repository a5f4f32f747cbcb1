"""All neighbours or all values of nodes, where no relation is named: each with the relation that leads to it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.algebra import Members, Reached, SetExpression, Values
from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.set_requests import Listed, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Literal, Node, Term
from kg_server.compose.lines import Told
from kg_server.compose.reading import Reader
from kg_server.compose.relations import ALL_WAYS
from kg_server.compose.syntax import FeatureCall, NeighborCall
from kg_server.compose.telling import Worked, noun
from kg_server.inverses import one_way
from kg_server.lines import Over, kind_of_value

MOST_NODES: Final = 50
"""Of how many nodes all neighbours or values are told."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """What leads from a node to another one or to a value."""

    node: Node
    over: Over
    end: Term


async def look_around(
    graph: KGAdapter, reader: Reader, number: int, call: FeatureCall | NeighborCall, most: int
) -> Worked:
    """Return all neighbours or values of nodes.

    Raises:
        KGError: A name stands for nothing, or the graph does not answer.
    """
    of, values = await reader.set_of(call.node), isinstance(call, FeatureCall)
    nodes, every = await _nodes(graph, of)
    stated, hidden = await (_features(graph, nodes, most) if values else _edges(graph, nodes, most))
    size = Count(len({each.end for each in stated}), exact=not hidden and every)
    if not size.exact and not graph.remote:
        # The number that Count[…] gives.
        asked = Listed(Values(of, ALL_WAYS) if values else Reached(of, ALL_WAYS))
        size = (await compute_sets(graph, SetRequest(asked, limit=0, witnesses=0))).count
    return Worked(
        call,
        "values" if values else "nodes",
        noun(size, "value" if values else "neighbour"),
        tuple(_lines(graph, number, stated)),
        len(stated) + hidden,
        notes=tuple(reader.heard.notes),
        whole=every and size.exact,
        read=reader.heard.nodes,
    )


async def _nodes(graph: KGAdapter, of: SetExpression) -> tuple[tuple[Node, ...], bool]:
    """Return the first nodes of a set, and whether these are all."""
    if isinstance(of, Members):
        return of.nodes[:MOST_NODES], len(of.nodes) <= MOST_NODES
    found = await compute_sets(graph, SetRequest(Listed(of), limit=MOST_NODES, witnesses=0))
    nodes = tuple(term for term in found.members if not isinstance(term, Literal))
    return nodes, found.count == Count(len(nodes))


async def _features(graph: KGAdapter, nodes: tuple[Node, ...], most: int) -> tuple[Sequence[_Statement], int]:
    """Return the values of nodes but for names and descriptions, and how many facts more there are."""
    pages = await graph.features(FeatureRequest(nodes, limit=most))
    texts = graph.vocabulary.texts
    stated = [
        _Statement(node, Over(each.relation), each.value)
        for node, page in pages.items()
        for each in page.features
        if each.relation not in texts
    ]
    return stated, _hidden((page.total, len(page.features)) for page in pages.values())


async def _edges(graph: KGAdapter, nodes: tuple[Node, ...], most: int) -> tuple[Sequence[_Statement], int]:
    """Return what links nodes, one of two facts that say the same, and how many facts more there are."""
    pages = await graph.neighbors(NeighborRequest(nodes, limit=most))
    inverse_of = (await graph.profile()).inverse_of
    stated: dict[object, _Statement] = {}
    for node, page in pages.items():
        for fact in page.triples:
            backwards = fact.head != node
            statement = _Statement(node, Over(fact.relation, backwards), fact.head if backwards else fact.tail)
            stated.setdefault((node, one_way(fact, inverse_of)), statement)
    return list(stated.values()), _hidden((page.total, len(page.triples)) for page in pages.values())


def _hidden(pages: Iterable[tuple[Count, int]]) -> int:
    """Return how many facts there are, at least, beside those that pages hold."""
    return sum(max(total.value - held, 0 if total.exact else 1) for total, held in pages)


def _lines(graph: KGAdapter, number: int, stated: Sequence[_Statement]) -> Iterator[Told]:
    for each in stated:
        kind = (kind_of_value(each.end, graph.prefixes) or "text") if isinstance(each.end, Literal) else "node"
        text = (each.node, " | ", each.over, " | ", each.end)
        yield Told(text, (str(number), each.node, each.over, each.end, kind), "result", number)
