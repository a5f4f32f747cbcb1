"""Signs of life for calls that take longer than a second."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from mcp.server.mcpserver import Context

from kg_adapters.errors import KGError

INTERVAL_S: Final = 1.0


@asynccontextmanager
async def reporting(context: Context, doing: str, most_s: float) -> AsyncGenerator[None, None]:
    """Report progress to the client every second while the body runs.

    Args:
        context: The request that the client waits for.
        doing: What is being done, as in `searching paths`.
        most_s: After how many seconds it ends at the latest.
    """
    refusal: KGError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report, context, doing, most_s)
        try:
            yield
        except KGError as error:  # a task group would wrap it
            refusal = error
        tasks.cancel_scope.cancel()
    if refusal is not None:
        raise refusal


async def _report(context: Context, doing: str, most_s: float) -> None:
    started = time.monotonic()
    while True:
        await anyio.sleep(INTERVAL_S)
        elapsed = min(time.monotonic() - started, most_s)
        await context.report_progress(elapsed, most_s, f"{doing}, {elapsed:.0f} s of at most {most_s:.0f} s")
