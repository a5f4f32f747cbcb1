import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from calls import Reply
from kg_adapters.local.adapter import LocalAdapter
from memories import FILE, Clock, remembering

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


@pytest.mark.parametrize("triples", ["Q1490 | P36 | Q179645", [1], [[1, 2, 3]], {"head": "Q1490"}, None])
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
