"""Reads the body of an answer, and never more of it than allowed."""

import zlib
from collections.abc import AsyncIterator
from typing import Final, Protocol

_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})


class TooLarge(ValueError):
    """A body has more bytes than allowed."""


class Unpackable(ValueError):
    """A body is compressed in a way that cannot be undone."""


class _Unpacker(Protocol):
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        """Return at most `max_length` bytes of what `data` holds."""
        ...


class _AsItIs:
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        """Return the first `max_length` bytes."""
        return data[:max_length]


async def read_body(chunks: AsyncIterator[bytes], encoding: str, *, max_bytes: int, received: bytearray) -> None:
    """Read a body into `received`, unpacked.

    Args:
        chunks: The body as it comes.
        encoding: Its `Content-Encoding`; it was asked to have none, and some servers do not listen.
        max_bytes: The most bytes of the unpacked body.
        received: Where it goes, so that it is seen how much there is when the reading is interrupted.

    Raises:
        TooLarge: There is more; `received` holds the first `max_bytes`.
        Unpackable: The compression is unknown or broken.
    """
    unpacker = _unpacker(encoding)
    async for chunk in chunks:
        try:
            received += unpacker.decompress(chunk, max_bytes + 1 - len(received))
        except zlib.error as error:
            raise Unpackable(str(error)) from error
        if len(received) > max_bytes:
            del received[max_bytes:]
            raise TooLarge


def _unpacker(encoding: str) -> _Unpacker:
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return _AsItIs()
    if name in _PACKED:
        return zlib.decompressobj(_GZIP_OR_ZLIB)
    raise Unpackable(name)
