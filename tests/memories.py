"""How tests keep and read memories: small stories, a store in a folder, and a server with nothing but its tools."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp import Client

from calls import Reply, reply_of
from kg_adapters.protocol import KGAdapter
from kg_server.mcp_server import SextantServer
from kg_server.memory.sqlite_store import SqliteMemoryStore
from kg_server.memory.store import MemoryLimits, MemoryStore
from kg_server.memory.tool import MemoryTools
from kg_server.settings import Settings


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
    settings = settings or Settings()
    server = SextantServer("memory", version="0", instructions="", timeout_s=settings.timeout_s)
    MemoryTools(graph, store, limits or MemoryLimits(), settings).provide(server)
    return server


@dataclass(frozen=True)
class Memory:
    """A client of the memory tools."""

    client: Client

    async def append(self, *triples: object, **arguments: object) -> Reply:
        return reply_of(await self.client.call_tool("memory-append", {"triples": list(triples), **arguments}))

    async def begin(self, *triples: object, **arguments: object) -> str:
        reply = await self.append(*triples, **arguments)
        assert not reply.is_error, reply.text
        return str(reply.data["memory"])

    async def read(self, memory: str, **arguments: object) -> Reply:
        return reply_of(await self.client.call_tool("memory-read", {"memory": memory, **arguments}))


@asynccontextmanager
async def remembering(
    graph: KGAdapter, folder: Path, limits: MemoryLimits | None = None, settings: Settings | None = None
) -> AsyncGenerator[Memory]:
    """Serve a graph with memories in a folder to one client."""
    limits = limits or MemoryLimits()
    async with (
        aclosing(SqliteMemoryStore(folder / "memories.sqlite3", limits)) as store,
        Client(memory_server(graph, store, limits, settings)) as client,
    ):
        yield Memory(client)
