"""Memories as rows of tables, each with a checksum, in SQL that SQLite and PostgreSQL have in common."""

import hashlib
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from kg_adapters.errors import InvalidSource
from kg_adapters.terms import BlankNode, Iri, Literal, Node, Term, node_from_key, node_key
from kg_server.memory.store import Contents, KeptFact, MemoryRecord, Place, StorageUsage

VERSION: Final = 5
"""The version of the tables."""

TABLES: Final = (
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
        graph TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (memory, position)
    ) WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX facts_by_statement ON facts (memory, statement)",
    "CREATE INDEX open_ends ON facts (memory, open_end, path) WHERE open_end IS NOT NULL",
)
_OWNERS: Final = "ALTER TABLE memories ADD COLUMN owner TEXT NOT NULL DEFAULT ''"
_GRAPHS: Final = "ALTER TABLE facts ADD COLUMN graph TEXT NOT NULL DEFAULT ''"
UPGRADES: Final = {3: (_OWNERS, _GRAPHS), 4: (_GRAPHS,)}
"""For each earlier version that is read, the statements that make it this one."""

_MEMORY: Final = "number, digest, graph, touched, used, appends, facts, paths, unverified, size, owner, checksum"
_FACT: Final = (
    "position, path, step, head, relation, tail, datatype, language, verified, statement, open_end, graph, checksum"
)
MEMORIES: Final = f"SELECT {_MEMORY} FROM memories"  # noqa: S608 - of constants, as below
_FACTS: Final = f"SELECT {_FACT} FROM facts WHERE memory = ?"  # noqa: S608
_OVERHEAD: Final = 200
"""About how many bytes a row takes beside its texts."""

Column: TypeAlias = int | float | str | bytes | None
_Columns: TypeAlias = tuple[Column, ...]
Row: TypeAlias = Sequence[Any]
Execute: TypeAlias = Callable[[str, Sequence[Column]], Sequence[Row]]


def _written(table: str, columns: str, keys: int) -> str:
    """Return the statement that writes a row in place of the one with its key, which is its first columns."""
    names = columns.split(", ")
    key, marks = ", ".join(names[:keys]), ", ".join("?" * len(names))
    changed = ", ".join(f"{name} = excluded.{name}" for name in names[keys:])
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {changed}"  # noqa: S608


_SAVE_MEMORY: Final = _written("memories", _MEMORY, 1)
_SAVE_FACT: Final = _written("facts", f"memory, {_FACT}", 2)


class _FactRow(NamedTuple):
    """A fact of a memory, the order in which it came, and whether its path may go on from it."""

    position: int
    place: Place
    is_open: bool


class RowTransaction:
    """A `Transaction` that runs SQL, with `?` for each value.

    Args:
        execute: Runs a statement with its values and returns its rows.
        now: When it began, in seconds since 1970.
        place: What messages call the storage, as in `memory file`.
        damaged: Returns the error for a storage that is damaged as a whole.
    """

    def __init__(self, execute: Execute, now: float, place: str, damaged: Callable[[str], InvalidSource]) -> None:
        self.now = now
        self._execute = execute
        self._place = place
        self._damaged = damaged

    def find(self, digest: bytes, owner: str) -> MemoryRecord | None:  # noqa: D102 - as the protocol says, like all below
        return next(iter(self._found(f"{MEMORIES} WHERE digest = ? AND owner = ?", digest, owner)), None)

    def _found(self, statement: str, *values: Column) -> list[MemoryRecord]:
        found = [memory_of(row) for row in self._execute(statement, values)]
        intact = [memory for memory in found if memory is not None]
        if len(intact) < len(found):
            raise self._damaged("a row of a memory, which may be this one, is not what was written")
        return intact

    def save(self, memory: MemoryRecord) -> None:  # noqa: D102
        self._execute(_SAVE_MEMORY, (*memory, _checksum(*memory)))

    def read(self, memory: MemoryRecord) -> Contents:  # noqa: D102
        rows = (_fact_row(memory, row) for row in self._execute(_FACTS, (memory.number,)))
        intact = {row.position: row.place for row in rows if row is not None and row.position < memory.facts}
        return Contents(
            memory,
            tuple(sorted(intact.values(), key=lambda place: place[:2])),
            tuple(position + 1 for position in range(memory.facts) if position not in intact),
        )

    def holds(self, memory: MemoryRecord, fact: KeptFact) -> bool:  # noqa: D102
        row = self._one(memory, "statement = ?", _statement(fact))
        if row is not None and row.place.fact.statement != fact.statement:
            raise self._damaged_fact(memory, "a fact")
        return row is not None

    def add(self, memory: MemoryRecord, position: int, fact: KeptFact) -> Place:  # noqa: D102
        before = self._one(memory, "open_end = ? ORDER BY path LIMIT 1", _end(fact.head, fact))
        if before is None:
            place = Place(memory.paths, 0, fact)
        else:
            place = Place(before.place.path, before.place.offset + 1, fact)
            self._execute(_SAVE_FACT, _columns(memory, before._replace(is_open=False)))
        self._execute(_SAVE_FACT, _columns(memory, _FactRow(position, place, not isinstance(fact.tail, Literal))))
        return place

    def usage(self, owner: str | None = None) -> StorageUsage:  # noqa: D102
        total = (
            "SELECT count(*), CAST(coalesce(sum(size + (facts + 1) * ?), 0) AS BIGINT), coalesce(max(number), 0), "
            "coalesce(max(touched), 0) FROM memories"
        )
        condition, values = ("", ()) if owner is None else (" WHERE owner = ?", (owner,))
        (row,) = self._execute(total + condition, (_OVERHEAD, *values))
        return StorageUsage(*row)

    def drop(  # noqa: D102
        self, *, touched: float, single_used: float, used: float, owner: str, most: int, spared: int = 0
    ) -> int:
        found = self._execute(
            f"{MEMORIES} WHERE (touched < ? OR (appends <= 1 AND used < ? AND touched < ?) "
            "OR (used < ? AND owner = ?)) AND number <> ? ORDER BY appends > 1, used, number",
            (touched, single_used, single_used, used, owner, spared),
        )
        dropped = list(islice(filter(None, map(memory_of, found)), most))
        for memory in dropped:
            self._execute("DELETE FROM facts WHERE memory = ?", (memory.number,))
            self._execute("DELETE FROM memories WHERE number = ?", (memory.number,))
        return len(dropped)

    def _one(self, memory: MemoryRecord, condition: str, value: bytes) -> _FactRow | None:
        """Return the fact that a condition finds, or None where there is none.

        Raises:
            InvalidSource: It is damaged.
        """
        for found in self._execute(f"{_FACTS} AND {condition}", (memory.number, value)):
            row = _fact_row(memory, found)
            if row is None:
                raise self._damaged_fact(memory, f"fact {found[0] + 1}" if isinstance(found[0], int) else "a fact")
            return row
        return None

    def _damaged_fact(self, memory: MemoryRecord, what: str) -> InvalidSource:
        return InvalidSource(
            f"Nothing was kept: {what} of this memory (number {memory.number} in the {self._place}) is damaged: it is "
            "not what was written. memory-read shows what is intact; append that, and these triples, without a handle "
            "to begin another memory."
        )


def memory_of(row: Row) -> MemoryRecord | None:
    """Return a memory as its row says, or None where the row is not what was written."""
    *columns, kept = row
    return MemoryRecord(*columns) if _checksum(*columns) == kept else None


def _fact_row(memory: MemoryRecord, row: Row) -> _FactRow | None:
    *columns, kept = row
    if _checksum(memory.digest, *columns) != kept:
        return None
    position, path, step, head, relation, tail, datatype, language, verified, _, open_end, graph = columns
    end: Term = Literal(tail, Iri(datatype), language or None) if datatype else node_from_key(tail)
    fact = KeptFact(node_from_key(head), Iri(relation), end, bool(verified), graph)
    return _FactRow(position, Place(path, step, fact), open_end is not None)


def _columns(memory: MemoryRecord, row: _FactRow) -> _Columns:
    path, step, fact = row.place
    open_end = _end(fact.tail, fact) if row.is_open and not isinstance(fact.tail, Literal) else None
    columns = (row.position, path, step, *_texts(fact), int(fact.verified), _statement(fact), open_end, fact.graph)
    return memory.number, *columns, _checksum(memory.digest, *columns)


def _texts(fact: KeptFact) -> tuple[str, str, str, str, str]:
    head, relation, tail = node_key(fact.head), fact.relation.value, fact.tail
    if isinstance(tail, Literal):
        return head, relation, tail.value, tail.datatype.value, tail.language or ""
    return head, relation, node_key(tail), "", ""


def _statement(fact: KeptFact) -> bytes:
    """Return what a fact is found by, whether verified or not."""
    *texts, language = _texts(fact)
    return _digest(*texts, language.lower(), *_named(fact.graph))


def _end(node: Node, fact: KeptFact) -> bytes:
    """Return what the end of a path is found by; a blank node is none of another graph's."""
    return _digest(node_key(node), *_named(fact.graph if isinstance(node, BlankNode) else ""))


def _named(column: Column) -> _Columns:
    """Return a column that earlier versions did not have, which changes no digest where it is empty."""
    return (column,) if column else ()


def _digest(*columns: Column, size: int = 16) -> bytes:
    """Return a digest of values and their kinds, in order."""
    # `ascii` writes no two values alike, and the same in every version of Python.
    return hashlib.blake2b(ascii(columns).encode(), digest_size=size).digest()


def _checksum(*columns: Column) -> bytes:
    """Return the checksum of a row, whose last column earlier versions did not have."""
    return _digest(*columns[:-1], *_named(columns[-1]), size=8)
