import signal
import sqlite3
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from mcp import Client

from kg_server.app import MEMORY_FILE
from memories import Memory, facts_of
from server_processes import address_of, started

CLIENTS = 10
"""How many clients each of the two servers has."""

CALLS = 8
EVERY_CALL = {(client, call) for client in range(2 * CLIENTS) for call in range(CALLS)}
SHARED = "Q1 P1 Q2"
PREFIXES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
"""


@dataclass(frozen=True)
class Server:
    """A server process, and its address."""

    process: subprocess.Popen[str]
    address: str


@dataclass
class Acknowledged:
    """The calls that were answered, by client and number; at the last of `most`, something happens at once."""

    calls: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    most: int | None = None
    then: Callable[[], None] = lambda: None

    def add(self, client: int, call: int) -> None:
        self.calls.add((client, call))
        if len(self.calls) == self.most:
            self.then()


def own(client: int, call: int) -> list[str]:
    """The triples that one call alone appends: one begins a path, the other goes on from the call before."""
    here, there = (f"Q{100 * client + number}" for number in (call + 11, call + 12))
    return [f"Q{100 * client + 10} P1 {there}", f"{here} P2 {there}"]


def write_graph(folder: Path) -> Path:
    graph = folder / "graph.ttl"
    triples = (each.split() for each in [SHARED, *(each for call in EVERY_CALL for each in own(*call))])
    lines = (f"wd:{head} wdt:{relation} wd:{tail} .\n" for head, relation, tail in triples)
    graph.write_text(PREFIXES + "".join(lines), encoding="utf-8")
    return graph


@contextmanager
def serving(graph: Path) -> Generator[Server]:
    """Serve a graph over HTTP on a free port of loopback, with memories beside it."""
    environ = {"KG_SEXTANT_DATA_FOLDER": str(graph.parent), "KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical"}
    with started(environ, str(graph), "--cache-folder", str(graph.parent / "cache")) as process:
        yield Server(process, address_of(process))


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Two server processes that share one memory file."""
    graph = write_graph(tmp_path)
    with ExitStack() as stack:
        yield stack.enter_context(serving(graph)), stack.enter_context(serving(graph))


async def append_all(address: str, handle: str, client: int, acknowledged: Acknowledged) -> None:
    async with Client(address) as connection:
        memory = Memory(connection)
        for call in range(CALLS):
            triples = [each.split() for each in (*own(client, call), SHARED)]
            reply = await memory.append(*triples, memory=handle)
            assert not reply.is_error, reply.text
            acknowledged.add(client, call)


async def append_until_killed(server: Server, handle: str, acknowledged: Acknowledged) -> None:
    """Append through a server that is killed when half of the calls are answered, others being under way."""
    async with anyio.create_task_group() as tasks:

        def kill() -> None:
            server.process.send_signal(signal.SIGKILL)
            tasks.cancel_scope.cancel()

        acknowledged.most, acknowledged.then = CLIENTS * CALLS // 2, kill
        for client in range(CLIENTS):
            tasks.start_soon(append_all, server.address, handle, client, acknowledged)


async def stored(memory: Memory, handle: str) -> list[str]:
    """Every fact of a memory, as its ids."""
    facts: list[str] = []
    arguments: dict[str, object] = {}
    while True:
        page = await memory.read(handle, **arguments)
        facts.extend(" ".join(row[1:4]) for row in facts_of(page))
        if "cursor" not in page.data:
            return facts
        arguments = {"cursor": page.data["cursor"]}


def integrity_of(folder: Path) -> object:
    with closing(sqlite3.connect(folder / MEMORY_FILE)) as file:
        return file.execute("PRAGMA integrity_check").fetchall()


async def test_twenty_clients_of_two_servers_lose_nothing_when_one_server_is_killed_half_way(
    servers: tuple[Server, Server], tmp_path: Path
) -> None:
    survivor, doomed = servers
    lasting, cut_off = Acknowledged(), Acknowledged()
    async with Client(survivor.address) as connection:
        memory = Memory(connection)
        handle = await memory.begin(SHARED.split())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append_until_killed, doomed, handle, cut_off)
            for client in range(CLIENTS, 2 * CLIENTS):
                tasks.start_soon(append_all, survivor.address, handle, client, lasting)
        assert await anyio.to_thread.run_sync(doomed.process.wait) == -signal.SIGKILL
        facts, integrity = await stored(memory, handle), integrity_of(tmp_path)
        async with anyio.create_task_group() as tasks:
            for client in range(CLIENTS):
                tasks.start_soon(append_all, survivor.address, handle, client, Acknowledged())
        completed = await stored(memory, handle)

    assert len(lasting.calls) == CLIENTS * CALLS
    assert CLIENTS * CALLS // 2 <= len(cut_off.calls) < CLIENTS * CALLS
    kept, whole = set(facts), {call for call in EVERY_CALL if not set(own(*call)).isdisjoint(facts)}
    assert len(facts) == len(kept), "no triple is there twice"
    assert whole >= lasting.calls | cut_off.calls, "every triple that was acknowledged is there"
    assert kept == {SHARED, *(each for call in whole for each in own(*call))}, "no call is kept in part"
    assert sorted(completed) == sorted([SHARED, *(each for call in EVERY_CALL for each in own(*call))])
    survivor.process.terminate()
    survivor.process.wait()
    assert (integrity, integrity_of(tmp_path)) == ([("ok",)], [("ok",)])
