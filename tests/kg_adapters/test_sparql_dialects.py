"""Every query for every engine is plain SPARQL 1.1, but for the predicates that ask a full-text index."""

import re
from collections.abc import Mapping

import pyoxigraph

from kg_adapters.http.options import DialectName
from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql_guard import read_query
from query_shapes import SHAPES, builders, every_query, shortest_queries

MAGIC: Mapping[DialectName, set[str]] = {
    "standard": set(),
    "virtuoso": {"bif:contains"},
    "blazegraph": {
        "http://www.bigdata.com/rdf/search#search",
        "http://www.bigdata.com/rdf/search#matchAllTerms",
        "http://www.bigdata.com/rdf/search#maxRecords",
    },
    "qlever": {
        "http://qlever.cs.uni-freiburg.de/builtin-functions/contains-word",
        "http://qlever.cs.uni-freiburg.de/builtin-functions/contains-entity",
    },
    "graphdb": {
        "http://www.ontotext.com/connectors/lucene#query",
        "http://www.ontotext.com/connectors/lucene#entities",
        "http://www.ontotext.com/connectors/lucene/instance#labels",
    },
    "fuseki": {"http://jena.apache.org/text#query"},
}
"""What each engine's full-text index is asked by: triple patterns to any parser of SPARQL 1.1, more to the engine."""
VOCABULARY = Vocabulary()
PLAIN = (
    "http://example.org/",
    "http://schema.org/",
    "https://schema.org/",
    "http://purl.org/dc/",
    "http://www.w3.org/",
    "http://www.wikidata.org/",
    "http://wikiba.se/",
    "http://rdf.freebase.com/",
    "http://www.geonames.org/ontology#",
    "http://xmlns.com/foaf/",
    "urn:kg-sextant:",
)
_IRI = re.compile(r"<([a-z]+:[^<>\"{}|^`\\\s]+)>")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def queries_of(name: DialectName) -> dict[str, None]:
    return every_query(Queries.of(DIALECTS[name], VOCABULARY))


def test_no_function_that_builds_queries_is_left_out() -> None:
    assert set(SHAPES) == builders()


def test_oxigraph_reads_every_query_and_rdflib_one_of_each_function() -> None:
    store = pyoxigraph.Store()
    every = {query for name in DIALECTS for query in queries_of(name)}
    assert len(every) > 200
    for query in every:
        store.query(query)
    for query in shortest_queries(Queries.of(DIALECTS["standard"], VOCABULARY)):
        read_query(query)


def test_an_engine_is_asked_by_its_own_predicates_alone() -> None:
    for name, magic in MAGIC.items():
        named = {iri for query in queries_of(name) for iri in _IRI.findall(_TEXT.sub('""', query))}
        assert {iri for iri in named if not iri.startswith(PLAIN)} == magic
