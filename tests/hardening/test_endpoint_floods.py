"""Answers without end, or with more rows than anybody asked for: no call outlasts its time, and no other waits."""

import gzip
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from mcp import Client

from calls import reply_of, unhurried
from fault_endpoint import (
    JSON_RESULTS,
    Asked,
    FaultEndpoint,
    Script,
    Wire,
    answering,
    head,
    opened,
    results,
    serving,
    uri,
)
from kg_adapters.caching import CachingAdapter
from kg_adapters.errors import BackendError, BackendTimeout
from kg_adapters.http.options import EndpointOptions
from kg_adapters.labels import Vocabulary
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import SupportsSparql
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.opening import open_sparql
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.solutions import ROWS_AT_ONCE, Solution, Solutions
from kg_adapters.terms import XSD, Iri, Literal
from kg_boundary.bodies import SLICE_BYTES, body_slices
from kg_server.app import build_server

QUERY = "SELECT ?x { ?x ?y ?z }"
NAME = "http://example.org/entity/"
START = b'{"head":{"vars":["x"]},"results":{"bindings":['
END = b"]}}"
FLOOD_BYTES = 100_000_000
SOME_BYTES = 20_000_000
"""What buffers on the way may swallow before anybody sees that nobody reads any more; a fifth of the flood."""


def row(number: int) -> bytes:
    return json.dumps({"x": uri(f"{NAME}{number}")}).encode()


def triple(number: int) -> bytes:
    return f"<{NAME}{number}> <{NAME}p> <{NAME}o> .\n".encode()


def rows(count: int) -> tuple[tuple[Iri], ...]:
    return tuple((Iri(f"{NAME}{number}"),) for number in range(count))


def document(count: int) -> bytes:
    return START + b",".join(row(number) for number in range(count)) + END


def flooding(start: bytes, unit: Callable[[int], bytes], media_type: str = JSON_RESULTS) -> Script:
    """Send rows for as long as the client listens, up to `FLOOD_BYTES`, which no test may reach."""

    async def answer(_: Asked, wire: Wire) -> None:
        await wire.send(head(200, {"Content-Type": media_type, "Transfer-Encoding": "chunked"}))
        number = sent = 0
        part = start
        while sent < FLOOD_BYTES:
            await wire.send(b"%x\r\n%b\r\n" % (len(part), part))
            sent += len(part)
            part = b"".join(unit(each) for each in range(number, number + 1_000))
            number += 1_000
        await wire.send(b"0\r\n\r\n")

    return answer


ENDLESS_ROWS = flooding(START + row(0), lambda number: b"," + row(number + 1))
ENDLESS_TRIPLES = flooding(triple(0), lambda number: triple(number + 1), "application/n-triples")
ENDLESS_TURTLE = flooding(
    f"@prefix e: <{NAME}> . e:0 e:p [ e:q e:o0".encode(), lambda number: b" , e:o%d" % (number + 1), "text/turtle"
)
"""One statement, which never ends."""


@pytest.mark.parametrize(
    ("flood", "query", "last"),
    [
        (ENDLESS_ROWS, QUERY, Iri(f"{NAME}1499")),
        (ENDLESS_TRIPLES, "CONSTRUCT WHERE { ?s ?p ?o }", Iri(f"{NAME}o")),
        (ENDLESS_TURTLE, "CONSTRUCT WHERE { ?s ?p ?o }", Iri(f"{NAME}o1499")),
    ],
)
async def test_an_answer_without_end_gives_the_rows_that_were_asked_for(flood: Script, query: str, last: Iri) -> None:
    async with serving(flood) as server:
        async with opened(server, max_mb=1) as endpoint:
            found = await endpoint.query(query, max_rows=1_500)
            with pytest.raises(BackendError, match="larger than 1 MB and was not read further"):
                await endpoint.query(query, max_rows=1_000_000)
        await server.until(lambda: server.open_connections == 0)
    assert (len(found.rows), found.rows[-1][-1], found.truncated) == (1_500, last, True)
    assert server.bytes_sent < 2 * SOME_BYTES


async def test_a_yes_needs_one_row() -> None:
    start = START.replace(b'"x"', b'"__ASK_RETVAL"') + row(0).replace(b'"x"', b'"__ASK_RETVAL"')
    async with serving(flooding(start, lambda _: b",{}")) as server, opened(server, max_mb=1) as endpoint:
        assert await endpoint.query("ASK { ?s ?p ?o }") == Solutions((), (), truth=True)


async def test_an_engine_that_ignores_limit_costs_the_sparql_tool_no_more_than_its_rows(tmp_path: Path) -> None:
    settings = unhurried(cache_folder=tmp_path / "cache", data_folder=tmp_path)
    nothing = answering(results(["t", "a", "label"]))

    async def flood_the_user(asked: Asked, wire: Wire) -> None:
        await (ENDLESS_ROWS if "?x ?y ?z" in asked.query else nothing)(asked, wire)

    async with serving(flood_the_user) as server:
        told = EndpointOptions(url=server.url, max_mb=1)
        async with (
            aclosing(await open_sparql(server.url, OpenOptions(tmp_path), endpoint=told)) as graph,
            Client(build_server(graph, settings)) as client,
        ):
            called = await client.call_tool("Sparql", {"query": QUERY + " LIMIT 3", "max_rows": 3, "timeout_s": 60})
        await server.until(lambda: server.open_connections == 0)
    reply = reply_of(called)
    assert (reply.data["status"], reply.data["rows"]) == ("truncated", [[f"<{NAME}{number}>"] for number in range(3)])
    assert server.bytes_sent < SOME_BYTES


@dataclass
class Turns:
    """Counts how often another task had its turn, and stops a scope at one of them."""

    scope: anyio.CancelScope
    stop_at: int | None = None
    count: int = 0

    async def take(self) -> None:
        while self.count != self.stop_at:
            await anyio.lowlevel.checkpoint()
            self.count += 1
        self.scope.cancel()


async def test_others_have_their_turn_while_a_large_answer_is_read_until_its_time_is_over() -> None:
    async with serving(answering(document(60_000))) as server, opened(server) as endpoint:
        assert await turns_while(lambda: endpoint.query(QUERY)) > 100
        with pytest.raises(BackendTimeout):
            await endpoint.query(QUERY, timeout_s=0.01)


class Answerer:
    """Gives one answer at once, without a turn for anybody."""

    def __init__(self, *rows: Solution) -> None:
        self._rows = rows

    async def query(
        self, text: str, *, timeout_s: float | None = None, max_rows: int | None = None, parameters: object = None
    ) -> Solutions:
        del text, timeout_s, max_rows, parameters
        return Solutions(("e", "d", "p", "n", "t", "a", "label"), self._rows)

    async def aclose(self) -> None:
        pass


async def turns_while(work: Callable[[], Awaitable[object]]) -> int:
    taken = 0
    async with anyio.create_task_group() as tasks:
        turns = Turns(tasks.cancel_scope)
        tasks.start_soon(turns.take)
        await work()
        taken = turns.count
        tasks.cancel_scope.cancel()
    return taken


async def test_others_have_their_turn_while_rows_are_made_sense_of() -> None:
    entity, one = Iri(f"{NAME}e"), Literal("1", Iri(f"{XSD}integer"))
    counts = (
        (entity, Literal("out"), Iri(f"{NAME}p{number}"), one, None, None, None) for number in range(10 * ROWS_AT_ONCE)
    )
    text = (None, None, None, None, entity, Iri(f"{NAME}label"), Literal("en|text"))
    queries = Queries.of(DIALECTS["standard"], Vocabulary())
    reading = SparqlAdapter(SparqlParts("counts", Answerer(*counts), queries, Prefixes()))
    naming = SparqlAdapter(SparqlParts("texts", Answerer(*[text] * 10 * ROWS_AT_ONCE), queries, Prefixes()))
    # The blank nodes of an answer are marked as its own before it is read: twice as many turns.
    assert await turns_while(lambda: reading.degrees([entity])) > 15
    assert await turns_while(lambda: naming.labels([entity])) > 15


async def chunks(*parts: bytes) -> AsyncGenerator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize("size", [0, 1, SLICE_BYTES - 1, SLICE_BYTES, SLICE_BYTES + 1, 3 * SLICE_BYTES])
@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_slices_are_the_whole_body(size: int, encoding: str) -> None:
    content = bytes(number % 251 for number in range(size))
    sent = gzip.compress(content) if encoding else content
    halves = sent[: len(sent) // 2], sent[len(sent) // 2 :]
    slices = [part async for part in body_slices(chunks(*halves), encoding, max_bytes=size)]
    assert (b"".join(slices), max(map(len, slices), default=0) <= SLICE_BYTES) == (content, True)


@asynccontextmanager
async def remembering(server: FaultEndpoint) -> AsyncGenerator[SupportsSparql]:
    """Open an adapter over an endpoint that remembers its answers."""
    endpoint = SparqlEndpoint(EndpointOptions(url=server.url))
    queries = Queries.of(DIALECTS["standard"], Vocabulary())
    async with aclosing(CachingAdapter(SparqlAdapter(SparqlParts("flood", endpoint, queries, Prefixes())))) as graph:
        assert isinstance(graph, SupportsSparql)
        yield graph


async def test_a_partial_answer_is_not_remembered() -> None:
    body = results(["x"], {"x": uri(f"{NAME}0")})
    partial, whole = answering(body, headers={"X-SQL-State": "S1TAT"}), answering(body)
    async with serving(partial, whole) as server, remembering(server) as graph:
        answers = [await graph.select(QUERY, timeout_s=60, max_rows=9) for _ in range(3)]
    assert [answer.truncated for answer in answers] == [True, False, False]
    assert len(server.requests) == 2


async def test_a_partial_answer_goes_to_all_who_wait_for_it() -> None:
    release, body = anyio.Event(), results(["x"], {"x": uri(f"{NAME}0")})

    async def partial(asked: Asked, wire: Wire) -> None:
        await release.wait()
        await answering(body, headers={"X-SQL-State": "S1TAT"})(asked, wire)

    cut: list[bool] = []
    async with serving(partial) as server, remembering(server) as graph:

        async def ask() -> None:
            cut.append((await graph.select(QUERY, timeout_s=60, max_rows=9)).truncated)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
            await server.until(lambda: len(server.requests) == 1)
            release.set()
    assert (cut, len(server.requests)) == ([True] * 3, 1)
