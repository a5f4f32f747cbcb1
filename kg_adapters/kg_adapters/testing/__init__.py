"""The contract of an adapter as tests that anyone can run: subclass `KGAdapterContract` and let pytest collect it.

    class TestMyAdapter(KGAdapterContract):
        async def open_graph(self, triples: str) -> KGAdapter:
            return MyAdapter(parse(triples))

It needs pytest with anyio's plugin, which is there as soon as both are installed. What a test needs beside the text of
the graph, such as `tmp_path`, an autouse fixture of the subclass can put on `self`. Tests of an ability that the
adapter does not have are skipped.
"""

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in ("entities", "neighbors", "queries", "schemas")))

# Only modules that are imported after this line show the values in a failed assert.
from kg_adapters.testing.entities import (  # noqa: E402
    DescriptionContract,
    SearchContract,
    ValuesContract,
    ValueSearchContract,
)
from kg_adapters.testing.graphs import (  # noqa: E402
    BLANKS,
    CALLED,
    CROWD,
    DESCRIBED,
    EXAMPLE,
    HEAP,
    HUB,
    LOOPS,
    NAMED,
    ROADS,
    SEARCHABLE,
    SUMMED,
    TANGLE,
    TOWNS,
    UNICODE,
    VALUES,
    edge,
    edges,
    feature_page,
    in_order,
    iri,
    ntriples,
    typed,
)
from kg_adapters.testing.neighbors import (  # noqa: E402
    ContainmentContract,
    DegreeContract,
    NeighborContract,
    PagingContract,
)
from kg_adapters.testing.queries import (  # noqa: E402
    PathContract,
    SetsContract,
    SparqlContract,
)
from kg_adapters.testing.schemas import (  # noqa: E402
    ProfileContract,
    RelationContract,
    SchemaContract,
)

__all__ = [
    "BLANKS",
    "CALLED",
    "CROWD",
    "DESCRIBED",
    "EXAMPLE",
    "HEAP",
    "HUB",
    "LOOPS",
    "NAMED",
    "ROADS",
    "SEARCHABLE",
    "SUMMED",
    "TANGLE",
    "TOWNS",
    "UNICODE",
    "VALUES",
    "KGAdapterContract",
    "ValuesContract",
    "edge",
    "edges",
    "feature_page",
    "in_order",
    "iri",
    "ntriples",
    "typed",
]


class KGAdapterContract(
    NeighborContract,
    PagingContract,
    DegreeContract,
    ContainmentContract,
    DescriptionContract,
    SearchContract,
    ValueSearchContract,
    RelationContract,
    SchemaContract,
    ProfileContract,
    PathContract,
    SetsContract,
    SparqlContract,
):
    """Everything that `kg_adapters.protocol` promises. Override `open_graph`."""
