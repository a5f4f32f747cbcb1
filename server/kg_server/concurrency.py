"""Several requests at once, none of which fails for the others."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from kg_adapters.errors import KGError

T = TypeVar("T")


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
