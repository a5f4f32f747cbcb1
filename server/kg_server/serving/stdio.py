"""MCP over standard input and output."""

import io
import os
import select
import sys
from collections import Counter
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
        grace_s: After how many seconds without an answer the rest is given up, once the client has closed its end.
    """

    requests: int = 64
    message_bytes: int = 4 * 1024 * 1024
    grace_s: float = 2.0


class Channel:
    """One client's messages, one a line; an invalid one is answered with an error, so that no client waits forever.

    It is both streams that a server of the SDK runs on.

    Args:
        incoming: Where messages come from, unbuffered.
        outgoing: Where they go, unbuffered.
        limits: What is held of the requests.
        at_end: Called when there are no more messages.
    """

    def __init__(
        self,
        incoming: BinaryIO,
        outgoing: BinaryIO,
        limits: StdioLimits,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._lines = Lines(incoming, limits.message_bytes)
        self._output = Output(outgoing)
        self._limits = limits
        self._at_end = at_end
        self._open = Counter[RequestId]()
        """The requests that are not answered; a client may give one id twice."""
        self._closed = anyio.Event()

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message.

        Raises:
            anyio.BrokenResourceError: The reader has gone.
        """
        message = item.message
        try:
            await self._output.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        except OSError as error:
            raise anyio.BrokenResourceError from error
        finally:
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                await self._close(message.id)

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: There is none, and those before are answered or given up.
        """
        while line := await self._lines.next():
            try:
                return await self._message(line)
            except NotAMessage as error:
                await self.send(SessionMessage(error.answer))
        given_up = False
        while self._open and not given_up:
            with anyio.move_on_after(self._limits.grace_s) as scope:
                await self._closed.wait()
            given_up = scope.cancelled_caught
        self._at_end()
        raise anyio.EndOfStream

    async def _message(self, line: bytes) -> SessionMessage:
        most = self._limits.message_bytes
        if len(line) > most:
            too_long = f"Invalid request: one message has at most {most:,} bytes; this line has more."
            raise NotAMessage(refusal(None, INVALID_REQUEST, too_long))
        message = read_message(line)
        if not isinstance(message, JSONRPCRequest) or message.method == LISTEN:
            # Neither is answered, or not before the client leaves.
            return SessionMessage(message)
        while self._open.total() >= self._limits.requests:
            await self._closed.wait()
        self._open[message.id] += 1
        # What is cancelled gets no answer, and is over all the same.
        unanswered = partial(self._close, message.id)
        return SessionMessage(message, metadata=ServerMessageMetadata(on_request_unanswered=unanswered))

    async def _close(self, request: RequestId) -> None:
        """Note that a request is answered or given up."""
        if self._open[request] > 0:
            self._open[request] -= 1
        self._open += Counter()  # without those at zero
        self._closed.set()
        self._closed = anyio.Event()

    async def aclose(self) -> None:
        """Read and write no more."""

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
