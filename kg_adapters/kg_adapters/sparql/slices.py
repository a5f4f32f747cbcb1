"""Long work on the event loop, done in slices between which other tasks have their turn."""

from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Final, TypeVar

import anyio.lowlevel

ROWS_AT_ONCE: Final = 1_000
"""Reading so many rows takes a few milliseconds."""

Item = TypeVar("Item")


async def in_slices(items: Iterable[Item], at_once: int = ROWS_AT_ONCE) -> AsyncIterator[list[Item]]:
    """Yield items in slices; after each but the last, other tasks have their turn and deadlines are looked at."""
    rest = iter(items)
    while batch := list(islice(rest, at_once)):
        yield batch
        if len(batch) == at_once:
            await anyio.lowlevel.checkpoint()
