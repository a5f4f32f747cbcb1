"""Which named graph a statement is in is kept beside a graph that merges them all."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
import rdflib

from calls import call
from kg_adapters.errors import InvalidRequest
from kg_adapters.importing.build import ImportReport, build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store, verify_store
from kg_adapters.open_options import OpenOptions
from kg_adapters.protocol import SupportsSparql
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.registry import open_graph

EX = rdflib.Namespace("http://example.org/")
TRIG = """
@prefix ex: <http://example.org/> .
ex:ada ex:name "Ada" .
ex:one { ex:ada ex:knows ex:bob . ex:bob ex:name "Bob" . }
ex:two { ex:ada ex:knows ex:bob , ex:cy . [] ex:near ex:ada }
"""
NQ = """<http://example.org/ada> <http://example.org/knows> <http://example.org/bob> <http://example.org/one> .
<http://example.org/ada> <http://example.org/knows> <http://example.org/bob> <http://example.org/two> .
<http://example.org/ada> <http://example.org/name> "\\u00C5da"@en-GB--ltr _:unnamed .
<http://example.org/ada> <http://example.org/knows> <http://example.org/dee> .
"""
JSONLD = """{"@context": {"@vocab": "http://example.org/"}, "@id": "http://example.org/one",
 "@graph": [{"@id": "http://example.org/ada", "knows": {"@id": "http://example.org/bob"}}]}"""
KNOWN = "SELECT ?g ?o { GRAPH ?g { <http://example.org/ada> <http://example.org/knows> ?o } } ORDER BY ?g ?o"
ALL = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"


def imported(
    folder: Path, name: str, text: str, options: ImportOptions | None = None, *, update: bool = False
) -> ImportReport:
    (folder / name).write_text(text, encoding="utf-8")
    return build_store([folder / name], folder / "store", options or ImportOptions(), update=update)


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[LocalAdapter]:
    async with aclosing(LocalAdapter(open_store(folder / "store"))) as graph:
        yield graph


async def found(graph: SupportsSparql, query: str) -> list[str]:
    answer = await graph.select(query, timeout_s=60, max_rows=50)
    rows = [" ".join(str(getattr(term, "value", term)).rpartition("/")[2] for term in row) for row in answer.rows]
    return [*rows, answer.note] if answer.note else rows


@pytest.mark.parametrize(
    ("name", "text", "known", "statements"),
    [
        ("g.trig", TRIG, ["one bob", "two bob", "two cy"], 5),
        ("g.nq", NQ, ["one bob", "two bob"], 3),
        ("g.jsonld", JSONLD, ["one bob"], 1),
    ],
)
async def test_graph_tells_graphs_apart_and_plain_patterns_see_their_union_once(
    tmp_path: Path, name: str, text: str, known: list[str], statements: int
) -> None:
    imported(tmp_path, name, text)
    async with opened(tmp_path) as graph:
        assert (await found(graph, KNOWN), await found(graph, ALL)) == (known, [str(statements)])
    # The part that answers is made again from what the store keeps.
    shutil.rmtree(tmp_path / "store" / "oxigraph")
    async with opened(tmp_path) as graph:
        assert (await found(graph, KNOWN), await found(graph, ALL)) == (known, [str(statements)])
    verify_store(tmp_path / "store")
    direct = await open_graph(str(tmp_path / name), OpenOptions(cache_folder=tmp_path / "cache"))
    async with aclosing(direct):
        assert isinstance(direct, SupportsSparql)
        assert await found(direct, KNOWN) == known


async def test_files_that_are_added_bring_their_graphs(tmp_path: Path) -> None:
    assert imported(tmp_path, "g.trig", TRIG).notes == (
        "5 statements are in named graphs: GRAPH in Sparql shows which.",
    )
    imported(tmp_path, "more.nq", NQ.replace("dee> .", "dee> <http://example.org/three> ."), update=True)
    async with opened(tmp_path) as graph:
        assert await found(graph, KNOWN) == ["one bob", "three dee", "two bob", "two cy"]


def test_a_statement_that_is_too_long_to_keep_its_graph_is_left_out_and_not_counted(tmp_path: Path) -> None:
    said = "<http://example.org/ada> <http://example.org/wrote>"
    text = "".join(f'{said} "{each}" <http://example.org/one> .\n' for each in ("a", "a" * (1 << 23)))
    report = imported(tmp_path, "g.nq", text, ImportOptions(skip_errors=True))
    assert report.notes == ("1 statement is in named graphs: GRAPH in Sparql shows which.",)
    assert (report.skipped, report.counts.features) == (1, 1)


async def test_a_query_with_graph_says_that_graphs_were_merged_or_that_there_are_none(tmp_path: Path) -> None:
    options = ImportOptions(merge_graphs=True)
    assert imported(tmp_path, "g.trig", TRIG, options).notes == (
        "5 statements were in named graphs, which are merged.",
    )
    async with opened(tmp_path) as graph:
        merged = await call(graph, "Sparql", query=KNOWN)
        assert (merged.data["status"], merged.data["knowledge"]) == ("empty", "unknown")
        assert "took 5 statements out of their named graphs" in merged.summary
        plain = await call(graph, "Sparql", query="SELECT ?o { ex:ada ex:knows ?o }")
        assert plain.summary == "2 rows, all here."
    imported(tmp_path, "g.ttl", TRIG.partition("ex:one")[0])
    async with opened(tmp_path) as graph:
        counted = await call(graph, "Sparql", query="SELECT (COUNT(?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
        assert "This graph has no named graphs" in counted.summary


RDF12 = """
@prefix ex: <http://example.org/> .
ex:ada ex:knows ex:bob {| ex:since 1833 ; ex:source ex:letter |} .
<< ex:ada ex:likes "tea"@en ~ ex:claim >> ex:certainty 0.5 .
_:doubt ex:about <<( _:who ex:says <<( ex:ada ex:near _:who )>> )>> .
GRAPH ex:one { ex:ada ex:knows ex:cy ~ ex:seen }
"""


async def test_statements_about_triples_are_kept_for_sparql_and_what_reifiers_say_for_all_tools(tmp_path: Path) -> None:
    note = "2 statements are in named graphs: GRAPH in Sparql shows which. 4 statements are about triples"
    assert imported(tmp_path, "g.trig", RDF12).notes[0].startswith(note)
    terms = "SELECT ?t { ?r ?p ?t FILTER(!isIRI(?t) && !isLiteral(?t) && !isBlank(?t)) }"
    rows: list[list[str]] = []
    for _ in range(2):
        async with opened(tmp_path) as graph:
            answer = await graph.select(terms, timeout_s=60, max_rows=50)
            rows.append(sorted(str(getattr(term, "value", term)) for (term,) in answer.rows))
            assert await found(graph, "SELECT ?r { ?r <http://example.org/since> 1833 ; ?p ?t FILTER(!isIRI(?t)) }")
            claim = await call(graph, "GetNeighbor", entity="ex:claim")
            assert "ex:certainty | 0.5" in claim.text
        shutil.rmtree(tmp_path / "store" / "oxigraph")
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4
    nested = next(each for each in rows[0] if "says" in each)
    who = nested.split()[0]
    assert who.startswith("_:")
    assert nested.split()[-2] == who
    imported(tmp_path, "more.ttl", RDF12.partition("GRAPH")[0], update=True)
    async with opened(tmp_path) as graph:
        assert await found(graph, f"SELECT (COUNT(*) AS ?n) {{ {terms} }}") == ["6"]


async def test_queries_with_graph_are_refused_what_all_are_refused(tmp_path: Path) -> None:
    imported(tmp_path, "g.trig", TRIG)
    async with opened(tmp_path) as graph:
        for query in (
            "SELECT * FROM <http://example.org/one> { ?s ?p ?o }",
            "SELECT * FROM NAMED <http://example.org/one> { GRAPH ?g { ?s ?p ?o } }",
            "SELECT * { GRAPH ?g { SERVICE <http://example.org/one> { ?s ?p ?o } } }",
            "LOAD <http://example.org/one> INTO GRAPH <http://example.org/two>",
        ):
            with pytest.raises(InvalidRequest, match="refused"):
                await found(graph, query)


async def test_an_rdflib_dataset_answers_by_graph() -> None:
    dataset = rdflib.Dataset()
    for name, tail in (("default", "bob"), ("one", "bob"), ("two", "bob"), ("two", "cy")):
        named = dataset.default_graph if name == "default" else dataset.graph(EX[name])
        named.add((EX["ada"], EX["knows"], EX[tail]))
    async with aclosing(RdflibAdapter(dataset)) as graph:
        assert (await found(graph, KNOWN), await found(graph, ALL)) == (["one bob", "two bob", "two cy"], ["2"])
    async with aclosing(RdflibAdapter(dataset.graph(EX["one"]))) as adapter:
        assert "no named graphs" in (await found(adapter, KNOWN))[0]
