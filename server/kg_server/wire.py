"""Lines in and out of pipes, by the event loop wherever the system tells when a pipe is ready, else by a thread.

A thread for each message costs more than many an answer: before it writes it has to get hold of the interpreter, which
the loop needs for the other requests.
"""

import io
import os
import select
import sys
from typing import BinaryIO, Final

import anyio
from anyio import to_thread

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
                # Somebody else who reads here was faster.
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
        """Write a text, and wait until whoever reads has taken what does not fit between.

        Raises:
            OSError: Nobody reads any more.
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
    """Return the number under which the system tells whether a stream is ready; None where it does not."""
    if sys.platform == "win32":
        return None
    try:
        return stream.fileno()
    except io.UnsupportedOperation:
        return None
