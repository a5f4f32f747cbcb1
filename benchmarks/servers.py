"""Our server and the trivial one, each as a process of its own, and the clients that call them."""

import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Final, TypeAlias

from mcp import Client, StdioServerParameters

from benchmarks import floor_server

Call: TypeAlias = Callable[[Client, str], Awaitable[int]]

FLOOR: Final = ("-m", "benchmarks.floor_server")
_ENDING_S: Final = 20.0
_URL: Final = re.compile(r"http://\S+")


def ours(graph: str) -> tuple[str, ...]:
    """Return the words after `python` that serve a graph."""
    return ("-m", "kg_server.cli", "serve", graph)


def over_stdio(words: tuple[str, ...], environ: Mapping[str, str] | None = None) -> Client:
    """Return a client that starts a server over stdio when it is entered."""
    return Client(StdioServerParameters(command=sys.executable, args=list(words), env=dict(environ or {})))


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens.

    Args:
        url: Where.
        process: Its number.
        logged: The lines that it has written to standard error since; more may come.
    """

    url: str
    process: int
    logged: list[str]


@contextmanager
def over_http(*words: str) -> Generator[str]:
    """Start a server that listens on a free port, and give its URL.

    Raises:
        RuntimeError: It ended before it said where it listens.
    """
    with running(*words) as server:
        yield server.url


@contextmanager
def running(*words: str, environ: Mapping[str, str] | None = None) -> Generator[Running]:
    """Start a server that listens on a free port.

    Raises:
        RuntimeError: It ended before it said where it listens.
    """
    env = {**os.environ, **(environ or {})}
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True, env=env) as process:  # noqa: S603 - ours
        logged: list[str] = []
        assert process.stderr is not None
        # Whoever writes to a pipe that nobody reads waits when it is full.
        reader = Thread(target=logged.extend, args=(process.stderr,))
        try:
            found = next((match for line in process.stderr if (match := _URL.search(line))), None)
            if found is None:
                raise RuntimeError(f"{' '.join(words)} did not start")
            reader.start()
            yield Running(found.group(), process.pid, logged)
        finally:
            process.terminate()
            _ended(process)
            if reader.is_alive():
                reader.join()


def _ended(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()


async def call(client: Client, tool: str, **arguments: object) -> int:
    """Call a tool that must succeed, and return how many characters of text it answers."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return sum(len(block.text) for block in result.content if block.type == "text")


async def ping(client: Client, entity: str) -> int:
    """Call the trivial tool."""
    return await call(client, floor_server.TOOL, entity=entity)


async def get_neighbor(client: Client, entity: str) -> int:
    """Ask for an entity's neighbours in both directions, as many as the tool gives unless asked for less."""
    return await call(client, "GetNeighbor", entity=entity, direction="both", limit=50)
