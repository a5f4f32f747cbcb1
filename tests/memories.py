"""How tests keep and read memories: small stories, a store in a folder, and a server with nothing but its tools."""

import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mcp import Client
from mcp.types import TextResourceContents

from calls import UNHURRIED, Reply, reply_of, rows
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import BlankNode
from kg_server.graphs import GraphSet
from kg_server.mcp_server import SextantServer
from kg_server.memory.postgres_storage import PostgresStorage
from kg_server.memory.sqlite_storage import SqliteStorage
from kg_server.memory.store import KeptFact, MemoryLimits, MemoryStore, Place
from kg_server.memory.tool import MemoryTools
from kg_server.settings import Settings
from postgres_server import PostgresServer

FILE = "memories.sqlite3"


@dataclass
class Clock:
    """A time of day that passes when it is told to."""

    time_s: float = 1_000_000_000.0

    def __call__(self) -> float:
        return self.time_s

    def pass_days(self, days: float) -> None:
        self.time_s += days * 86_400


def stored_in(
    folder: Path, limits: MemoryLimits | None = None, now: Callable[[], float] = time.time, *, busy_s: float = 5
) -> MemoryStore:
    """Return the store whose file lies in a folder."""
    return MemoryStore(SqliteStorage(folder / FILE, busy_s=busy_s, now=now), limits or MemoryLimits())


class Stored(Protocol):
    """Opens a store, each time on the same memories."""

    def __call__(self, limits: MemoryLimits | None = None, now: Callable[[], float] = time.time) -> MemoryStore: ...


@contextmanager
def stores_in(server: PostgresServer) -> Generator[Stored]:
    """Open stores in an empty database, which are closed at the end."""
    server.clear()
    with ExitStack() as closed:

        def stored(limits: MemoryLimits | None = None, now: Callable[[], float] = time.time) -> MemoryStore:
            storage = PostgresStorage(server.url, now=now)
            closed.callback(storage.close)
            return MemoryStore(storage, limits or MemoryLimits())

        yield stored


def memory_server(
    graph: KGAdapter | GraphSet,
    store: MemoryStore,
    limits: MemoryLimits | None = None,
    settings: Settings | None = None,
) -> SextantServer:
    """Return a server that has the memory tools and no others."""
    settings = settings or UNHURRIED
    graphs = graph if isinstance(graph, GraphSet) else GraphSet.of(graph, settings)
    server = SextantServer("memory", version="0", timeout_s=settings.timeout_s, graphs=graphs)

    MemoryTools(graphs, lambda: store, limits or MemoryLimits(), settings).provide(server)
    return server


@dataclass(frozen=True)
class Memory:
    """A client of the memory tools."""

    client: Client

    async def append(self, *triples: object, **arguments: object) -> Reply:
        return await self.call("memory-append", {"triples": list(triples), **arguments})

    async def begin(self, *triples: object, **arguments: object) -> str:
        reply = await self.append(*triples, **arguments)
        assert not reply.is_error, reply.text
        return str(reply.data["memory"])

    async def read(self, memory: str, **arguments: object) -> Reply:
        return await self.call("memory-read", {"memory": memory, **arguments})

    async def call(self, tool: str, arguments: dict[str, object]) -> Reply:
        return reply_of(await self.client.call_tool(tool, arguments))

    async def resource(self, memory: str) -> str:
        (contents,) = (await self.client.read_resource(f"kg-memory://{memory}")).contents
        assert isinstance(contents, TextResourceContents)
        return contents.text


def facts_of(reply: Reply) -> list[list[str]]:
    """Return the rows of an answer."""
    return rows(reply.data["facts"])


@asynccontextmanager
async def remembering(
    graph: KGAdapter | GraphSet,
    folder: Path,
    limits: MemoryLimits | None = None,
    settings: Settings | None = None,
    now: Callable[[], float] = time.time,
) -> AsyncGenerator[Memory]:
    """Serve a graph with memories in a folder to one client."""
    limits = limits or MemoryLimits()
    store = stored_in(folder, limits, now)
    async with Client(memory_server(graph, store, limits, settings)) as client:
        yield Memory(client)


def network(facts: Iterable[KeptFact]) -> tuple[Place, ...]:
    """Return facts as paths by the rule of the paper (ODA, section 2.3), word for word: slow and plain."""
    paths: list[list[KeptFact]] = []
    for each in facts:
        if any(each.statement == held.statement for path in paths for held in path):
            continue
        path = next((path for path in paths if leads_to(path[-1], each)), None)
        if path is None:
            paths.append([each])
        else:
            path.append(each)
    return tuple(Place(number, at, fact) for number, path in enumerate(paths) for at, fact in enumerate(path))


def leads_to(last: KeptFact, fact: KeptFact) -> bool:
    """Return whether a path that ends in a fact goes on with another: a blank node is one of its graph alone."""
    return last.tail == fact.head and (last.graph == fact.graph or not isinstance(fact.head, BlankNode))


def files_in(folder: Path) -> list[str]:
    """Return the names of what lies in a folder."""
    return sorted(each.name for each in folder.iterdir())
