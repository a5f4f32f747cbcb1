"""What memory tools refuse, and memories whose rows are damaged."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from calls import Reply, plain
from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.terms import Iri
from kg_server.memory.store import KeptFact, MemoryLimits, MemoryStore, Place
from memories import FILE, Clock, facts_of, remembering, stored_in

CAPITAL, LAND, CITY = ["Q1490", "P36", "Q179645"], ["Q1490", "P17", "Q17"], ["Q1490", "P31", "Q515"]
NO_SUCH_MEMORY = (
    "No memory has this handle, or its last append is more than 30 days ago, or it was deleted to make room. Pass the "
    "handle unchanged as memory-append gave it, or call memory-append without one to begin a new memory."
)
HUGE = "x" * 1_000_000


def refused(*replies: Reply) -> list[str]:
    assert all(reply.is_error for reply in replies)
    return [reply.text for reply in replies]


async def test_a_guess_gets_the_answer_of_an_expired_handle_and_is_neither_repeated_nor_logged(
    tokyo: LocalAdapter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kg_server")
    caplog.set_level(logging.INFO)
    clock, guess = Clock(), "mem_a-guess-of-some-kind-0000"
    async with remembering(tokyo, tmp_path, now=clock) as memory:
        expired = await memory.begin(CAPITAL)
        clock.pass_days(31)
        for handle in (expired, guess):
            assert refused(await memory.read(handle), await memory.append(LAND, memory=handle)) == [NO_SUCH_MEMORY] * 2
            with pytest.raises(MCPError, match="No memory has this handle"):
                await memory.resource(handle)
            odd = await memory.read(handle, cursor="")
            assert odd.is_error
            assert handle not in odd.text
    assert "No memory has this handle" in caplog.text
    assert expired not in caplog.text
    assert guess not in caplog.text


async def test_a_handle_that_is_in_use_is_not_logged(
    tokyo: LocalAdapter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kg_server")
    caplog.set_level(logging.INFO)
    async with remembering(tokyo, tmp_path) as memory:
        handle = await memory.begin(CAPITAL)
        await memory.append(["Q1490", "P36", "Q5"], memory=handle)
        await memory.append("no triple", memory=handle)
        await memory.read(handle, cursor="damaged")
        await memory.resource(handle)
    assert "This cursor is damaged" in caplog.text
    assert handle not in caplog.text


@pytest.mark.parametrize(
    ("triple", "reason"),
    [
        (["Q1490", "P36\x00", "Q17"], "'P36\\u0000' is not an id."),
        (["Q1490", "P36", '"\x1b[2J"'], "the graph does not have it."),
        ([HUGE, "P36", "Q17"], "it has 1,000,000 characters where 3,000 are allowed."),
        (["Q1490", "P36", "A name"], 'Put a literal tail in quotes, "like this".'),
        (["x"] * 100_000, "it has 100,000 parts."),
        ("'; DROP TABLE facts; --", "it is not a triple:"),
    ],
)
async def test_an_odd_triple_is_refused_in_a_few_words_while_its_neighbour_is_kept(
    tokyo: LocalAdapter, tmp_path: Path, triple: object, reason: str
) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        reply = await memory.append(triple, CAPITAL)
        held = await memory.read(str(reply.data["memory"]))
    (line, path) = reply.plain.lines
    assert line.startswith("refused triple 1 (")
    assert reason in line
    assert len(line) < 800
    assert line.isprintable()
    assert (path, reply.data["added"]) == ("Tokyo -[capital]-> Shinjuku", 1)
    assert held.plain.lines == [path]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"memory": 7}, "memory=7: it must be a text"),
        ({"memory": "mem_1", "cursor": HUGE}, "the text must have at most 2000 characters"),
        ({}, "memory is missing"),
        ({"memory": "mem_1", "max_tokens": 7}, "memory-read has no argument 'max_tokens'"),
    ],
)
async def test_wrong_arguments_are_named(
    tokyo: LocalAdapter, tmp_path: Path, arguments: dict[str, object], expected: str
) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        reply = await memory.call("memory-read", arguments)
    assert reply.is_error
    assert expected in reply.text
    assert len(reply.text) < 500


@pytest.mark.parametrize("triples", [7, [1], [[1, 2, 3]], {"head": "Q1490"}])
async def test_triples_of_another_form_are_refused_with_the_argument_named(
    tokyo: LocalAdapter, tmp_path: Path, triples: object
) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        reply = await memory.call("memory-append", {"triples": triples})
    assert reply.is_error
    assert "triples=" in reply.text


async def test_a_full_memory_file_is_an_error_and_what_was_kept_stays(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        handle = await memory.begin(CAPITAL)
        with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
            other.execute("CREATE TRIGGER full BEFORE INSERT ON facts BEGIN SELECT RAISE(FAIL, 'disk is full'); END")
            (text,) = refused(await memory.append(LAND, memory=handle))
            other.execute("DROP TRIGGER full")
        assert (await memory.read(handle)).data["total"] == 1
        assert (await memory.append(LAND, memory=handle)).data["added"] == 1
    assert "cannot be used: disk is full" in text
    assert text.endswith("The other tools still work.")


R = Iri("http://example.org/r")


def fact(head: int, tail: int) -> KeptFact:
    return KeptFact(Iri(f"http://example.org/{head}"), R, Iri(f"http://example.org/{tail}"))


CHAIN = [fact(number, number + 1) for number in range(5)]

PLACES = tuple(Place(0, offset, each) for offset, each in enumerate(CHAIN))


def change(path: Path, statement: str, *values: object) -> None:
    """Change the file as damage would: past the checksums."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        assert file.execute(statement, values).rowcount > 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return stored_in(tmp_path)


async def begin(store: MemoryStore, facts: list[KeptFact]) -> str:
    return (await store.append(None, "graph", facts)).handle


@pytest.mark.parametrize(
    "damage",
    [
        "head = 'http://example.org/9'",
        "relation = 'http://example.org/s'",
        "tail = 'http://example.org/9'",
        "tail = CAST(x'ff' AS TEXT)",
        "tail = 7",
        "datatype = 'http://example.org/t'",
        "language = 'en'",
        "verified = 0",
        "path = 1",
        "step = 4",
        "position = 17",
        "checksum = x'0000000000000000'",
    ],
)
async def test_any_column_of_a_fact_that_changed_is_told_and_the_others_are_answered(
    store: MemoryStore, path: Path, damage: str
) -> None:
    handle = await begin(store, CHAIN)
    change(path, f"UPDATE facts SET {damage} WHERE position = 2")  # noqa: S608 - ours
    contents = await store.read(handle, "graph")
    assert (contents.places, contents.damaged) == ((*PLACES[:2], *PLACES[3:]), (3,))
    assert (contents.memory.number, contents.memory.facts) == (1, 5)


async def test_a_fact_that_is_gone_is_told_the_last_one_too(store: MemoryStore, path: Path) -> None:
    handle = await begin(store, CHAIN)
    change(path, "DELETE FROM facts WHERE position IN (0, 4)")
    contents = await store.read(handle, "graph")
    assert (contents.places, contents.damaged) == (PLACES[1:4], (1, 5))


async def test_facts_that_were_moved_between_memories_are_told_in_both(store: MemoryStore, path: Path) -> None:
    one, other = await begin(store, CHAIN[:2]), await begin(store, CHAIN[2:4])
    change(path, "UPDATE facts SET memory = 3 WHERE position = 0 AND memory = 1")
    change(path, "UPDATE facts SET memory = 1 WHERE position = 0 AND memory = 2")
    change(path, "UPDATE facts SET memory = 2 WHERE memory = 3")
    for handle, number in ((one, 1), (other, 2)):
        contents = await store.read(handle, "graph")
        assert contents.memory.number == number
        assert (contents.damaged, [place.fact for place in contents.places]) == ((1,), [CHAIN[2 * number - 1]])


@pytest.mark.parametrize(
    "damage",
    ["facts = 4", "graph = 'other'", "touched = 0.0", "paths = 7", "appends = 9", "size = 1", "checksum = x''"],
)
async def test_a_memory_whose_own_row_changed_is_refused_and_others_are_not(
    store: MemoryStore, path: Path, damage: str
) -> None:
    handle, other = await begin(store, CHAIN), await begin(store, CHAIN)
    change(path, f"UPDATE memories SET {damage} WHERE number = 1")  # noqa: S608 - ours
    for call in (store.read(handle, "graph"), store.append(handle, "graph", [fact(7, 8)])):
        with pytest.raises(InvalidSource, match="is damaged"):
            await call
    assert len((await store.read(other, "graph")).places) == 5


async def test_a_handle_that_may_be_that_of_a_damaged_memory_is_not_called_unknown(
    store: MemoryStore, path: Path
) -> None:
    handle = await begin(store, CHAIN)
    change(path, "UPDATE memories SET digest = zeroblob(32)")
    with pytest.raises(InvalidSource, match="a row of a memory, which may be this one, is not what was written"):
        await store.read(handle, "graph")


async def test_a_fact_that_is_damaged_does_not_count_as_there_already(store: MemoryStore, path: Path) -> None:
    handle = await begin(store, CHAIN)
    change(path, "UPDATE facts SET verified = 7 WHERE position = 2")
    with pytest.raises(InvalidSource, match=r"Nothing was kept: fact 3 of this memory \(number 1 in the memory file\)"):
        await store.append(handle, "graph", [fact(8, 9), CHAIN[2]])
    assert (await store.append(handle, "graph", [fact(8, 9)])).added == (Place(1, 0, fact(8, 9)),)


async def test_a_path_whose_end_is_damaged_is_not_gone_on_with(store: MemoryStore, path: Path) -> None:
    handle = await begin(store, CHAIN)
    change(path, "UPDATE facts SET step = 1 WHERE open_end IS NOT NULL")
    with pytest.raises(InvalidSource, match="Nothing was kept: fact 5 of this memory"):
        await store.append(handle, "graph", [fact(5, 6)])


async def test_what_is_damaged_is_never_deleted_to_make_room(tmp_path: Path, path: Path) -> None:
    await begin(stored_in(tmp_path, now=lambda: 1e9), CHAIN)
    change(path, "UPDATE memories SET touched = 1.0")
    await begin(stored_in(tmp_path, now=lambda: 2e9), CHAIN[:1])
    with pytest.raises(InvalidRequest, match="at most 1 memories"):
        await begin(stored_in(tmp_path, MemoryLimits(memories=1), now=lambda: 2e9), CHAIN)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT number, facts FROM memories").fetchall() == [(1, 5), (2, 1)]


async def test_the_tools_show_what_is_whole_and_name_what_is_not(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        handle = await memory.begin(CAPITAL, LAND)
        change(tmp_path / FILE, "UPDATE facts SET head = head || '9' WHERE position = 0")
        read, resource = await memory.read(handle), await memory.resource(handle)
        grown = await memory.append(CITY, memory=handle)
    left_out = (
        " Left out: 1 fact damaged in the storage (of memory 1 there, in the order of appending: 1). The others are as "
        "they were written."
    )
    line = "Tokyo -[country]-> Japan"
    assert read.plain.text == plain(resource) == f"The memory holds 2 facts in 2 paths; 1 here.{left_out}\n{line}"
    assert (facts_of(read), read.data["status"]) == ([["2", *LAND, "verified"]], "truncated")
    assert grown.summary == f"Kept 1 new fact; memory {handle} holds 3 facts in 3 paths.{left_out}"
    assert (len(facts_of(grown)), grown.data["status"]) == (2, "truncated")
