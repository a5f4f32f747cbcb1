"""`observe` as one would write it in an afternoon: rdflib, and one call of the model for each text."""

from typing import Final, NamedTuple

from benchmarks.peers.rdflib_graph import RdflibPeer
from kg_adapters.embedding import Embedder, Vectors

TOP_N: Final = 50
WIDTH: Final = 5


class Edge(NamedTuple):
    """An edge seen from its near end: how like the question it is, its text, and its far end."""

    score: float
    text: str
    far: str


async def plain_observe(graph: RdflibPeer, embedder: Embedder, question: str, entity: str, hops: int) -> list[Edge]:
    """Return the best edges of each hop (ODA, Algorithm 1)."""

    async def vector(text: str) -> Vectors:
        row: Vectors = (await embedder.embed([text]))[0]
        return row

    asked = await vector(question)
    found: list[Edge] = []
    frontier, expanded = [entity], set[str]()
    for _ in range(hops):
        expanded.update(frontier)
        edges = [
            Edge(float(await vector(text) @ asked), text, far)
            for node in frontier
            for text, far in graph.texts_around(node)
        ]
        best = sorted(edges, key=lambda edge: -edge.score)[:TOP_N]
        found += best
        frontier = list(dict.fromkeys(edge.far for edge in best[:WIDTH] if edge.far not in expanded))
    return found
