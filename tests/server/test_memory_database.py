"""Memories in PostgreSQL: its tables and their versions, and servers that share one that fails and comes back."""

import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import anyio
import psycopg
import pytest
from mcp import Client
from pydantic import SecretStr

from calls import unhurried
from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest, InvalidSource
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.terms import Iri
from kg_server.app import build_server
from kg_server.memory.postgres_storage import PostgresStorage
from kg_server.memory.store import KeptFact, MemoryLimits, MemoryStore, Place
from kg_server.settings import MemorySettings, Settings
from memories import Memory, Stored, stores_in
from patience import PATIENCE_S
from postgres_server import PASSWORD, PostgresServer

pytestmark = pytest.mark.xdist_group("postgres")

R = Iri("http://example.org/r")
CAPITAL, LAND = ["Q1490", "P36", "Q179645"], ["Q1490", "P17", "Q17"]


def fact(head: int, tail: int) -> KeptFact:
    return KeptFact(Iri(f"http://example.org/{head}"), R, Iri(f"http://example.org/{tail}"))


@pytest.fixture
def stored(postgres: PostgresServer) -> Iterator[Stored]:
    with stores_in(postgres) as stored:
        yield stored


def changed(server: PostgresServer, statement: str) -> None:
    with psycopg.connect(server.url, autocommit=True, options="-csearch_path=kg_sextant") as connection:
        connection.execute(statement.encode())


async def test_servers_that_start_at_once_make_the_tables_once(stored: Stored) -> None:
    handles: list[str] = []

    async def begin(store: MemoryStore) -> None:
        handles.append((await store.append(None, "graph", [fact(1, 2)])).handle)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(begin, stored())
    store = stored()
    assert [len((await store.read(handle, "graph")).places) for handle in handles] == [1] * 8


async def test_what_is_read_stays_whole_while_another_server_deletes_it(
    stored: Stored, postgres: PostgresServer
) -> None:
    handle = (await stored().append(None, "graph", [fact(1, 2), fact(2, 3)])).handle
    storage, later = PostgresStorage(postgres.url), time.time() + 40 * 86_400
    with storage.transaction(write=False) as reading:
        memory = reading.find(sha256(handle.encode()).digest(), "")
        assert memory is not None
        await stored(now=lambda: later).append(None, "graph", [fact(1, 2)])
        contents = reading.read(memory)
    storage.close()
    assert (len(contents.places), contents.damaged) == (2, ())


async def test_tables_of_a_version_before_owners_are_upgraded_by_the_first_that_reads_them(
    stored: Stored, postgres: PostgresServer
) -> None:
    handle = (await stored().append(None, "graph", [fact(1, 2)])).handle
    changed(
        postgres,
        "ALTER TABLE memories DROP COLUMN owner; ALTER TABLE facts DROP COLUMN graph; UPDATE version SET number = 3",
    )
    assert len((await stored().read(handle, "graph")).places) == 1
    with pytest.raises(InvalidRequest, match="No memory has this handle"):
        await stored().read(handle, "graph", owner="token:ann")


async def test_tables_of_a_later_version_are_refused_and_left_alone(stored: Stored, postgres: PostgresServer) -> None:
    store = stored()
    handle = (await store.append(None, "graph", [fact(1, 2)])).handle
    changed(postgres, "UPDATE version SET number = 6")
    for call in (store.read(handle, "graph"), store.append(handle, "graph", [fact(2, 3)]), stored().check()):
        with pytest.raises(
            InvalidSource, match=r"has format 6; this version reads 5. Nothing was changed. Use the ver"
        ):
            await call
    changed(postgres, "UPDATE version SET number = 5")
    assert len((await store.read(handle, "graph")).places) == 1


async def test_a_database_that_others_keep_busy_is_a_timeout_and_nothing_is_kept(
    stored: Stored, postgres: PostgresServer
) -> None:
    handle = (await stored().append(None, "graph", [fact(1, 2)])).handle
    busy, store = PostgresStorage(postgres.url), MemoryStore(PostgresStorage(postgres.url, wait_s=2), MemoryLimits())
    with busy.transaction(write=True), pytest.raises(BackendTimeout, match="is busy"):
        await store.append(handle, "graph", [fact(2, 3)])
    assert (await store.append(handle, "graph", [fact(2, 3)])).added == (Place(0, 1, fact(2, 3)),)
    await store.aclose()
    busy.close()


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs the processes that Linux lists there")
async def test_a_database_that_hangs_is_a_timeout_and_works_again_once_it_goes_on(
    stored: Stored, postgres: PostgresServer
) -> None:
    del stored
    store = MemoryStore(PostgresStorage(postgres.url, wait_s=0.5), MemoryLimits())
    handle = (await store.append(None, "graph", [fact(1, 2)])).handle
    with postgres.frozen(), anyio.fail_after(PATIENCE_S):
        for _ in range(2):
            with pytest.raises(BackendError, match=r"The memory database .* Call again"):
                await store.append(handle, "graph", [fact(2, 3)])
    await store.append(handle, "graph", [fact(2, 3)])
    assert len((await store.read(handle, "graph")).places) == 2
    await store.aclose()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_database_that_stopped_fails_calls_at_once_and_works_again_once_it_is_back(
    tokyo: LocalAdapter, stored: Stored, postgres: PostgresServer, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    del stored
    settings = Settings(memory=MemorySettings(database=SecretStr(postgres.url)), timeout_s=30)
    async with Client(build_server(tokyo, settings)) as client:
        memory = Memory(client)
        handle = await memory.begin(CAPITAL)
        postgres.stop(mode)
        try:
            with anyio.fail_after(settings.timeout_s / 2):
                refused = [await memory.append(LAND, memory=handle), await memory.read(handle)]
        finally:
            postgres.start()
        assert (await memory.append(LAND, memory=handle)).data["added"] == 1
        assert (await memory.read(handle)).data["total"] == 2
        # Without a call in the meantime, the connections that were open before are dead.
        postgres.stop(mode)
        postgres.start()
        assert (await memory.read(handle)).data["total"] == 2
    for reply in refused:
        assert reply.is_error
        assert reply.text.startswith(
            "The memory database cannot be used; the server's log has the reason. Call again: "
        )
        assert str(postgres.port) not in reply.text
    assert str(postgres.port) in caplog.text
    assert PASSWORD not in caplog.text


async def test_solved_questions_are_refused_beside_a_database(tokyo: LocalAdapter, tmp_path: Path) -> None:
    memory = MemorySettings(database=SecretStr("postgresql://localhost/memories"))
    with pytest.raises(InvalidRequest, match="Set only one of the two"):
        build_server(tokyo, unhurried(data_folder=tmp_path, learn=True, memory=memory))
