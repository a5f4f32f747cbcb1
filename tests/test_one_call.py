"""Each question about the bundled world is answered by one call."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from benchmarks.world.misleading import MISLED, NOTED, PLAIN, misled_outcomes
from benchmarks.world.one_call import WAYS, outcomes, played, split_client
from benchmarks.world.questions import read_questions
from benchmarks.world.split import NAMESPACES
from mcp import Client

from calls import unhurried
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.app import build_server


@pytest.fixture
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = unhurried(cache_folder=cache, data_folder=cache / "data")
    store = open_sample(cache, "sample:world")
    async with aclosing(LocalAdapter(store)) as graph, Client(build_server(graph, settings)) as client:
        yield client


@pytest.mark.parametrize("way", WAYS)
async def test_one_call_gives_the_answer_and_nothing_else(client: Client, way: str) -> None:
    found = await outcomes(client, read_questions(), way)
    wrong = [outcome.asked.id for outcome in found if not outcome.right]
    assert len(wrong) <= 0.05 * len(found), wrong
    assert sorted(outcome.tokens for outcome in found)[len(found) // 2] <= 150


async def test_notes_put_right_what_misleading_names_of_relations_made_wrong(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    found = await misled_outcomes(tmp_path_factory.getbasetemp() / "world", "Compose")
    right = {kind: sum(outcome.right for outcome in ours) for kind, ours in found.items()}
    assert right[NOTED] == right[PLAIN] >= right[MISLED] + 10


async def test_one_call_over_two_graphs_gives_the_answer_that_the_whole_world_gives(tmp_path: Path) -> None:
    async with split_client(tmp_path) as client:
        found = await outcomes(client, played(), "Compose", list(NAMESPACES))
    assert [outcome.asked.id for outcome in found if not outcome.right] == []
    assert len(found) == 40
