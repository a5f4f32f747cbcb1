"""Reads the body of an answer, and never more of it than allowed."""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final, Protocol

import anyio.lowlevel

SLICE_BYTES: Final = 65_536
"""The most bytes that are given out at once, so that whoever looks at them never holds up others for long."""
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})


class TooLarge(ValueError):
    """A body has more bytes than allowed."""


class Unpackable(ValueError):
    """A body is compressed in a way that cannot be undone."""


class _Unpacker(Protocol):
    @property
    def unconsumed_tail(self) -> bytes:
        """What is left of `data` because there was more than `max_length`."""
        ...

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        """Return at most `max_length` bytes of what `data` holds."""
        ...


class _AsItIs:
    def __init__(self) -> None:
        self.unconsumed_tail = b""

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        """Return the first `max_length` bytes."""
        self.unconsumed_tail = data[max_length:]
        return data[:max_length]


async def body_slices(chunks: AsyncIterator[bytes], encoding: str, *, max_bytes: int) -> AsyncGenerator[bytes]:
    """Yield a body in slices of at most `SLICE_BYTES`, unpacked; other tasks have their turn between two of them.

    Args:
        chunks: The body as it comes.
        encoding: Its `Content-Encoding`; it was asked to have none, and some servers do not listen.
        max_bytes: The most bytes of the unpacked body.

    Raises:
        TooLarge: There is more; the first `max_bytes` were given out.
        Unpackable: The compression is unknown or broken.
    """
    unpacker = _unpacker(encoding)
    room = max_bytes
    async for chunk in chunks:
        rest, full = chunk, True
        # What was unpacked may wait inside the unpacker when all that came is used up.
        while rest or full:
            most = min(SLICE_BYTES, room + 1)
            try:
                part = unpacker.decompress(rest, most)
            except zlib.error as error:
                raise Unpackable(str(error)) from error
            rest, full = unpacker.unconsumed_tail, len(part) == most
            if part[:room]:
                yield part[:room]
                await anyio.lowlevel.checkpoint()
            if len(part) > room:
                raise TooLarge
            room -= len(part)


async def read_body(chunks: AsyncIterator[bytes], encoding: str, *, max_bytes: int, received: bytearray) -> None:
    """Read a body into `received`, as `body_slices` gives it out.

    Args:
        chunks: The body as it comes.
        encoding: Its `Content-Encoding`.
        max_bytes: The most bytes of the unpacked body.
        received: Where it goes, so that it is seen how much there is when the reading is interrupted.

    Raises:
        TooLarge: There is more; `received` holds the first `max_bytes`.
        Unpackable: The compression is unknown or broken.
    """
    async with aclosing(body_slices(chunks, encoding, max_bytes=max_bytes)) as slices:
        async for part in slices:
            received += part


def _unpacker(encoding: str) -> _Unpacker:
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return _AsItIs()
    if name in _PACKED:
        return zlib.decompressobj(_GZIP_OR_ZLIB)
    raise Unpackable(name)
