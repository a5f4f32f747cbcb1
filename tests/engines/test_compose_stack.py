"""The stack of the Compose file, without containers: two servers, PostgreSQL and the proxy, each as its user."""

import signal
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cli_runs import write_graph
from compose_stack import Stack
from memories import Memory, facts_of
from patience import PATIENCE_S
from postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("postgres")

CAPITAL = ("Q17", "P36", "Q1490")


@pytest.fixture
def stack(postgres: PostgresServer) -> Generator[Stack]:
    # Others than its owner may not enter the folder that pytest makes.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        graph = folder / "graph"
        graph.mkdir()
        write_graph(graph)
        with Stack(folder, graph, "/graph/japan.ttl", postgres.url) as made:
            yield made


@asynccontextmanager
async def connected(stack: Stack, token: str) -> AsyncGenerator[Memory]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S, trust_env=False) as http,
        Client(streamable_http_client(stack.url, http_client=http)) as client,
    ):
        yield Memory(client)


async def test_the_stack_keeps_answering_and_remembering_while_each_server_is_replaced(stack: Stack) -> None:
    token = stack.token("add", "alice")
    for name in ("server-1", "server-2", "proxy"):
        stack.start(name)
    servers = ("server-1", "server-2")
    async with connected(stack, token) as memory:
        handle = await memory.begin(CAPITAL)
        for _ in range(4):
            assert len(facts_of(await memory.read(handle))) == 1
        for server in servers:
            assert stack.is_healthy(server)
            assert stack.stop(server) in {0, -signal.SIGTERM}
            # Calls go to whichever is left, which finds what the other kept.
            assert stack.logged(server, "memory-read") >= 2
            assert len(facts_of(await memory.read(handle))) == 1
            stack.start(server)
            await stack.both_serve()
    async with httpx2.AsyncClient(trust_env=False) as stranger:
        assert (await stranger.post(stack.url, json={})).status_code == 401
    assert [stack.printed(server) for server in servers] == ["", ""]
    assert [*stack.home.iterdir()] == []
