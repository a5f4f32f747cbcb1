"""One question of each kind about the bundled world is put to the agent whose model calls the tools itself."""

from contextlib import aclosing
from statistics import median

import pytest
from benchmarks.world.graph import World
from benchmarks.world.played import one_of_each, play
from benchmarks.world.questions import NO_SUCH_ENTITY, NO_SUCH_FACT, read_questions

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import sample_store
from kg_adapters.local.store import open_store
from kg_agents.sessions import connect_tools
from kg_server.app import build_server
from kg_server.settings import Settings


async def test_a_model_that_makes_the_call_of_an_assistant_is_right_and_says_where_from(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = Settings(cache_folder=cache, data_folder=cache / "data")
    questions = one_of_each(read_questions())
    async with (
        aclosing(LocalAdapter(open_store(sample_store(cache, "sample:world")))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        found = await play(tools, World(), questions)
    assert len(found) == 19
    assert sum(each.right for each in found) >= 18, [each.asked.id for each in found if not each.right]
    assert all(answer.source in {"graph", "computed"} for each in found for answer in each.answer.answers)
    absent = [each.answer.status for each in found if each.asked.kind in {NO_SUCH_FACT, NO_SUCH_ENTITY}]
    assert sorted(absent) == ["not_in_graph", "unknown_entity"]
    usages = [each.answer.usage for each in found]
    assert median(usage.calls for usage in usages) == 2
    assert median(usage.tokens for usage in usages) <= 3_600
