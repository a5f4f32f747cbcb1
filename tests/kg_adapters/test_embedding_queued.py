"""Long calls of a model wait for one another, short ones for none, and nobody for long."""

from collections.abc import Sequence

import anyio
import numpy as np
import pytest

from kg_adapters.embedding import QueuedEmbedder, Vectors
from kg_adapters.errors import ModelBusy

LONG = ["text"] * 17
NEVER_S = 3_600.0


class SlowEmbedder:
    """Answers when it is let; keeps how many texts it was asked for, and how many calls it worked on at once."""

    fingerprint = "slow"
    dimensions = 2

    def __init__(self) -> None:
        self.go_on = anyio.Event()
        self.asked: list[int] = []
        self.at_work = self.most_at_work = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(len(texts))
        if len(texts) > 1:
            self.at_work += 1
            self.most_at_work = max(self.most_at_work, self.at_work)
            try:
                await self.go_on.wait()
            finally:
                self.at_work -= 1
        return np.ones((len(texts), self.dimensions), dtype=np.float32)


async def test_long_calls_are_done_one_after_the_other_and_a_short_one_passes_them() -> None:
    inner = SlowEmbedder()
    queued = QueuedEmbedder(inner, wait_s=NEVER_S, timeout_s=NEVER_S)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(queued.embed, LONG)
        await anyio.wait_all_tasks_blocked()
        assert (await queued.embed(["short"])).shape == (1, 2)
        assert inner.asked == [17, 1]
        inner.go_on.set()
    assert (inner.asked, inner.most_at_work) == ([17, 1, 17, 17], 1)


async def test_who_has_waited_too_long_is_told_so_and_the_others_go_on() -> None:
    inner = SlowEmbedder()
    queued = QueuedEmbedder(inner, wait_s=0.01, timeout_s=NEVER_S)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queued.embed, LONG)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(ModelBusy, match="is busy with others"):
            await queued.embed(LONG)
        inner.go_on.set()
    assert inner.asked == [17]
    assert (await queued.embed(LONG)).shape == (17, 2)


@pytest.mark.parametrize("count", [2, 17])
async def test_a_call_that_takes_too_long_is_given_up_and_leaves_its_turn(count: int) -> None:
    inner = SlowEmbedder()
    queued = QueuedEmbedder(inner, wait_s=NEVER_S, timeout_s=0.01)
    with pytest.raises(ModelBusy, match="is busy with others"):
        await queued.embed(["text"] * count)
    inner.go_on.set()
    assert (await queued.embed(LONG)).shape == (17, 2)


async def test_a_call_that_is_given_up_while_it_works_leaves_its_turn_to_the_next() -> None:
    inner = SlowEmbedder()
    queued = QueuedEmbedder(inner, wait_s=NEVER_S, timeout_s=NEVER_S)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queued.embed, LONG)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    inner.go_on.set()
    assert (await queued.embed(LONG)).shape == (17, 2)


async def test_it_is_the_embedder_that_it_wraps() -> None:
    queued = QueuedEmbedder(SlowEmbedder(), wait_s=NEVER_S, timeout_s=NEVER_S)
    assert (queued.fingerprint, queued.dimensions) == ("slow", 2)
