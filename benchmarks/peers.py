"""Other libraries that answer the same questions, each from the whole graph in memory."""
# ruff: noqa: PLC0415 - a library is imported alone, since the memory of a process that holds one is measured
# pyright: reportMissingModuleSource=false

import gzip
from collections import Counter
from collections.abc import Iterator
from io import BufferedReader
from itertools import chain, islice, product
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import pyoxigraph as ox

Degrees: TypeAlias = Counter[tuple[str, str]]

LABEL: Final = "http://www.w3.org/2000/01/rdf-schema#label"
MOST_PATHS: Final = 100
"""How many paths are counted."""


class PeerGraph(Protocol):
    """A graph in the hands of another library; entities and relations are IRIs."""

    @property
    def name(self) -> str:
        """The name of the library."""
        ...

    def rows(self, entity: str, limit: int) -> int:
        """Return how many triples around an entity it lists, at most `limit`, reading the labels of all terms."""
        ...

    def degrees(self, entity: str) -> Degrees:
        """Return the number of neighbours by relation and direction; an edge to itself counts as outgoing."""
        ...

    def paths(self, source: str, target: str, max_hops: int) -> int:
        """Return how many simple paths there are, walked in either direction, at most `MOST_PATHS`."""
        ...


def opened(source: Path) -> BufferedReader:
    """Open a file, gzipped or not, for reading its plain bytes."""
    return BufferedReader(gzip.open(source)) if source.suffix == ".gz" else source.open("rb")


def quads_of(source: Path) -> Iterator[ox.Quad]:
    """Yield every statement of a file of N-Triples."""
    with opened(source) as file:
        yield from ox.parse(file, format=ox.RdfFormat.N_TRIPLES)


class OxigraphPeer:
    """Oxigraph's store in memory, which answers faster than one on disk."""

    name = "Oxigraph"

    def __init__(self, source: Path) -> None:
        self._store = ox.Store()
        self._store.bulk_extend(quads_of(source))

    def rows(self, entity: str, limit: int) -> int:
        """List triples with labels."""
        quads, label = list(islice(self._around(ox.NamedNode(entity)), limit)), ox.NamedNode(LABEL)
        for term in {term for quad in quads for term in (quad.subject, quad.predicate, quad.object)}:
            if isinstance(term, ox.NamedNode):
                next(self._store.quads_for_pattern(term, label, None), None)
        return len(quads)

    def degrees(self, entity: str) -> Degrees:
        """Count in SPARQL, which is faster here than counting in Python."""
        found: Degrees = Counter()
        loop = f"FILTER(?n != <{entity}>)"
        for direction, pattern in (("out", f"<{entity}> ?r ?n"), ("in", f"?n ?r <{entity}> {loop}")):
            where = f"{{ {pattern} FILTER(!isLiteral(?n)) }}"
            for relation, count in self._values(f"SELECT ?r (COUNT(DISTINCT ?n) AS ?count) WHERE {where} GROUP BY ?r"):
                found[relation, direction] = int(count)
        return found

    def paths(self, source: str, target: str, max_hops: int) -> int:
        """Ask for the paths in one query."""
        return len(self._values(paths_query(source, target, max_hops)))

    def numbers(self, query: str) -> list[int]:
        """Return the numbers that a query selects as its only column."""
        return [int(row[0]) for row in self._values(query)]

    def _values(self, query: str) -> list[list[str]]:
        rows = self._store.query(query)
        assert isinstance(rows, ox.QuerySolutions)
        return [[term.value for term in row if isinstance(term, ox.NamedNode | ox.Literal)] for row in rows]

    def _around(self, node: ox.NamedNode) -> Iterator[ox.Quad]:
        out = self._store.quads_for_pattern(node, None, None)
        into = self._store.quads_for_pattern(None, None, node)
        yield from (quad for quad in out if not isinstance(quad.object, ox.Literal))
        yield from (quad for quad in into if quad.subject != node)


class NetworkxPeer:
    """networkx: a directed multigraph keyed by relation, and an undirected one beside it for paths."""

    name = "networkx"

    def __init__(self, source: Path) -> None:
        import networkx as nx

        self._all_simple_paths = nx.all_simple_paths
        self._graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self._labels: dict[str, str] = {}
        known: dict[str, str] = {}
        for quad in quads_of(source):
            head, tail = str(quad.subject)[1:-1], quad.object
            head = known.setdefault(head, head)
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
        edges = list(islice(self._around(entity), limit))
        for term in {term for edge in edges for term in edge}:
            self._labels.get(term)
        return len(edges)

    def degrees(self, entity: str) -> Degrees:
        """Count edge by edge."""
        return Counter((relation, "out" if head == entity else "in") for head, _, relation in self._around(entity))

    def paths(self, source: str, target: str, max_hops: int) -> int:
        """Walk all simple paths, depth first."""
        return sum(1 for _ in islice(self._all_simple_paths(self._undirected, source, target, max_hops), MOST_PATHS))

    def _around(self, entity: str) -> Iterator[tuple[str, str, str]]:
        into = (edge for edge in self._graph.in_edges(entity, keys=True) if edge[0] != entity)
        return chain(self._graph.out_edges(entity, keys=True), into)


def paths_query(source: str, target: str, max_hops: int) -> str:
    """Return the SPARQL query for all simple paths: one pattern for each length and each way to point the edges."""
    ways = (way for hops in range(1, max_hops + 1) for way in product((True, False), repeat=hops))
    patterns = " UNION ".join(_pattern(source, target, way) for way in ways)
    return f"SELECT * WHERE {{ {patterns} }} LIMIT {MOST_PATHS}"


def _pattern(source: str, target: str, ways: tuple[bool, ...]) -> str:
    nodes = [f"<{source}>", *(f"?n{number}" for number in range(1, len(ways))), f"<{target}>"]
    parts = [
        f"{nodes[step]} ?r{step} {nodes[step + 1]} ." if forward else f"{nodes[step + 1]} ?r{step} {nodes[step]} ."
        for step, forward in enumerate(ways)
    ]
    for place, node in enumerate(nodes[1:-1], start=1):
        parts.append(f"FILTER(!isLiteral({node}))")
        parts += [f"FILTER({node} != {other})" for other in (*nodes[:place], nodes[-1])]
    return f"{{ {' '.join(parts)} }}"
