"""Answers of a web service that end: after so many bytes, and after so much time."""

import time
import zlib
from collections.abc import AsyncIterator
from typing import Final

import httpx2

MAX_BYTES: Final = 10_000_000
"""How many bytes of an answer are read, unpacked."""

ASKED_FOR: Final = {"Accept-Encoding": "identity"}
"""Headers of requests; some services do not listen, and pack their answers all the same."""

_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32


class UnreadableBody(ValueError):
    """A service sends more than a reply can be, or packed it in a way that cannot be undone."""


class AnswerBounds:
    """Told of every response before its body is read, and bounds it.

    Args:
        timeout_s: The most seconds that the body of an answer may take.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    async def __call__(self, response: httpx2.Response) -> None:
        """Bound the body of a response.

        Raises:
            UnreadableBody: It is packed in a way that is not known.
        """
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        if packing not in {"", "identity", *_PACKED}:
            raise UnreadableBody(f"it comes packed as {packing}, which was not asked for")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.headers.pop("content-encoding", None)
            until = time.monotonic() + self._timeout_s
            response.stream = _BoundedBody(response.stream, response.request, until, packed=packing in _PACKED)


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.AsyncByteStream, request: httpx2.Request, until: float, *, packed: bool) -> None:
        self._body = body
        self._request = request
        self._until = until
        self._unpacker = zlib.decompressobj(_GZIP_OR_ZLIB) if packed else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_BYTES
        async for part in self._body:
            unpacked = self._unpacked(part, left + 1)
            left -= len(unpacked)
            if left < 0:
                raise UnreadableBody(f"it has more than {MAX_BYTES:,} bytes")
            if time.monotonic() > self._until:
                raise httpx2.ReadTimeout("The answer does not come to its end.", request=self._request)
            yield unpacked

    def _unpacked(self, part: bytes, most: int) -> bytes:
        if self._unpacker is None:
            return part
        try:
            return self._unpacker.decompress(part, most)
        except zlib.error as error:
            raise UnreadableBody(f"it cannot be unpacked ({error})") from error

    async def aclose(self) -> None:
        await self._body.aclose()
