"""The process that runs SPARQL: what it answers, line by line, and how it is bounded."""

from dataclasses import replace
from pathlib import Path

import pyoxigraph
import pytest

from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.local.sparql.worker import SparqlWorker
from kg_adapters.models import SparqlAnswer
from kg_adapters.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal

TURTLE = """
@prefix : <http://x/> .
:Tokyo :in :Japan ; :label "Tokyo"@en , "東京"@ja ; :people 14000000 ; :mayor _:m .
:Kyoto :in :Japan ; :label "Kyōto \\"old\\"\\n"@en .
_:m :name "Yuriko" .
"""
NAMESPACES = {"x": "http://x/"}
NT = pyoxigraph.RdfFormat.N_TRIPLES


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sparql") / "oxigraph"
    pyoxigraph.Store(folder).bulk_load(TURTLE, pyoxigraph.RdfFormat.TURTLE)
    return folder


@pytest.fixture
def worker(store: Path) -> SparqlWorker:
    return SparqlWorker(store, NAMESPACES)


def ask(worker: SparqlWorker, query: str, max_rows: int = 100) -> SparqlAnswer:
    return worker.answer(query, max_rows)


def test_select_gives_terms_with_their_kinds_and_none_where_a_variable_is_unbound(worker: SparqlWorker) -> None:
    query = "SELECT ?city ?label ?people { ?city x:label ?label OPTIONAL { ?city x:people ?people } } ORDER BY ?label"
    assert ask(worker, query) == SparqlAnswer(
        form="SELECT",
        variables=("city", "label", "people"),
        rows=(
            (Iri("http://x/Kyoto"), Literal('Kyōto "old"\n', RDF_LANG_STRING, "en"), None),
            (Iri("http://x/Tokyo"), Literal("Tokyo", RDF_LANG_STRING, "en"), Literal("14000000", Iri(XSD + "integer"))),
            (Iri("http://x/Tokyo"), Literal("東京", RDF_LANG_STRING, "ja"), Literal("14000000", Iri(XSD + "integer"))),
        ),
        truncated=False,
        named=(Iri("http://x/label"), Iri("http://x/people")),
    )


def test_describe_gives_what_is_said_about_an_entity_and_blank_nodes_keep_their_label(worker: SparqlWorker) -> None:
    described = ask(worker, "DESCRIBE x:Tokyo")
    (row,) = ask(worker, "SELECT ?mayor { x:Tokyo x:mayor ?mayor }").rows
    assert described.form == "DESCRIBE"
    assert isinstance(row[0], BlankNode)
    assert (Iri("http://x/Tokyo"), Iri("http://x/mayor"), row[0]) in described.rows


def test_triple_terms_come_as_text(tmp_path: Path) -> None:
    triple = pyoxigraph.Triple(
        pyoxigraph.NamedNode("http://x/a"), pyoxigraph.NamedNode("http://x/b"), pyoxigraph.Literal("c")
    )
    quad = pyoxigraph.Quad(pyoxigraph.NamedNode("http://x/s"), pyoxigraph.NamedNode("http://x/says"), triple)
    pyoxigraph.Store(tmp_path / "store").bulk_extend([quad])
    answer = ask(SparqlWorker(tmp_path / "store", {}), "SELECT ?what { ?s ?p ?what }")
    assert answer.rows == ((Literal(str(triple)),),)


def test_rows_are_bounded_and_the_answer_says_so(worker: SparqlWorker) -> None:
    query = "SELECT ?p { ?s ?p ?o }"
    whole = ask(worker, query)
    assert len(whole.rows) == 8
    assert ask(worker, query, 8) == whole
    assert ask(worker, query, 7) == replace(whole, rows=whole.rows[:7], truncated=True)


def test_bytes_are_bounded_and_the_answer_says_so(store: Path) -> None:
    query = "SELECT (STR(?p) AS ?t) { ?s ?p ?o }"
    few = ask(SparqlWorker(store, NAMESPACES, max_bytes=200), query)
    assert few.truncated
    assert 0 < len(few.rows) < 8
    with pytest.raises(InvalidRequest, match=r"^One row of the answer has over 20 bytes\."):
        ask(SparqlWorker(store, NAMESPACES, max_bytes=20), query)


def test_what_only_the_engine_finds_wrong_is_an_invalid_request_too(worker: SparqlWorker) -> None:
    with pytest.raises(InvalidRequest, match=r"^The query is not SPARQL as this graph reads it: with GROUP BY"):
        ask(worker, "SELECT (COUNT(?s) AS ?n) ?p { ?s ?p ?o }")


def test_a_missing_store_is_the_graphs_fault(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"is damaged: IO error: .* Delete the folder"):
        ask(SparqlWorker(tmp_path / "nothing", {}), "ASK {}")


def test_damage_that_only_reading_finds_is_the_graphs_fault(tmp_path: Path) -> None:
    store = pyoxigraph.Store(tmp_path / "oxigraph")
    store.bulk_load("".join(f"<http://x/{n}> <http://x/r> <http://x/{n * 7919}> .\n" for n in range(20_000)), NT)
    store.optimize()
    del store
    for path in (tmp_path / "oxigraph").glob("*.sst"):
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 0x5A
        if len(content) > 50_000:
            path.write_bytes(content)
    with pytest.raises(BackendError, match=r"is damaged: Corruption: .* Delete the folder .*oxigraph: the next query"):
        ask(SparqlWorker(tmp_path / "oxigraph", {}, max_bytes=10_000_000), "SELECT * { ?s ?p ?o }", 50_000)
