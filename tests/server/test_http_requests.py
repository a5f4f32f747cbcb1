"""Which requests reach the application behind HTTP: messages of this machine alone, of a bounded size."""

import json
from collections.abc import Sequence

import pytest
from starlette.types import Message, Receive, Scope, Send

from kg_server.serving.http import LocalMessages

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
LOCAL = (b"host", b"localhost")


async def echoed(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body that arrived."""
    assert scope["type"] == "http"
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def answer(
    *headers: tuple[bytes, bytes], body: Sequence[bytes] = (PING,), method: str = "POST"
) -> tuple[int, bytes]:
    """Return the status and the body that answer a request whose body arrives in pieces."""
    pieces: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": number < len(body)} for number, piece in enumerate(body, 1)
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return pieces.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": method, "path": "/mcp", "headers": list(headers)}
    await LocalMessages(echoed, 1_000)(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize(
    "host",
    [
        *(b"127.0.0.1:18765@evil", b"127.0.0.1:18765.evil.example", b"localhost:1@evil.example", b"user@localhost"),
        *(b"evil.example", b"127.0.0.1.evil.example", b"localhost.evil.example", b"evil.example:127", b"10.0.0.1"),
        *(b"localhost:", b"localhost:99999", b"localhost:80:80", b"[::1", b"[::2]:80", b"", b"localhost, evil.example"),
    ],
)
async def test_a_request_for_another_host_is_refused(host: bytes) -> None:
    assert (await answer((b"host", host)))[0] == 421


async def test_a_request_for_no_host_or_for_two_is_refused() -> None:
    assert (await answer())[0] == 421
    assert (await answer(LOCAL, LOCAL))[0] == 421


@pytest.mark.parametrize(
    "origin",
    [
        *(b"http://127.0.0.1:18765.evil.example", b"http://localhost:80@evil", b"http://evil.example", b"null", b""),
        *(b"https://evil.example", b"http://localhost:80/x", b"http://", b"localhost", b"file://"),
        b"http://[::1].evil",
    ],
)
async def test_a_page_of_another_origin_is_refused(origin: bytes) -> None:
    assert (await answer(LOCAL, (b"origin", origin)))[0] == 403
    assert (await answer(LOCAL, (b"origin", b"http://localhost"), (b"origin", origin)))[0] == 403


@pytest.mark.parametrize(
    "host", [b"localhost", b"LOCALHOST:8000", b"127.0.0.1:1", b"127.0.0.2", b"[::1]:65535", b"[::1]"]
)
async def test_this_machine_goes_by_any_of_its_own_names_and_any_port(host: bytes) -> None:
    assert await answer((b"host", host), (b"origin", b"http://" + host)) == (200, PING)


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_is_too_large_is_refused(declared: bool) -> None:
    headers = (LOCAL, (b"content-length", b"1001")) if declared else (LOCAL,)
    pieces = (b"x",) if declared else (b"x" * 600, b"x" * 600, b"x")
    assert (await answer(*headers, body=pieces))[0] == 413


async def test_a_body_in_pieces_arrives_whole() -> None:
    assert await answer(LOCAL, body=(PING[:5], PING[5:])) == (200, PING)


async def test_what_is_no_message_is_refused_under_its_id() -> None:
    status, body = await answer(LOCAL, body=(b'{"jsonrpc":"1.0","id":7,"method":"ping"}',))
    assert (status, json.loads(body)["id"], json.loads(body)["error"]["code"]) == (400, 7, -32600)


async def test_a_stream_by_get_is_refused() -> None:
    assert (await answer(LOCAL, method="GET"))[0] == 405
