"""The contract of an adapter as tests that anyone can run: subclass `KGAdapterContract` and let pytest collect it.

    class TestMyAdapter(KGAdapterContract):
        async def open_graph(self, triples: str) -> KGAdapter:
            return MyAdapter(parse(triples))

It needs pytest with anyio's plugin, which is there as soon as both are installed. What a test needs beside the text of
the graph, such as `tmp_path`, an autouse fixture of the subclass can put on `self`. Tests of an ability that the
adapter does not have are skipped.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{part}_contract"
        for part in (
            *("neighbor", "paging", "degree", "containment", "description", "search", "relation", "schema"),
            *("profile", "path", "sets", "sparql", "values"),
        )
    )
)

# Only modules that are imported after this line show the values in a failed assert.
from kg_adapters.testing.containment_contract import ContainmentContract  # noqa: E402 - see above
from kg_adapters.testing.degree_contract import DegreeContract  # noqa: E402
from kg_adapters.testing.description_contract import DescriptionContract  # noqa: E402
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
from kg_adapters.testing.neighbor_contract import NeighborContract  # noqa: E402
from kg_adapters.testing.paging_contract import PagingContract  # noqa: E402
from kg_adapters.testing.path_contract import PathContract  # noqa: E402
from kg_adapters.testing.profile_contract import ProfileContract  # noqa: E402
from kg_adapters.testing.relation_contract import RelationContract  # noqa: E402
from kg_adapters.testing.schema_contract import SchemaContract  # noqa: E402
from kg_adapters.testing.search_contract import SearchContract  # noqa: E402
from kg_adapters.testing.sets_contract import SetsContract  # noqa: E402
from kg_adapters.testing.sparql_contract import SparqlContract  # noqa: E402
from kg_adapters.testing.values_contract import ValuesContract  # noqa: E402

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
    RelationContract,
    SchemaContract,
    ProfileContract,
    PathContract,
    SetsContract,
    SparqlContract,
):
    """Everything that `kg_adapters.protocol` promises. Override `open_graph`."""
