"""A memory file of the first format: what the version before this one wrote is kept."""

import sqlite3
from collections.abc import Iterable
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from kg_adapters.errors import BackendUnavailable
from kg_adapters.terms import RDF_LANG_STRING, BlankNode, Iri, Literal, node_key
from kg_server.memory.sqlite_store import SqliteMemoryStore, digest_of, new_handle
from kg_server.memory.store import Damage, Fact, Holdings, MemoryLimits, Network, Place
from memories import FILE, network_of

FIRST_FORMAT = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE memories (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        graph TEXT NOT NULL,
        touched REAL NOT NULL
    );
    CREATE INDEX memories_by_age ON memories (touched);
    CREATE TABLE facts (
        memory INTEGER NOT NULL REFERENCES memories (number) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        head TEXT NOT NULL,
        relation TEXT NOT NULL,
        tail TEXT NOT NULL,
        datatype TEXT NOT NULL,
        language TEXT NOT NULL,
        verified INTEGER NOT NULL,
        PRIMARY KEY (memory, position),
        UNIQUE (memory, head, relation, tail, datatype, language)
    ) WITHOUT ROWID;
    PRAGMA user_version = 1;
"""
NOW = 1e9
A, B, C = (Iri(f"http://example.org/{name}") for name in "abc")
R = Iri("http://example.org/r")
FACTS = (
    Fact(A, R, B),
    Fact(C, R, A, verified=False),
    Fact(B, R, C),
    Fact(BlankNode("b0"), R, Literal("Tokyo", RDF_LANG_STRING, "en")),
    Fact(A, R, Literal("")),
)


def write_first(path: Path, memories: dict[str, Iterable[Fact]]) -> None:
    """Write a file with the statements of the version that had the first format."""
    with closing(sqlite3.connect(path)) as file:
        file.executescript(FIRST_FORMAT)
        for number, (handle, facts) in enumerate(memories.items(), 1):
            file.execute("INSERT INTO memories VALUES (?, ?, 'graph', ?)", (number, digest_of(handle), NOW))
            for position, fact in enumerate(facts):
                tail = (node_key(fact.tail), "", "") if not isinstance(fact.tail, Literal) else literal(fact.tail)
                row = (number, position, node_key(fact.head), fact.relation.value, *tail, int(fact.verified))
                file.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        file.commit()


def literal(tail: Literal) -> tuple[str, str, str]:
    return tail.value, tail.datatype.value, tail.language or ""


def tables_of(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as file:
        names = file.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        pragmas = ("user_version", "auto_vacuum", "integrity_check")
        return [*names, *(file.execute(f"PRAGMA {each}").fetchone() for each in pragmas)]


async def test_memories_of_the_first_format_keep_their_handles_facts_and_paths_and_grow_on(tmp_path: Path) -> None:
    path, one, other, bare = tmp_path / FILE, new_handle(), new_handle(), new_handle()
    write_first(path, {one: FACTS, other: FACTS[:1], bare: ()})
    async with aclosing(SqliteMemoryStore(path, MemoryLimits(), now=lambda: NOW)) as store:
        assert network_of(await store.read(one, "graph")) == Network().extended(FACTS)
        assert (await store.append(other, "graph", FACTS)).holdings == Holdings(5, 3, 1)
        assert network_of(await store.read(other, "graph")) == Network().extended(FACTS)
        assert network_of(await store.read(bare, "graph")) == Network()
    async with aclosing(SqliteMemoryStore(path, MemoryLimits(), now=lambda: NOW)) as store:
        assert (await store.append(one, "graph", FACTS)).added == ()
    assert tables_of(path) == [("ends",), ("facts",), ("memories",), (2,), (2,), ("ok",)]


async def test_a_fact_of_the_first_format_that_cannot_be_read_is_told_and_not_thrown_away(tmp_path: Path) -> None:
    path, handle = tmp_path / FILE, new_handle()
    write_first(path, {handle: FACTS[:3]})
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE facts SET head = 'no id at all' WHERE position = 1")
        file.commit()
    async with aclosing(SqliteMemoryStore(path, MemoryLimits(), now=lambda: NOW)) as store:
        contents = await store.read(handle, "graph")
    assert contents.damage == Damage(1, (2,))
    assert contents.places == (Place(0, 0, FACTS[0]), Place(0, 1, FACTS[2]))
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT head FROM facts WHERE position = 1").fetchone() == ("no id at all",)


async def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path, handle = tmp_path / FILE, new_handle()
    write_first(path, {handle: FACTS})
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE ends (another INTEGER)")
    store = SqliteMemoryStore(path, MemoryLimits(), now=lambda: NOW)
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match="table ends already exists"):
            await store.read(handle, "graph")
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (1,)
        assert file.execute("SELECT count(*) FROM facts").fetchone() == (5,)
