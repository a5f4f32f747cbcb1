"""How tests keep and read memories: small stories, a store in a folder, and a server with nothing but its tools."""

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from mcp import Client
from mcp.types import TextResourceContents

from calls import UNHURRIED, Reply, reply_of, rows
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Literal, Node
from kg_server.mcp_server import SextantServer
from kg_server.memory.sqlite_store import SqliteMemoryStore
from kg_server.memory.store import Contents, Fact, Holdings, MemoryLimits, MemoryStore, Place
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


FactPath: TypeAlias = tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """Paths of facts, each fact's head being the tail of the fact before it; no statement stands in it twice."""

    paths: tuple[FactPath, ...] = ()

    def places(self) -> Iterator[Place]:
        """Give every fact with its place, path by path."""
        for number, path in enumerate(self.paths):
            for offset, fact in enumerate(path):
                yield Place(number, offset, fact)

    def ends(self) -> Iterator[Place]:
        """Give the last fact of every path that may go on: a value ends its path for good."""
        for number, path in enumerate(self.paths):
            if not isinstance(path[-1].tail, Literal):
                yield Place(number, len(path) - 1, path[-1])

    def extended(self, facts: Iterable[Fact]) -> "Network":
        """Return the network with facts appended, one after the other (ODA, section 2.3).

        The first path whose last tail is a fact's head gets it; where there is none, it starts a new path. A statement
        that the network holds changes nothing. What stands in a path never moves.
        """
        grown = _Growth(self.paths)
        for fact in facts:
            grown.add(fact)
        return grown.network()


class _Growth:
    """A network in the making, with the paths that end in each node at hand."""

    def __init__(self, paths: Iterable[FactPath]) -> None:
        self._paths = [list(path) for path in paths]
        self._held = {fact.statement for path in self._paths for fact in path}
        self._ends: dict[Node, list[int]] = {}
        for number, path in enumerate(self._paths):
            self._end(number, path[-1])

    def add(self, fact: Fact) -> None:
        if fact.statement in self._held:
            return
        self._held.add(fact.statement)
        open_here = self._ends.get(fact.head)
        if open_here:
            number = heappop(open_here)
            self._paths[number].append(fact)
        else:
            number = len(self._paths)
            self._paths.append([fact])
        self._end(number, fact)

    def network(self) -> Network:
        return Network(tuple(map(tuple, self._paths)))

    def _end(self, number: int, last: Fact) -> None:
        if not isinstance(last.tail, Literal):
            heappush(self._ends.setdefault(last.tail, []), number)


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
