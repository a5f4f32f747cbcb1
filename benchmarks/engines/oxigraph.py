"""A SPARQL 1.1 endpoint over Oxigraph on loopback, which keeps a log of what it was asked."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.engines import oxigraph_process
from benchmarks.engines.oxigraph_process import Answer, Order

FORM = "application/x-www-form-urlencoded"
_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it came."""

    method: str
    query: str
    default_graphs: tuple[str, ...]
    named_graphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OxigraphEndpoint:
    """A running endpoint: where it is, and every request."""

    url: str
    socket: Path
    requests: list[Asked] = field(default_factory=list[Asked])

    def load(self, graph: str, triples: bytes) -> None:
        """Make the graph with this IRI hold exactly the N-Triples given."""
        with socket.socket(socket.AF_UNIX) as engine:
            engine.connect(str(self.socket))
            engine.sendall(Order(triples.decode(), graph).line())
            with engine.makefile("rb") as said:
                assert Answer.read(said.read()).status == 204

    @contextmanager
    def log(self) -> Generator[list[Asked]]:
        """Collect what is asked inside the block."""
        before = len(self.requests)
        asked: list[Asked] = []
        yield asked
        asked += self.requests[before:]


@contextmanager
def running_oxigraph(folder: Path) -> Generator[OxigraphEndpoint]:
    """Start an endpoint without any graph, and end it when the block is left."""
    # Without the protocol's number asyncio leaves Nagle's algorithm on, which costs 40 ms a request.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with _engine(folder / "engine") as engine, listening as listener:
        listener.bind(("127.0.0.1", 0))
        endpoint = OxigraphEndpoint(f"http://127.0.0.1:{listener.getsockname()[1]}/sparql", engine)

        async def answer(request: Request) -> Response:
            return await _answer(endpoint, request)

        app = Starlette(routes=[Route("/sparql", answer, methods=["GET", "POST"])])
        config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield endpoint
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _engine(path: Path) -> Generator[Path]:
    command = [sys.executable, oxigraph_process.__file__, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own module
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == oxigraph_process.READY
            yield path
        finally:
            # The end of its input is the end of the engine.
            process.communicate(timeout=_STOP_S)


async def _answer(endpoint: OxigraphEndpoint, request: Request) -> Response:
    fields = parse_qs(request.url.query)
    body = await request.body()
    if request.headers.get("content-type", "").startswith(FORM):
        fields |= parse_qs(body.decode())
    elif body:
        fields["query"] = [body.decode()]
    if len(fields.get("query", ())) != 1:
        return Response("Exactly one query is expected.", 400, media_type="text/plain")
    asked = Asked(
        request.method,
        fields["query"][0],
        tuple(fields.get("default-graph-uri", ())),
        tuple(fields.get("named-graph-uri", ())),
    )
    endpoint.requests.append(asked)
    said = b""
    async with anyio.create_task_group() as tasks:

        async def give_up_with_the_asker() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(give_up_with_the_asker)
        said = await _run(endpoint.socket, Order(asked.query, None, asked.default_graphs, asked.named_graphs))
        tasks.cancel_scope.cancel()
    if not said:
        return Response("The query took too long.", 503, media_type="text/plain")
    answer = Answer.read(said)
    return Response(answer.body, answer.status, media_type=answer.media_type)


async def _run(engine: Path, order: Order) -> bytes:
    reader, writer = await asyncio.open_unix_connection(engine)
    try:
        writer.write(order.line())
        await writer.drain()
        return await reader.read()
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
