"""One call, one state of the graph, even where the graph is replaced meanwhile."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from mcp.server.mcpserver.exceptions import MCPServerError

from kg_adapters.errors import GraphReplaced, KGError
from kg_adapters.protocol import KGAdapter
from kg_adapters.snapshots import SupportsSnapshots

_TRIES: Final = 3

T = TypeVar("T")


async def consistently(graph: KGAdapter | None, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` gives when all that it asks the graph is answered by one state of it.

    Where the graph was replaced before it had said everything, `ask` is called again from the start.
    """
    if not isinstance(graph, SupportsSnapshots):
        return await ask()
    for attempt in range(1, _TRIES + 1):
        async with graph.snapshot(newest=attempt > 1):
            try:
                return await ask()
            except (KGError, MCPServerError) as error:
                if attempt == _TRIES or not _was_replaced(error):
                    raise
    raise AssertionError("the last attempt returns or raises")


def _was_replaced(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, GraphReplaced):
        cause = cause.__cause__
    return cause is not None
