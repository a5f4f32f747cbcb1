"""How the contract gets at the adapter that it checks."""

from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter
from kg_adapters.testing.graphs import ntriples

SHOWN: Final = 3
"""How many missing or surplus items a failure names: pytest would take minutes to show how two long ones differ."""


@pytest.mark.anyio
class GraphOpening:
    """The one thing to override, and what a store may declare that it cannot do.

    Attributes:
        stable_blank_nodes: Whether a blank node of one answer can be asked about in the next call. SPARQL endpoints
            give blank nodes new labels with every answer.
    """

    stable_blank_nodes: bool = True

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run the contract on asyncio."""
        return "asyncio"

    async def open_graph(self, triples: str) -> KGAdapter:
        """Return a new adapter, with the default `Vocabulary`, over exactly the graph of an N-Triples text."""
        raise NotImplementedError("override open_graph(triples) to return your adapter over these N-Triples")

    @asynccontextmanager
    async def opened(self, statements: Iterable[str]) -> AsyncGenerator[KGAdapter]:
        """Open a graph in the short notation for the time of one test."""
        graph = await self.open_graph(ntriples(statements))
        try:
            yield graph
        finally:
            await graph.aclose()


def allows(count: Count, actual: int) -> bool:
    """Say whether a count is true: exact, or honest about being a lower bound."""
    return count.value == actual if count.exact else count.value <= actual


def apart(found: Collection[object], wanted: Collection[object]) -> str:
    """Return in what two collections of one type differ, with a few examples; nothing where they are the same."""
    if found == wanted:
        return ""
    surplus, missing = set(found).difference(wanted), set(wanted).difference(found)
    told = [
        f"{len(items)} {name}: {'; '.join(sorted(map(repr, items))[:SHOWN])}"
        for name, items in (("surplus", surplus), ("missing", missing))
        if items
    ]
    return ", ".join(told) or f"the same in another order or number: {len(found)} and {len(wanted)}"
