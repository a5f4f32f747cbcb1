"""The least that a tool call can cost: a server with one trivial structured tool, over stdio or HTTP.

`python -m benchmarks.floor_server` serves stdio, with `--http` a free port of this machine, which it names on
standard error.
"""

import socket
import sys
from typing import Final

import anyio
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel

TOOL: Final = "Ping"


class Pong(BaseModel):
    """A trivial structured answer."""

    status: str
    summary: str


async def ping(entity: str) -> Pong:
    """Answer at once."""
    return Pong(status="ok", summary=entity)


def floor_server() -> MCPServer[None]:
    """Return the server."""
    server: MCPServer[None] = MCPServer("floor", log_level="WARNING")
    server.add_tool(ping, name=TOOL)
    return server


async def serve_http(server: MCPServer[None]) -> None:
    """Serve on a free port as `kg-sextant serve --http` does: stateless, and for this machine only."""
    import uvicorn  # noqa: PLC0415 - it would weigh on the start over stdio

    listener = socket.create_server(("127.0.0.1", 0))
    security = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=["127.0.0.1:*"])
    app = server.streamable_http_app(stateless_http=True, transport_security=security)
    print(f"Serving at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).serve(sockets=[listener])


if __name__ == "__main__":
    if "--http" in sys.argv:
        anyio.run(serve_http, floor_server())
    else:
        anyio.run(floor_server().run_stdio_async)
