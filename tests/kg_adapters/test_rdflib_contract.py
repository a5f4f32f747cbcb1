"""The rdflib adapter keeps the contract."""

import rdflib

from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.testing import KGAdapterContract, ValuesContract


class TestRdflibGraph(ValuesContract, KGAdapterContract):
    async def open_graph(self, triples: str) -> KGAdapter:
        return RdflibAdapter(rdflib.Graph().parse(data=triples, format="nt"))
