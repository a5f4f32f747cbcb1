"""How tests call Compose: over a real MCP session, in memory, on a server that has nothing else."""

from mcp import Client

from calls import UNHURRIED, Reply, reply_of
from kg_adapters.protocol import KGAdapter
from kg_server.compose.tool import ComposeTool
from kg_server.mcp_server import SextantServer
from kg_server.settings import Settings


def compose_server(graph: KGAdapter, settings: Settings | None = None) -> SextantServer:
    chosen = settings or UNHURRIED
    server = SextantServer("test", version="1", instructions="", timeout_s=chosen.timeout_s)
    ComposeTool(graph, chosen).provide(server)
    return server


async def composed(graph: KGAdapter, expression: str, settings: Settings | None = None) -> Reply:
    async with Client(compose_server(graph, settings)) as client:
        return reply_of(await client.call_tool("Compose", {"expression": expression}))


async def refused(graph: KGAdapter, expression: str) -> str:
    reply = await composed(graph, expression)
    assert reply.is_error, reply.text
    return reply.plain.text
