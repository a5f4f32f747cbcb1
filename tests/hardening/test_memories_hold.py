"""Memories that are removed, replaced, damaged or crowded out: told, and never answered from."""

import http.client
import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, aclosing, closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp import Client

from kg_adapters.errors import KGError
from kg_adapters.terms import Iri
from kg_server.memory.sqlite_store import SqliteMemoryStore
from kg_server.memory.store import Fact, MemoryLimits, Place
from memories import CLIENT, FILE, Memory
from server_processes import address_of, started

GRAPH = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
wd:Q1 wdt:P1 wd:Q2 , wd:Q3 , wd:Q4 .
"""
ONE, OTHER, THIRD = (["Q1", "P1", f"Q{number}"] for number in (2, 3, 4))
FLIPS = 200
R = Iri("http://example.org/r")


def fact(head: int, tail: int) -> Fact:
    return Fact(Iri(f"http://example.org/{head}"), R, Iri(f"http://example.org/{tail}"))


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
    environ = {
        "KG_SEXTANT_DATA_FOLDER": str(folder),
        "KG_SEXTANT_EMBEDDER": "lexical",
        "KG_SEXTANT_MEMORY_NEW_PER_HOUR": "10",
    }
    with ExitStack() as stack:
        words = (str(graph), "--cache-folder", str(folder / "cache"))
        processes = [stack.enter_context(started(environ, *words)) for _ in range(2)]
        yield Servers(folder, *map(address_of, processes))


def remove(folder: Path) -> None:
    for each in folder.glob(f"{FILE}*"):
        each.unlink()


def back_up(folder: Path) -> Path:
    backup = folder / "backup"
    with closing(sqlite3.connect(folder / FILE)) as one, closing(sqlite3.connect(backup)) as other:
        one.backup(other)
    return backup


def write_log_back(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as file:
        file.execute("PRAGMA wal_checkpoint").fetchone()


def replace_by(backup: Path, folder: Path) -> None:
    backup.replace(folder / FILE)


def overwrite_by(backup: Path, folder: Path) -> None:
    shutil.copyfile(backup, folder / FILE)


@pytest.mark.xdist_group("memories")
async def test_a_server_whose_memory_file_is_removed_says_so_and_goes_on_with_a_new_one(servers: Servers) -> None:
    async with Client(servers.one) as client:
        memory = Memory(client)
        handle = await memory.begin(ONE)
        remove(servers.folder)
        lost, unknown = [await memory.append(OTHER, memory=handle) for _ in range(2)]
        kept = await memory.read(await memory.begin(THIRD))
    assert (lost.is_error, unknown.is_error) == (True, True)
    assert "was removed or replaced while this server had it open" in lost.text
    assert "was removed, replaced or set back while this server ran" in unknown.text
    assert str(servers.folder) not in lost.text
    assert kept.data["total"] == 1


@pytest.mark.xdist_group("memories")
@pytest.mark.parametrize("restore", [replace_by, overwrite_by])
async def test_two_servers_both_notice_a_backup_that_is_restored_under_them_and_lose_nothing_after(
    servers: Servers, restore: Callable[[Path, Path], None]
) -> None:
    remove(servers.folder)
    async with Client(servers.one) as first, Client(servers.other) as second:
        memories = [Memory(first), Memory(second)]
        for memory in memories:
            await memory.append(ONE)
        handle = await memories[0].begin(ONE)
        backup = back_up(servers.folder)
        assert (await memories[1].append(OTHER, memory=handle)).data["added"] == 1
        write_log_back(servers.folder)
        assert (await memories[0].append(THIRD, memory=handle)).data["added"] == 1
        restore(backup, servers.folder)
        noticed = [await memory.append(OTHER, memory=handle) for memory in memories]
        held = [(await memory.read(handle)).data["total"] for memory in memories]
        triples = zip(memories, (OTHER, THIRD), strict=True)
        grown = [(await memory.append(each, memory=handle)).data["added"] for memory, each in triples]
        whole = [(await memory.read(handle)).data["total"] for memory in memories]
    assert all(reply.is_error and "while this server had it open" in reply.text for reply in noticed)
    assert (held, grown, whole) == ([1, 1], [1, 1], [3, 3])
    with closing(sqlite3.connect(servers.folder / FILE)) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def outcome(path: Path, handle: str, written: tuple[Place, ...]) -> str:
    """Say what a read of a damaged file comes to; a wrong answer fails."""
    async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as store:
        try:
            contents = await store.read(handle, "graph")
        except KGError as error:
            return "unknown" if "No memory has this handle" in str(error) else "refused"
    damaged = () if contents.damage is None else contents.damage.facts
    assert set(contents.places) <= set(written), "a fact that nobody wrote"
    assert len(contents.places) + len(damaged) == len(written), "a fact that is missing without a word"
    return "told" if damaged else "whole"


async def test_a_flipped_byte_anywhere_is_told_or_changes_nothing(tmp_path: Path) -> None:
    whole, chance = tmp_path / "whole", random.Random(11)  # noqa: S311 - not for secrets
    facts = [[fact(100 * memory + number, 100 * memory + number + 1) for number in range(12)] for memory in range(3)]
    async with aclosing(SqliteMemoryStore(whole / FILE, MemoryLimits())) as store:
        handles = [await store.create("graph", CLIENT) for _ in facts]
        for handle, each in zip(handles, facts, strict=True):
            await store.append(handle, "graph", each)
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


def append_from(source: str, address: str, headers: Mapping[str, str]) -> str:
    """Begin a memory over HTTP, from an address of loopback, and return the text of the answer."""
    where = urlsplit(address)
    assert where.hostname is not None
    call = {"name": "memory-append", "arguments": {"triples": [ONE]}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection(where.hostname, where.port, source_address=(source, 0))) as connection:
        connection.request("POST", where.path, body, {**accept, **headers})
        return connection.getresponse().read().decode()


@pytest.mark.xdist_group("memories")
def test_a_greedy_client_is_stopped_whatever_address_it_claims_and_another_is_not(servers: Servers) -> None:
    remove(servers.folder)
    for address in (servers.one, servers.other):
        append_from("127.0.0.3", address, {})
    # Where such a header is believed at all, it is from this address.
    claims = [{"X-Forwarded-For": f"192.0.2.{number}", "Mcp-Session-Id": str(number)} for number in range(15)]
    greedy = [append_from("127.0.0.1", (servers.one, servers.other)[each % 2], claims[each]) for each in range(15)]
    modest = append_from("127.0.0.3", servers.one, {})
    kept = ["Kept 1 new fact" in text for text in greedy]
    assert kept == [True] * 10 + [False] * 5
    assert all("You have begun 10 memories within an hour" in text for text in greedy[10:])
    assert "Kept 1 new fact" in modest


class Counting(SqliteMemoryStore):
    """A store that counts the instructions of SQLite, in tens."""

    counted = 0

    def count(self) -> None:
        def step() -> int:
            self.counted += 1
            return 0

        with self._file.transaction("DEFERRED") as connection:
            connection.set_progress_handler(step, 10)


async def test_an_append_to_ten_thousand_facts_does_as_much_work_as_one_to_ten(tmp_path: Path) -> None:
    work: list[int] = []
    for held in (10, 10_000):
        async with aclosing(Counting(tmp_path / str(held) / FILE, MemoryLimits(facts=20_000))) as store:
            handle = await store.create("graph", CLIENT)
            await store.append(handle, "graph", [fact(number, number % 7) for number in range(held)])
            store.count()
            # Some go on where paths end, and some begin others.
            await store.append(handle, "graph", [fact(number % 9, 100_000 + number) for number in range(15)])
            work.append(store.counted)
    assert 0 < work[1] <= 1.5 * work[0]
