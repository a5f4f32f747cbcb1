"""What passes between one client and the server: in turns, a line each."""

import io
import json

import anyio
import pytest
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from kg_server.stdio import Answers, Messages, StdioLimits, Turns

LIMITS = StdioLimits(requests=2, message_bytes=100, held_bytes=1_000)


class Wire:
    """Both directions in memory."""

    def __init__(self, *lines: bytes) -> None:
        self.written = io.BytesIO()
        self.turns = Turns(LIMITS)
        self.answers = Answers(self.written, self.turns)
        self.messages = Messages(io.BytesIO(b"\n".join(lines)), self.answers, self.turns, LIMITS)

    @property
    def refusals(self) -> list[JSONRPCError]:
        return [JSONRPCError.model_validate_json(line) for line in self.written.getvalue().splitlines()]


def ping(number: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode()


async def answered(wire: Wire, number: int) -> None:
    await wire.answers.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=number, result={})))


async def test_messages_pass_between_refusals() -> None:
    wire = Wire(b"{", ping(1), b"[]")
    item = await wire.messages.receive()
    assert item.message == JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
    await answered(wire, 1)
    assert [each async for each in wire.messages] == []
    first, _, last = wire.written.getvalue().splitlines()
    assert [json.loads(line)["error"]["code"] for line in (first, last)] == [-32700, -32600]


@pytest.mark.parametrize("end", [b"\n", b""], ids=["with an end", "without"])
async def test_a_line_that_is_too_long_is_refused_and_what_follows_is_read(end: bytes) -> None:
    for length in (102, 200_000):
        wire = Wire(b"x" * length, ping(1)) if end else Wire(b"x" * length)
        seen = 0
        async for _ in wire.messages:
            seen += 1
            wire.turns.end(1)
        assert (seen, [refusal.error.code for refusal in wire.refusals]) == (1 if end else 0, [-32600])


async def test_a_request_waits_for_a_turn_and_a_notification_does_not() -> None:
    wire = Wire(ping(1), ping(2), b'{"jsonrpc":"2.0","method":"notifications/initialized"}', ping(3))
    read: list[object] = []

    async def read_one_more() -> None:
        read.append((await wire.messages.receive()).message)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            await wire.messages.receive()
        tasks.start_soon(read_one_more)
        await until_waiting(wire)
        assert read == []
        await answered(wire, 1)
    assert read == [JSONRPCRequest(jsonrpc="2.0", id=3, method="ping")]


async def until_waiting(wire: Wire) -> None:
    while not wire.turns.waiting:
        await anyio.lowlevel.checkpoint()


async def test_requests_wait_for_their_bytes_too_and_the_first_never_does() -> None:
    turns = Turns(LIMITS)
    await turns.take(1, 1_000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.take, 2, 1)
        await anyio.wait_all_tasks_blocked()
        assert turns.waiting
        turns.end(1)
    assert not turns.waiting


async def test_a_cancelled_request_gives_its_turn_back() -> None:
    wire = Wire(ping(1), ping(2), ping(2))
    await wire.messages.receive()
    item = await wire.messages.receive()
    assert isinstance(item.metadata, ServerMessageMetadata)
    assert item.metadata.on_request_unanswered is not None
    await item.metadata.on_request_unanswered()
    item = await wire.messages.receive()
    assert item.message == JSONRPCRequest(jsonrpc="2.0", id=2, method="ping")


async def test_the_end_comes_when_everything_is_answered() -> None:
    wire = Wire(ping(1))
    await wire.messages.receive()
    ended = anyio.Event()

    async def read_on() -> None:
        with pytest.raises(anyio.EndOfStream):
            await wire.messages.receive()
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_on)
        await until_waiting(wire)
        assert not ended.is_set()
        await answered(wire, 1)
    assert ended.is_set()


async def test_what_is_not_answered_soon_after_the_end_is_given_up() -> None:
    wire, ended = Wire(ping(1)), list[str]()
    limits = StdioLimits(grace_s=0.01)
    turns = Turns(limits)
    messages = Messages(io.BytesIO(ping(1)), wire.answers, turns, limits, lambda: ended.append("client"))
    await messages.receive()
    with pytest.raises(anyio.EndOfStream):
        await messages.receive()
    assert ended == ["client"]


class Broken(io.BytesIO):
    """A pipe that nobody reads."""

    def write(self, data: object, /) -> int:
        raise BrokenPipeError


async def test_an_answer_that_nobody_takes_ends_the_turn_all_the_same() -> None:
    turns = Turns(LIMITS)
    await turns.take(1, 10)
    with pytest.raises(anyio.BrokenResourceError):
        await Answers(Broken(), turns).send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
    await turns.all_ended()
