"""Answers of a web service that end: after so many bytes, and after so much time."""

import time
from collections.abc import AsyncIterator
from typing import Final

import httpx2

MAX_BYTES: Final = 10_000_000
"""How many bytes of an answer are read."""

ASKED_FOR: Final = {"Accept-Encoding": "identity"}
"""Headers of requests: what is packed may be far longer than the bytes that come."""


class EndlessAnswer(ValueError):
    """A service sends more than a reply can be, or packed what was to come unpacked."""


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
            EndlessAnswer: It is packed.
        """
        packing = response.headers.get("content-encoding", "identity")
        if packing.lower() != "identity":
            raise EndlessAnswer(f"it comes packed as {packing}, which was not asked for")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedBody(response.stream, response.request, time.monotonic() + self._timeout_s)


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.AsyncByteStream, request: httpx2.Request, until: float) -> None:
        self._body = body
        self._request = request
        self._until = until

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_BYTES
        async for part in self._body:
            left -= len(part)
            if left < 0:
                raise EndlessAnswer(f"it has more than {MAX_BYTES:,} bytes")
            if time.monotonic() > self._until:
                raise httpx2.ReadTimeout("The answer does not come to its end.", request=self._request)
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()
