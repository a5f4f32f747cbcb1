from pathlib import Path

import pytest

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_adapters.testing import KGAdapterContract, ValuesContract
from small_graphs import store_of


class TestLocalAdapter(ValuesContract, KGAdapterContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.path = tmp_path

    async def open_graph(self, triples: str) -> KGAdapter:
        return LocalAdapter(store_of(self.path, triples))
