import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from cli_runs import COMMAND, write_graph
from kg_server.stdio import Messages, refusal_of

DEEP = "[" * 300 + "]" * 300


def call_of(argument: str) -> str:
    params = f'{{"name":"Degree","arguments":{{"node":{argument}}}}}'
    return f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}'


def refusal_to(line: str) -> JSONRPCError:
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    return refusal_of(raised.value)


@pytest.mark.parametrize(
    ("line", "answered", "code"),
    [
        (call_of('"\\ud800"'), 7, -32700),
        (call_of(DEEP), 7, -32700),
        (call_of("[" * 100_000), None, -32700),
        ("{bad json", None, -32700),
        ('{"id": true, "x": "\\ud800"}', None, -32700),
        ("[]", None, -32600),
        ("7", None, -32600),
    ],
    ids=["surrogate", "deep", "bottomless", "broken", "no id", "batch", "number"],
)
def test_a_line_that_is_no_message_is_answered_under_its_own_id(line: str, answered: int | None, code: int) -> None:
    refusal = refusal_to(line)
    assert (refusal.id, refusal.error.code) == (answered, code)
    assert len(refusal.error.message) <= 200


async def test_messages_pass_between_refusals() -> None:
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](9)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](9)
    ping = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))
    broken = OSError("the pipe broke")
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json("{", by_name=False)
    async with write, outgoing, incoming:
        for item in (raised.value, ping, raised.value, broken):
            incoming.send_nowait(item)
        incoming.close()
        async with Messages(read, write) as messages:
            assert [item async for item in messages] == [ping, broken]
        refusals = [outgoing.receive_nowait().message for _ in range(outgoing.statistics().current_buffer_used)]
    assert [isinstance(refusal, JSONRPCError) for refusal in refusals] == [True, True]


@pytest.fixture
def spoken(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A server over stdio."""
    words = ["serve", str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache")]
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_lone_surrogate_over_stdio_is_refused_and_the_server_goes_on(spoken: subprocess.Popen[str]) -> None:
    assert spoken.stdin is not None
    assert spoken.stdout is not None
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    replies: list[object] = []
    for line in (json.dumps(hello), call_of('"\\ud800"'), call_of('"Q1490"')):
        spoken.stdin.write(f"{line}\n")
        replies.append(json.loads(spoken.stdout.readline()))
    assert '"code": -32700' in json.dumps(replies[1])
    assert "Tokyo (Q1490) has 1 distinct neighbour" in json.dumps(replies[2])
