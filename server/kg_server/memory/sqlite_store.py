"""Memories in one SQLite file, shared by any number of processes on a machine."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from kg_adapters.errors import BackendError
from kg_server.memory.growth import append_facts
from kg_server.memory.handles import digest_of, new_handle
from kg_server.memory.network import Fact
from kg_server.memory.refusals import foreign_memory, full_memory, heavy_memory, unknown_memory
from kg_server.memory.room import FACT_OVERHEAD, NOTED_S, Room
from kg_server.memory.rows import DamagedRow, MemoryRow, contents_of, find_memory, insert_memory
from kg_server.memory.sqlite_file import MemoryFile, damaged
from kg_server.memory.store import Appended, Contents, MemoryLimits

BUSY_S: Final = 5.0

T = TypeVar("T")


class SqliteMemoryStore:
    """A `MemoryStore` in a file that is written ahead (WAL), one transaction for each append.

    The file holds the facts of a memory in the order of their commits, each with its place in the network, which is
    what comes of appending them one by one. It is opened at the first call, and all work on it runs in a thread.

    Args:
        path: The file; it is made with the first memory, for its owner alone.
        limits: How much is kept, and for how long.
        now: Tells the time, in seconds since 1970.
        busy_s: How many seconds to wait for other writers.
    """

    def __init__(
        self, path: Path, limits: MemoryLimits, *, now: Callable[[], float] = time.time, busy_s: float = BUSY_S
    ) -> None:
        self._path = path
        self._limits = limits
        self._now = now
        self._room = Room(limits, now)
        self._file = MemoryFile(path, busy_s)
        # One thread at a time: SQLite has one writer anyway, and others need the threads too.
        self._turn = anyio.CapacityLimiter(1)

    async def create(self, graph: str, client: str) -> str:  # noqa: D102 - documented on the protocol, like all below
        return await self._run(lambda: self._create(graph, client))

    async def append(self, handle: str, graph: str, facts: Sequence[Fact], *, whole: int = 0) -> Appended:  # noqa: D102
        return await self._run(lambda: self._append(handle, graph, facts, whole))

    async def read(self, handle: str, graph: str) -> Contents:  # noqa: D102
        return await self._run(lambda: self._read(handle, graph))

    async def aclose(self) -> None:  # noqa: D102
        await self._run(self._file.close)

    async def _run(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._turn)

    def _create(self, graph: str, client: str) -> str:
        handle, now = new_handle(), float(self._now())
        with self._file.transaction("IMMEDIATE") as connection:
            self._room.for_memory(connection, client)
            (number,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM memories").fetchone()
            insert_memory(connection, MemoryRow(number, digest_of(handle), graph, client, now, now, now))
        self._file.shrink()
        return handle

    def _append(self, handle: str, graph: str, facts: Sequence[Fact], whole: int) -> Appended:
        now = float(self._now())
        with self._file.transaction("IMMEDIATE") as connection:
            memory = self._memory(connection, handle, graph)
            grown, added = append_facts(connection, memory, facts)
            if added:
                self._refuse_growth(memory, grown)
                coming = sum(place.fact.bytes + FACT_OVERHEAD for place in added)
                self._room.for_bytes(connection, grown, coming)
            grown = replace(grown, touched=now, used=now, appends=memory.appends + 1)
            insert_memory(connection, grown)
            contents = contents_of(connection, grown) if grown.facts <= whole else None
        return Appended(grown.holdings, tuple(added), contents)

    def _read(self, handle: str, graph: str) -> Contents:
        with self._file.transaction("DEFERRED") as connection:
            memory = self._memory(connection, handle, graph)
            contents = contents_of(connection, memory)
        if self._now() - memory.used > NOTED_S:
            # Where that fails, the memory was read all the same.
            with suppress(BackendError):
                self._note_use(handle, graph)
        return contents

    def _note_use(self, handle: str, graph: str) -> None:
        with self._file.transaction("IMMEDIATE") as connection:
            memory = self._memory(connection, handle, graph)
            insert_memory(connection, replace(memory, used=float(self._now())))

    def _memory(self, connection: Connection, handle: str, graph: str) -> MemoryRow:
        try:
            memory = find_memory(connection, digest_of(handle))
        except DamagedRow as error:
            reason = "what it says of a memory, which may be this one, is not what was written"
            raise damaged(self._path, reason) from error
        if memory is None or memory.touched < self._room.oldest():
            raise unknown_memory(self._limits, replaced=self._file.replaced)
        if memory.graph != graph:
            raise foreign_memory(memory.graph, graph)
        return memory

    def _refuse_growth(self, memory: MemoryRow, grown: MemoryRow) -> None:
        coming = grown.facts - memory.facts
        if grown.facts > self._limits.facts:
            raise full_memory(self._limits, memory.facts, coming)
        if grown.bytes > self._limits.memory_bytes:
            raise heavy_memory(self._limits, memory.bytes, grown.bytes - memory.bytes)
