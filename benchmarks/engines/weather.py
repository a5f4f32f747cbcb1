"""Proxies that stand for a network: one drops, stalls, cuts and refuses by seeded dice, one is far away."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias
from typing import Literal as Choice

import httpx2

Handle: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Weather: TypeAlias = Choice["fair", "drop", "stall", "stall in the body", "cut", "500", "503", "429"]

FAIR: Final[Mapping[Weather, float]] = MappingProxyType({"fair": 1.0})
ROUGH: Final[Mapping[Weather, float]] = MappingProxyType(
    {"fair": 80, "drop": 5, "cut": 4, "503": 4, "429": 2, "500": 2, "stall": 1.5, "stall in the body": 1.5}
)
"""How often, in percent, what happens to a request."""
_LEFT_OUT: Final = frozenset(
    {"connection", "content-encoding", "content-length", "host", "keep-alive", "transfer-encoding"}
)
_REFUSAL: Final = MappingProxyType({"content-type": "text/plain", "retry-after": "0"})
_REFUSED: Final = b"bad weather"
_PATIENCE_S: Final = 60.0
_READ_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Proxy:
    """A running proxy: where it is, and what it saw.

    Attributes:
        url: The server's URL, through the proxy.
        weather: How often what happens, from the next request on.
        keeps: Whether requests are kept.
        requests: The requests that were kept.
        happened: How often what happened.
        connections: How many connections were opened.
        open_connections: How many are open.
    """

    url: str
    weather: Mapping[Weather, float]
    keeps: bool = False
    requests: list[Request] = field(default_factory=list[Request])
    happened: Counter[Weather] = field(default_factory=Counter[Weather])
    connections: int = 0
    open_connections: int = 0


@contextmanager
def weathered(
    url: str, weather: Mapping[Weather, float] = FAIR, *, seed: int = 0, keep: bool = False
) -> Generator[Proxy]:
    """Run a proxy to the server at `url`; with the same seed, the same sequence of dice.

    Args:
        url: Where requests go on to: http, on loopback.
        weather: What happens how often, as weights.
        seed: Where the dice start.
        keep: Whether requests are kept.
    """
    target = httpx2.URL(url)
    proxy = Proxy("", weather, keep)
    dice = random.Random(seed)  # noqa: S311 - dice, not secrets

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        proxy.connections += 1
        proxy.open_connections += 1
        try:
            async with httpx2.AsyncClient(timeout=_PATIENCE_S, trust_env=False) as onward:
                while await _pass_on(_Wire(reader, writer, onward, target), proxy, dice):
                    pass
        finally:
            proxy.open_connections -= 1

    with listening(serve) as port:
        proxy.url = str(target.copy_with(port=port))
        yield proxy


@dataclass(frozen=True, slots=True)
class _Wire:
    """A connection of a client, and what it is connected to."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    onward: httpx2.AsyncClient
    target: httpx2.URL

    async def send(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()

    async def wait_until_gone(self) -> None:
        while await self.reader.read(_READ_BYTES):
            pass


async def _pass_on(wire: _Wire, proxy: Proxy, dice: random.Random) -> bool:
    """Deal with one request, and say whether the connection goes on."""
    request = await _read(wire.reader)
    if proxy.keeps:
        proxy.requests.append(request)
    kinds = list(proxy.weather)
    (now,) = dice.choices(kinds, [proxy.weather[kind] for kind in kinds])
    proxy.happened[now] += 1
    if now == "stall":
        await wire.wait_until_gone()
    elif now in {"500", "503", "429"}:
        await wire.send(_head(int(now), _REFUSAL, len(_REFUSED)) + _REFUSED)
        return True
    elif now != "drop":
        url = wire.target.join(request.target)
        kept = {name: value for name, value in request.headers.items() if name not in _LEFT_OUT}
        return await _answer(
            wire, await wire.onward.request(request.method, url, headers=kept, content=request.body), now
        )
    return False


async def _read(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    start, *lines = head.decode("latin-1").rstrip().split("\r\n")
    method, target, _ = start.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(method, target, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _answer(wire: _Wire, reply: httpx2.Response, now: Weather) -> bool:
    kept = {name: value for name, value in reply.headers.items() if name not in _LEFT_OUT}
    content = _head(reply.status_code, kept, len(reply.content)) + reply.content
    if now == "fair":
        await wire.send(content)
        return True
    await wire.send(content[: len(content) - len(reply.content) // 2 - 1])
    if now == "stall in the body":
        await wire.wait_until_gone()
    return False


def _head(status: int, headers: Mapping[str, str], length: int) -> bytes:
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"content-length: {length}", "", ""]).encode("latin-1")


@contextmanager
def far_away(port: int, *, round_trip_s: float) -> Generator[int]:
    """Give the port of a server that passes everything to `port`, a round trip away; connecting takes one as well."""
    with listening(partial(_pass_both, port, round_trip_s / 2)) as outer:
        yield outer


async def _pass_both(port: int, delay_s: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Connect to a port and pass bytes in both directions, each after a delay."""
    # The client's handshake with this end took no time at all.
    await asyncio.sleep(2 * delay_s)
    beyond, onward = await asyncio.open_connection("127.0.0.1", port)
    try:
        await asyncio.gather(_pass(reader, onward, delay_s), _pass(beyond, writer, delay_s))
    finally:
        await _hang_up(onward)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    loop = asyncio.get_running_loop()
    on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def leave() -> None:
        content = b"-"
        while content:
            content = await reader.read(_READ_BYTES)
            on_the_way.put_nowait((loop.time() + delay_s, content))

    async def arrive() -> None:
        content = b"-"
        while content:
            due, content = await on_the_way.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            writer.write(content)
            await writer.drain()
        writer.close()

    await asyncio.gather(leave(), arrive())


@contextmanager
def listening(handle: Handle) -> Generator[int]:
    """Serve connections on a free port, which is given; whatever is open is closed when the block is left."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(handle, started)))
    thread.start()
    loop, stop, port = started.result()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever state it is in."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _serve(handle: Handle, started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]]") -> None:
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Either side may go at any time: that is what connections do.
            with suppress(OSError, asyncio.IncompleteReadError):
                await handle(reader, writer)
        finally:
            await _hang_up(writer)

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    stop = asyncio.Event()
    try:
        server = await asyncio.start_server(begin, "127.0.0.1", 0)
    except OSError as error:
        started.set_exception(error)
        return
    started.set_result((asyncio.get_running_loop(), stop, server.sockets[0].getsockname()[1]))
    await stop.wait()
    server.close()
    for task in (left := list(tasks)):
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
