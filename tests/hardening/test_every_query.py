"""Both parsers read every query for every engine, however long that takes."""

import pyoxigraph

from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql_tree import read_query
from query_shapes import every_query


def test_two_parsers_read_every_query_for_every_engine() -> None:
    # Most are the same for several engines.
    plain = Queries.of(DIALECTS["standard"], Vocabulary(), edge_namespace="http://example.org/")
    ways = (plain, *(Queries.of(dialect, Vocabulary()) for dialect in DIALECTS.values()))
    for query in {query for queries in ways for query in every_query(queries)}:
        read_query(query)
        pyoxigraph.Store().query(query)
