"""Memories in one SQLite file, shared by any number of processes on a machine."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from kg_adapters.terms import Iri, Literal, Term, node_from_key, node_key
from kg_server.memory.handles import digest_of, new_handle
from kg_server.memory.network import Fact, Network
from kg_server.memory.sqlite_file import failures_of, open_file, transaction
from kg_server.memory.store import (
    Appended,
    MemoryLimits,
    foreign_memory,
    full_memory,
    too_many_memories,
    unknown_memory,
)

SECONDS_PER_DAY: Final = 86_400
BUSY_S: Final = 5.0
_ALL: Final = -1
"""What SQLite takes for no limit."""

T = TypeVar("T")


class _Row(NamedTuple):
    """A fact as the file holds it: a tail with an empty datatype is a node."""

    head: str
    relation: str
    tail: str
    datatype: str
    language: str
    verified: int


class SqliteMemoryStore:
    """A `MemoryStore` in a file that is written ahead (WAL), one transaction for each append.

    The file holds the facts of a memory in the order of their commits; the network is what comes of appending them one
    by one. It is opened at the first call, and all work on it runs in a thread.

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
        self._busy_s = busy_s
        self._connection: sqlite3.Connection | None = None
        # One thread at a time: SQLite has one writer anyway, and others need the threads too.
        self._turn = anyio.CapacityLimiter(1)

    async def create(self, graph: str) -> str:  # noqa: D102 - documented on the protocol, like all below
        return await self._run(lambda connection: self._create(connection, graph))

    async def append(self, handle: str, graph: str, facts: Sequence[Fact]) -> Appended:  # noqa: D102
        return await self._run(lambda connection: self._append(connection, handle, graph, facts))

    async def read(self, handle: str, graph: str) -> Network:  # noqa: D102
        return await self._run(lambda connection: self._read(connection, handle, graph))

    async def aclose(self) -> None:  # noqa: D102
        await anyio.to_thread.run_sync(self._close, limiter=self._turn)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await anyio.to_thread.run_sync(self._work, work, limiter=self._turn)

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with failures_of(self._path):
            if self._connection is None:
                self._connection = open_file(self._path, busy_s=self._busy_s)
            return work(self._connection)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _create(self, connection: sqlite3.Connection, graph: str) -> str:
        handle = new_handle()
        with transaction(connection, "IMMEDIATE"):
            connection.execute("DELETE FROM memories WHERE touched < ?", (self._oldest(),))
            kept: int = connection.execute("SELECT count(*) FROM memories").fetchone()[0]
            if kept >= self._limits.memories:
                raise too_many_memories(self._limits)
            connection.execute(
                "INSERT INTO memories (digest, graph, touched) VALUES (?, ?, ?)",
                (digest_of(handle), graph, self._now()),
            )
        return handle

    def _append(self, connection: sqlite3.Connection, handle: str, graph: str, facts: Sequence[Fact]) -> Appended:
        with transaction(connection, "IMMEDIATE"):
            number = self._number(connection, handle, graph)
            connection.execute("UPDATE memories SET touched = ? WHERE number = ?", (self._now(), number))
            held: int = connection.execute("SELECT count(*) FROM facts WHERE memory = ?", (number,)).fetchone()[0]
            added: list[Fact] = []
            for fact in facts:
                if _insert(connection, number, held + len(added), _row(fact)):
                    added.append(fact)
            if added and held + len(added) > self._limits.facts:
                raise full_memory(self._limits, held, len(added))
        # What was committed stays at its position, so that others may write while it is read.
        kept = _facts(connection, number, held + len(added))
        return Appended(Network().extended(kept), tuple(added))

    def _read(self, connection: sqlite3.Connection, handle: str, graph: str) -> Network:
        with transaction(connection, "DEFERRED"):
            kept = list(_facts(connection, self._number(connection, handle, graph), _ALL))
        return Network().extended(kept)

    def _number(self, connection: sqlite3.Connection, handle: str, graph: str) -> int:
        found: tuple[int, str] | None = connection.execute(
            "SELECT number, graph FROM memories WHERE digest = ? AND touched >= ?", (digest_of(handle), self._oldest())
        ).fetchone()
        if found is None:
            raise unknown_memory(self._limits)
        number, bound_to = found
        if bound_to != graph:
            raise foreign_memory(bound_to, graph)
        return number

    def _oldest(self) -> float:
        return self._now() - self._limits.age_days * SECONDS_PER_DAY


def _insert(connection: sqlite3.Connection, memory: int, position: int, row: _Row) -> bool:
    done = connection.execute(
        "INSERT INTO facts (memory, position, head, relation, tail, datatype, language, verified) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (memory, head, relation, tail, datatype, language) DO NOTHING",
        (memory, position, *row),
    )
    return done.rowcount == 1


def _facts(connection: sqlite3.Connection, memory: int, most: int) -> Iterator[Fact]:
    rows = connection.execute(
        "SELECT head, relation, tail, datatype, language, verified FROM facts WHERE memory = ? ORDER BY position "
        "LIMIT ?",
        (memory, most),
    )
    return (_fact(_Row(*row)) for row in rows)


def _row(fact: Fact) -> _Row:
    head, relation, verified = node_key(fact.head), fact.relation.value, int(fact.verified)
    if isinstance(fact.tail, Literal):
        tail = fact.tail
        return _Row(head, relation, tail.value, tail.datatype.value, tail.language or "", verified)
    return _Row(head, relation, node_key(fact.tail), "", "", verified)


def _fact(row: _Row) -> Fact:
    tail: Term = Literal(row.tail, Iri(row.datatype), row.language or None) if row.datatype else node_from_key(row.tail)
    return Fact(node_from_key(row.head), Iri(row.relation), tail, bool(row.verified))
