"""ASGI applications as servers on loopback."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp

from kg_server.serving.connections import TimedConnection


@asynccontextmanager
async def on_loopback(app: ASGIApp, connections: type[TimedConnection] = TimedConnection) -> AsyncGenerator[str]:
    """Serve on a free port; gives the URL of its path /mcp."""
    running = uvicorn.Server(uvicorn.Config(app, http=connections, log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve, [listener])
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            running.should_exit = True
