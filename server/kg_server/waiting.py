"""What a server does with the calls that come before its graph is open."""

from typing import Any, Final

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, CallToolResult, TextContent

from kg_adapters.errors import KGError
from kg_adapters.local.pending import PendingAdapter

CALL_TOOL: Final = "tools/call"
READ_RESOURCE: Final = "resources/read"


class Waiting:
    """Middleware that lets calls wait until the graph is open, while handshakes and lists are answered at once.

    Args:
        graph: What is being opened.
        timeout_s: How many seconds a call waits before it is refused.
    """

    def __init__(self, graph: PendingAdapter, timeout_s: float) -> None:
        self._graph = graph
        self._timeout_s = timeout_s

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, or say why the graph is not there.

        Raises:
            MCPError: A resource was asked for, and the graph is not open.
        """
        if ctx.method in {CALL_TOOL, READ_RESOURCE}:
            with anyio.move_on_after(self._timeout_s):
                await self._graph.settled()
            try:
                self._graph.opened()
            except KGError as error:
                return _refusal(ctx.method, error)
        return await call_next(ctx)


def _refusal(method: str, error: KGError) -> CallToolResult:
    if method == READ_RESOURCE:
        raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error
    return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
