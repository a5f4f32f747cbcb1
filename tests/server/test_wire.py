"""Lines in and out of pipes, files and what is neither."""

import io
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import anyio
import pytest

from kg_server.stdio import Lines, Output

LONG = 300_000
"""More bytes than a pipe holds."""


class Pipe:
    """Both ends of a pipe, unbuffered."""

    def __init__(self) -> None:
        ends = os.pipe()
        self._open = ExitStack()
        self.out: BinaryIO = self._open.enter_context(os.fdopen(ends[0], "rb", buffering=0))
        self.into: BinaryIO = self._open.enter_context(os.fdopen(ends[1], "wb", buffering=0))

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    both = Pipe()
    yield both
    both.close()


async def all_of(lines: Lines) -> list[bytes]:
    found: list[bytes] = []
    while line := await lines.next():
        found.append(line)
    return found


async def test_lines_of_a_pipe_come_whole_however_they_were_cut(pipe: Pipe) -> None:
    lines = Lines(pipe.out, 100)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cut_into_pipe, pipe, [b"a", b"b\nc", b"\n\nd\n", b"end"])
        assert await all_of(lines) == [b"ab\n", b"c\n", b"\n", b"d\n", b"end"]


async def cut_into_pipe(pipe: Pipe, pieces: list[bytes]) -> None:
    for piece in pieces:
        pipe.into.write(piece)
        await anyio.wait_all_tasks_blocked()
    pipe.into.close()


async def test_of_a_line_that_is_too_long_no_more_is_kept_than_shows_it(pipe: Pipe) -> None:
    lines = Lines(pipe.out, 10)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Output(pipe.into).write, b"x" * LONG + b"\nshort\n" + b"y" * LONG + b"\n")
        assert [await lines.next() for _ in range(3)] == [b"x" * 11, b"short\n", b"y" * 11]


@pytest.mark.parametrize("end", [b"\n", b""], ids=["with an end", "without"])
async def test_a_file_is_read_like_a_pipe(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "requests"
    path.write_bytes(b"one\ntwo" + end)
    with path.open("rb", buffering=0) as file:
        assert await all_of(Lines(file, 100)) == [b"one\n", b"two" + end]


async def test_what_is_in_memory_is_read_and_written() -> None:
    assert await all_of(Lines(io.BytesIO(b"one\ntwo"), 100)) == [b"one\n", b"two"]
    written = io.BytesIO()
    await Output(written).write(b"one\n")
    assert written.getvalue() == b"one\n"


@pytest.mark.parametrize("blocking", [True, False])
async def test_what_a_pipe_does_not_hold_waits_for_its_reader_and_what_follows_waits_too(
    pipe: Pipe, blocking: bool
) -> None:
    os.set_blocking(pipe.into.fileno(), blocking)
    output = Output(pipe.into)
    ended: list[str] = []

    async def write(name: str, text: bytes) -> None:
        await output.write(text)
        ended.append(name)

    lines = Lines(pipe.out, LONG + 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write, "long", b"x" * LONG + b"\n")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(write, "short", b"short\n")
        await anyio.wait_all_tasks_blocked()
        assert ended == []
        assert [await lines.next() for _ in range(2)] == [b"x" * LONG + b"\n", b"short\n"]
    assert ended == ["long", "short"]


async def test_a_pipe_that_nobody_reads_any_more_is_an_error(pipe: Pipe) -> None:
    pipe.out.close()
    with pytest.raises(BrokenPipeError):
        await Output(pipe.into).write(b"one\n")


async def test_an_empty_pipe_that_does_not_wait_is_no_end(pipe: Pipe) -> None:
    os.set_blocking(pipe.out.fileno(), False)
    lines = Lines(pipe.out, 100)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cut_into_pipe, pipe, [b"", b"one\n"])
        assert await all_of(lines) == [b"one\n"]
