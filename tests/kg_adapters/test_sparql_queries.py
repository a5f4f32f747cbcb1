"""Queries are built from terms alone, hold whatever text there is, and are plain SPARQL 1.1."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_adapters.errors import InvalidRequest, Unsupported
from kg_adapters.http.options import DialectName, TextSearch
from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import Queries, writing
from kg_adapters.sparql.queries.descriptions import TextChoice
from kg_adapters.sparql.queries.edges import Fill, GroupKey, GroupSpan, Scope
from kg_adapters.sparql.queries.names import cleaned
from kg_adapters.sparql_guard import read_query
from kg_adapters.terms import RDF_LANG_STRING, BlankNode, Iri, Literal
from kg_adapters.testing import iri
from query_shapes import HOSTILE, SHAPES, as_plain, builders, every_query, shortest_queries

PLAIN = DIALECTS["standard"]
VIRTUOSO = DIALECTS["virtuoso"]
LABEL = Vocabulary().labels[0]
LANGUAGES = st.sampled_from([None, "en", "en-GB", "EN", "de", "mul", "fr", "ja", "eng"])
TEXTS = st.lists(st.tuples(st.sampled_from(["a", "b", "B", "ä", "z 1"]), LANGUAGES), min_size=1, max_size=6)


def read_back(term: str) -> object:
    solutions = pyoxigraph.Store().query(f"SELECT ?x {{ VALUES ?x {{ {term} }} }}")
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    return next(iter(solutions))["x"]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_text_is_read_back_as_it_was_whatever_it_holds(value: str) -> None:
    assert read_back(writing.text(value)) == pyoxigraph.Literal(value)


@given(st.text())
def test_any_text_is_one_literal_in_which_only_control_characters_become_blanks(value: str) -> None:
    assert read_back(writing.text(value)) == pyoxigraph.Literal(writing.readable(value))


def test_a_forged_iri_or_language_is_refused() -> None:
    forged = Iri("http://example.org/a")
    object.__setattr__(forged, "value", "http://example.org/a> ?p ?o } #")
    with pytest.raises(InvalidRequest):
        writing.iri(forged)
    with pytest.raises(InvalidRequest):
        writing.literal(Literal("x", RDF_LANG_STRING, "en . } #"))


def test_a_blank_node_is_named_only_as_its_engine_names_it() -> None:
    assert writing.node(BlankNode("b10"), VIRTUOSO) == "<nodeID://b10>"
    assert [writing.is_askable(node, VIRTUOSO) for node in (BlankNode("b10"), BlankNode("ward"), iri("a"))] == [
        True,
        False,
        True,
    ]
    assert not writing.is_askable(BlankNode("b10"), PLAIN)
    for dialect, label in ((PLAIN, "b10"), (VIRTUOSO, "ward")):
        with pytest.raises(InvalidRequest):
            writing.node(BlankNode(label), dialect)


def test_a_single_blank_node_is_not_listed_alone() -> None:
    listed = writing.values("e", [BlankNode("b10")], VIRTUOSO)
    assert listed == "VALUES ?e { <nodeID://b10> <urn:kg-sextant:nothing> }"


@given(TEXTS)
def test_the_graph_chooses_the_same_label_as_the_vocabulary(texts: list[tuple[str, str | None]]) -> None:
    vocabulary = Vocabulary(languages=("en", "mul"))
    choice = TextChoice(vocabulary, PLAIN)
    store, said = pyoxigraph.Store(), list[Literal]()
    for value, language in texts:
        written = pyoxigraph.Literal(value, language=language)
        quad = pyoxigraph.Quad(pyoxigraph.NamedNode(iri("a").value), pyoxigraph.NamedNode(LABEL.value), written)
        store.add(quad)
        # Oxigraph writes languages in lower case.
        said.append(Literal(value, RDF_LANG_STRING, language.lower()) if language else Literal(value))
    solutions = store.query(Queries.of(PLAIN, vocabulary).descriptions.labels([iri("a")]))
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    key = next(iter(solutions))["label"]
    assert isinstance(key, pyoxigraph.Literal)
    assert choice.read(key.value) == vocabulary.label({LABEL: said})


def test_counts_compare_what_they_count_only_where_graphs_are_merged() -> None:
    merged, single = (
        Queries.of(replace(PLAIN, merges_graphs=merges), Vocabulary()).edges.degrees([iri("a")], Scope("out"))
        for merges in (True, False)
    )
    assert "(COUNT(DISTINCT ?x) AS ?n)  { VALUES" in merged
    assert "(COUNT(?x) AS ?n)  { VALUES" in single


def test_a_few_relations_are_asked_for_one_by_one_and_many_together() -> None:
    edges = Queries.of(PLAIN, Vocabulary()).edges
    for many, together in ((2, False), (12, False), (13, True)):
        relations = frozenset(iri(f"r{number}") for number in range(many))
        query = edges.around([iri("a")], Scope("in", relations), Fill(50, 100), labelled=False)
        assert ("VALUES ?p" in query) == together
        assert all((f"?x <{relation.value}> ?e" in query) != together for relation in relations)


def test_an_engine_that_cannot_sort_hubs_is_not_asked_to() -> None:
    spans = [GroupSpan(iri("a"), GroupKey(True, iri("r")), 0, 5)]
    sorted_, unsorted = (
        Queries.of(replace(PLAIN, orders_hubs=orders), Vocabulary()).edges.spans(spans, Scope("in"), labelled=False)
        for orders in (True, False)
    )
    assert "ORDER BY STR(?o) LIMIT 5" in sorted_
    assert "ORDER BY" not in unsorted


def test_the_time_limit_of_an_engine_lies_a_little_below_that_of_its_caller() -> None:
    limits = {name: dict(dialect.parameters(10.0)) for name, dialect in DIALECTS.items()}
    assert limits == {
        "standard": {},
        "virtuoso": {"timeout": "9000"},
        "blazegraph": {"timeout": "9"},
        "qlever": {"timeout": "9s"},
        "graphdb": {"timeout": "9"},
        "fuseki": {"timeout": "9"},
    }
    assert DIALECTS["graphdb"].parameters(0.2) == {"timeout": "1"}


def test_no_engine_is_asked_for_more_time_than_it_grants() -> None:
    assert dict(DIALECTS["qlever"].parameters(33.0)) == {"timeout": "30s"}
    assert dict(DIALECTS["qlever"].parameters(60.0)) == {}


def test_names_are_cleaned_and_odd_ones_are_not_looked_for() -> None:
    names = Queries.of(PLAIN, Vocabulary()).names
    assert cleaned("  two\n\x00 words\ud800 ") == "two words"
    assert [names.exact(text, None, 5) for text in ("", " \t", "\ud800", "x" * 301)] == [None] * 4
    assert names.scan("!!!", None, scanned=9, limit=5) is None
    assert names.indexed("☿", None, "virtuoso", 5) is None
    with pytest.raises(Unsupported):
        names.indexed("word", None, "none", 5)


@pytest.mark.parametrize(
    ("index", "dialect", "expected"),
    [
        ("virtuoso", "virtuoso", "?l <bif:contains> \"'mercury*' AND 'ii'\" OPTION (SCORE ?w) ."),
        ("blazegraph", "blazegraph", '?l <http://www.bigdata.com/rdf/search#search> "mercury* ii" ;'),
        ("qlever", "qlever", 'contains-word> "mercury* ii" .'),
        (
            "lucene",
            "fuseki",
            '(?s ?w ?m) <http://jena.apache.org/text#query> ("(mercury* OR mercury~1) AND ii" 2000) .',
        ),
        ("lucene", "graphdb", '<http://www.ontotext.com/connectors/lucene#query> "(mercury* OR mercury~1) AND ii" ;'),
    ],
)
def test_each_full_text_index_is_asked_in_its_own_way(index: TextSearch, dialect: DialectName, expected: str) -> None:
    query = Queries.of(DIALECTS[dialect], Vocabulary()).names.indexed('Mercury "II"', None, index, 7) or ""
    assert expected in query
    # As QLever names them in Variable::getWordScoreVariable of src/rdfTypes/Variable.cpp.
    score = "?ql_score_prefix_m_mercury + ?ql_score_word_m_ii" if index == "qlever" else "?w"
    assert f"ORDER BY DESC({score}) LIMIT 2000" in query
    assert (dialect == "fuseki") == ("FILTER(!BOUND(?m) || STR(?l) = STR(?m))" in query)


MAGIC: Mapping[DialectName, set[str]] = {
    "standard": set(),
    "virtuoso": {"bif:contains"},
    "blazegraph": {
        "http://www.bigdata.com/rdf/search#search",
        "http://www.bigdata.com/rdf/search#matchAllTerms",
        "http://www.bigdata.com/rdf/search#maxRecords",
        "http://www.bigdata.com/rdf/search#relevance",
    },
    "qlever": {
        "http://qlever.cs.uni-freiburg.de/builtin-functions/contains-word",
        "http://qlever.cs.uni-freiburg.de/builtin-functions/contains-entity",
    },
    "graphdb": {
        "http://www.ontotext.com/connectors/lucene#query",
        "http://www.ontotext.com/connectors/lucene#entities",
        "http://www.ontotext.com/connectors/lucene#listConnectors",
        "http://www.ontotext.com/connectors/lucene#score",
        "http://www.ontotext.com/connectors/lucene/instance#labels",
    },
    "fuseki": {"http://jena.apache.org/text#query"},
}
"""What each engine's full-text index is asked by: triple patterns to any parser of SPARQL 1.1, more to the engine."""
VOCABULARY = Vocabulary()
PLAIN_IRIS = (
    "http://www.cidoc-crm.org/cidoc-crm/",
    "http://erlangen-crm.org/current/",
    "http://example.org/",
    "http://schema.org/",
    "https://schema.org/",
    "http://purl.org/dc/",
    "http://www.w3.org/",
    "http://www.wikidata.org/",
    "http://id.loc.gov/datatypes/edtf/",
    "http://wikiba.se/",
    "http://rdf.freebase.com/",
    "http://www.geonames.org/ontology#",
    "http://xmlns.com/foaf/",
    "http://www.geneontology.org/formats/oboInOwl#",
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
        store.query(as_plain(query))
    for query in shortest_queries(Queries.of(DIALECTS["standard"], VOCABULARY)):
        read_query(query)


def test_an_engine_is_asked_by_its_own_predicates_alone() -> None:
    for name, magic in MAGIC.items():
        named = {iri for query in queries_of(name) for iri in _IRI.findall(_TEXT.sub('""', query))}
        assert {iri for iri in named if not iri.startswith(PLAIN_IRIS)} == magic
