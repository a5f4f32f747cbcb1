"""All neighbours and all values of nodes, where no relation is named: each with its relation."""

from collections.abc import Iterator
from typing import Final

from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.set_requests import Listed, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Literal, Node
from kg_server.compose.lines import Told
from kg_server.compose.reading import Reader
from kg_server.compose.syntax import FeatureCall, NeighborCall
from kg_server.compose.telling import Worked, noun
from kg_server.lines import Over, Piece, kind_of_value

MOST_NODES: Final = 50
"""Of how many nodes all neighbours or values are told."""


async def look_around(
    graph: KGAdapter, reader: Reader, number: int, call: FeatureCall | NeighborCall, most: int
) -> Worked:
    """Return all neighbours or values of nodes.

    Raises:
        KGError: A name stands for nothing, or the graph does not answer.
    """
    of = await reader.set_of(call.node)
    found = await compute_sets(graph, SetRequest(Listed(of), limit=MOST_NODES, witnesses=0))
    nodes = tuple(term for term in found.members if not isinstance(term, Literal))
    values = isinstance(call, FeatureCall)
    lines = _values(graph, number, nodes, most) if values else _edges(graph, number, nodes, most)
    told, total = await lines
    whole = total.exact and found.count.value == len(nodes)
    return Worked(
        call,
        "values" if values else "nodes",
        noun(Count(total.value, exact=whole), "value" if values else "neighbour"),
        tuple(told),
        max(total.value, len(told)),
        notes=tuple(reader.heard.notes),
        whole=whole,
        read=reader.heard.nodes,
    )


async def _values(graph: KGAdapter, number: int, nodes: tuple[Node, ...], most: int) -> tuple[list[Told], Count]:
    pages = await graph.features(FeatureRequest(nodes, limit=most))
    lines = [
        _line(number, node, Over(each.relation), each.value, kind_of_value(each.value, graph.prefixes) or "text")
        for node, page in pages.items()
        for each in page.features
    ]
    return lines, _sum(page.total for page in pages.values())


async def _edges(graph: KGAdapter, number: int, nodes: tuple[Node, ...], most: int) -> tuple[list[Told], Count]:
    pages = await graph.neighbors(NeighborRequest(nodes, limit=most))
    lines: list[Told] = []
    for node, page in pages.items():
        for triple in page.triples:
            backwards = triple.head != node
            far = triple.head if backwards else triple.tail
            lines.append(_line(number, node, Over(triple.relation, backwards), far, "node"))
    return lines, _sum(page.total for page in pages.values())


def _line(number: int, node: Node, over: Over, item: Piece, kind: str) -> Told:
    return Told((node, " | ", over, " | ", item), (str(number), node, over, item, kind), "result", number)


def _sum(totals: Iterator[Count]) -> Count:
    every = list(totals)
    return Count(sum(each.value for each in every), exact=all(each.exact for each in every))
