"""Memories in a SQLite file, every row with a checksum."""

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from sqlite3 import Connection, Row
from typing import Final, NamedTuple, TypeAlias

from kg_adapters.errors import InvalidSource
from kg_adapters.terms import Iri, Literal, Term, node_from_key, node_key
from kg_server.memory.sqlite_file import BUSY_S, SqliteFile
from kg_server.memory.store import Contents, KeptFact, MemoryRecord, Place, StorageUsage

VERSION: Final = 4

_TABLES: Final = (
    """
    CREATE TABLE memories (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        graph TEXT NOT NULL,
        touched REAL NOT NULL,
        used REAL NOT NULL,
        appends INTEGER NOT NULL,
        facts INTEGER NOT NULL,
        paths INTEGER NOT NULL,
        unverified INTEGER NOT NULL,
        size INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        owner TEXT NOT NULL DEFAULT ''
    )
    """,
    # A tail without a datatype is a node. `open_end` is the node at which a path may go on, of its last fact only.
    """
    CREATE TABLE facts (
        memory INTEGER NOT NULL,
        position INTEGER NOT NULL,
        path INTEGER NOT NULL,
        step INTEGER NOT NULL,
        head TEXT NOT NULL,
        relation TEXT NOT NULL,
        tail TEXT NOT NULL,
        datatype TEXT NOT NULL,
        language TEXT NOT NULL,
        verified INTEGER NOT NULL,
        statement BLOB NOT NULL,
        open_end BLOB,
        checksum BLOB NOT NULL,
        PRIMARY KEY (memory, position)
    ) WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX facts_by_statement ON facts (memory, statement)",
    "CREATE INDEX open_ends ON facts (memory, open_end, path) WHERE open_end IS NOT NULL",
)
_UPGRADES: Final = {3: ("ALTER TABLE memories ADD COLUMN owner TEXT NOT NULL DEFAULT ''",)}
_MEMORIES: Final = (
    "SELECT number, digest, graph, touched, used, appends, facts, paths, unverified, size, owner, checksum "
    "FROM memories"
)
_FACTS: Final = (
    "SELECT position, path, step, head, relation, tail, datatype, language, verified, statement, open_end, checksum "
    "FROM facts WHERE memory = ?"
)
_OVERHEAD: Final = 200
"""About how many bytes a row takes beside its texts."""

Column: TypeAlias = int | float | str | bytes | None
_Columns: TypeAlias = tuple[Column, ...]


class SqliteStorage:
    """A `Storage` in a file that is opened anew for each transaction.

    Args:
        path: The file; it is made with the first memory, for its owner alone.
        busy_s: How many seconds to wait for other writers.
    """

    def __init__(self, path: Path, *, busy_s: float = BUSY_S) -> None:
        self.file = SqliteFile(path, "memory file", VERSION, _TABLES, upgrades=_UPGRADES, busy_s=busy_s)

    @contextmanager
    def transaction(self, *, write: bool) -> "Generator[SqliteTransaction]":  # noqa: D102 - documented on the protocol
        with self.file.transaction(write=write) as connection:
            yield SqliteTransaction(connection, self.file)


class _FactRow(NamedTuple):
    """A fact of a memory, the order in which it came, and whether its path may go on from it."""

    position: int
    place: Place
    is_open: bool


class SqliteTransaction:
    """A `Transaction` on an open SQLite file."""

    def __init__(self, connection: Connection, file: SqliteFile) -> None:
        self._connection = connection
        self._file = file

    def find(self, digest: bytes, owner: str) -> MemoryRecord | None:  # noqa: D102 - documented on the protocol, like all below
        # It may be there without being found, where the index or its own row is damaged.
        for condition, values in ((" WHERE digest = ? AND owner = ?", (digest, owner)), ("", ())):
            for row in self._connection.execute(f"{_MEMORIES}{condition}", values):
                memory = _memory(row)
                if memory is None:
                    raise self._file.damaged("a row of a memory, which may be this one, is not what was written")
                if (memory.digest, memory.owner) == (digest, owner):
                    return memory
        return None

    def save(self, memory: MemoryRecord) -> None:  # noqa: D102
        self._write("memories", (*memory[:-1], _memory_checksum(*memory), memory.owner))

    def read(self, memory: MemoryRecord) -> Contents:  # noqa: D102
        rows = (_fact_row(memory, row) for row in self._connection.execute(_FACTS, (memory.number,)))
        intact = {row.position: row.place for row in rows if row is not None and row.position < memory.facts}
        return Contents(
            memory,
            tuple(sorted(intact.values(), key=lambda place: place[:2])),
            tuple(position + 1 for position in range(memory.facts) if position not in intact),
        )

    def holds(self, memory: MemoryRecord, fact: KeptFact) -> bool:  # noqa: D102
        row = self._one(memory, "statement = ?", _statement(fact))
        if row is not None and row.place.fact.statement != fact.statement:
            raise _damaged(memory, "a fact")
        return row is not None

    def add(self, memory: MemoryRecord, position: int, fact: KeptFact) -> Place:  # noqa: D102
        before = self._one(memory, "open_end = ? ORDER BY path LIMIT 1", _digest(node_key(fact.head)))
        if before is None:
            place = Place(memory.paths, 0, fact)
        else:
            place = Place(before.place.path, before.place.offset + 1, fact)
            self._write("facts", _columns(memory, before._replace(is_open=False)))
        self._write("facts", _columns(memory, _FactRow(position, place, not isinstance(fact.tail, Literal))))
        return place

    def usage(self, owner: str | None = None) -> StorageUsage:  # noqa: D102
        total = (
            "SELECT count(*), coalesce(sum(size + (facts + 1) * ?), 0), coalesce(max(number), 0), "
            "coalesce(max(touched), 0) FROM memories WHERE ? IS NULL OR owner = ?"
        )
        return StorageUsage(*self._connection.execute(total, (_OVERHEAD, owner, owner)).fetchone())

    def drop(  # noqa: D102
        self, *, touched: float, single_used: float, used: float, owner: str, most: int, spared: int | None = None
    ) -> int:
        found = self._connection.execute(
            f"{_MEMORIES} WHERE (touched < ? OR (appends <= 1 AND used < ? AND touched < ?) "
            "OR (used < ? AND owner = ?)) AND number IS NOT ? ORDER BY appends > 1, used, number",
            (touched, single_used, single_used, used, owner, spared),
        ).fetchall()
        dropped = list(islice(filter(None, map(_memory, found)), most))
        for memory in dropped:
            self._connection.execute("DELETE FROM facts WHERE memory = ?", (memory.number,))
            self._connection.execute("DELETE FROM memories WHERE number = ?", (memory.number,))
        return len(dropped)

    def _one(self, memory: MemoryRecord, condition: str, value: bytes) -> _FactRow | None:
        """Return the fact that a condition finds, or None where there is none.

        Raises:
            InvalidSource: It is damaged.
        """
        found = self._connection.execute(f"{_FACTS} AND {condition}", (memory.number, value)).fetchone()
        if found is None:
            return None
        row = _fact_row(memory, found)
        if row is None:
            raise _damaged(memory, f"fact {found[0] + 1}" if isinstance(found[0], int) else "a fact")
        return row

    def _write(self, table: str, columns: _Columns) -> None:
        marks = ", ".join("?" * len(columns))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", columns)  # noqa: S608 - constants


def _memory(row: Row) -> MemoryRecord | None:
    *columns, kept = row
    return MemoryRecord(*columns) if _memory_checksum(*columns) == kept else None


def _memory_checksum(*columns: Column) -> bytes:
    """Return the checksum of a memory's row, whose last column is its owner: without one, that of earlier versions."""
    return _checksum(*columns) if columns[-1] else _checksum(*columns[:-1])


def _fact_row(memory: MemoryRecord, row: Row) -> _FactRow | None:
    *columns, kept = row
    if _checksum(memory.digest, *columns) != kept:
        return None
    datatype, language = row["datatype"], row["language"]
    end: Term = Literal(row["tail"], Iri(datatype), language or None) if datatype else node_from_key(row["tail"])
    fact = KeptFact(node_from_key(row["head"]), Iri(row["relation"]), end, bool(row["verified"]))
    return _FactRow(row["position"], Place(row["path"], row["step"], fact), row["open_end"] is not None)


def _columns(memory: MemoryRecord, row: _FactRow) -> _Columns:
    path, step, fact = row.place
    open_end = _digest(node_key(fact.tail)) if row.is_open and not isinstance(fact.tail, Literal) else None
    columns = (row.position, path, step, *_texts(fact), int(fact.verified), _statement(fact), open_end)
    return memory.number, *columns, _checksum(memory.digest, *columns)


def _texts(fact: KeptFact) -> tuple[str, str, str, str, str]:
    head, relation, tail = node_key(fact.head), fact.relation.value, fact.tail
    if isinstance(tail, Literal):
        return head, relation, tail.value, tail.datatype.value, tail.language or ""
    return head, relation, node_key(tail), "", ""


def _statement(fact: KeptFact) -> bytes:
    """Return what a fact is found by, whether verified or not."""
    *texts, language = _texts(fact)
    return _digest(*texts, language.lower())


def _digest(*columns: Column, size: int = 16) -> bytes:
    """Return a digest of values and their kinds, in order."""
    # `ascii` writes no two values alike, and the same in every version of Python.
    return hashlib.blake2b(ascii(columns).encode(), digest_size=size).digest()


def _checksum(*columns: Column) -> bytes:
    return _digest(*columns, size=8)


def _damaged(memory: MemoryRecord, what: str) -> InvalidSource:
    return InvalidSource(
        f"Nothing was kept: {what} of this memory (number {memory.number} in the memory file) is damaged: it is not "
        "what was written. memory-read shows what is intact; append that, and these triples, without a handle to begin "
        "another memory."
    )
