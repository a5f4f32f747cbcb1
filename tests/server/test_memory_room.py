"""How much one client may keep, what expires, and what gives way."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.terms import Iri, Literal
from kg_server.memory.sqlite_store import SqliteMemoryStore
from kg_server.memory.store import Fact, MemoryLimits
from kg_server.memory.tool import client_at
from memories import FILE, Clock

R = Iri("http://example.org/r")

HOUR = 1 / 24

GREEDY, MODEST, NEW = "192.0.2.1", "192.0.2.2", "192.0.2.3"


def fact(number: int, length: int = 1) -> Fact:
    return Fact(Iri(f"http://example.org/{number}"), R, Literal("x" * length))


@asynccontextmanager
async def storing(folder: Path, limits: MemoryLimits, clock: Clock) -> AsyncGenerator[SqliteMemoryStore]:
    async with aclosing(SqliteMemoryStore(folder / FILE, limits, now=clock)) as store:
        yield store


async def begin(store: SqliteMemoryStore, client: str, appends: int = 2, length: int = 1) -> str:
    handle = await store.create("graph", client)
    for number in range(appends):
        await store.append(handle, "graph", [fact(number, length)])
    return handle


async def is_there(store: SqliteMemoryStore, handle: str) -> bool:
    try:
        await store.read(handle, "graph")
    except InvalidRequest:
        return False
    return True


async def test_a_client_may_begin_so_many_memories_an_hour_and_is_told_when_to_come_back(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(new_per_hour=3), clock) as store:
        for _ in range(3):
            await begin(store, GREEDY)
            clock.pass_days(HOUR / 6)
        with pytest.raises(InvalidRequest, match=r"begun 3 memories within an hour.*or begin the next in 30 minutes\."):
            await begin(store, GREEDY)
        await begin(store, MODEST)
        clock.pass_days(HOUR / 2)
        await begin(store, GREEDY)
        with pytest.raises(InvalidRequest, match="in 10 minutes"):
            await begin(store, GREEDY)


async def test_a_client_that_has_its_share_loses_its_own_oldest_and_nobody_elses(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(memories=8, client_share=0.5), clock) as store:
        modest = await begin(store, MODEST)
        greedy: list[str] = []
        for _ in range(4):
            greedy.append(await begin(store, GREEDY))
            clock.pass_days(2 * HOUR)
        greedy.append(await begin(store, GREEDY))
        assert [await is_there(store, each) for each in greedy] == [False, True, True, True, True]
        assert await is_there(store, modest)


async def test_a_client_that_uses_all_of_its_share_is_refused_and_others_are_not(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(memories=8, client_share=0.25), clock) as store:
        held = [await begin(store, GREEDY) for _ in range(2)]
        clock.pass_days(HOUR / 2)
        with pytest.raises(InvalidRequest, match=r"You have 25% of what this server keeps.*come back in 35 minutes"):
            await begin(store, GREEDY)
        assert await is_there(store, await begin(store, MODEST))
        assert [await is_there(store, each) for each in held] == [True, True]


async def test_in_a_full_store_the_client_with_the_most_gives_way_first_what_had_one_append(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(memories=4, client_share=1), clock) as store:
        modest = await begin(store, MODEST, appends=1)
        old = await begin(store, GREEDY)
        single = await begin(store, GREEDY, appends=1)
        young = await begin(store, GREEDY)
        clock.pass_days(2 * HOUR)
        new = await begin(store, NEW)
        assert [await is_there(store, each) for each in (modest, old, single, young, new)] == [
            True,
            True,
            False,
            True,
            True,
        ]


async def test_what_was_used_within_the_hour_never_gives_way(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(memories=2, client_share=1), clock) as store:
        read, appended = await begin(store, GREEDY), await begin(store, GREEDY)
        clock.pass_days(2 * HOUR)
        await store.read(read, "graph")
        await store.append(appended, "graph", [fact(9)])
        clock.pass_days(HOUR / 2)
        with pytest.raises(InvalidRequest, match=r"at most 2 memories.*all were used.*come back in 35 minutes"):
            await begin(store, NEW)
        assert [await is_there(store, each) for each in (read, appended)] == [True, True]


async def test_a_memory_of_one_append_that_nobody_used_again_expires_sooner(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(abandoned_days=1), clock) as store:
        abandoned, read, grown = [await begin(store, GREEDY, appends) for appends in (1, 1, 2)]
        clock.pass_days(0.9)
        await store.read(read, "graph")
        clock.pass_days(0.9)
        await begin(store, NEW)
        assert [await is_there(store, each) for each in (abandoned, read, grown)] == [False, True, True]


async def test_the_texts_of_one_memory_are_bounded_in_bytes(tmp_path: Path) -> None:
    async with storing(tmp_path, MemoryLimits(memory_bytes=1_000), Clock()) as store:
        handle = await begin(store, GREEDY, appends=1, length=500)
        with pytest.raises(InvalidRequest, match=r"of at most 1,000 bytes \(memory_max_mb\): .* nothing was stored"):
            await store.append(handle, "graph", [fact(7), fact(8, 500)])
        assert (await store.append(handle, "graph", [fact(7)])).holdings.facts == 2


async def test_a_full_file_takes_room_from_the_client_with_the_most_bytes(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(store_bytes=600_000, client_share=0.5), clock) as store:
        modest = [await begin(store, MODEST, appends=1) for _ in range(3)]
        heavy = await begin(store, GREEDY, length=100_000)
        with pytest.raises(InvalidRequest, match="You have 50% of what this server keeps"):
            await begin(store, GREEDY, length=100_000)
        clock.pass_days(2 * HOUR)
        next_one = await begin(store, GREEDY, length=100_000)
        assert [await is_there(store, each) for each in (heavy, next_one, *modest)] == [False, True, True, True, True]


async def test_bytes_of_many_clients_are_bounded_too(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(store_bytes=600_000, client_share=1), clock) as store:
        first = await begin(store, GREEDY, length=100_000)
        second = await begin(store, MODEST, length=100_000)
        with pytest.raises(InvalidRequest, match=r"keeps at most .* in 0 MB \(memory_file_max_mb\), and all were used"):
            await begin(store, NEW, length=100_000)
        clock.pass_days(2 * HOUR)
        await store.read(second, "graph")
        third = await begin(store, NEW, length=100_000)
        assert [await is_there(store, each) for each in (first, second, third)] == [False, True, True]


async def test_the_file_shrinks_once_memories_have_expired(tmp_path: Path) -> None:
    clock = Clock()
    async with storing(tmp_path, MemoryLimits(), clock) as store:
        for _ in range(5):
            await begin(store, GREEDY, appends=1, length=200_000)
        await store.aclose()
        large = size_of(tmp_path)
        clock.pass_days(31)
        await begin(store, GREEDY)
        await store.aclose()
    assert large > 1_000_000
    assert size_of(tmp_path) < 100_000


def size_of(folder: Path) -> int:
    return (folder / FILE).stat().st_size


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("testclient", "testclient"),
    ],
)
def test_a_client_is_its_address_or_its_network_where_it_may_choose_the_rest(host: str, client: str) -> None:
    assert client_at(host) == client
