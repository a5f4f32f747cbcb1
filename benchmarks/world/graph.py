"""The world as its source states it, read without the code that is measured."""

import gzip
from pathlib import Path
from typing import TypeAlias

import pyoxigraph as ox

from benchmarks.world.questions import GRAPH

End: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal


class World:
    """The triples of the world in a store of their own."""

    def __init__(self, path: Path = GRAPH) -> None:
        self._store = ox.Store()
        self._store.bulk_load(gzip.decompress(path.read_bytes()), ox.RdfFormat.TURTLE)

    @property
    def triples(self) -> bytes:
        """All triples of the world, as N-Triples."""
        written = self._store.dump(format=ox.RdfFormat.N_TRIPLES, from_graph=ox.DefaultGraph())
        assert written is not None
        return written

    def solutions(self, query: str) -> list[dict[str, End]]:
        """Return what each solution of a SELECT query binds."""
        found = self._store.query(query)
        assert isinstance(found, ox.QuerySolutions)
        names = [variable.value for variable in found.variables]
        rows = [{name: row[name] for name in names} for row in found]
        return [{name: term for name, term in row.items() if isinstance(term, End)} for row in rows]

    def csv(self, query: str) -> str:
        """Return the answer to a query as CSV, the shortest of the formats of SPARQL."""
        found = self._store.query(query)
        assert not isinstance(found, ox.QueryTriples)
        if isinstance(found, ox.QueryBoolean):
            return str(bool(found)).lower()
        written = found.serialize(format=ox.QueryResultsFormat.CSV)
        assert written is not None
        return written.decode()
