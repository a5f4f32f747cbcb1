"""Replicas behind a round-robin proxy, with their memories in PostgreSQL, of which parts fail and come back."""

import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from subprocess import Popen

import anyio
import anyio.to_thread
import httpx2
import psycopg
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from calls import Reply
from http_servers import on_loopback
from kg_server.memory.postgres_storage import PostgresStorage
from kg_server.serving.tokens import TokenFile
from memories import Memory, facts_of
from patience import PATIENCE_S
from postgres_server import PostgresServer
from server_processes import address_of, started

pytestmark = pytest.mark.xdist_group("postgres")
ERAS = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])

FACTS = [[f"e:n{number}", "e:r", f"e:m{number}"] for number in range(120)]
PREFIX = "@prefix e: <http://example.org/> .\n"
PASSED_ON = {"content-type", "retry-after", "www-authenticate"}
CLIENTS = 4
PAUSE_S = 0.05
"""How long a client waits before it repeats a call that failed."""
LONG_S = 2.5
"""How long a call still takes after its server got SIGTERM."""


@dataclass(frozen=True)
class Replicas:
    """Servers of one graph and one database, each a process with its own cache, and the URL of their proxy."""

    processes: Sequence[Popen[str]]
    addresses: Sequence[str]
    url: str
    tokens: TokenFile

    @asynccontextmanager
    async def client(self, name: str, mode: str) -> AsyncGenerator[Memory]:
        """Log a new caller in, at the proxy."""
        headers = {"Authorization": f"Bearer {self.tokens.add(name, ('read', 'memory'), None, None)}"}
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S))
            yield Memory(
                await stack.enter_async_context(Client(streamable_http_client(self.url, http_client=http), mode=mode))
            )


@pytest.fixture
async def replicas(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Replicas]:
    postgres.clear()
    graph, tokens = tmp_path / "graph.ttl", TokenFile(tmp_path / "tokens.json")
    lines = [*(" ".join(fact) for fact in FACTS), *(f"e:hub e:s e:o{number:03}" for number in range(90))]
    graph.write_text(PREFIX + " .\n".join([*lines, ""]), encoding="utf-8")
    environ = {
        "KG_SEXTANT_DATA_FOLDER": str(tmp_path),
        "KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical",
        "KG_SEXTANT_MEMORY__DATABASE": postgres.url,
        "KG_SEXTANT_HOSTING__TOKENS": str(tokens.path),
        "KG_SEXTANT_TIMEOUT_S": "20",
    }
    with ExitStack() as stack:
        caches = [tmp_path / f"cache-{number}" for number in range(2)]
        processes = [
            stack.enter_context(started(environ, str(graph), "--cache-folder", str(cache))) for cache in caches
        ]
        addresses = [await anyio.to_thread.run_sync(address_of, process) for process in processes]
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http, on_loopback(proxy(http, addresses)) as url:
            yield Replicas(processes, addresses, url, tokens)


def proxy(http: httpx2.AsyncClient, addresses: Sequence[str]) -> Starlette:
    """Return what passes each request on to the next server, or to the one after where that cannot be reached."""
    turns = cycle(addresses)

    async def passed_on(request: Request) -> Response:
        headers = {name: value for name, value in request.headers.items() if name not in {"host", "connection"}}
        body = await request.body()
        for _ in addresses:
            try:
                answer = await http.request(request.method, next(turns), content=body, headers=headers)
            except httpx2.ConnectError:
                continue
            except httpx2.HTTPError:
                return Response(status_code=502)
            kept = {name: value for name, value in answer.headers.items() if name in PASSED_ON}
            return Response(answer.content, answer.status_code, kept)
        return Response(status_code=503)

    return Starlette(routes=[Route("/mcp", passed_on, methods=["POST", "GET", "DELETE"])])


@dataclass
class Appending:
    """Clients that append facts to one memory, each until it is answered, while what they need fails.

    Args:
        memory: The memory tools.
        handle: The memory.
    """

    memory: Memory
    handle: str
    answered: int = 0
    to_kill: anyio.Event = field(default_factory=anyio.Event)
    to_stop: anyio.Event = field(default_factory=anyio.Event)
    refused: anyio.Event = field(default_factory=anyio.Event)

    async def append(self, facts: Sequence[Sequence[str]]) -> None:
        for fact in facts:
            await until(partial(self._answered, fact))
            self.answered += 1
            if self.answered > len(FACTS) // 4:
                self.to_kill.set()
            if self.answered > len(FACTS) // 2:
                self.to_stop.set()

    async def _answered(self, fact: Sequence[str]) -> bool:
        try:
            reply = await self.memory.append(list(fact), memory=self.handle)
        except MCPError:  # The replica that worked on it is gone.
            return False
        if reply.is_error:
            assert reply.text.startswith("The memory database cannot be used"), reply.text
            self.refused.set()
        return not reply.is_error

    async def fail(self, replica: Popen[str], database: PostgresServer) -> None:
        await self.to_kill.wait()
        replica.kill()
        await self.to_stop.wait()
        await anyio.to_thread.run_sync(database.stop, "immediate")
        await self.refused.wait()
        await anyio.to_thread.run_sync(database.start)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds of which nobody gives notice."""
    while not await holds():  # noqa: ASYNC110
        await anyio.sleep(PAUSE_S)


@ERAS
async def test_nothing_that_was_answered_is_lost_when_a_replica_is_killed_and_the_database_crashes(
    replicas: Replicas, postgres: PostgresServer, mode: str
) -> None:
    with anyio.fail_after(PATIENCE_S):
        async with replicas.client("ann", mode) as memory, replicas.client("ben", mode) as other:
            handle = await memory.begin(["e:hub", "e:s", "e:o000"])
            appending = Appending(memory, handle)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(appending.fail, replicas.processes[0], postgres)
                for number in range(CLIENTS):
                    tasks.start_soon(appending.append, FACTS[number::CLIENTS])
            rows = await pages(memory, handle)
            assert (await other.read(handle)).text.startswith("No memory has this handle")
    assert sorted(row[1:4] for row in rows) == sorted([*FACTS, ["e:hub", "e:s", "e:o000"]])


async def pages(memory: Memory, handle: str) -> list[list[str]]:
    """Return all facts of a memory, a page at a time."""
    reply = await memory.read(handle)
    rows = facts_of(reply)
    while cursor := reply.data.get("cursor"):
        reply = await memory.read(handle, cursor=cursor)
        rows += facts_of(reply)
    return rows


@ERAS
async def test_a_cursor_of_one_replica_continues_on_the_other(replicas: Replicas, mode: str) -> None:
    async with replicas.client("ann", mode) as caller:
        shown: list[str] = []
        arguments: dict[str, object] = {"entity": "e:hub", "limit": 20}
        for _ in range(5):
            reply = await caller.call("GetNeighbor", arguments)
            assert not reply.is_error, reply.text
            shown += [word for line in reply.lines for word in line.replace(",", " ").split() if word.startswith("e:o")]
            arguments["cursor"] = reply.data.get("cursor")
    assert arguments["cursor"] is None
    assert sorted(shown) == [f"e:o{number:03}" for number in range(90)]


@ERAS
async def test_a_replica_that_is_told_to_stop_finishes_its_calls_and_takes_no_more(
    replicas: Replicas, postgres: PostgresServer, mode: str
) -> None:
    process, address = replicas.processes[0], replicas.addresses[0]
    writer = PostgresStorage(postgres.url)
    replies: list[Reply] = []

    async def waits() -> bool:
        with psycopg.connect(postgres.url) as connection:
            return connection.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is not None

    async def is_closed() -> bool:
        async with httpx2.AsyncClient() as http:
            try:
                await http.get(address)
            except httpx2.ConnectError:
                return True
            except httpx2.TransportError:  # It had connected before the server noticed the signal.
                return False
        return False

    with anyio.fail_after(PATIENCE_S):
        async with replace(replicas, url=address).client("ann", mode) as memory:
            handle = await memory.begin(FACTS[0])

            async def append() -> None:
                replies.append(await memory.append(FACTS[1], memory=handle))

            async with anyio.create_task_group() as tasks:
                with writer.transaction(write=True):
                    tasks.start_soon(append)
                    await until(waits)
                    process.send_signal(signal.SIGTERM)
                    await until(is_closed)
                    await anyio.sleep(LONG_S)
        await anyio.to_thread.run_sync(process.wait)
    writer.close()
    assert [reply.data["added"] for reply in replies] == [1]
