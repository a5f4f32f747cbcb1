"""Concurrent work inside one call, blocking work off the event loop, and progress reports for slow calls."""

import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context

from kg_adapters.errors import KGError

T = TypeVar("T")

_QUICK: Final = 500
"""Up to how many items are worked on at once; they take some 5 ms."""

_LOADED: Final[set[str]] = set()
_IMPORTING: Final = threading.Lock()


async def off_loop(work: Callable[[], T], items: int = _QUICK + 1) -> T:
    """Return what plain work over so many items returns; much is done in a thread, so that other calls go on."""
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True) if items > _QUICK else work()


async def load(*modules: str) -> None:
    """Import modules in a thread: the first call that needs them does not hold up the others."""
    for module in modules:
        if module not in _LOADED:
            await anyio.to_thread.run_sync(_import, module)
            _LOADED.add(module)


def _import(module: str) -> None:
    # Two threads that import a package and one of its modules may each get the other's before it is complete.
    with _IMPORTING:
        import_module(module)


async def together(jobs: Sequence[Callable[[], Awaitable[T]]], *, at_once: int) -> list[T | KGError]:
    """Run jobs side by side, at most `at_once` at a time, and return what each gives or how it failed, in order."""
    if len(jobs) <= 1:
        # Tasks would cost more than most of what a local graph is asked.
        return [await _outcome(job) for job in jobs]
    results: dict[int, T | KGError] = {}
    limiter = anyio.CapacityLimiter(at_once)

    async def run(number: int, job: Callable[[], Awaitable[T]]) -> None:
        async with limiter:
            results[number] = await _outcome(job)

    async with anyio.create_task_group() as tasks:
        for number, job in enumerate(jobs):
            tasks.start_soon(run, number, job)
    return [results[number] for number in range(len(jobs))]


async def all_of(jobs: Sequence[Callable[[], Awaitable[T]]], *, at_once: int) -> list[T]:
    """Run jobs side by side and return what they give, in order.

    Raises:
        KGError: A job failed; of several, the first in order.
    """
    given: list[T] = []
    for result in await together(jobs, at_once=at_once):
        if isinstance(result, KGError):
            raise result
        given.append(result)
    return given


async def _outcome(job: Callable[[], Awaitable[T]]) -> T | KGError:
    try:
        return await job()
    except KGError as error:
        return error


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
