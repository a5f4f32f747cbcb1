"""networkx, the library that people reach for when a graph fits into memory."""

from collections import Counter
from itertools import chain, islice
from pathlib import Path

import networkx as nx
import pyoxigraph as ox

from benchmarks.peers.answers import LABEL, MOST_PATHS, Degrees
from benchmarks.sources import quads_of


class NetworkxPeer:
    """A directed multigraph keyed by relation, and an undirected one beside it for paths."""

    name = "networkx"

    def __init__(self, source: Path) -> None:
        self._graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self._labels: dict[str, str] = {}
        known: dict[str, str] = {}
        for quad in quads_of(source):
            head, tail = str(quad.subject), quad.object
            head = known.setdefault(head[1:-1], head[1:-1])
            if not isinstance(tail, ox.Literal):
                other = str(tail)[1:-1]
                self._graph.add_edge(head, known.setdefault(other, other), quad.predicate.value)
            elif quad.predicate.value == LABEL:
                self._labels[head] = tail.value
        # `to_undirected` would take two edges that point at each other for one.
        self._undirected: nx.MultiGraph[str] = nx.MultiGraph()
        for start, end, relation in self._graph.edges(keys=True):
            self._undirected.add_edge(start, end, (start, relation))

    def rows(self, entity: str, limit: int) -> int:
        """List triples with labels."""
        out = self._graph.out_edges(entity, keys=True)
        into = (edge for edge in self._graph.in_edges(entity, keys=True) if edge[0] != entity)
        edges = list(islice(chain(out, into), limit))
        for term in {term for edge in edges for term in edge}:
            self._labels.get(term)
        return len(edges)

    def degrees(self, entity: str) -> Degrees:
        """Count edge by edge."""
        found: Degrees = Counter()
        for _, _, relation in self._graph.out_edges(entity, keys=True):
            found[relation, "out"] += 1
        for head, _, relation in self._graph.in_edges(entity, keys=True):
            if head != entity:
                found[relation, "in"] += 1
        return found

    def paths(self, source: str, target: str, max_hops: int) -> int:
        """Walk all simple paths, depth first."""
        return sum(1 for _ in islice(nx.all_simple_paths(self._undirected, source, target, max_hops), MOST_PATHS))
