"""How tests keep and read memories: small stories, a store in a folder, and a server with nothing but its tools."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from mcp import Client
from mcp.types import TextResourceContents

from calls import UNHURRIED, Reply, reply_of, rows
from kg_adapters.protocol import KGAdapter
from kg_server.mcp_server import SextantServer
from kg_server.memory.sqlite_store import SqliteMemoryStore
from kg_server.memory.store import Contents, Holdings, MemoryLimits, MemoryStore, Network
from kg_server.memory.tool import MemoryTools
from kg_server.settings import Settings

FILE = "memories.sqlite3"
CLIENT = "192.0.2.1"


@dataclass
class Clock:
    """A time of day that passes when it is told to."""

    time_s: float = 1_000_000_000.0

    def __call__(self) -> float:
        return self.time_s

    def pass_days(self, days: float) -> None:
        self.time_s += days * 86_400


def memory_server(
    graph: KGAdapter, store: MemoryStore, limits: MemoryLimits | None = None, settings: Settings | None = None
) -> SextantServer:
    """Return a server that has the memory tools and no others."""
    settings = settings or UNHURRIED
    server = SextantServer("memory", version="0", instructions="", timeout_s=settings.timeout_s)
    MemoryTools(graph, lambda: store, limits or MemoryLimits(), settings).provide(server)
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
    graph: KGAdapter,
    folder: Path,
    limits: MemoryLimits | None = None,
    settings: Settings | None = None,
    now: Callable[[], float] = time.time,
) -> AsyncGenerator[Memory]:
    """Serve a graph with memories in a folder to one client."""
    limits = limits or MemoryLimits()
    async with (
        aclosing(SqliteMemoryStore(folder / FILE, limits, now=now)) as store,
        Client(memory_server(graph, store, limits, settings)) as client,
    ):
        yield Memory(client)


def network_of(contents: Contents) -> Network:
    """Return what a memory holds as the pure value, which is whole where nothing is damaged."""
    assert contents.damage is None
    paths = [tuple(place.fact for place in each) for _, each in groupby(contents.places, lambda place: place.path)]
    network = Network(tuple(paths))
    assert contents.places == tuple(network.places())
    assert contents.holdings == Holdings(len(contents.places), len(paths), network_unverified(network))
    return network


def network_unverified(network: Network) -> int:
    """Return how many facts of a network the graph was not seen to hold."""
    return sum(not place.fact.verified for place in network.places())


def files_in(folder: Path) -> list[str]:
    """Return the names of what lies in a folder."""
    return sorted(each.name for each in folder.iterdir())
