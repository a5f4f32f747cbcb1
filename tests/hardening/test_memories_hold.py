"""Memory files that are removed, restored or damaged under running servers, and very large memories."""

import random
import shutil
import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import Client

from kg_adapters.errors import KGError
from kg_adapters.terms import Iri
from kg_server.memory.sqlite_storage import SqliteStorage, SqliteTransaction
from kg_server.memory.store import KeptFact, MemoryLimits, MemoryStore, Place
from memories import FILE, Memory, stored_in
from server_processes import address_of, started

GRAPH = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
wd:Q1 wdt:P1 wd:Q2 , wd:Q3 , wd:Q4 .
"""
ONE, OTHER, THIRD = (["Q1", "P1", f"Q{number}"] for number in (2, 3, 4))
FLIPS = 200
R = Iri("http://example.org/r")


def fact(head: int, tail: int) -> KeptFact:
    return KeptFact(Iri(f"http://example.org/{head}"), R, Iri(f"http://example.org/{tail}"))


@dataclass(frozen=True)
class Servers:
    """Two server processes that share the memories of one folder, by their addresses."""

    folder: Path
    one: str
    other: str


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("memories")
    graph = folder / "graph.ttl"
    graph.write_text(GRAPH, encoding="utf-8")
    environ = {"KG_SEXTANT_DATA_FOLDER": str(folder), "KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical"}
    with ExitStack() as stack:
        words = (str(graph), "--cache-folder", str(folder / "cache"))
        processes = [stack.enter_context(started(environ, *words)) for _ in range(2)]
        yield Servers(folder, *map(address_of, processes))


@pytest.mark.xdist_group("memories")
async def test_two_servers_whose_memory_file_is_removed_or_restored_go_on_with_the_one_that_is_there(
    servers: Servers,
) -> None:
    path, backup = servers.folder / FILE, servers.folder / "backup"
    async with Client(servers.one) as first, Client(servers.other) as second:
        memories = [Memory(first), Memory(second)]
        handle = await memories[0].begin(ONE)
        shutil.copy(path, backup)
        assert (await memories[1].append(OTHER, memory=handle)).data["added"] == 1
        path.unlink()
        lost = [await memory.append(OTHER, memory=handle) for memory in memories]
        kept = await memories[1].read(await memories[0].begin(THIRD))
        backup.replace(path)
        held = [(await memory.read(handle)).data["total"] for memory in memories]
        triples = zip(memories, (OTHER, THIRD), strict=True)
        grown = [(await memory.append(each, memory=handle)).data["added"] for memory, each in triples]
        whole = [(await memory.read(handle)).data["total"] for memory in memories]
    assert all(reply.is_error and "No memory has this handle" in reply.text for reply in lost)
    assert (kept.data["total"], held, grown, whole) == (1, [1, 1], [1, 1], [3, 3])
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def outcome(path: Path, handle: str, written: tuple[Place, ...]) -> str:
    """Say what a read of a damaged file comes to; a wrong answer fails."""
    try:
        contents = await stored_in(path.parent).read(handle, "graph")
    except KGError as error:
        return "unknown" if "No memory has this handle" in str(error) else "refused"
    damaged = contents.damaged
    assert set(contents.places) <= set(written), "a fact that nobody wrote"
    assert len(contents.places) + len(damaged) == len(written), "a fact that is missing without a word"
    return "told" if damaged else "whole"


async def test_a_flipped_byte_anywhere_is_told_or_changes_nothing(tmp_path: Path) -> None:
    whole, chance = tmp_path / "whole", random.Random(11)  # noqa: S311 - not for secrets
    facts = [[fact(100 * memory + number, 100 * memory + number + 1) for number in range(12)] for memory in range(3)]
    store = stored_in(whole)
    handles = [(await store.append(None, "graph", each)).handle for each in facts]
    written = [(await store.read(handle, "graph")).places for handle in handles]
    content = content_of(whole / FILE)
    seen: list[str] = []
    for number in range(FLIPS):
        damaged = bytearray(content)
        damaged[chance.randrange(len(content))] ^= chance.randrange(1, 256)
        path = place_in(tmp_path / str(number), bytes(damaged))
        chosen = number % len(handles)
        seen.append(await outcome(path, handles[chosen], written[chosen]))
    assert {"whole", "told", "refused"} == set(seen), "a test that sees too little"


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def place_in(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    (folder / FILE).write_bytes(content)
    return folder / FILE


class Counting(SqliteStorage):
    """A storage that counts the instructions of SQLite, in tens."""

    counted = 0

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[SqliteTransaction]:
        def step() -> int:
            self.counted += 1
            return 0

        with self.file.transaction(write=write) as connection:
            connection.set_progress_handler(step, 10)
            yield SqliteTransaction(connection, self.file, time.time())


async def test_an_append_to_ten_thousand_facts_does_as_much_work_as_one_to_ten(tmp_path: Path) -> None:
    work: list[int] = []
    for held in (10, 10_000):
        storage = Counting(tmp_path / str(held) / FILE)
        store = MemoryStore(storage, MemoryLimits(facts=20_000))
        handle = (await store.append(None, "graph", [fact(number, number % 7) for number in range(held)])).handle
        storage.counted = 0
        # Some go on where paths end, and some begin others.
        await store.append(handle, "graph", [fact(number % 9, 100_000 + number) for number in range(15)])
        work.append(storage.counted)
    assert 0 < work[1] <= 1.5 * work[0]
