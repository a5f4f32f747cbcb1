"""Servers as processes of their own, over HTTP or stdio, and texts that are no JSON-RPC messages."""

import json
import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from pydantic import TypeAdapter

from cli_runs import COMMAND, write_graph
from patience import PATIENCE_S

HELLO: Mapping[str, object] = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}

UNHURRIED: Mapping[str, str] = {"KG_SEXTANT_TIMEOUT_S": str(PATIENCE_S)}
"""The environment of a server whose calls are not late on a busy machine."""

_ANSWER = TypeAdapter(dict[str, object])


@dataclass(frozen=True)
class Spoken:
    """A server over stdio."""

    process: subprocess.Popen[bytes]

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def say(self, line: bytes) -> None:
        """Send one line."""
        self.stdin.write(line + b"\n")
        self.stdin.flush()

    def hear(self) -> dict[str, object]:
        """Return the next answer."""
        return _ANSWER.validate_json(self.stdout.readline())

    def ask(self, request: Mapping[str, object]) -> dict[str, object]:
        """Send a request and return the next answer."""
        self.say(json.dumps(request).encode())
        return self.hear()


def request(number: int, method: str, **params: object) -> bytes:
    """Return a request as a line."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


@contextmanager
def spoken_to(folder: Path, *options: str) -> Generator[Spoken]:
    """Serve the small graph over stdio, past its handshake; the end of the block kills the server."""
    words = [*COMMAND, "serve", str(write_graph(folder)), "--cache-folder", str(folder / "cache"), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env={**os.environ, **UNHURRIED}, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            spoken = Spoken(process)
            assert spoken.ask(HELLO)["id"] == "hello"
            yield spoken
        finally:
            process.kill()


@contextmanager
def started(environ: Mapping[str, str], *options: str, host: str = "127.0.0.1") -> Generator[subprocess.Popen[str]]:
    """Serve on a free port of loopback, or of another host; the end of the block kills the server."""
    words = [*COMMAND, "serve", *options, "--http", f"{host}:0"]
    with subprocess.Popen(
        words, env={**os.environ, **UNHURRIED, **environ}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str]) -> str:
    """Wait until a server says where it is."""
    assert process.stderr is not None
    return next(line.split()[-1] for line in process.stderr if line.startswith("Serving "))


DEEP: Final = "[" * 300 + "]" * 300


@dataclass(frozen=True)
class Nonsense:
    """A text, the code of the error that answers it, and the id that this bears."""

    name: str
    text: bytes
    code: int
    id: int | str | None = None


def _request(name: str, code: int, answered: int | str | None, **members: str) -> Nonsense:
    """Return a request in which members, as JSON, are other ones; an empty one is left out."""
    whole = {"jsonrpc": '"2.0"', "id": "7", "method": '"ping"', **members}
    text = ",".join(f'"{key}":{value}' for key, value in whole.items() if value)
    return Nonsense(name, f"{{{text}}}".encode(), code, answered)


NONSENSE: Final = (
    _request("an id that is null", -32600, None, id="null"),
    _request("an id that is a float", -32600, None, id="1.5"),
    _request("an id that is a whole float", -32600, None, id="1.0"),
    _request("an id that is true", -32600, None, id="true"),
    _request("an id that is an object", -32600, None, id='{"a":1}'),
    _request("an id that is a list", -32600, None, id="[1]"),
    _request("an id beyond 64 bits", -32600, None, id=str(2**64)),
    _request("an id of 5,000 digits", -32700, None, id="9" * 5_000),
    _request("an id of 2,000 characters", -32600, None, id=f'"{"x" * 2_000}"'),
    _request("no version", -32600, 7, jsonrpc=""),
    _request("another version", -32600, 7, jsonrpc='"1.0"'),
    _request("a version that is a number", -32600, 7, jsonrpc="2.0"),
    _request("no method", -32600, 7, method=""),
    _request("a method that is a number", -32600, 7, method="5"),
    _request("params that are a list", -32602, 7, params="[1,2]"),
    _request("params that are a text", -32602, 7, params='"a"'),
    _request("NaN", -32700, 7, params='{"a":NaN}'),
    _request("half a character", -32700, 7, params='{"a":"\\ud800"}'),
    _request("an id that is half a character", -32700, None, id='"\\ud800"'),
    _request("deep nesting", -32700, 7, params=f'{{"a":{DEEP}}}'),
    Nonsense("bottomless nesting", b'{"id":7,"a":' + b"[" * 100_000, -32700),
    Nonsense("a batch", b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', -32600),
    Nonsense("an empty batch", b"[]", -32600),
    Nonsense("a number", b"7", -32600),
    Nonsense("a text", b'"ping"', -32600),
    Nonsense("broken JSON", b'{"id":7,', -32700),
    Nonsense("nothing", b" ", -32700),
    Nonsense("a text that is not UTF-8", b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', -32700, 7),
    Nonsense("another encoding", '{"id":7}'.encode("utf-16"), -32700),
    Nonsense("an error that is a number", b'{"jsonrpc":"2.0","id":7,"error":5}', -32600, 7),
    Nonsense("a result without an id", b'{"jsonrpc":"2.0","result":{}}', -32600),
)
