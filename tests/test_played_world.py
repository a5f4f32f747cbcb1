"""One question of each kind about the bundled world is put to every agent."""

import re
from contextlib import aclosing
from pathlib import Path
from statistics import median

import pytest
from benchmarks.world.graph import World
from benchmarks.world.played import Played, one_of_each, play
from benchmarks.world.questions import NO_SUCH_ENTITY, NO_SUCH_FACT, read_questions

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.running import AgentName, Question
from kg_agents.sessions import connect_tools
from kg_server.app import build_server
from kg_server.settings import Settings


@pytest.mark.parametrize(
    ("agent", "calls", "tokens"), [("tools", 2, 3_000), ("oda", 5, 6_000), ("graph-counselor", 4, 5_000)]
)
async def test_a_model_that_asks_for_what_a_question_needs_is_right_and_says_where_from(
    agent: AgentName, calls: int, tokens: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = Settings(cache_folder=cache, data_folder=cache / "data")
    questions = one_of_each(read_questions())
    async with (
        aclosing(LocalAdapter(open_sample(cache, "sample:world"))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        found = await play(tools, World(), questions, Question("", agent=agent))
        denied = await play(
            tools, World(), [each for each in read_questions() if each.id == "q46"], Question("", agent=agent)
        )
        compared = await play(
            tools, World(), [each for each in read_questions() if each.kind == "comparison"], Question("", agent=agent)
        )
    assert [each.asked.id for each in compared if not _has_both_sides(each)] == []
    assert [(each.text, each.source) for each in denied[0].answer.answers] == [("false", "computed")]
    assert len(found) == 19
    page = (Path(__file__).parents[1] / "docs" / "agents.md").read_text(encoding="utf-8")
    shown = next(each for each in found if each.asked.id == ("q01" if agent == "tools" else "q08"))
    assert shown.asked.question in page or agent == "tools"
    assert [step.action for step in shown.answer.steps if step.action not in page] == []
    assert [text for text in shown.answer.texts if text not in page] == []
    assert sum(each.right for each in found) >= 18, [each.asked.id for each in found if not each.right]
    assert all(answer.source in {"graph", "computed"} for each in found for answer in each.answer.answers)
    absent = {each.asked.kind: each.answer.status for each in found if not each.asked.answers}
    assert absent[NO_SUCH_FACT] == "not_in_graph"
    assert absent[NO_SUCH_ENTITY] in {"unknown_entity", "not_in_graph"}
    usages = [each.answer.usage for each in found]
    assert median(usage.calls for usage in usages) <= calls
    assert median(usage.tokens for usage in usages) <= tokens


def _has_both_sides(played: Played) -> bool:
    """Say whether the evidence of a comparison holds what is compared of both."""
    compared, (relation,) = set(re.findall(r"w:E\d+", played.asked.sparql)), re.findall(r"w:R\d+", played.asked.sparql)
    (answer,) = played.answer.answers
    return len(compared) == 2 and {head for head, over, _ in answer.facts if over == relation} == compared
