"""The tables of a memory file, and how a file of the first format gets them."""

import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kg_server.memory.checksums import digest_of_texts
from kg_server.memory.file_watch import first_commits
from kg_server.memory.network import Network
from kg_server.memory.rows import (
    FACT_COLUMNS,
    Cells,
    FactRow,
    MemoryRow,
    fact_from_cells,
    insert_end,
    insert_fact,
    insert_memory,
)

VERSION: Final = 2
_MEMORIES: Final = """
    CREATE TABLE memories (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        graph TEXT NOT NULL,
        client TEXT NOT NULL,
        created REAL NOT NULL,
        touched REAL NOT NULL,
        used REAL NOT NULL,
        appends INTEGER NOT NULL,
        facts INTEGER NOT NULL,
        paths INTEGER NOT NULL,
        unverified INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        checksum BLOB NOT NULL
    )
"""
_FACTS: Final = """
    CREATE TABLE facts (
        memory INTEGER NOT NULL REFERENCES memories (number) ON DELETE CASCADE,
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
        checksum BLOB NOT NULL,
        PRIMARY KEY (memory, position)
    ) WITHOUT ROWID
"""
# One row for each path that may go on, by the node that it ends in.
_ENDS: Final = """
    CREATE TABLE ends (
        memory INTEGER NOT NULL REFERENCES memories (number) ON DELETE CASCADE,
        tail BLOB NOT NULL,
        path INTEGER NOT NULL,
        step INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (memory, tail, path)
    ) WITHOUT ROWID
"""
_TABLES: Final = (
    _MEMORIES,
    "CREATE INDEX memories_by_age ON memories (touched)",
    "CREATE INDEX memories_by_client ON memories (client, created)",
    "CREATE INDEX memories_used_once ON memories (used) WHERE appends <= 1",
    _FACTS,
    "CREATE UNIQUE INDEX facts_by_statement ON facts (memory, statement)",
    _ENDS,
    f"PRAGMA user_version = {VERSION}",
)
_SET_FIRST_ASIDE: Final = (
    "DROP INDEX memories_by_age",
    "ALTER TABLE memories RENAME TO memories_1",
    "ALTER TABLE facts RENAME TO facts_1",
)
_DROP_FIRST: Final = ("DROP TABLE facts_1", "DROP TABLE memories_1")
_MEMORIES_1: Final = "SELECT number, digest, graph, touched FROM memories_1"
_FACTS_1: Final = """
    SELECT position, head, relation, tail, datatype, language, verified FROM facts_1 WHERE memory = ? ORDER BY position
"""
_UNREAD_1: Final = f"""
    INSERT INTO facts (memory, {FACT_COLUMNS})
    SELECT memory, position, 0, 0, head, relation, tail, datatype, language, verified, ?, x'' FROM facts_1
    WHERE memory = ? AND position = ?
"""  # noqa: S608 - a constant
_APPENDS_1: Final = 2
"""The appends of a memory of the first format, which did not count them: too many for one that was abandoned."""


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables within a transaction."""
    _execute(connection, _TABLES)
    connection.execute(f"PRAGMA application_id = {first_commits()}")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file of the first format to this one within a transaction.

    Memories keep their handles and facts; as nobody knows who began them, they belong to a client without a name. A
    fact that cannot be read is carried over with a checksum that tells so.
    """
    _execute(connection, _SET_FIRST_ASIDE)
    create_tables(connection)
    for number, digest, graph, touched in connection.execute(_MEMORIES_1).fetchall():
        times = float(touched), float(touched), float(touched)
        _migrate_memory(connection, MemoryRow(number, digest, graph.decode(), "", *times, appends=_APPENDS_1))
    _execute(connection, _DROP_FIRST)


def _migrate_memory(connection: sqlite3.Connection, memory: MemoryRow) -> None:
    found: list[tuple[int, Cells]] = [(each[0], each[1:]) for each in connection.execute(_FACTS_1, (memory.number,))]
    facts = {position: fact_from_cells(cells) for position, cells in found}
    network = Network().extended(fact for fact in facts.values() if fact is not None)
    places = {place.fact.statement: place for place in network.places()}
    rows: list[FactRow] = []
    insert_memory(connection, memory)
    for position, _ in found:
        fact = facts[position]
        place = None if fact is None else places.pop(fact.statement, None)
        if place is None:
            unread = digest_of_texts(f"fact {position}, which cannot be read")
            connection.execute(_UNREAD_1, (unread, memory.number, position))
        else:
            rows.append(FactRow(position, place))
            insert_fact(connection, memory.number, rows[-1].cells(memory.digest))
    for place in network.ends():
        insert_end(connection, memory, place)
    held = memory.with_facts(rows, len(network.paths))
    insert_memory(connection, replace(held, facts=max((position + 1 for position, _ in found), default=0)))


def _execute(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)
