"""Oxigraph alone, through pyoxigraph."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyoxigraph as ox

from benchmarks.peers.answers import LABEL, Degrees, paths_query
from benchmarks.sources import quads_of

_LABEL = ox.NamedNode(LABEL)


class OxigraphPeer:
    """A store in memory, which answers faster than one on disk."""

    name = "Oxigraph"

    def __init__(self, source: Path) -> None:
        self._store = ox.Store()
        self._store.bulk_extend(quads_of(source))

    def rows(self, entity: str, limit: int) -> int:
        """List triples with labels."""
        quads = list(islice(self._around(ox.NamedNode(entity)), limit))
        for term in {term for quad in quads for term in (quad.subject, quad.predicate, quad.object)}:
            if isinstance(term, ox.NamedNode):
                next(self._store.quads_for_pattern(term, _LABEL, None), None)
        return len(quads)

    def degrees(self, entity: str) -> Degrees:
        """Count in SPARQL, which is faster here than counting in Python."""
        found: Degrees = Counter()
        for direction, pattern in (("out", "<{}> ?r ?n"), ("in", "?n ?r <{}>")):
            loop = f"FILTER(?n != <{entity}>)" if direction == "in" else ""
            where = f"{{ {pattern.format(entity)} FILTER(!isLiteral(?n)) {loop} }}"
            rows = self._store.query(f"SELECT ?r (COUNT(DISTINCT ?n) AS ?count) WHERE {where} GROUP BY ?r")
            assert isinstance(rows, ox.QuerySolutions)
            for row in rows:
                relation, count = row["r"], row["count"]
                assert isinstance(relation, ox.NamedNode)
                assert isinstance(count, ox.Literal)
                found[relation.value, direction] = int(count.value)
        return found

    def paths(self, source: str, target: str, max_hops: int) -> int:
        """Ask for the paths in one query."""
        rows = self._store.query(paths_query(source, target, max_hops))
        assert isinstance(rows, ox.QuerySolutions)
        return sum(1 for _ in rows)

    def numbers(self, query: str) -> list[int]:
        """Ask a query for numbers."""
        rows = self._store.query(query)
        assert isinstance(rows, ox.QuerySolutions)
        found = [row[0] for row in rows]
        return [int(number.value) for number in found if isinstance(number, ox.Literal)]

    def _around(self, node: ox.NamedNode) -> Iterator[ox.Quad]:
        for quad in self._store.quads_for_pattern(node, None, None):
            if not isinstance(quad.object, ox.Literal):
                yield quad
        for quad in self._store.quads_for_pattern(None, None, node):
            if quad.subject != node:
                yield quad
