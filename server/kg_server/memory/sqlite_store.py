"""Memories in an SQLite file: limits, expiry and handles."""

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from sqlite3 import Connection
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from kg_adapters.errors import BackendError, InvalidSource
from kg_adapters.terms import Literal, Node
from kg_server.memory.rows import (
    END_COLUMNS,
    FACT_COLUMNS,
    MEMORY_COLUMNS,
    DamagedRow,
    FactRow,
    MemoryRow,
    contents_of,
    end_key,
    end_of,
    fact_of,
    find_memory,
    insert_end,
    insert_fact,
    insert_memory,
    memory_of,
    statement_of,
)
from kg_server.memory.sqlite_file import MemoryFile, damaged
from kg_server.memory.store import (
    Appended,
    Contents,
    Fact,
    MemoryLimits,
    Place,
    foreign_memory,
    full_memory,
    full_share,
    full_store,
    hasty_client,
    heavy_memory,
    unknown_memory,
)

PREFIX: Final = "mem_"
_RANDOM_BYTES: Final = 18


def new_handle() -> str:
    """Return a handle that nobody can guess: 144 random bits."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def digest_of(handle: str) -> bytes:
    """Return what a store keeps in place of a handle, 32 bytes.

    A file of digests gives no handle away, and looking one up takes as long whatever the handle has in common with one
    that exists.
    """
    return hashlib.sha256(handle.strip().encode(errors="surrogatepass")).digest()


_HELD: Final = f"SELECT {FACT_COLUMNS} FROM facts WHERE memory = ? AND statement = ?"  # noqa: S608 - a constant
_END: Final = f"SELECT {END_COLUMNS} FROM ends WHERE memory = ? AND tail = ? ORDER BY path LIMIT 1"  # noqa: S608


def append_facts(connection: Connection, memory: MemoryRow, facts: Iterable[Fact]) -> tuple[MemoryRow, list[Place]]:
    """Append facts in order, as `Network.extended` does; return what the memory is then, and what is new in it.

    Raises:
        InvalidSource: A row that the append needs is damaged.
    """
    rows: list[FactRow] = []
    paths = memory.paths
    for fact in facts:
        if _holds(connection, memory, fact):
            continue
        end = _take_end(connection, memory, fact.head)
        path, offset = (paths, 0) if end is None else (end[0], end[1] + 1)
        paths += end is None
        row = FactRow(memory.facts + len(rows), Place(path, offset, fact))
        insert_fact(connection, memory.number, row.cells(memory.digest))
        if not isinstance(fact.tail, Literal):
            insert_end(connection, memory, row.place)
        rows.append(row)
    return memory.with_facts(rows, paths), [row.place for row in rows]


def _holds(connection: Connection, memory: MemoryRow, fact: Fact) -> bool:
    cells = connection.execute(_HELD, (memory.number, statement_of(fact))).fetchone()
    if cells is None:
        return False
    row = fact_of(memory.digest, cells)
    if row is None or row.fact.statement != fact.statement:
        raise _damaged(memory, f"fact {cells[0] + 1}" if isinstance(cells[0], int) else "a fact")
    return True


def _take_end(connection: Connection, memory: MemoryRow, node: Node) -> tuple[int, int] | None:
    """Remove the first path that ends in a node from those that may go on there, and return it with its last offset."""
    cells = connection.execute(_END, (memory.number, end_key(node))).fetchone()
    if cells is None:
        return None
    end = end_of(memory.digest, cells)
    if end is None:
        raise _damaged(memory, "the end of a path")
    connection.execute(
        "DELETE FROM ends WHERE memory = ? AND tail = ? AND path = ?", (memory.number, end_key(node), end[0])
    )
    return end


def _damaged(memory: MemoryRow, what: str) -> InvalidSource:
    return InvalidSource(
        f"Nothing was kept: {what} of this memory (number {memory.number} in the memory file) is damaged: it is not "
        "what was written. memory-read shows what is intact; append that, and these triples, without a handle to begin "
        "another memory."
    )


SECONDS_PER_DAY: Final = 86_400
HOUR_S: Final = 3_600

NOTED_S: Final = 300
"""How long after a use the next one need not be noted."""

IN_USE_S: Final = HOUR_S + NOTED_S
"""How long after its last noted use a memory does not give way to another."""

FACT_OVERHEAD: Final = 200
"""About how many bytes a fact takes beside its texts."""

_AT_ONCE: Final = 20
"""How many expired memories are forgotten at once, so that others need not wait long."""

_EXPIRED: Final = """
    SELECT number FROM memories WHERE touched < :touched
    UNION SELECT number FROM memories WHERE appends <= 1 AND used < :used
    LIMIT :most
"""
_GIVING_WAY: Final = """
    SELECT number FROM memories
    JOIN (SELECT client AS owner, count(*) AS memories, sum(bytes) AS bytes FROM memories GROUP BY client) AS held
    ON held.owner = memories.client
    WHERE memories.used < :idle AND number != :spared AND (:client IS NULL OR client = :client)
    ORDER BY CASE :measure WHEN 'bytes' THEN held.bytes ELSE held.memories END DESC, appends > 1, used, number
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Something that room is made for.

    Args:
        client: Who wants it.
        measure: Whether it is about `memories` or `bytes`.
        spared: The number of a memory that stays whatever happens; 0 for none.
    """

    client: str
    measure: str
    spared: int = 0


class Room:
    """Makes room within a transaction, at the cost of what is old, and first of those who have the most.

    Args:
        limits: How much there is.
        now: Tells the time, in seconds since 1970.
    """

    def __init__(self, limits: MemoryLimits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now

    def oldest(self) -> float:
        """Return when a memory must have been appended to that is not forgotten yet."""
        return self._now() - self._limits.age_days * SECONDS_PER_DAY

    def for_memory(self, connection: sqlite3.Connection, client: str) -> None:
        """Make room for one memory more.

        Raises:
            InvalidRequest: The client has begun too many of late, or nothing can give way.
        """
        self._forget(connection)
        self._refuse_haste(connection, client)
        limits, wanted = self._limits, Wanted(client, "memories")
        share = max(1, int(limits.memories * limits.client_share))
        while _one(connection, "SELECT count(*) FROM memories WHERE client = ?", client) >= share:
            if not self._give_way(connection, wanted, client):
                raise full_share(limits, self._wait(connection, wanted, client))
        while _one(connection, "SELECT count(*) FROM memories") >= limits.memories:
            if not (self._forget(connection) or self._give_way(connection, wanted, None)):
                raise full_store(limits, self._wait(connection, wanted, None))

    def for_bytes(self, connection: sqlite3.Connection, memory: MemoryRow, coming: int) -> None:
        """Make room for facts of a memory, which counts for the client that began it.

        Raises:
            InvalidRequest: Nothing can give way.
        """
        limits, wanted = self._limits, Wanted(memory.client, "bytes", spared=memory.number)
        share = limits.store_bytes * limits.client_share
        own = "SELECT coalesce(sum(bytes + facts * ?), 0) FROM memories WHERE client = ?"
        while _one(connection, own, FACT_OVERHEAD, memory.client) + coming > share:
            if not self._give_way(connection, wanted, memory.client):
                raise full_share(limits, self._wait(connection, wanted, memory.client))
        while bytes_used(connection) + coming > limits.store_bytes:
            if not (self._forget(connection) or self._give_way(connection, wanted, None)):
                raise full_store(limits, self._wait(connection, wanted, None))

    def _refuse_haste(self, connection: sqlite3.Connection, client: str) -> None:
        now = self._now()
        # What was begun within the hour does not give way, so that none of it is missing here.
        begun = "FROM memories WHERE client = ? AND created > ?"
        if _one(connection, f"SELECT count(*) {begun}", client, now - HOUR_S) >= self._limits.new_per_hour:
            first = _one(connection, f"SELECT min(created) {begun}", client, now - HOUR_S)
            raise hasty_client(self._limits, first + HOUR_S - now)

    def _forget(self, connection: sqlite3.Connection) -> bool:
        """Delete some of what has expired, and say whether there was any."""
        touched, used = self.oldest(), self._now() - self._limits.abandoned_days * SECONDS_PER_DAY
        numbers = connection.execute(_EXPIRED, {"touched": touched, "used": used, "most": _AT_ONCE}).fetchall()
        rows = (memory_row(connection, number) for (number,) in numbers)
        # An index that is damaged may name one that is young.
        expired = [row for row in rows if row and (row.touched < touched or (row.appends <= 1 and row.used < used))]
        for row in expired:
            _delete(connection, row)
        return bool(expired)

    def _give_way(self, connection: sqlite3.Connection, wanted: Wanted, client: str | None) -> bool:
        """Delete one memory that is not in use, of one client or of any, and say whether there was one."""
        idle = self._now() - IN_USE_S
        values = {"idle": idle, "spared": wanted.spared, "client": client, "measure": wanted.measure}
        for (number,) in connection.execute(_GIVING_WAY, values).fetchall():
            row = memory_row(connection, number)
            if row is not None and row.used < idle:
                _delete(connection, row)
                return True
        return False

    def _wait(self, connection: sqlite3.Connection, wanted: Wanted, client: str | None) -> float:
        """Return after how many seconds a memory may give way."""
        first = _one(
            connection,
            "SELECT coalesce(min(used), ?1) FROM memories WHERE number != ?2 AND (?3 IS NULL OR client = ?3)",
            self._now(),
            wanted.spared,
            client,
        )
        return first + IN_USE_S - self._now()


def memory_row(connection: sqlite3.Connection, number: int) -> MemoryRow | None:
    """Return the row of a memory, or None if there is none that is whole."""
    found = connection.execute(f"SELECT {MEMORY_COLUMNS} FROM memories WHERE number = ?", (number,)).fetchone()  # noqa: S608 - a constant
    return None if found is None else memory_of(found)


def bytes_used(connection: sqlite3.Connection) -> int:
    """Return how many bytes of the file hold something."""
    pages, free, size = (_one(connection, f"PRAGMA {each}") for each in ("page_count", "freelist_count", "page_size"))
    return int((pages - free) * size)


def _one(connection: sqlite3.Connection, query: str, *values: object) -> float:
    found: float = connection.execute(query, values).fetchone()[0]
    return found


def _delete(connection: sqlite3.Connection, row: MemoryRow) -> None:
    connection.execute("DELETE FROM memories WHERE number = ?", (row.number,))


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
