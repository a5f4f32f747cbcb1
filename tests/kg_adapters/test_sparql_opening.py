"""An endpoint is opened by its URL, whether it answers at that moment or not."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pyoxigraph
import pytest

from fault_endpoint import Asked, FaultEndpoint, Script, Wire, answering, refusing, serving
from kg_adapters.errors import BackendUnavailable, InvalidRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.prefixes import WELL_KNOWN, WIKIDATA
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.opening import open_sparql
from kg_adapters.terms import BlankNode
from kg_adapters.testing import TOWNS, edges, iri, ntriples

NAMED = ntriples((*TOWNS, 'kyoto label "Kyoto"@en', 'kyoto label "Kioto"@de'))


@asynccontextmanager
async def opened(
    server: FaultEndpoint,
    cache: Path,
    endpoint: EndpointOptions | None = None,
    languages: tuple[str, ...] | None = None,
) -> AsyncGenerator[SparqlAdapter]:
    graph = await open_sparql(server.url, OpenOptions(cache, languages=languages), endpoint=endpoint)
    try:
        yield graph
    finally:
        await graph.aclose()


def oxigraph(triples: str) -> Script:
    """Answer SELECT queries about a graph."""
    store = pyoxigraph.Store()
    store.load(triples, pyoxigraph.RdfFormat.N_TRIPLES)

    async def answer(asked: Asked, wire: Wire) -> None:
        found = store.query(asked.query)
        assert isinstance(found, pyoxigraph.QuerySolutions)
        body = found.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        assert body is not None
        await answering(body)(asked, wire)

    return answer


async def test_an_endpoint_is_opened_by_its_url_alone(tmp_path: Path) -> None:
    async with serving(oxigraph(NAMED)) as server, opened(server, tmp_path) as graph:
        page = (await graph.neighbors(NeighborRequest((iri("paris"),), direction="out", limit=9)))[iri("paris")]
        assert page.triples == edges("paris country france", "paris twin kyoto")
        assert graph.name == f"{server.host}/sparql"
        assert graph.prefixes.namespaces["example"] == "http://example.org/"
        assert not graph.prefixes.blank_nodes
        assert await graph.labels([iri("kyoto")]) == {iri("kyoto"): "Kyoto"}


async def test_labels_follow_the_languages_of_the_options(tmp_path: Path) -> None:
    async with serving(oxigraph(NAMED)) as server, opened(server, tmp_path, languages=("de",)) as graph:
        assert graph.vocabulary.languages == ("de",)
        assert await graph.labels([iri("kyoto")]) == {iri("kyoto"): "Kioto"}


async def test_what_was_learned_costs_no_request_the_next_time(tmp_path: Path) -> None:
    async with serving(oxigraph(NAMED)) as server:
        async with opened(server, tmp_path) as graph:
            schema = await graph.schema()
        asked = len(server.requests)
        async with opened(server, tmp_path) as graph:
            assert (await graph.schema(), graph.prefixes) == (schema, schema.prefixes)
        assert len(server.requests) == asked


async def test_an_endpoint_that_does_not_answer_is_opened_and_its_calls_say_what_is_wrong(tmp_path: Path) -> None:
    async with serving(refusing(503, "maintenance")) as server:
        options = EndpointOptions(url=server.url, max_retries=0)
        async with opened(server, tmp_path, options) as graph:
            assert graph.prefixes.entities == WIKIDATA.entities
            assert WELL_KNOWN.items() <= graph.prefixes.namespaces.items()
            with pytest.raises(BackendUnavailable, match="maintenance"):
                await graph.labels([iri("kyoto")])
            server.follow(oxigraph(NAMED))
            assert await graph.labels([iri("kyoto")]) == {iri("kyoto"): "Kyoto"}
        async with opened(server, tmp_path, options) as graph:
            assert graph.prefixes.entities is None


async def test_the_prefixes_of_a_graph_that_is_still_empty_are_not_kept(tmp_path: Path) -> None:
    async with serving(oxigraph("")) as server:
        async with opened(server, tmp_path) as graph:
            assert graph.prefixes.entities == WIKIDATA.entities
        server.follow(oxigraph(NAMED))
        async with opened(server, tmp_path) as graph:
            assert graph.prefixes.namespaces["example"] == "http://example.org/"


async def test_the_settings_of_the_endpoint_reach_every_request(tmp_path: Path) -> None:
    graphs = ("http://example.org/graph",)
    async with serving(oxigraph(NAMED)) as server:
        options = EndpointOptions(
            url=server.url, default_graphs=graphs, dialect="virtuoso", text_search="virtuoso", timeout_s=5
        )
        async with opened(server, tmp_path, options) as graph:
            await graph.describe([BlankNode("b1"), BlankNode("nobody")])
            assert "full-text index" in graph.search_note
            assert graph.prefixes.blank_nodes
            with pytest.raises(InvalidRequest, match="FROM"):
                await graph.select("ASK FROM <http://example.org/other> {}", timeout_s=5, max_rows=1)
        assert [asked.parameters["default-graph-uri"] for asked in server.requests] == [list(graphs)] * 2
        # The question for its prefixes, before it is open, has less time.
        assert [asked.parameters["timeout"] for asked in server.requests] == [["2700"], ["4500"]]


async def test_graphs_of_the_options_are_the_default_graphs(tmp_path: Path) -> None:
    async with serving(oxigraph(NAMED)) as server:
        options = OpenOptions(tmp_path, graphs=("http://example.org/graph",))
        graph = await open_sparql(server.url, options)
        await graph.aclose()
        assert server.requests[0].parameters["default-graph-uri"] == ["http://example.org/graph"]


@pytest.mark.parametrize("url", ["ftp://example.org/sparql", "http://", "https://user:secret@example.org/sparql"])
async def test_what_is_no_url_of_an_endpoint_is_refused_with_the_reason(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be used: it") as caught:
        await open_sparql(url, OpenOptions(tmp_path))
    assert "secret" not in str(caught.value)
