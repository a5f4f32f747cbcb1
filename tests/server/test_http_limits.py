"""What an HTTP server does with clients that send too much, too slowly or too often."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
import uvicorn
from anyio.abc import SocketStream
from starlette.types import Receive, Scope, Send

from kg_server.serving.http import (
    ConnectionLimits,
    ExhaustionToldOnce,
    LimitedConfig,
    LimitedRequests,
    RequestLimits,
    room_for,
)

AGES = 600.0
POST = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
LISTEN = b'{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen"}'


@dataclass
class Application:
    """Answers with what it was sent; or, while it is held back, not yet."""

    answer: bytes | None = None
    open: int = 0
    go_on: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        body = (await receive())["body"]
        self.open += 1
        try:
            await self.go_on.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": self.answer or body, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.open -= 1


class Client:
    """A connection that says what it likes."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream

    async def say(self, data: bytes) -> None:
        await self._stream.send(data)

    async def rest(self) -> bytes:
        """Return all that comes until the server closes the connection."""
        received = bytearray()
        try:
            while True:
                received += await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return bytes(received)

    async def until(self, text: bytes) -> bytes:
        """Return what comes, as soon as it ends so."""
        received = b""
        while not received.endswith(text):
            received += await self._stream.receive()
        return received

    async def leave(self) -> None:
        await self._stream.aclose()


@dataclass
class Served:
    """A server on loopback."""

    app: Application
    port: int

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Client]:
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            yield Client(stream)

    async def until_open(self, number: int) -> None:
        while self.app.open != number:
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def served(
    *,
    connections: int = 9,
    requests: int = 9,
    streams: int = 9,
    body_bytes: int = 1_000,
    held_bytes: int = 9_000,
    headers_s: float = AGES,
    body_s: float = AGES,
    unread_s: float = AGES,
    answer: bytes | None = None,
) -> AsyncGenerator[Served]:
    app = Application(answer)
    app.go_on.set()
    limited = LimitedRequests(app, RequestLimits(requests, streams, body_bytes, held_bytes, body_s))
    config = LimitedConfig(limited, ConnectionLimits(connections, headers_s, unread_s))
    config.lifespan = "off"
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            try:
                yield Served(app, listener.getsockname()[1])
            finally:
                app.go_on.set()
                server.should_exit = True


def posted(body: bytes) -> bytes:
    return POST + b"content-length: %d\r\n\r\n%b" % (len(body), body)


def refusal(reply: bytes) -> tuple[int, int | None, str]:
    """Return the status, the id and the message of a refusal."""
    head, _, body = reply.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    answer = json.loads(body)
    return int(head.split()[1]), answer["id"], answer["error"]["message"]


@pytest.mark.parametrize("begun", [b"", b"POST /mcp HTTP/1.1\r\nhost: lo"])
async def test_headers_that_do_not_arrive_are_not_waited_for(begun: bytes) -> None:
    async with served(headers_s=0.05) as server, server.client() as client:
        await client.say(begun) if begun else None
        assert refusal(await client.rest()) == (408, None, "The headers of the request took longer than 0.05 seconds.")


async def test_nor_are_those_of_a_second_request() -> None:
    async with served(headers_s=0.2) as server, server.client() as client:
        await client.say(posted(PING))
        await client.until(b"0\r\n\r\n")
        await client.say(b"POST /mcp HTTP/1.1\r\n")
        assert refusal(await client.rest())[0] == 408


async def test_a_call_may_take_longer_than_its_headers() -> None:
    async with served(headers_s=0.05) as server, server.client() as client:
        server.app.go_on = anyio.Event()
        await client.say(posted(PING))
        await server.until_open(1)
        async with server.client() as other:
            await other.rest()  # meanwhile, another one's time for headers is over
        server.app.go_on.set()
        assert PING in await client.until(b"0\r\n\r\n")


async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    async with served(body_s=0.05) as server, server.client() as client:
        await client.say(POST + b"content-length: 100\r\n\r\n{")
        assert refusal(await client.rest()) == (408, None, "The body of the request took longer than 0.05 seconds.")


@pytest.mark.parametrize(
    "begun",
    [b"content-length: 1001\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1_001],
    ids=["declared", "chunked"],
)
async def test_a_body_that_is_too_large_is_refused_before_it_is_complete(begun: bytes) -> None:
    async with served() as server, server.client() as client:
        await client.say(POST + begun)
        assert refusal(await client.rest()) == (413, None, "The body of a request has at most 1,000 bytes.")


async def test_a_client_that_goes_on_sending_what_was_refused_gets_to_read_why() -> None:
    async with served() as server, server.client() as client:
        await client.say(POST + b"content-length: 3000000\r\n\r\n")
        await client.say(b"x" * 3_000_000)
        assert refusal(await client.rest())[0] == 413


async def test_bodies_are_bounded_together_too() -> None:
    async with served(held_bytes=50) as server:
        server.app.go_on = anyio.Event()
        async with server.client() as first, server.client() as second:
            await first.say(posted(PING))
            await server.until_open(1)
            await second.say(posted(PING))
            assert refusal(await second.rest())[0] == 503
            server.app.go_on.set()
            await first.until(b"0\r\n\r\n")
        async with server.client() as third:
            await third.say(posted(PING))
            assert PING in await third.until(b"0\r\n\r\n")


async def test_a_client_too_many_is_told_so_until_another_one_leaves() -> None:
    async with served(connections=1) as server:
        async with server.client() as first:
            server.app.go_on = anyio.Event()
            await first.say(posted(PING))
            await server.until_open(1)
            async with server.client() as second:
                reply = refusal(await second.rest())
                assert reply == (503, None, "The server has 1 connections, and takes no more.")
            server.app.go_on.set()
            await first.until(b"0\r\n\r\n")
        served_again = b""
        while PING not in served_again:
            async with server.client() as third:
                await third.say(posted(PING) + b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                served_again = await third.rest()


@pytest.mark.parametrize(
    "begun", [b"", b"POST /mcp HTTP/1.1\r\nhost: lo", posted(PING)], ids=["silent", "slow", "served"]
)
async def test_the_oldest_idle_connection_makes_way_for_a_new_one(begun: bytes) -> None:
    async with served(connections=2) as server, server.client() as busy, server.client() as idle:
        if begun:
            await idle.say(begun)
        if begun == posted(PING):
            await idle.until(b"0\r\n\r\n")
        server.app.go_on = anyio.Event()
        await busy.say(posted(PING))
        await server.until_open(1)
        for _ in range(5):
            async with server.client() as third:
                server.app.go_on.set()
                await third.say(posted(PING))
                assert PING in await third.until(b"0\r\n\r\n")
        assert await idle.rest() == b""
        assert PING in await busy.until(b"0\r\n\r\n")


async def test_a_crowd_of_idle_connections_locks_nobody_out() -> None:
    async with served(connections=3) as server, AsyncExitStack() as crowd:
        for _ in range(200):
            await crowd.enter_async_context(server.client())
        async with server.client() as client:
            await client.say(posted(PING))
            assert PING in await client.until(b"0\r\n\r\n")


def naming(host: bytes, *origins: bytes) -> bytes:
    """Write a request for a host, from pages of these origins."""
    headers = b"".join(b"origin: %b\r\n" % origin for origin in origins)
    return b"POST /mcp HTTP/1.1\r\nhost: %b\r\n%bcontent-length: 2\r\n\r\n{}" % (host, headers)


@pytest.mark.parametrize(
    "host",
    [
        *(b"127.0.0.1:18765@evil", b"127.0.0.1:18765.evil.example", b"localhost:1@evil.example", b"user@localhost"),
        *(b"evil.example", b"127.0.0.1.evil.example", b"localhost.evil.example", b"evil.example:127", b"10.0.0.1"),
        *(b"localhost:", b"localhost:99999", b"localhost:80:80", b"[::1", b"[::2]:80", b"", b"localhost, evil.example"),
    ],
)
async def test_a_request_for_another_host_is_refused(host: bytes) -> None:
    async with served() as server, server.client() as client:
        await client.say(naming(host))
        assert refusal(await client.rest())[0] == 421
        assert server.app.open == 0


@pytest.mark.parametrize(
    "origin",
    [
        *(b"http://127.0.0.1:18765.evil.example", b"http://localhost:80@evil", b"http://evil.example", b"null", b""),
        *(
            b"https://evil.example",
            b"http://localhost:80/x",
            b"http://",
            b"localhost",
            b"file://",
            b"http://[::1].evil",
        ),
    ],
)
async def test_a_page_of_another_origin_is_refused(origin: bytes) -> None:
    async with served() as server, server.client() as client:
        await client.say(naming(b"localhost", origin))
        assert refusal(await client.rest())[0] == 403


async def test_every_origin_of_a_request_counts() -> None:
    async with served() as server, server.client() as client:
        await client.say(naming(b"localhost", b"http://localhost", b"http://evil.example"))
        assert refusal(await client.rest())[0] == 403


@pytest.mark.parametrize(
    "host", [b"localhost", b"LOCALHOST:8000", b"127.0.0.1:1", b"127.0.0.2", b"[::1]:65535", b"[::1]"]
)
async def test_this_machine_goes_by_any_of_its_own_names_and_any_port(host: bytes) -> None:
    async with served() as server, server.client() as client:
        await client.say(naming(host, b"http://" + host))
        assert b"HTTP/1.1 200" in await client.until(b"0\r\n\r\n")


async def test_a_request_too_many_is_told_so() -> None:
    async with served(requests=1) as server, server.client() as first, server.client() as second:
        server.app.go_on = anyio.Event()
        await first.say(posted(PING))
        await server.until_open(1)
        await second.say(posted(PING))
        reply = await second.rest()
        assert refusal(reply)[:2] == (503, None)
        assert b"retry-after: 1" in reply
        server.app.go_on.set()
        assert PING in await first.until(b"0\r\n\r\n")


async def test_a_stream_too_many_is_told_so_under_its_id_while_other_requests_are_answered() -> None:
    async with served(streams=1) as server, server.client() as first, server.client() as second:
        server.app.go_on = anyio.Event()
        await first.say(posted(LISTEN))
        await server.until_open(1)
        await second.say(posted(LISTEN))
        assert refusal(await second.rest())[:2] == (503, 7)
        async with server.client() as third:
            await third.say(posted(PING))
            await server.until_open(2)


async def test_an_answer_that_is_not_read_is_given_up() -> None:
    async with served(unread_s=0.05, answer=b"x" * 30_000_000) as server, server.client() as client:
        server.app.go_on = anyio.Event()
        await client.say(posted(PING))
        await server.until_open(1)
        server.app.go_on.set()
        await server.until_open(0)
        assert len(await client.rest()) < 30_000_000


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        async with server.client() as client:
            await client.say(POST + b"content-length: 100\r\n\r\n{")
        async with server.client() as other:
            await other.say(posted(PING))
            await other.until(b"0\r\n\r\n")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_stream_by_get_is_refused_with_what_is_allowed() -> None:
    async with served() as server, server.client() as client:
        await client.say(b"GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n")
        reply = await client.rest()
    assert refusal(reply) == (405, None, "There is no stream to open by GET here; POST a message.")
    assert b"allow: POST" in reply


async def test_exhausted_descriptors_are_told_once_and_other_failures_as_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, handler = asyncio.get_running_loop(), ExhaustionToldOnce()
    for _ in range(100):
        handler(loop, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many")})
    assert [record.getMessage() for record in caplog.records] == [
        "No connection can be taken until others end: [Errno 24] Too many."
    ]
    handler(loop, {"message": "something else"})
    assert caplog.records[-1].getMessage() == "something else"


def test_a_process_takes_as_many_connections_as_its_descriptors_allow() -> None:
    assert room_for(3) == 3
