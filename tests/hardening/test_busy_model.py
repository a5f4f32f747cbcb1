"""However many observe at once, each is answered in time: by meaning, or by letters and with a word about it."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from kg_adapters.embedding import (
    CachedEmbedder,
    GuardedEmbedder,
    MiniLmEmbedder,
    OpenAiEmbedder,
    QueuedEmbedder,
    Vectors,
)
from kg_adapters.errors import ModelBusy
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.surroundings import Longs, Surroundings, surroundings_of
from kg_adapters.testing import EXAMPLE
from kg_server.embedders import hurried, shared
from kg_server.observation.answer import observation
from kg_server.observation.scoring import Floats, HurriedScorer, Inquiry, RelationFirstScorer
from kg_server.observation.search import Reach
from kg_server.settings import Settings
from small_graphs import store_of

# Each hub has relations of its own: who asks for the very texts that are being embedded waits for these.
STARS = "\n".join(
    f"<{EXAMPLE}{hub}> <{EXAMPLE}{hub}{number}> <{EXAMPLE}friend{number}> ."
    for hub in ("ann", "bob")
    for number in range(40)
)


class HeldEmbedder:
    """Embeds a single text at once, and more when it is let."""

    fingerprint = "held"
    dimensions = 4

    def __init__(self) -> None:
        self.go_on = anyio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > 1:
            await self.go_on.wait()
        return np.full((len(texts), self.dimensions), 0.5, dtype=np.float32)


async def test_who_would_wait_too_long_for_the_model_is_answered_by_letters(tmp_path: Path) -> None:
    model = HeldEmbedder()
    scorer = RelationFirstScorer(CachedEmbedder(QueuedEmbedder(model, wait_s=0.01, timeout_s=600), path=None))
    graph = LocalAdapter(store_of(tmp_path, STARS))
    said: list[str] = []

    async def observe(hub: str) -> None:
        answer = await observation(
            graph,
            scorer,
            question="Who is a friend?",
            entities=[f"<{EXAMPLE}{hub}>"],
            reach=Reach(timeout_s=600),
            max_tokens=2_000,
            on_hop=_not_told,
        )
        said.append(answer.text.partition("\n")[0])

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(observe, "ann")
            await anyio.wait_all_tasks_blocked()
            await observe("bob")
            model.go_on.set()
    assert [line.partition("first, by ")[2].partition(";")[0].removesuffix(".") for line in said] == [
        "spelling alone (the embedding model is busy now",
        "meaning and spelling",
    ]


class NeverEmbedder(HeldEmbedder):
    """Comes to no end, however little it is asked for."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        await self.go_on.wait()
        return await super().embed(texts)


async def test_whatever_holds_up_the_model_letters_stand_in_while_there_is_time(tmp_path: Path) -> None:
    graph, settings = LocalAdapter(store_of(tmp_path, STARS)), Settings(timeout_s=1)
    answer = await observation(
        graph,
        hurried(RelationFirstScorer(NeverEmbedder()), settings),
        question="Who is a friend?",
        entities=[f"<{EXAMPLE}ann>"],
        reach=Reach(timeout_s=600),
        max_tokens=2_000,
        on_hop=_not_told,
    )
    assert "by spelling alone (the embedding model is busy now" in answer.text
    assert answer.result.status == "ok"


class SlowScorer:
    """Takes long for the first scores, and never gives the event loop a turn before the second are asked for."""

    name = "slow"

    def __init__(self, busy_s: float) -> None:
        self._busy_s = busy_s

    async def score(self, asked: Inquiry, around: Surroundings, edges: Longs) -> Floats:
        del asked, around
        end = anyio.current_time() + self._busy_s
        while anyio.current_time() < end:
            pass
        if self._busy_s == 0:
            await anyio.lowlevel.checkpoint()
        self._busy_s = 0
        return np.ones(len(edges), dtype=np.float32)


async def test_all_hops_of_a_question_share_the_time_of_the_model() -> None:
    scorer, nothing = HurriedScorer(SlowScorer(0.02), 0.01), surroundings_of((), {}, {})
    edges = np.zeros(1, dtype=np.int64)
    assert len(await scorer.score(Inquiry("Who?", "Who?"), nothing, edges)) == 1
    with pytest.raises(ModelBusy):
        await scorer.score(Inquiry("Who?", "Who?"), nothing, edges)


def test_the_model_of_the_package_is_shared_in_a_queue_and_a_service_is_guarded() -> None:
    settings = Settings(timeout_s=10)
    assert isinstance(shared(MiniLmEmbedder(), settings), QueuedEmbedder)
    service = OpenAiEmbedder(model="m", dimensions=4, api_key=None, base_url="http://127.0.0.1:9/v1")
    assert isinstance(shared(service, settings), GuardedEmbedder)


async def _not_told(hop: int) -> None:
    del hop
