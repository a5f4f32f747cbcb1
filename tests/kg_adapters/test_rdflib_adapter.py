"""What the rdflib adapter promises beyond the contract."""

import gzip
import logging
from collections.abc import Generator
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.lowlevel
import pytest
import rdflib
from rdflib.namespace import RDFS
from rdflib.plugins.stores.memory import Memory
from rdflib.term import BNode, URIRef, Variable
from rdflib.term import Literal as RdflibLiteral
from rdflib.term import Node as RdflibNode

from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from kg_adapters.models import (
    Candidate,
    Count,
    Description,
    Feature,
    FeaturePage,
    NeighborPage,
)
from kg_adapters.prefixes import WIKIDATA, Prefixes
from kg_adapters.protocol import KGAdapter, SupportsPaths, SupportsSparql
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.rdflib_terms import from_rdflib
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import RDF_LANG_STRING, BlankNode, Iri, Literal, Term
from kg_adapters.testing import EXAMPLE, TOWNS, KGAdapterContract, ValuesContract, edges, feature_page, iri, ntriples

Pattern: TypeAlias = tuple[RdflibNode | None, RdflibNode | None, RdflibNode | None]
Found: TypeAlias = Generator[
    tuple[tuple[RdflibNode, RdflibNode, RdflibNode], Generator[rdflib.Graph | None, None, None]], None, None
]
PATTERNS = " . ".join(f"?a{number} ?b{number} ?c{number}" for number in range(40))
BOMB = f"SELECT (COUNT(*) AS ?n) {{ {PATTERNS} }}"
EX = rdflib.Namespace(EXAMPLE)


def graph_of(*statements: str) -> rdflib.Graph:
    return rdflib.Graph().parse(data=ntriples(statements), format="nt")


def whole(*texts: str) -> NeighborPage:
    return NeighborPage(edges(*texts), Count(len(texts)), truncated=False)


@pytest.mark.parametrize(
    ("term", "ours"),
    [
        (URIRef("http://example.org/a"), iri("a")),
        (URIRef("http://example.org/a b"), None),
        (URIRef("relative"), None),
        (BNode("not a label"), None),
        (Variable("x"), None),
        (None, None),
        (RdflibLiteral("x"), Literal("x")),
        (RdflibLiteral("x", lang="en-GB"), Literal("x", RDF_LANG_STRING, "en-GB")),
        (RdflibLiteral("x", datatype=EX["d"]), Literal("x", iri("d"))),
        (RdflibLiteral("x", datatype=URIRef("no iri")), None),
        (RdflibLiteral(7), Literal("7", Iri("http://www.w3.org/2001/XMLSchema#integer"))),
    ],
)
def test_each_term_of_rdflib_has_one_of_ours_or_none(term: object, ours: Term | None) -> None:
    assert from_rdflib(term) == ours


async def test_statements_that_are_not_rdf_are_skipped_and_the_rest_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, logger="rdflib.term")
    graph = graph_of("a near b")
    graph.add((EX["a"], EX["near"], URIRef("http://example.org/with blank")))
    graph.add((URIRef("with blank"), EX["near"], EX["a"]))
    graph.add((EX["a"], BNode(), EX["b"]))
    graph.add((RdflibLiteral("a"), EX["near"], EX["b"]))
    graph.add((EX["a"], EX["size"], RdflibLiteral("1", datatype=URIRef("no iri"))))
    adapter = RdflibAdapter(graph)
    assert await adapter.neighbors(NeighborRequest((iri("a"),), limit=9)) == {iri("a"): whole("a near b")}
    assert await feature_page(adapter, iri("a")) == FeaturePage((), Count(0))
    assert (await adapter.schema()).triples == Count(1)
    assert await adapter.search("a", limit=5) == [Candidate(iri("a"), 1.0, "id", "a")]


async def test_a_literal_written_with_and_without_its_datatype_is_one_feature() -> None:
    graph = graph_of('a name "x"')
    graph.add((EX["a"], EX["name"], RdflibLiteral("x", datatype=rdflib.XSD.string)))
    adapter = RdflibAdapter(graph)
    assert await feature_page(adapter, iri("a")) == FeaturePage((Feature(iri("name"), Literal("x")),), Count(1))
    assert [feature.statements for feature in (await adapter.schema()).features] == [Count(1)]


async def test_a_dataset_is_the_union_of_its_graphs_without_repeats() -> None:
    dataset = rdflib.Dataset()
    for graph in (dataset.default_graph, dataset.graph(EX["one"]), dataset.graph(EX["two"])):
        graph.add((EX["a"], EX["near"], EX["b"]))
    dataset.graph(EX["two"]).add((EX["a"], EX["near"], EX["c"]))
    adapter = RdflibAdapter(dataset)
    assert await adapter.neighbors(NeighborRequest((iri("a"),), direction="out", limit=9)) == {
        iri("a"): whole("a near b", "a near c")
    }
    assert (await adapter.schema()).triples == Count(2)


async def test_one_graph_of_a_dataset_is_read_alone() -> None:
    dataset = rdflib.Dataset()
    dataset.graph(EX["one"]).add((EX["a"], EX["near"], EX["b"]))
    dataset.graph(EX["two"]).add((EX["a"], EX["near"], EX["c"]))
    adapter = RdflibAdapter(dataset.graph(EX["two"]))
    assert await adapter.neighbors(NeighborRequest((iri("a"),), direction="out", limit=9)) == {
        iri("a"): whole("a near c")
    }


async def test_changes_are_seen_after_a_refresh() -> None:
    graph = graph_of('tokyo label "Tokyo"@en')
    adapter = RdflibAdapter(graph)
    assert await adapter.search("Edo", limit=5) == []
    before = await adapter.schema()
    assert await adapter.schema() is before
    graph.add((EX["tokyo"], EX["near"], EX["osaka"]))
    graph.add((EX["tokyo"], RDFS.label, RdflibLiteral("Edo", lang="en")))
    asked = NeighborRequest((iri("tokyo"),), direction="out", limit=5)
    assert await adapter.neighbors(asked) == {iri("tokyo"): whole()}
    assert (await adapter.search("Edo", limit=5), await adapter.schema()) == ([], before)
    await adapter.refresh()
    assert await adapter.neighbors(asked) == {iri("tokyo"): whole("tokyo near osaka")}
    assert await adapter.labels([iri("tokyo")]) == {iri("tokyo"): "Edo"}
    assert await adapter.search("Edo", limit=5) == [Candidate(iri("tokyo"), 1.0, "label", "Edo")]
    assert (await adapter.schema()).triples == Count(1)


async def test_a_cursor_behind_the_end_of_a_graph_that_shrank_is_refused() -> None:
    graph = graph_of("a near b", "a near c", "a near d")
    adapter = RdflibAdapter(graph)
    page = (await adapter.neighbors(NeighborRequest((iri("a"),), direction="out", limit=2)))[iri("a")]
    graph.remove((EX["a"], None, EX["d"]))
    await adapter.refresh()
    with pytest.raises(InvalidRequest, match="points past the end"):
        await adapter.neighbors(NeighborRequest((iri("a"),), direction="out", limit=2, cursor=page.cursor))


async def test_a_relation_with_only_a_label_is_described_but_not_found_by_search() -> None:
    adapter = RdflibAdapter(graph_of("tokyo country japan", 'country label "country"@en', 'japan label "Japan"@en'))
    assert await adapter.search("country", limit=5) == []
    assert (await adapter.schema()).entities == Count(2)
    assert await adapter.describe([iri("country")]) == {
        iri("country"): Description("country", None, (), frozenset({"entity", "relation"}))
    }


async def test_an_entity_without_names_is_found_by_its_local_part_and_a_blank_node_is_not() -> None:
    adapter = RdflibAdapter(graph_of("Jack_London%C3%A9 near _:b0"))
    found = await adapter.search("Jack Londoné", limit=5)
    assert found == [Candidate(iri("Jack_London%C3%A9"), 1.0, "id", "Jack Londoné")]


def test_prefixes_are_those_bound_to_the_graph_where_they_are_used() -> None:
    graph = graph_of("tokyo near osaka", 'tokyo label "Tokyo"@en')
    graph.bind("ex", EX)
    graph.bind("unused", "http://unused.example/")
    assert RdflibAdapter(graph).prefixes == Prefixes({"ex": EXAMPLE, "rdfs": str(RDFS)})


def test_wikidata_is_known_by_its_namespaces() -> None:
    graph = rdflib.Graph()
    wd, wdt = (rdflib.Namespace(WIKIDATA.namespaces[prefix]) for prefix in ("wd", "wdt"))
    graph.add((wd["Q1490"], wdt["P17"], wd["Q17"]))
    namespaces = {prefix: WIKIDATA.namespaces[prefix] for prefix in ("wd", "wdt", "p")}
    assert RdflibAdapter(graph).prefixes == Prefixes(namespaces, WIKIDATA.entities, WIKIDATA.relations)


def test_a_name_and_prefixes_may_be_given_and_abilities_are_what_they_are() -> None:
    prefixes = Prefixes({"e": EXAMPLE})
    adapter = RdflibAdapter(graph_of(*TOWNS), name="towns", prefixes=prefixes)
    assert (adapter.name, adapter.prefixes, adapter.remote) == ("towns", prefixes, False)
    assert isinstance(adapter, SupportsSparql)
    assert not isinstance(adapter, SupportsPaths)


async def test_sparql_is_answered_from_the_state_that_search_and_sets_know() -> None:
    """A query that still runs over an earlier state is not disturbed by a refresh."""
    graph = graph_of("a near b", "_:b0 near b")
    adapter = RdflibAdapter(graph, prefixes=Prefixes({"ex": EXAMPLE}))

    async def near() -> list[tuple[Term | None, ...]]:
        found = await adapter.select("SELECT ?x { ?x ex:near ex:b } ORDER BY ?x", timeout_s=60, max_rows=9)
        return list(found.rows)

    async with aclosing(adapter):
        before: list[tuple[Term | None, ...]] = [(BlankNode("b0"),), (iri("a"),)]
        assert [len(await near()), (await near())[1:]] == [2, before[1:]]
        graph.add((EX["c"], EX["near"], EX["b"]))
        assert len(await near()) == 2
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stopped, adapter)
            await anyio.lowlevel.checkpoint()
            await adapter.refresh()
            assert (await near())[1:] == [*before[1:], (iri("c"),)]
    with pytest.raises(BackendError, match="closed"):
        await near()


async def stopped(adapter: RdflibAdapter) -> None:
    with pytest.raises(BackendTimeout):
        await adapter.select(BOMB, timeout_s=2, max_rows=2)


class BrokenStore(Memory):
    """A store whose connection is gone."""

    def triples(self, triple_pattern: Pattern, context: rdflib.Graph | None = None) -> Found:
        raise ConnectionResetError(f"connection lost at {triple_pattern} in {context}")


async def test_a_store_that_fails_is_reported_as_the_graphs_fault() -> None:
    adapter = RdflibAdapter(rdflib.Graph(store=BrokenStore()), prefixes=Prefixes())
    with pytest.raises(BackendError, match="The store of rdflib graph failed to answer: connection lost at"):
        await adapter.labels([iri("a")])


async def test_the_real_sample_answers_as_known(sample_source: Path, tmp_path: Path) -> None:
    tokyo = "<http://www.wikidata.org/entity/Q1490>"
    lines = [line for line in _lines(sample_source) if tokyo in line]
    file = tmp_path / "tokyo.nt"
    file.write_text("".join(lines), encoding="utf-8")
    adapter = RdflibAdapter(rdflib.Graph().parse(file, format="nt"))
    found = await adapter.search("tokyo", limit=1)
    assert [(adapter.prefixes.shorten(c.entity), c.matched_by, c.matched_text) for c in found] == [
        ("Q1490", "label", "Tokyo")
    ]


def _lines(source: Path) -> list[str]:
    with gzip.open(source, "rt", encoding="utf-8") as file:
        return list(file)


class TestRdflibGraph(ValuesContract, KGAdapterContract):
    async def open_graph(self, triples: str) -> KGAdapter:
        return RdflibAdapter(rdflib.Graph().parse(data=triples, format="nt"))
