"""The rdflib adapter keeps the contract, over one graph and over a dataset of several."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import pytest
import rdflib

from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.testing import KGAdapterContract, ValuesContract


class TestRdflibGraph(ValuesContract, KGAdapterContract):
    async def open_graph(self, triples: str) -> KGAdapter:
        return RdflibAdapter(rdflib.Graph().parse(data=triples, format="nt"))


class TestRdflibDataset(ValuesContract, KGAdapterContract):
    """Every statement stands in one or both of two named graphs."""

    @asynccontextmanager
    async def queryable(self, statements: Iterable[str]) -> AsyncGenerator[SupportsSparql]:
        async with self.opened(statements) as graph:
            pytest.skip(f"SPARQL over {graph.name} is the same as over one graph")
            yield

    async def open_graph(self, triples: str) -> KGAdapter:
        dataset = rdflib.Dataset()
        lines = rdflib.Graph().parse(data=triples, format="nt")
        for number, statement in enumerate(lines):
            for place in {number % 2, number % 3 % 2}:
                dataset.graph(rdflib.URIRef(f"http://example.org/graph/{place}")).add(statement)
        return RdflibAdapter(dataset)
