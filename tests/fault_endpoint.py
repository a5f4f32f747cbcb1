"""An HTTP endpoint on loopback that follows a script, down to the single byte: it answers, stalls, cuts and lies.

A script is an async function of the request and of the wire that it came by. `serving(first, second)` follows `first`
for the first request and `second` for all others; `endpoint.follow(…)` changes that at any time.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio

from kg_adapters.http.options import EndpointOptions
from kg_adapters.http.pacing import Timing
from kg_adapters.sparql.endpoint import SparqlEndpoint
from patience import PATIENCE_S

JSON_RESULTS = "application/sparql-results+json"
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its headers have lower-case names, its parameters come from the URL and from a form."""

    method: str
    path: str
    parameters: dict[str, list[str]]
    headers: dict[str, str]
    connection: int

    @property
    def query(self) -> str:
        return self.parameters["query"][0]


@dataclass(slots=True)
class Wire:
    """The connection that a request came by."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    sent: int = 0
    cut: bool = False

    async def send(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()
        self.sent += len(content)

    async def wait_until_gone(self) -> None:
        """Stall: wait until the client hangs up, or the endpoint stops."""
        with suppress(ConnectionError):
            while await self.reader.read(_CHUNK):
                pass
        self.cut = True


Script: TypeAlias = Callable[[Asked, Wire], Awaitable[None]]


@dataclass
class FaultEndpoint:
    """A running endpoint: where it is, and what came.

    Requests for a description of the engine are answered by `about` alone, by default as by one that lacks a query.
    """

    scripts: list[Script]
    url: str = ""
    requests: list[Asked] = field(default_factory=list[Asked])
    about: Script | None = None
    asked_about: list[Asked] = field(default_factory=list[Asked])
    connections: int = 0
    open_connections: int = 0
    bytes_sent: int = 0
    most_at_once: int = 0
    _at_once: int = 0
    _changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def follow(self, *scripts: Script) -> None:
        """Follow other scripts from the next request on."""
        self.scripts = list(scripts)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that changes with requests and connections."""
        with anyio.fail_after(PATIENCE_S):
            while not holds():
                await self._changed.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        wire = Wire(reader, writer, self.connections)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                while not wire.cut:
                    await self._answer(wire)
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            self.open_connections -= 1
            self._tell()

    async def _answer(self, wire: Wire) -> None:
        asked = await _read_request(wire)
        if "cmd" in asked.parameters and "query" not in asked.parameters:
            self.asked_about.append(asked)
            await (self.about or refusing(400, "There is no query."))(asked, wire)
            return
        self.requests.append(asked)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        self._tell()
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        before = wire.sent
        try:
            await script(asked, wire)
        finally:
            self.bytes_sent += wire.sent - before
            self._at_once -= 1
            self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


@asynccontextmanager
async def serving(*scripts: Script, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncGenerator[FaultEndpoint]:
    """Run an endpoint that follows each script once, in order, and then the last one again and again."""
    endpoint = FaultEndpoint(list(scripts))
    handlers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(endpoint.serve(reader, writer))
        handlers[task] = writer
        task.add_done_callback(handlers.pop)

    server = await asyncio.start_server(handle, "127.0.0.1", port, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    endpoint.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/sparql"
    try:
        yield endpoint
    finally:
        server.close()
        for task in (stopping := list(handlers)):
            task.cancel()
        await asyncio.gather(*stopping, return_exceptions=True)


@asynccontextmanager
async def opened(
    server: FaultEndpoint, timing: Timing | None = None, **options: object
) -> AsyncGenerator[SparqlEndpoint]:
    """Open an endpoint's client, which is never late and repeats nothing where the options do not say so."""
    told = EndpointOptions.model_validate({"url": server.url, "timeout_s": PATIENCE_S, "max_retries": 0, **options})
    endpoint = SparqlEndpoint(told, timing=timing)
    try:
        yield endpoint
    finally:
        await endpoint.aclose()


def answering(
    content: bytes | str, *, media_type: str = JSON_RESULTS, status: int = 200, headers: Mapping[str, str] | None = None
) -> Script:
    """Answer with a whole body."""
    body = content.encode() if isinstance(content, str) else content

    async def answer(_: Asked, wire: Wire) -> None:
        await wire.send(head(status, {"Content-Type": media_type, "Content-Length": str(len(body)), **(headers or {})}))
        await wire.send(body)

    return answer


def results(variables: Sequence[str], *rows: Mapping[str, Mapping[str, str]]) -> str:
    """Write SPARQL JSON results."""
    return json.dumps({"head": {"vars": list(variables)}, "results": {"bindings": list(rows)}})


def uri(value: str) -> dict[str, str]:
    """Write an IRI as SPARQL JSON results have it."""
    return {"type": "uri", "value": value}


def refusing(status: int, text: str = "", **headers: str) -> Script:
    """Refuse with a status; `Retry_After="3"` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return answering(text, media_type="text/plain", status=status, headers=named)


def redirecting(url: str, status: int = 302) -> Script:
    """Redirect."""
    return answering("", media_type="text/plain", status=status, headers={"Location": url})


async def stalling(_: Asked, wire: Wire) -> None:
    """Take the request and never answer."""
    await wire.wait_until_gone()


async def stalling_behind_headers(_: Asked, wire: Wire) -> None:
    """Promise a body that does not come."""
    await wire.send(head(200, {"Content-Type": JSON_RESULTS, "Content-Length": "1000"}) + b'{"head":')
    await wire.wait_until_gone()


async def dropping(_: Asked, wire: Wire) -> None:
    """Take the request and hang up."""
    wire.cut = True


async def cutting_the_body(_: Asked, wire: Wire) -> None:
    """Promise more than is sent, and hang up."""
    await wire.send(head(200, {"Content-Type": JSON_RESULTS, "Content-Length": "1000"}) + b'{"head":')
    wire.cut = True


def streaming(total_bytes: int) -> Script:
    """Send a body of so many bytes, made on the way, for as long as the client listens."""

    async def answer(_: Asked, wire: Wire) -> None:
        await wire.send(head(200, {"Content-Type": JSON_RESULTS, "Transfer-Encoding": "chunked"}))
        for _number in range(total_bytes // _CHUNK):
            await wire.send(b"%x\r\n" % _CHUNK + b" " * _CHUNK + b"\r\n")
        await wire.send(b"0\r\n\r\n")

    return answer


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Write a status line and headers."""
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


async def _read_request(wire: Wire) -> Asked:
    start, *lines = (await wire.reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
    method, target, _ = start.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await wire.reader.readexactly(int(headers.get("content-length", "0")))
    url = urlsplit(target)
    return Asked(method, url.path, parse_qs(f"{url.query}&{body.decode()}"), headers, wire.number)
