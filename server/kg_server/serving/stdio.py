"""MCP over standard input and output."""

import io
import os
import select
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import BinaryIO, Final, Self

import anyio
from anyio import to_thread
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import INVALID_REQUEST, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from kg_server.serving.messages import LISTEN, NotAMessage, read_message, refusal

_READ_AT_ONCE: Final = 64 * 1024
_NEVER_BLOCKS: Final = 512 if sys.platform == "win32" else select.PIPE_BUF
"""How many bytes a pipe takes at once where it is ready for any."""


class Lines:
    """Reads a stream line by line, and holds no more of it than a line and what came with its end.

    Args:
        stream: Where the lines come from, unbuffered.
        max_bytes: How much of a line is kept.
    """

    def __init__(self, stream: BinaryIO, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._descriptor = _descriptor(stream)
        self._held = bytearray()

    async def next(self) -> bytes:
        """Return a line with its end; of one that is too long, one byte more than is kept; nothing at the end."""
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            searched = len(self._held)
            if searched > self._max_bytes:
                return await self._rest_skipped()
            read = await self._read()
            if not read:
                return self._taken(searched)
            self._held += read
        return self._taken(end + 1)

    async def _rest_skipped(self) -> bytes:
        line = self._taken(self._max_bytes + 1)
        while (end := self._held.find(b"\n")) < 0:
            self._held.clear()
            read = await self._read()
            if not read:
                return line
            self._held += read
        del self._held[: end + 1]
        return line

    def _taken(self, length: int) -> bytes:
        taken = bytes(self._held[:length])
        del self._held[:length]
        return taken

    async def _read(self) -> bytes:
        while self._descriptor is not None:
            try:
                await anyio.wait_readable(self._descriptor)
                return os.read(self._descriptor, _READ_AT_ONCE)
            except PermissionError:
                # A regular file is always ready, and the system does not say so.
                self._descriptor = None
            except BlockingIOError:
                # Another reader of the same stream was faster.
                continue
        return await to_thread.run_sync(self._stream.read, _READ_AT_ONCE)


class Output:
    """Writes to a stream, each text when the one before has been taken.

    Args:
        stream: Where it goes, unbuffered.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._one_at_a_time = anyio.Lock(fast_acquire=True)
        self._ready: select.poll | None = None
        descriptor = _descriptor(stream)
        if descriptor is not None:
            self._ready = select.poll()
            self._ready.register(descriptor, select.POLLOUT)

    async def write(self, text: bytes) -> None:
        """Write a text, and wait until it fits into the pipe.

        Raises:
            OSError: The reader has gone.
        """
        async with self._one_at_a_time:
            rest = self._written_at_once(memoryview(text))
            if rest:
                await to_thread.run_sync(self._write, rest)

    def _written_at_once(self, rest: memoryview) -> memoryview:
        """Write while nothing has to be waited for, and return what is left."""
        while rest and self._ready is not None and self._ready.poll(0):
            rest = rest[self._stream.write(rest[:_NEVER_BLOCKS]) or 0 :]
        return rest

    def _write(self, rest: memoryview) -> None:
        while rest:
            if self._ready is not None:
                self._ready.poll()
            rest = rest[self._stream.write(rest) or 0 :]


def _descriptor(stream: BinaryIO) -> int | None:
    """Return the descriptor that can be polled for a stream; None if there is none."""
    if sys.platform == "win32":
        return None
    try:
        return stream.fileno()
    except io.UnsupportedOperation:
        return None


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
        grace_s: After how many seconds without an answer the rest is given up, once the client has closed its end.
    """

    requests: int = 64
    message_bytes: int = 4 * 1024 * 1024
    held_bytes: int = 16 * 1024 * 1024
    grace_s: float = 2.0


class Turns:
    """Requests that are being answered; others wait for one of them to end."""

    def __init__(self, limits: StdioLimits) -> None:
        self._limits = limits
        self._sizes: dict[RequestId, list[int]] = {}
        self._count = 0
        self._bytes = 0
        self._ended = anyio.Event()
        self.waiting = False
        """Whether a request waits for another to end."""

    async def take(self, request: RequestId, size: int) -> None:
        """Wait until a request of so many bytes may be answered."""
        while self._count and (self._count >= self._limits.requests or self._bytes + size > self._limits.held_bytes):
            await self._end_of_one()
        # A client that gives one id twice at once has two turns.
        self._sizes.setdefault(request, []).append(size)
        self._count += 1
        self._bytes += size

    def end(self, request: RequestId) -> None:
        """Record that a request is answered or given up."""
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
        """Wait until everything is answered, or until no answer came for `grace_s`."""
        gave_up = False
        while self._count and not gave_up:
            with anyio.move_on_after(self._limits.grace_s) as scope:
                await self._end_of_one()
            gave_up = scope.cancelled_caught

    async def _end_of_one(self) -> None:
        self.waiting = True
        await self._ended.wait()
        self.waiting = False


class Answers:
    """Writes messages, one a line, each when the one before has been taken.

    Args:
        stream: Where they go, unbuffered.
        turns: Notified of each answered request.
    """

    def __init__(self, stream: BinaryIO, turns: Turns) -> None:
        self._output = Output(stream)
        self._turns = turns

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message.

        Raises:
            anyio.BrokenResourceError: The reader has gone.
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
    """Reads messages, one a line; an invalid message is answered with an error, so that no client waits forever.

    Args:
        stream: Where they come from, unbuffered.
        answers: Where the errors go.
        turns: What bounds the requests that are answered at once.
        limits: What bounds a line.
        at_end: Called when there are no more.
    """

    def __init__(
        self,
        stream: BinaryIO,
        answers: Answers,
        turns: Turns,
        limits: StdioLimits,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._lines = Lines(stream, limits.message_bytes)
        self._answers = answers
        self._turns = turns
        self._max_bytes = limits.message_bytes
        self._at_end = at_end

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: There is none, and those before are answered or given up.
        """
        while True:
            line = await self._lines.next()
            if not line:
                await self._turns.all_ended()
                self._at_end()
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
    """Reserve standard input and output for the protocol.

    Meanwhile all other code, also in child processes, finds standard input at its end, and its standard output goes
    to standard error.
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
