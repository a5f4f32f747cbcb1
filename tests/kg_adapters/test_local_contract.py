from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_adapters.testing import KGAdapterContract, ValuesContract
from small_graphs import shared_store


class TestLocalAdapter(ValuesContract, KGAdapterContract):
    async def open_graph(self, triples: str) -> KGAdapter:
        return LocalAdapter(shared_store(triples, form="nt"))
