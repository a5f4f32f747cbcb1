"""How tests start a server as a process of its own, over HTTP or over stdio."""

import json
import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

from cli_runs import COMMAND, write_graph

HELLO: Mapping[str, object] = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}

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
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            spoken = Spoken(process)
            assert spoken.ask(HELLO)["id"] == "hello"
            yield spoken
        finally:
            process.kill()


@contextmanager
def started(environ: Mapping[str, str], *options: str) -> Generator[subprocess.Popen[str]]:
    """Serve on a free port of loopback; the end of the block kills the server."""
    words = [*COMMAND, "serve", *options, "--http", "127.0.0.1:0"]
    with subprocess.Popen(words, env={**os.environ, **environ}, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str]) -> str:
    """Wait until a server says where it is."""
    assert process.stderr is not None
    return next(line.split()[-1] for line in process.stderr if line.startswith("Serving "))
