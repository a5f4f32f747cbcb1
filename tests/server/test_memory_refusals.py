import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from calls import Reply
from kg_adapters.local.adapter import LocalAdapter
from kg_server.memory.store import MemoryLimits
from memories import FILE, Clock, remembering

CAPITAL, LAND, CITY = ["Q1490", "P36", "Q179645"], ["Q1490", "P17", "Q17"], ["Q1490", "P31", "Q515"]
NO_SUCH_MEMORY = (
    "No memory has this handle, or its last append is more than 30 days ago, or it was deleted to make room. Pass the "
    "handle unchanged as memory-append gave it, or call memory-append without one to begin a new memory."
)
HUGE = "x" * 1_000_000


def overwrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def make_read_only(folder: Path) -> None:
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        folder.chmod(0o700)
        pytest.skip("needs an account that the modes of files bind")


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


async def test_appending_keeps_a_memory_young(tokyo: LocalAdapter, tmp_path: Path) -> None:
    clock = Clock()
    async with remembering(tokyo, tmp_path, MemoryLimits(age_days=2), now=clock) as memory:
        handle = await memory.begin(CAPITAL)
        clock.pass_days(1.5)
        await memory.append(CAPITAL, memory=handle)
        clock.pass_days(1.5)
        assert (await memory.read(handle)).data["total"] == 1
        clock.pass_days(1)
        assert refused(await memory.read(handle)) == [NO_SUCH_MEMORY.replace("30", "2")]


async def test_sizes_are_limited_and_the_refusal_says_what_to_do(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path, MemoryLimits(facts=2)) as memory:
        handle = await memory.begin(CAPITAL)
        assert refused(await memory.append(LAND, CITY, memory=handle)) == [
            "This memory holds 1 of at most 2 facts: 2 more do not fit, and nothing was stored. "
            "Call memory-append without a handle to begin another memory.",
        ]
        assert (await memory.append(LAND, memory=handle)).data["added"] == 1


async def test_a_memory_of_another_graph_is_refused_by_name_and_left_alone(
    tokyo: LocalAdapter, sample: LocalAdapter, tmp_path: Path
) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        handle = await memory.begin(CAPITAL)
        async with remembering(sample, tmp_path) as foreign:
            texts = refused(
                await foreign.read(handle), await foreign.append(["Q937", "P106", "Q169470"], memory=handle)
            )
        assert (await memory.read(handle)).data["total"] == 1
    assert (
        texts
        == [
            "This memory belongs to the graph 'test'; this server answers from 'sample'. Call memory-append without a "
            "handle to begin a memory here."
        ]
        * 2
    )


@pytest.mark.parametrize(
    ("triple", "reason"),
    [
        (
            ['"Tokyo"@en', "P36", "Q179645"],
            "its head is a literal. Only a tail may be one; entities and relations are ids.",
        ),
        (["Q1490", "P36", "Q17\x07"], "'Q17\\u0007' is not an id."),
        (["Q1490", "P36\x00", "Q17"], "'P36\\u0000' is not an id."),
        (["Q1490", "P36", '"\x1b[2J"'], "the graph does not have it."),
        (["Q1490", "P36", '"\ud800"'], "its tail holds a broken character"),
        ([HUGE, "P36", "Q17"], "it has 1,000,000 characters where 3,000 are allowed."),
        (["Q1490", "P36", f'"{HUGE}"'], "it has 1,000,002 characters where 3,000 are allowed."),
        (HUGE, "it has 1,000,000 characters where 9,000 are allowed."),
        (["Q1490", "P36", "Marunouchi"], "No entity matches 'Marunouchi'."),
        (["Q1490", "P36", "13960236"], "the graph does not have it."),
        (["Q1490", "P36", "A name"], 'Put a literal tail in quotes, "like this".'),
        (["Q1490", "P36"], "it has 2 parts."),
        (["x"] * 100_000, "it has 100,000 parts."),
        ("'; DROP TABLE facts; --", "it is not a triple:"),
        ("|" * 9_000, "it is not a triple:"),
    ],
)
async def test_an_odd_triple_is_refused_in_a_few_words_while_its_neighbour_is_kept(
    tokyo: LocalAdapter, tmp_path: Path, triple: object, reason: str
) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        reply = await memory.append(triple, CAPITAL)
        held = await memory.read(str(reply.data["memory"]))
    (line, path) = reply.lines
    assert line.startswith("refused triple 1 (")
    assert reason in line
    assert len(line) < 800
    assert line.isprintable()
    assert (path, reply.data["added"]) == ("Tokyo (Q1490) -[capital (P36)]-> Shinjuku (Q179645)", 1)
    assert held.lines == [path]


@pytest.mark.parametrize("handle", ["", " ", "\x00\x01", HUGE, "\ud800", "kg-memory://mem_1", "\N{FOX FACE}" * 50])
async def test_any_text_that_is_no_handle_is_refused_in_a_few_words(
    tokyo: LocalAdapter, tmp_path: Path, handle: str
) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        assert refused(await memory.read(handle), await memory.append(CAPITAL, memory=handle)) == [NO_SUCH_MEMORY] * 2


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


async def test_a_damaged_file_is_named_left_alone_and_does_not_stop_the_server(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    file = tmp_path / FILE
    overwrite(file, b"not a database at all" * 100)
    async with remembering(tokyo, tmp_path) as memory:
        texts = refused(await memory.append(CAPITAL), await memory.read("mem_1"))
        file.rename(tmp_path / "away")
        assert not (await memory.append(CAPITAL)).is_error
    for text in texts:
        assert text.startswith(f"The memory file {FILE} is damaged (file is not a database). Nothing was deleted.")


async def test_a_folder_that_cannot_be_written_to_is_named(tokyo: LocalAdapter, tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    make_read_only(folder)
    async with remembering(tokyo, folder) as memory:
        (text,) = refused(await memory.append(CAPITAL))
        folder.chmod(0o700)
        assert not (await memory.append(CAPITAL)).is_error
    assert text.startswith(f"The memory file {FILE} cannot be used: Permission denied.")


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
