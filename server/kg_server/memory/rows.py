"""Rows of memories, with checksums."""

import hashlib
import sqlite3
import struct
from dataclasses import astuple, dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from kg_adapters.errors import InvalidRequest
from kg_adapters.terms import Iri, Literal, Term, node_from_key, node_key
from kg_server.memory.store import Contents, Damage, Fact, Holdings, Place

Column: TypeAlias = int | float | str | bytes | None

_BYTES: Final = 8
_DIGEST_BYTES: Final = 16


def checksum(*columns: Column) -> bytes:
    """Return 8 bytes over the values of a row and their kinds, in order."""
    digest = hashlib.blake2b(digest_size=_BYTES)
    for column in columns:
        digest.update(_packed(column))
    return digest.digest()


def digest_of_texts(*texts: str) -> bytes:
    """Return 16 bytes that stand for texts, so that a file can look them up without holding them twice."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        digest.update(_packed(text))
    return digest.digest()


def _packed(column: Column) -> bytes:
    """Return a value so that no two rows look alike. Texts and bytes may: a file that is read as bytes has no texts."""
    match column:
        case None:
            return b"n"
        case int():
            return b"i%d;" % column
        case float():
            return b"f" + struct.pack(">d", column)
        case str():
            return _packed(column.encode())
        case bytes():
            return b"b%d;" % len(column) + column


Cells: TypeAlias = tuple[Column, ...]
"""A row as SQLite gives it: texts are bytes, and in a damaged file anything may be anything."""

MEMORY_COLUMNS: Final = (
    "number, digest, graph, client, created, touched, used, appends, facts, paths, unverified, bytes, checksum"
)
FACT_COLUMNS: Final = "position, path, step, head, relation, tail, datatype, language, verified, statement, checksum"
END_COLUMNS: Final = "tail, path, step, checksum"
_MEMORY: Final = f"SELECT {MEMORY_COLUMNS} FROM memories WHERE digest = ?"  # noqa: S608 - constants, as below
_MEMORIES: Final = f"SELECT {MEMORY_COLUMNS} FROM memories"  # noqa: S608
_FACTS: Final = f"SELECT {FACT_COLUMNS} FROM facts WHERE memory = ?"  # noqa: S608


class DamagedRow(Exception):
    """What the file says of a memory is not what was written."""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """What the file says of one memory.

    Args:
        number: What its facts refer to.
        digest: What is kept of its handle.
        graph: The graph that it is bound to.
        client: Who began it.
        created: When it was begun, in seconds since 1970, as all times here.
        touched: When something was last appended.
        used: When something was last appended or read; reads are noted now and then.
        appends: How often something was appended.
        facts: How many facts it holds.
        paths: How many paths they form.
        unverified: How many of them the graph was not seen to hold.
        bytes: How long their texts are.
    """

    number: int
    digest: bytes
    graph: str
    client: str
    created: float
    touched: float
    used: float
    appends: int = 0
    facts: int = 0
    paths: int = 0
    unverified: int = 0
    bytes: int = 0

    @property
    def holdings(self) -> Holdings:
        """What it holds, in numbers."""
        return Holdings(self.facts, self.paths, self.unverified)

    @property
    def cells(self) -> Cells:
        """The row as it is written, in the order of `MEMORY_COLUMNS`."""
        columns = astuple(self)
        return *columns, checksum(*columns)

    def with_facts(self, added: "list[FactRow]", paths: int) -> "MemoryRow":
        """Return the row after facts were added, which made it have so many paths."""
        return replace(
            self,
            facts=self.facts + len(added),
            paths=paths,
            unverified=self.unverified + sum(not row.fact.verified for row in added),
            bytes=self.bytes + sum(row.fact.bytes for row in added),
        )


class FactRow(NamedTuple):
    """A fact of a memory, the order in which it came, and its place in the network."""

    position: int
    place: Place

    @property
    def fact(self) -> Fact:
        """The fact."""
        return self.place.fact

    def cells(self, digest: bytes) -> Cells:
        """Return the row of the memory with this digest, in the order of `FACT_COLUMNS`."""
        place = self.place.path, self.place.offset
        columns = (self.position, *place, *_texts(self.fact), int(self.fact.verified), statement_of(self.fact))
        return *columns, checksum(digest, *columns)


def memory_of(cells: Cells) -> MemoryRow | None:
    """Return the row that cells hold, or None if they are damaged."""
    *columns, kept = cells
    if checksum(*columns) != kept:
        return None
    match columns:
        case [
            int(number), bytes(digest), bytes(graph), bytes(client), float(created), float(touched), float(used),
            int(appends), int(facts), int(paths), int(unverified), int(size),
        ]:  # fmt: skip
            return MemoryRow(
                *(number, digest, graph.decode(), client.decode(), created, touched, used),
                *(appends, facts, paths, unverified, size),
            )
        case _:
            return None


def fact_of(digest: bytes, cells: Cells) -> FactRow | None:
    """Return the row that cells hold in the memory with this digest, or None if they are damaged."""
    *columns, kept = cells
    if checksum(digest, *columns) != kept:
        return None
    match columns:
        case [int(position), int(path), int(step), *rest, bytes()]:
            fact = fact_from_cells(tuple(rest))
            return None if fact is None else FactRow(position, Place(path, step, fact))
        case _:
            return None


def fact_from_cells(cells: Cells) -> Fact | None:
    """Return the fact of the columns from `head` to `verified`, or None if they hold none."""
    match cells:
        case (bytes(head), bytes(relation), bytes(tail), bytes(datatype), bytes(language), int(verified)):
            try:
                end = _tail(tail.decode(), datatype.decode(), language.decode())
                return Fact(node_from_key(head.decode()), Iri(relation.decode()), end, bool(verified))
            except (UnicodeDecodeError, InvalidRequest):
                return None
        case _:
            return None


def find_memory(connection: sqlite3.Connection, digest: bytes) -> MemoryRow | None:
    """Return the memory whose handle has this digest, if there is one.

    Raises:
        DamagedRow: Its row is damaged, or there is none and a damaged row may be it.
    """
    found = connection.execute(_MEMORY, (digest,)).fetchone()
    if found is not None:
        memory = memory_of(found)
        if memory is None or memory.digest != digest:
            raise DamagedRow
        return memory
    # It may be there all the same, and the index or its row be damaged.
    for cells in connection.execute(_MEMORIES):
        memory = memory_of(cells)
        if memory is None:
            raise DamagedRow
        if memory.digest == digest:
            return memory
    return None


def contents_of(connection: sqlite3.Connection, memory: MemoryRow) -> Contents:
    """Return the facts of a memory that are as they were written, and the numbers of those that are not or are gone."""
    rows = (fact_of(memory.digest, cells) for cells in connection.execute(_FACTS, (memory.number,)))
    whole = {row.position: row.place for row in rows if row is not None and row.position < memory.facts}
    damaged = tuple(position + 1 for position in range(memory.facts) if position not in whole)
    return Contents(
        memory.holdings,
        tuple(sorted(whole.values(), key=lambda place: place[:2])),
        Damage(memory.number, damaged) if damaged else None,
    )


def end_of(digest: bytes, cells: Cells) -> tuple[int, int] | None:
    """Return the number of the path and the offset of its last fact, or None if the row is damaged."""
    *columns, kept = cells
    match columns:
        case [bytes(), int(path), int(step)] if checksum(digest, *columns) == kept:
            return path, step
        case _:
            return None


def insert_memory(connection: sqlite3.Connection, memory: MemoryRow) -> None:
    """Write the row of a memory, in place of one that is there."""
    cells = memory.cells
    columns = MEMORY_COLUMNS.split(", ")
    changed = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
    connection.execute(
        f"INSERT INTO memories ({MEMORY_COLUMNS}) VALUES ({_marks(cells)}) "  # noqa: S608 - constants
        f"ON CONFLICT (number) DO UPDATE SET {changed}",
        cells,
    )


def insert_fact(connection: sqlite3.Connection, memory: int, cells: Cells) -> None:
    """Write the row of a fact that is not there yet."""
    values = (memory, *cells)
    connection.execute(f"INSERT INTO facts (memory, {FACT_COLUMNS}) VALUES ({_marks(values)})", values)  # noqa: S608 - constants


def insert_end(connection: sqlite3.Connection, memory: MemoryRow, place: Place) -> None:
    """Write the row of a path that may go on from the tail of its last fact."""
    columns = (end_key(place.fact.tail), place.path, place.offset)
    values = (memory.number, *columns, checksum(memory.digest, *columns))
    connection.execute(f"INSERT INTO ends (memory, {END_COLUMNS}) VALUES ({_marks(values)})", values)  # noqa: S608 - constants


def end_key(node: Term) -> bytes:
    """Return what a path is found by that ends in a node."""
    return digest_of_texts(str(node))


def statement_of(fact: Fact) -> bytes:
    """Return what a fact is found by, whether verified or not."""
    *texts, language = _texts(fact)
    return digest_of_texts(*texts, language.lower())


def _texts(fact: Fact) -> tuple[str, str, str, str, str]:
    """Return the parts of a statement: a tail with an empty datatype is a node."""
    head, relation = node_key(fact.head), fact.relation.value
    if isinstance(fact.tail, Literal):
        return head, relation, fact.tail.value, fact.tail.datatype.value, fact.tail.language or ""
    return head, relation, node_key(fact.tail), "", ""


def _tail(text: str, datatype: str, language: str) -> Term:
    return Literal(text, Iri(datatype), language or None) if datatype else node_from_key(text)


def _marks(values: Cells) -> str:
    return ", ".join("?" * len(values))
