"""One client over standard input and output, read no faster than it is answered."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import BinaryIO, Final, Self

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import INVALID_REQUEST, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from kg_server.messages import LISTEN, NotAMessage, read_message, refusal
from kg_server.wire import Lines, Output

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2


@dataclass(frozen=True, slots=True)
class StdioLimits:
    """How much of one client's requests is held.

    Args:
        requests: The most that are answered at once; more stay unread.
        message_bytes: The most bytes of one message.
        held_bytes: The most bytes of all that are answered at once, where they are several.
    """

    requests: int = 64
    message_bytes: int = 4 * 1024 * 1024
    held_bytes: int = 16 * 1024 * 1024


class Turns:
    """Requests that are being answered; others wait for one of them to end."""

    def __init__(self, limits: StdioLimits) -> None:
        self._limits = limits
        self._sizes: dict[RequestId, list[int]] = {}
        self._count = 0
        self._bytes = 0
        self._ended = anyio.Event()
        self.waiting = False
        """Whether somebody waits for an end."""

    async def take(self, request: RequestId, size: int) -> None:
        """Wait until a request of so many bytes may be answered."""
        while self._count and (self._count >= self._limits.requests or self._bytes + size > self._limits.held_bytes):
            await self._end_of_one()
        # A client that gives one id twice at once has two turns.
        self._sizes.setdefault(request, []).append(size)
        self._count += 1
        self._bytes += size

    def end(self, request: RequestId) -> None:
        """Note that a request is answered, or never will be."""
        sizes = self._sizes.get(request)
        if not sizes:
            return
        self._count -= 1
        self._bytes -= sizes.pop()
        if not sizes:
            del self._sizes[request]
        self._ended.set()
        self._ended = anyio.Event()

    async def all_ended(self) -> None:
        """Wait until everything is answered."""
        while self._count:
            await self._end_of_one()

    async def _end_of_one(self) -> None:
        self.waiting = True
        await self._ended.wait()
        self.waiting = False


class Answers:
    """Writes messages, one a line, each when the one before has been taken.

    Args:
        stream: Where they go, unbuffered.
        turns: Who is told that a request is answered.
    """

    def __init__(self, stream: BinaryIO, turns: Turns) -> None:
        self._output = Output(stream)
        self._turns = turns

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more.
        """
        message = item.message
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        try:
            await self._output.write(line)
        except OSError as error:
            raise anyio.BrokenResourceError from error
        finally:
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                self._turns.end(message.id)

    async def aclose(self) -> None:
        """Write no more."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class Messages:
    """Reads messages, one a line; what is none is answered with an error, so that no client waits for ever.

    Args:
        stream: Where they come from, unbuffered.
        answers: Where the errors go.
        turns: What bounds the requests that are answered at once.
        limits: What bounds a line.
    """

    def __init__(self, stream: BinaryIO, answers: Answers, turns: Turns, limits: StdioLimits) -> None:
        self._lines = Lines(stream, limits.message_bytes)
        self._answers = answers
        self._turns = turns
        self._max_bytes = limits.message_bytes

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: There is none, and those before are answered.
        """
        while True:
            line = await self._lines.next()
            if not line:
                await self._turns.all_ended()
                raise anyio.EndOfStream
            try:
                return await self._message(line)
            except NotAMessage as error:
                await self._answers.send(SessionMessage(error.answer))

    async def _message(self, line: bytes) -> SessionMessage:
        if len(line) > self._max_bytes:
            too_long = f"Invalid request: one message has at most {self._max_bytes:,} bytes; this line has more."
            raise NotAMessage(refusal(None, INVALID_REQUEST, too_long))
        message = read_message(line)
        if not isinstance(message, JSONRPCRequest) or message.method == LISTEN:
            # Neither is answered, or not before the client leaves.
            return SessionMessage(message)
        await self._turns.take(message.id, len(line))
        # What is cancelled gets no answer, and its turn ends all the same.
        unanswered = partial(self._unanswered, message.id)
        return SessionMessage(message, metadata=ServerMessageMetadata(on_request_unanswered=unanswered))

    async def _unanswered(self, request: RequestId) -> None:
        self._turns.end(request)

    async def aclose(self) -> None:
        """Read no more."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


@contextmanager
def standard_streams() -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Give standard input and output to the protocol alone.

    Meanwhile others who read standard input find its end, and what they write to standard output goes to standard
    error, in this process and in those that it starts.
    """
    sys.stdout.flush()
    copies = os.dup(STDIN), os.dup(STDOUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.dup2(STDERR, STDOUT)
    os.close(nothing)
    try:
        # A thread may still wait for one of them when this ends, so that nothing is closed under it.
        yield (
            os.fdopen(copies[0], "rb", buffering=0, closefd=False),
            os.fdopen(copies[1], "wb", buffering=0, closefd=False),
        )
    finally:
        os.dup2(copies[0], STDIN)
        os.dup2(copies[1], STDOUT)
