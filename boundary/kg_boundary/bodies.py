"""Reads the body of an answer, and never more of it than allowed: so many bytes unpacked, and so much time."""

import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing
from typing import Final

import anyio.lowlevel
import httpx2

SLICE_BYTES: Final = 65_536
"""The most bytes of a slice, so that reading one never blocks other tasks for long."""
MAX_ANSWER_BYTES: Final = 10_000_000
"""How many bytes of a model service's answer are read, unpacked."""
ASKED_FOR: Final = {"Accept-Encoding": "identity"}
"""Headers of requests; some services do not listen, and pack their answers all the same."""

_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})


class UnreadableBody(ValueError):
    """A body cannot be read as it should be."""


class TooLarge(UnreadableBody):
    """A body has more bytes than allowed."""


class Unpackable(UnreadableBody):
    """A body is compressed in a way that cannot be undone."""


class RedirectRefused(UnreadableBody):
    """A redirect leads to another origin."""


async def body_slices(chunks: AsyncIterable[bytes], encoding: str, *, max_bytes: int) -> AsyncGenerator[bytes]:
    """Yield a body in slices of at most `SLICE_BYTES`, unpacked; other tasks have their turn between two of them.

    Args:
        chunks: The body as it comes.
        encoding: Its `Content-Encoding`; it was asked to have none, and some servers do not listen.
        max_bytes: The most bytes of the unpacked body.

    Raises:
        TooLarge: There is more; the first `max_bytes` were yielded.
        Unpackable: The compression is unknown or broken.
    """
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB) if _is_packed(encoding) else None
    room = max_bytes
    async for chunk in chunks:
        rest, full = chunk, True
        # What was unpacked may wait inside the unpacker when all that came is used up.
        while rest or full:
            most = min(SLICE_BYTES, room + 1)
            if unpacker is None:
                part, rest, full = rest[:most], rest[most:], False
            else:
                try:
                    part = unpacker.decompress(rest, most)
                except zlib.error as error:
                    raise Unpackable(f"it cannot be unpacked ({error})") from error
                rest, full = unpacker.unconsumed_tail, len(part) == most
            if part[:room]:
                yield part[:room]
                await anyio.lowlevel.checkpoint()
            if len(part) > room:
                raise TooLarge(f"it has more than {max_bytes:,} bytes")
            room -= len(part)


async def read_body(chunks: AsyncIterable[bytes], encoding: str, *, max_bytes: int, received: bytearray) -> None:
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


def stays_in_place(asked: httpx2.URL, target: httpx2.URL) -> bool:
    """Return whether a redirect stays on host and port, or moves the host from http to https."""
    if asked.host != target.host or target.scheme not in {"http", "https"} or target.userinfo:
        return False
    if asked.scheme == target.scheme:
        return _port(asked) == _port(target)
    return target.scheme == "https" and _port(asked) == 80 and _port(target) == 443


class AnswerBounds:
    """Bounds the body of every response of a client, and keeps its requests at their origin.

    It is an event hook, which is called before the body is read and before a redirect is followed.

    Args:
        timeout_s: The most seconds that the body of an answer may take.
        max_bytes: The most bytes of it, unpacked.
    """

    def __init__(self, timeout_s: float, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes

    async def __call__(self, response: httpx2.Response) -> None:
        """Bound the body of a response.

        Raises:
            RedirectRefused: It would have the request, with all that it holds, sent to another origin.
            Unpackable: It is packed in a way that is not known.
        """
        if response.has_redirect_location:
            _refuse_another_origin(response)
        encoding = response.headers.get("content-encoding", "")
        _is_packed(encoding)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.headers.pop("content-encoding", None)
            slices = body_slices(response.stream, encoding, max_bytes=self._max_bytes)
            response.stream = _BoundedBody(response, response.stream, slices, time.monotonic() + self._timeout_s)


def _refuse_another_origin(response: httpx2.Response) -> None:
    try:
        target = response.request.url.join(response.headers["location"])
    except httpx2.InvalidURL as error:
        raise RedirectRefused("it redirects to an address that cannot be read") from error
    if not stays_in_place(response.request.url, target):
        place = target.netloc.decode("ascii")
        raise RedirectRefused(
            f"it redirects to {target.scheme}://{place}, and redirects to another origin are not followed. "
            "If that is the service, set its URL"
        )


def _port(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(
        self, response: httpx2.Response, body: httpx2.AsyncByteStream, slices: AsyncGenerator[bytes], until: float
    ) -> None:
        self._request = response.request
        self._body = body
        self._slices = slices
        self._until = until

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._slices) as slices:
            async for part in slices:
                if time.monotonic() > self._until:
                    raise httpx2.ReadTimeout("The answer does not come to its end.", request=self._request)
                yield part

    async def aclose(self) -> None:
        await self._body.aclose()


def _is_packed(encoding: str) -> bool:
    """Return whether a body must be unpacked.

    Raises:
        Unpackable: It is packed in a way that is not known.
    """
    name = encoding.strip().lower()
    if name not in {"", "identity", *_PACKED}:
        raise Unpackable(f"it comes packed as {name[:40]}, which was not asked for")
    return name in _PACKED
