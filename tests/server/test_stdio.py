"""Messages over standard input and output: what is read, refused and written."""

import io
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import anyio
import pytest
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from kg_server.serving.messages import NotAMessage, read_message
from kg_server.serving.stdio import Channel, Lines, Output, StdioLimits
from server_processes import NONSENSE, Nonsense

LIMITS = StdioLimits(requests=2, message_bytes=100)


class Wire(Channel):
    """Both directions in memory."""

    def __init__(self, *lines: bytes, limits: StdioLimits = LIMITS) -> None:
        self.written = io.BytesIO()
        self.ended: list[str] = []
        super().__init__(io.BytesIO(b"\n".join(lines)), self.written, limits, lambda: self.ended.append("client"))

    @property
    def refusals(self) -> list[JSONRPCError]:
        return [JSONRPCError.model_validate_json(line) for line in self.written.getvalue().splitlines()]

    async def answer(self, number: int) -> None:
        await self.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=number, result={})))


def ping(number: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode()


async def test_messages_pass_between_refusals() -> None:
    wire = Wire(b"{", ping(1), b"[]")
    item = await wire.receive()
    assert item.message == JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
    await wire.answer(1)
    assert [each async for each in wire] == []
    first, _, last = wire.written.getvalue().splitlines()
    assert [json.loads(line)["error"]["code"] for line in (first, last)] == [-32700, -32600]


@pytest.mark.parametrize("length", [102, 200_000])
async def test_a_line_that_is_too_long_is_refused_and_what_follows_is_read(length: int) -> None:
    wire = Wire(b"x" * length, ping(1))
    item = await wire.receive()
    assert item.message == JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
    assert [refusal.error.code for refusal in wire.refusals] == [-32600]


async def test_a_request_waits_for_a_place_and_a_notification_does_not() -> None:
    wire = Wire(ping(1), ping(2), b'{"jsonrpc":"2.0","method":"notifications/initialized"}', ping(3))
    read: list[object] = []

    async def read_one_more() -> None:
        read.append((await wire.receive()).message)

    for _ in range(3):
        await wire.receive()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_one_more)
        await anyio.sleep(0.05)
        assert read == []
        await wire.answer(1)
    assert read == [JSONRPCRequest(jsonrpc="2.0", id=3, method="ping")]


async def test_a_cancelled_request_gives_its_place_back() -> None:
    wire = Wire(ping(1), ping(2), ping(2))
    await wire.receive()
    item = await wire.receive()
    assert isinstance(item.metadata, ServerMessageMetadata)
    assert item.metadata.on_request_unanswered is not None
    await item.metadata.on_request_unanswered()
    item = await wire.receive()
    assert item.message == JSONRPCRequest(jsonrpc="2.0", id=2, method="ping")


async def test_the_end_comes_when_everything_is_answered() -> None:
    wire = Wire(ping(1), limits=StdioLimits())
    await wire.receive()

    async def read_on() -> None:
        with pytest.raises(anyio.EndOfStream):
            await wire.receive()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_on)
        await anyio.sleep(0.05)
        assert wire.ended == []
        await wire.answer(1)
    assert wire.ended == ["client"]


async def test_what_is_not_answered_soon_after_the_end_is_given_up() -> None:
    wire = Wire(ping(1), limits=StdioLimits(grace_s=0.01))
    await wire.receive()
    with pytest.raises(anyio.EndOfStream):
        await wire.receive()
    assert wire.ended == ["client"]


class Broken(io.BytesIO):
    """A pipe that nobody reads."""

    def write(self, data: object, /) -> int:
        raise BrokenPipeError


async def test_an_answer_that_nobody_takes_is_over_all_the_same() -> None:
    channel = Channel(io.BytesIO(ping(1)), Broken(), StdioLimits(grace_s=600))
    await channel.receive()
    with pytest.raises(anyio.BrokenResourceError):
        await channel.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
    with pytest.raises(anyio.EndOfStream):
        await channel.receive()


@pytest.mark.parametrize("nonsense", NONSENSE, ids=lambda each: each.name)
def test_what_is_no_message_is_refused_under_its_own_id(nonsense: Nonsense) -> None:
    with pytest.raises(NotAMessage) as raised:
        read_message(nonsense.text)
    answer = raised.value.answer
    assert (answer.id, answer.error.code) == (nonsense.id, nonsense.code)
    assert len(answer.error.message) <= 200
    assert "http" not in answer.error.message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}', JSONRPCRequest),
        ('{"jsonrpc": "2.0", "id": "eins", "method": "ping", "params": {"a": 1.5}}', JSONRPCRequest),
        ('{"jsonrpc": "2.0", "id": -9223372036854775807, "method": "ping", "params": null}', JSONRPCRequest),
        ('{"jsonrpc": "2.0", "method": "notifications/initialized"}', JSONRPCNotification),
        ('{"jsonrpc": "2.0", "id": 1, "result": {}}', JSONRPCResponse),
        ('{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "?"}}', JSONRPCError),
    ],
)
def test_messages_are_read_as_they_are(text: str, kind: type) -> None:
    message = read_message(text.encode())
    assert isinstance(message, kind)
    assert json.loads(message.model_dump_json(exclude_unset=True)) == json.loads(text)


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


@pytest.mark.parametrize("end", [b"\n", b""], ids=["with an end", "without"])
async def test_a_file_is_read_like_a_pipe(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "requests"
    path.write_bytes(b"one\ntwo" + end)
    with path.open("rb", buffering=0) as file:
        assert await all_of(Lines(file, 100)) == [b"one\n", b"two" + end]


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
