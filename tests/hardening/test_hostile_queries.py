"""No query does more than read its graph, whatever its disguise: nothing is changed, and nobody else is asked."""

import re
import socket
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Final

import pyoxigraph
import pytest
import rdflib
from mcp import Client

from calls import reply_of
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql_guard import read_query
from kg_adapters.testing import ntriples
from kg_server.app import build_server
from kg_server.settings import Settings
from query_shapes import as_plain, every_query
from small_graphs import store_of
from sparql_stand_in import StandInEndpoint, adapter_over

TRIPLES: Final = ntriples(["tokyo twin kyoto", 'tokyo name "Tokyo"'])

REFUSED: Final = re.compile(
    r"is refused|are refused|not SPARQL|the safety check cannot read|at most|more than 40 deep"
    r"|too deeply or too long|control character|query is missing"
)

# Every {u} becomes the address of a listener that nobody may call.
SERVICES: Final = (
    "SELECT (EXISTS {{ SERVICE <{u}> {{ ?s ?p ?o }} }} AS ?x) {{}}",
    "SELECT (IF(EXISTS {{ SERVICE <{u}> {{}} }}, 1, 2) AS ?x) {{}}",
    "SELECT (COALESCE(?y, NOT EXISTS {{ SERVICE <{u}> {{}} }}) AS ?x) {{}}",
    "SELECT ?s {{ ?s ?p ?o }} ORDER BY (EXISTS {{ SERVICE <{u}> {{}} }})",
    "SELECT ?s {{ ?s ?p ?o }} GROUP BY ?s HAVING (EXISTS {{ SERVICE <{u}> {{}} }})",
    "SELECT ?g {{ ?s ?p ?o }} GROUP BY (EXISTS {{ SERVICE <{u}> {{}} }} AS ?g)",
    "SELECT (SUM(IF(EXISTS {{ SERVICE <{u}> {{}} }}, 1, 0)) AS ?n) {{ ?s ?p ?o }}",
    "CONSTRUCT {{ ?s ?p ?o }} WHERE {{ SERVICE <{u}> {{ ?s ?p ?o }} }}",
    "DESCRIBE ?s WHERE {{ SERVICE <{u}> {{ ?s ?p ?o }} }}",
    "ASK {{ SERVICE <{u}> {{ ?s ?p ?o }} }}",
    "SELECT * {{ {{{{{{ SERVICE <{u}> {{ ?s ?p ?o }} }}}}}} }}",
    "SELECT * {{ {{ SELECT * {{ {{ SELECT ?s {{ SERVICE <{u}> {{ ?s ?p ?o }} }} LIMIT 1 }} }} }} }}",
    "SELECT * {{ ?s !(<a:p>|^<a:q>)/<a:r>* ?o SERVICE <{u}> {{}} }}",
    "SELECT * {{ ?s ?p ?o FILTER(?o IN (1, 2) || EXISTS {{ OPTIONAL {{ SERVICE <{u}> {{}} }} }}) }}",
    "SELECT * {{ OPTIONAL {{ GRAPH <{u}> {{ MINUS {{ SERVICE <{u}> {{}} }} }} }} }}",
    "SELECT * {{ VALUES ?x {{ <{u}> }} SERVICE ?x {{ ?s ?p ?o }} }}",
    "SELECT * {{ BIND(IRI('{u}') AS ?x) SERVICE SILENT ?x {{ ?s ?p ?o }} }}",
    "BASE <{u}> SELECT * {{ SERVICE <> {{ ?s ?p ?o }} }}",
    "PREFIX s: <{u}> SELECT * {{ SERVICE s: {{ ?s ?p ?o }} }}",
    "PREFIX service: <{u}> SELECT * {{ SERVICE service: {{ ?s ?p ?o }} }}",
    "SELECT*{{?s?p?o}}VALUES?z{{1}}SERVICE<{u}>{{}}",
    "SELECT*{{{{}}SERVICE<{u}>{{}}}}",
    "SELECT * {{ SERVICE#c\n<{u}> {{}} }}",
    "SELECT * {{ SERVICE\t\tSILENT\r\n<{u}> {{}} }}",
    "SELECT * {{ # {{ \n SERVICE <{u}> {{}} # }} \n }}",
    "SELECT * {{ ?s <a:#> 'it''s' . SERVICE <{u}> {{}} }}",
    "SELECT * {{ ?s ?p '''a ' \" # b''' , \"\"\"c \" # ' d\"\"\" SERVICE <{u}> {{}} }}",
    "SELECT * {{ ?s ?p '\\\\' . SERVICE <{u}> {{ ?s ?p '\\\\' }} }}",
    "SELECT ?service {{ ?service ?p 'SERVICE' # SERVICE\n . sErViCe <{u}> {{}} }}",
    "SELECT * {{ ?q000000 ?p 'q000000 q000001' . SERVICE <{u}> {{}} }}",
)

DISGUISES: Final = (
    r"SELECT * {{ \u0053ERVICE <{u}> {{}} }}",
    r"SELECT * {{ S\u0045RVICE <{u}> {{}} }}",
    r"SELECT * {{ \U00000053\U00000045RVICE <{u}> {{}} }}",
    r"SELECT * \u007B SERVICE <{u}> {{}} \u007D",
    r"SELECT * {{ #\u000A SERVICE <{u}> {{}} }}",
    r"SELECT * {{ BIND('\u0027 AS ?a) SERVICE <{u}> {{}} #' AS ?x) }}",
    "SELECT * {{ \uff33ERVICE <{u}> {{}} }}",
    "SELECT * {{ \u017fERVICE <{u}> {{}} }}",
    "SELECT * {{ \u0405ERVICE <{u}> {{}} }}",
    "SELECT * {{ SER\u200bVICE <{u}> {{}} }}",
    "SELECT * {{ SER\u00adVICE <{u}> {{}} }}",
    "SELECT * {{ SER\x00VICE <{u}> {{}} }}",
    "SELECT * {{ #\u2028SERVICE <{u}> {{}}\n SERVICE <{u}> {{}} }}",
    "SELECT * {{ #\x85SERVICE <{u}> {{}} }}",
    "SELECT * {{ #\x0bSERVICE <{u}> {{}} }}",
    "\ufeffSELECT * {{ SERVICE <{u}> {{}} }}",
    "SELECT * {{ \ufeffSERVICE <{u}> {{}} }}",
    "\ufeffINSERT DATA {{ <a:b> <a:b> 1 }}",
    r"\u0049NSERT DATA {{ <a:b> <a:b> 1 }}",
)

UPDATES: Final = (
    "LOAD <{u}>",
    "load silent <{u}> into graph <a:g>",
    "PREFIX a: <a:>\n#\nLOAD <{u}>",
    "INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p ?o }}",
    "DELETE DATA {{ <http://example.org/tokyo> <http://example.org/twin> <http://example.org/kyoto> }}",
    "WITH <a:g> DELETE {{ ?s ?p ?o }} INSERT {{ ?s ?p 1 }} USING <{u}> WHERE {{ ?s ?p ?o }}",
    "CREATE GRAPH <a:g>",
    "DROP ALL",
    "CLEAR DEFAULT",
    "COPY DEFAULT TO <a:g>",
    "MOVE <a:g> TO DEFAULT",
    "ADD <{u}> TO DEFAULT",
    "ASK {{}} ; DROP ALL",
    "SELECT * {{ ?s ?p ?o }} ;\nLOAD <{u}>",
    "SELECT * {{ ?s ?p ?o }}\n\nINSERT DATA {{ <a:b> <a:b> 1 }}",
    "SELECT * {{ {{ INSERT DATA {{ <a:b> <a:b> 1 }} }} }}",
)

GRAPHS: Final = (
    "SELECT * FROM <{u}> {{ ?s ?p ?o }}",
    "SELECT * FROM NAMED <{u}> {{ GRAPH ?g {{ ?s ?p ?o }} }}",
    "SELECT * fRoM#c\nnAmEd#d\n<{u}> {{ GRAPH <{u}> {{ ?s ?p ?o }} }}",
    "CONSTRUCT {{ ?s ?p ?o }} FROM <{u}> WHERE {{ ?s ?p ?o }}",
    "CONSTRUCT FROM <{u}> WHERE {{ ?s ?p ?o }}",
    "DESCRIBE <a:b> FROM <{u}>",
    "ASK FROM <file:///etc/passwd> {{ ?s ?p ?o }}",
    "BASE <{u}> ASK FROM <> {{ ?s ?p ?o }}",
    "PREFIX g: <{u}> ASK FROM g: {{ ?s ?p ?o }}",
    "ASK FROM <http://example.org/graph> FROM <{u}> {{ ?s ?p ?o }}",
    "ASK FROM <http://example.org/graph> FROM NAMED <{u}> {{ ?s ?p ?o }}",
)

STRAINS: Final = (
    "SELECT * " + "{" * 41 + "}" * 41,
    "SELECT * { FILTER(" + "(" * 5_000 + "1" + ")" * 5_000 + ") }",
    "SELECT * { ?s ?p '" + ")" * 60 + "' FILTER(" + "(" * 45 + "1" + ")" * 45 + ") }",
    "SELECT * { ?s ?p ?o FILTER(" + "!" * 10_000 + "?o) }",
    "SELECT * { ?s ?p ?o FILTER(" + "! \n" * 50 + "?o) }",
    "SELECT * { ?s " + "(" * 45 + "<a:p>" + ")*" * 45 + " ?o }",
    "SELECT * { ?s ?p " + "[ <a:p> " * 45 + "1" + "]" * 45 + " }",
    "SELECT * { ?s ?p " + "(" * 45 + "1" + ")" * 45 + " }",
    "SELECT * { " + "OPTIONAL { ?s ?p ?o " * 45 + "}" * 45 + " }",
    "SELECT * { ?s ?p ?o FILTER(?o = " + "-" * 9_000 + "1) }",
    "SELECT * { ?s ?p '" + "x" * 20_000 + "' }",
    " " * 20_001,
    " \n ",
)

FAMILIES: Final[Mapping[str, Sequence[str]]] = {
    "services": SERVICES,
    "disguises": DISGUISES,
    "updates": UPDATES,
    "graphs": GRAPHS,
    "strains": [query.replace("{", "{{").replace("}", "}}") for query in STRAINS],
}


class Listener:
    """Somebody who must never be called: a port of loopback that nobody serves."""

    def __init__(self, socket_: socket.socket) -> None:
        self._socket = socket_
        self.url = f"http://127.0.0.1:{socket_.getsockname()[1]}/"

    @property
    def was_called(self) -> bool:
        """Whether a connection waits to be accepted."""
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@contextmanager
def listening() -> Generator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield Listener(listener)


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[LocalAdapter]:
    async with aclosing(LocalAdapter(store_of(tmp_path, TRIPLES))) as adapter:
        yield adapter


async def not_refused(graph: KGAdapter, queries: Sequence[str], url: str) -> list[str]:
    """Return the queries that are answered, or that fail in another way than by a refusal, with what is said."""
    found: list[str] = []
    async with Client(build_server(graph, Settings(timeout_s=60))) as client:
        for query in queries:
            reply = reply_of(await client.call_tool("Sparql", {"query": query.format(u=url), "timeout_s": 60}))
            if not reply.is_error or REFUSED.search(reply.text) is None:
                found.append(f"{query[:200]!r}: {reply.text}")
    return found


@pytest.mark.parametrize("family", FAMILIES)
async def test_the_local_graph_refuses_every_query_that_does_more_than_read_it(
    local: LocalAdapter, listener: Listener, family: str
) -> None:
    assert await not_refused(local, FAMILIES[family], listener.url) == []
    assert not listener.was_called
    everything = await local.select("SELECT * { ?s ?p ?o }", timeout_s=60, max_rows=10)
    assert len(everything.rows) == 2


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_name_in_a_query_opens_no_way_around_the_guard(
    local: LocalAdapter, listener: Listener, family: str
) -> None:
    named = [query.replace("?s ?p ?o", '@"<http://example.org/tokyo>" ?p ?o') for query in FAMILIES[family]]
    assert await not_refused(local, [each for each in named if "@" in each], listener.url) == []
    assert not listener.was_called


@pytest.mark.parametrize("family", FAMILIES)
async def test_an_endpoint_is_sent_none_of_them(listener: Listener, family: str) -> None:
    endpoint = StandInEndpoint(TRIPLES)
    async with aclosing(adapter_over(endpoint)) as adapter:
        assert await not_refused(adapter, FAMILIES[family], listener.url) == []
    assert endpoint.asked == []
    assert not listener.was_called


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_graph_in_rdflib_refuses_all_of_them(listener: Listener, family: str) -> None:
    held = rdflib.Graph().parse(data=TRIPLES, format="nt")
    async with aclosing(RdflibAdapter(held, name="rdflib")) as graph:
        assert await not_refused(graph, FAMILIES[family], listener.url) == []
    assert not listener.was_called
    assert len(held) == 2


async def test_another_graph_is_empty_and_is_not_fetched(local: LocalAdapter, listener: Listener) -> None:
    for graph in (f"<{listener.url}>", "<file:///etc/passwd>", "?g"):
        found = await local.select(f"SELECT * {{ GRAPH {graph} {{ ?s ?p ?o }} }}", timeout_s=60, max_rows=10)
        assert found.rows == ()
    assert not listener.was_called


async def test_an_honest_query_is_answered_so_that_the_refusals_say_something(local: LocalAdapter) -> None:
    honest = ["SELECT * {{ ?s ?p ?o }}", "ASK {{ ?service ?p 'LOAD <{u}> FROM SERVICE' }}"]
    assert len(await not_refused(local, honest, "http://127.0.0.1:9/")) == len(honest)


def test_two_parsers_read_every_query_for_every_engine() -> None:
    # Most are the same for several engines.
    plain = Queries.of(DIALECTS["standard"], Vocabulary(), edge_namespace="http://example.org/")
    ways = (plain, *(Queries.of(dialect, Vocabulary()) for dialect in DIALECTS.values()))
    for query in {as_plain(query) for queries in ways for query in every_query(queries)}:
        read_query(query)
        pyoxigraph.Store().query(query)
