"""A memory file that is removed, replaced, overwritten or set back while it is open."""

import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from kg_adapters.errors import BackendUnavailable, InvalidRequest
from kg_adapters.terms import Iri
from kg_server.memory.sqlite_store import SqliteMemoryStore
from kg_server.memory.store import Fact, MemoryLimits
from memories import CLIENT, FILE

R = Iri("http://example.org/r")


def fact(number: int) -> Fact:
    return Fact(Iri(f"http://example.org/{number}"), R, Iri("http://example.org/end"))


def sides(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}-{ending}") for ending in ("wal", "shm")]


def remove_all(path: Path) -> None:
    for each in (path, *sides(path)):
        each.unlink()


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def remove_main(path: Path) -> None:
    path.unlink()


def copy_by_sqlite(path: Path, name: str) -> Path:
    """Write what a file holds now, its log included, to another one."""
    copied = path.parent.parent / name
    with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(copied)) as other:
        one.backup(other)
    return copied


def put_in_place(copied: Path, path: Path) -> None:
    """Restore as `mv` does."""
    copied.rename(path)


def write_over(copied: Path, path: Path) -> None:
    """Restore as `cp` does, into the file that is there."""
    shutil.copyfile(copied, path)


def restore_by_sqlite(copied: Path, path: Path) -> None:
    """Restore as `.restore` does: with a transaction."""
    with closing(sqlite3.connect(copied)) as one, closing(sqlite3.connect(path)) as other:
        one.backup(other)


def write_log_back(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA wal_checkpoint").fetchone()[0] == 0


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def integrity_of(path: Path) -> object:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("PRAGMA integrity_check").fetchone()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / FILE


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteMemoryStore]:
    async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as opened:
        yield opened


async def begin(store: SqliteMemoryStore, *facts: Fact) -> str:
    handle = await store.create("graph", CLIENT)
    await store.append(handle, "graph", facts)
    return handle


async def size_of(store: SqliteMemoryStore, handle: str) -> int:
    contents = await store.read(handle, "graph")
    assert contents.damage is None
    assert len(contents.places) == contents.holdings.facts
    return contents.holdings.facts


@pytest.mark.parametrize("remove", [remove_all, remove_folder, remove_main])
async def test_an_append_to_a_file_that_was_removed_fails_and_the_next_call_begins_a_new_one(
    store: SqliteMemoryStore, path: Path, remove: Callable[[Path], None]
) -> None:
    handle = await begin(store, fact(1))
    remove(path)
    with pytest.raises(BackendUnavailable, match=r"memories.sqlite3 in the data folder was removed or replaced while"):
        await store.append(handle, "graph", [fact(2)])
    with pytest.raises(
        InvalidRequest, match=r"The memory file was removed, replaced or set back while this server ran"
    ):
        await store.append(handle, "graph", [fact(2)])
    new = await begin(store, fact(3))
    assert await size_of(store, new) == 1
    await store.aclose()
    assert integrity_of(path) == ("ok",)


async def test_a_read_of_a_file_that_was_removed_fails_too(store: SqliteMemoryStore, path: Path) -> None:
    handle = await begin(store, fact(1))
    remove_all(path)
    with pytest.raises(BackendUnavailable, match="was removed or replaced"):
        await store.read(handle, "graph")
    with pytest.raises(InvalidRequest, match="No memory has this handle"):
        await store.read(handle, "graph")


@pytest.mark.parametrize(
    ("restore", "happened"),
    [
        (put_in_place, "was removed or replaced"),
        (write_over, "was overwritten by another program"),
        (restore_by_sqlite, "was set back to an older state"),
    ],
)
async def test_an_older_backup_that_is_restored_is_told_and_then_used_as_it_is(
    store: SqliteMemoryStore, path: Path, restore: Callable[[Path, Path], None], happened: str
) -> None:
    old = await begin(store, fact(1))
    backup = copy_by_sqlite(path, "backup")
    await store.append(old, "graph", [fact(2)])
    young = await begin(store, fact(3))
    write_log_back(path)
    await store.append(old, "graph", [fact(4)])
    restore(backup, path)
    with pytest.raises(BackendUnavailable, match=happened):
        await store.append(old, "graph", [fact(5)])
    assert await size_of(store, old) == 1
    with pytest.raises(InvalidRequest, match="was removed, replaced or set back"):
        await store.read(young, "graph")
    assert (await store.append(old, "graph", [fact(6)])).holdings.facts == 2
    await store.aclose()
    assert integrity_of(path) == ("ok",)


@pytest.mark.parametrize(("restore", "happened"), [(put_in_place, "removed or replaced"), (write_over, "overwritten")])
async def test_the_file_of_another_folder_that_is_put_in_its_place_is_told_and_then_used(
    store: SqliteMemoryStore, path: Path, tmp_path: Path, restore: Callable[[Path, Path], None], happened: str
) -> None:
    async with aclosing(SqliteMemoryStore(tmp_path / "other" / FILE, MemoryLimits())) as other:
        foreign = await begin(other, fact(1), fact(2), fact(3))
    handle = await begin(store, fact(7))
    restore(tmp_path / "other" / FILE, path)
    with pytest.raises(BackendUnavailable, match=happened):
        await store.append(handle, "graph", [fact(8)])
    assert await size_of(store, foreign) == 3
    with pytest.raises(InvalidRequest, match="No memory has this handle"):
        await store.append(handle, "graph", [fact(8)])


async def test_a_file_that_is_cut_to_nothing_is_told_and_the_next_call_begins_a_new_one(
    store: SqliteMemoryStore, path: Path
) -> None:
    handle = await begin(store, fact(1))
    with path.open("r+b") as file:
        file.truncate(0)
    with pytest.raises(BackendUnavailable, match="was overwritten by another program"):
        await store.append(handle, "graph", [fact(2)])
    assert await size_of(store, await begin(store, fact(3))) == 1


@pytest.mark.parametrize("number", [0, 1])
async def test_a_log_that_is_removed_is_told_and_what_was_acknowledged_is_still_there(
    store: SqliteMemoryStore, path: Path, number: int
) -> None:
    handle = await begin(store, fact(1))
    sides(path)[number].unlink()
    with pytest.raises(BackendUnavailable, match="lost its log"):
        await store.append(handle, "graph", [fact(2)])
    assert await size_of(store, handle) == 1
    assert (await store.append(handle, "graph", [fact(2)])).holdings.facts == 2


async def test_a_store_that_is_closed_after_its_file_was_replaced_leaves_the_new_file_alone(
    store: SqliteMemoryStore, path: Path
) -> None:
    await begin(store, fact(1))
    backup = copy_by_sqlite(path, "backup")
    for number in range(5):
        await begin(store, fact(number))
    restored = content_of(backup)
    put_in_place(backup, path)
    await store.aclose()
    assert content_of(path) == restored
    assert [each for each in sides(path) if each.exists()] == []


async def test_two_servers_notice_both_and_go_on_with_one_new_file(store: SqliteMemoryStore, path: Path) -> None:
    async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as other:
        handle = await begin(store, fact(1))
        assert await size_of(other, handle) == 1
        remove_all(path)
        for each in (store, other):
            with pytest.raises(BackendUnavailable, match="was removed or replaced"):
                await each.append(handle, "graph", [fact(2)])
        new = await begin(store, fact(3))
        assert (await other.append(new, "graph", [fact(4)])).holdings.facts == 2
        assert await size_of(store, new) == 2


async def test_the_log_of_a_file_that_is_gone_is_not_read_into_the_one_that_takes_its_place(
    store: SqliteMemoryStore, path: Path
) -> None:
    handle = await begin(store, *map(fact, range(50)))
    backup = copy_by_sqlite(path, "backup")
    await store.append(handle, "graph", list(map(fact, range(50, 100))))
    put_in_place(backup, path)
    with pytest.raises(BackendUnavailable, match="was removed or replaced"):
        await store.read(handle, "graph")
    assert await size_of(store, handle) == 50


async def test_many_commits_by_two_servers_and_checkpoints_between_are_no_false_alarm(
    store: SqliteMemoryStore, path: Path
) -> None:
    async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as other:
        handle = await begin(store)
        for number in range(60):
            await (store, other)[number % 2].append(handle, "graph", [fact(number)])
            if number % 7 == 0:
                write_log_back(path)
            if number % 11 == 0:
                await (store, other)[number % 3 % 2].aclose()
            if number % 5 == 0:
                assert await size_of((other, store)[number % 2], handle) == number + 1


@pytest.mark.parametrize("number", [0, 1])
async def test_a_log_that_two_servers_had_open_is_written_back_once_and_never_over_what_came_later(
    store: SqliteMemoryStore, path: Path, number: int
) -> None:
    async with aclosing(SqliteMemoryStore(path, MemoryLimits())) as late:
        handle = await begin(store, fact(1))
        await late.append(handle, "graph", [fact(2)])
        sides(path)[number].unlink()
        with pytest.raises(BackendUnavailable, match="lost its log"):
            await store.append(handle, "graph", [fact(3)])
        for each in range(4, 9):
            await store.append(handle, "graph", [fact(each)])
        await store.aclose()
        with pytest.raises(BackendUnavailable, match="lost its log"):
            await late.read(handle, "graph")
        assert await size_of(late, handle) == 7
    assert integrity_of(path) == ("ok",)


@pytest.mark.parametrize("written_back", [False, True])
@pytest.mark.parametrize("idle", [False, True])
async def test_a_backup_that_is_written_over_a_file_is_noticed_wherever_the_log_stands(
    store: SqliteMemoryStore, path: Path, written_back: bool, idle: bool
) -> None:
    """Whether the log was written back before, and whether this server did anything after that."""
    handle = await begin(store, fact(1))
    backup = copy_by_sqlite(path, "backup")
    for number in range(2, 30):
        await store.append(handle, "graph", [fact(number)])
    if written_back:
        write_log_back(path)
    if not idle:
        await store.append(handle, "graph", [fact(30)])
    size = 29 if idle else 30
    write_over(backup, path)
    try:
        held = await size_of(store, handle)
    except BackendUnavailable:
        held = await size_of(store, handle)
        assert held == 1
    else:
        assert (held, written_back) == (size, False), "the log covers all that the backup lacks"
    assert (await store.append(handle, "graph", [fact(31)])).holdings.facts == held + 1
    await store.aclose()
    assert integrity_of(path) == ("ok",)
