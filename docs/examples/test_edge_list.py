"""The adapter keeps the contract."""

import rdflib
from edge_list import EdgeListAdapter

from kg_adapters import KGAdapter, Prefixes, Vocabulary
from kg_adapters.rdflib_terms import RdflibStatements
from kg_adapters.testing import KGAdapterContract, ValuesContract


class TestEdgeList(ValuesContract, KGAdapterContract):
    """Everything that the protocol promises."""

    async def open_graph(self, triples: str) -> KGAdapter:
        """Return the adapter over a text in N-Triples."""
        graph = rdflib.Graph().parse(data=triples, format="nt")
        return EdgeListAdapter(RdflibStatements(graph).match(), "a graph", Prefixes(), Vocabulary())
