"""What cannot be answered is not answered: without a model, on a world that nobody knows, and by Graph Counselor."""

import re
from contextlib import aclosing
from typing import Final

import pytest
from benchmarks.world.questions import ABSENT, NO_SUCH_ENTITY, read_questions

from counselors import JAPAN, counselled, step
from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.evidence.answers import GivenAnswer
from kg_agents.linking import link_by_names
from kg_agents.papers.oda import OdaWithoutModel
from kg_agents.tools.knowledge import connect
from kg_server.app import build_server
from kg_server.settings import Settings

NAMESAKES: Final = "homonym"


async def test_without_a_model_no_question_of_a_world_is_answered_and_no_wrong_entity_is_named(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    asked = read_questions()
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = Settings(cache_folder=cache, data_folder=cache / "data", embedding=LEXICAL)
    wrong: list[str] = []
    async with (
        aclosing(LocalAdapter(open_sample(cache, "sample:world"))) as world,
        connect(build_server(world, settings)) as graph,
    ):
        for each in asked:
            linking = await link_by_names(graph, each.question)
            named = [linked for linked in linking.linked if linked.entity.label.lower() != linked.entity.label]
            if each.kind == NO_SUCH_ENTITY:
                assert (linking.linked, len(linking.passed_over)) == ((), 1), each.question
            elif each.kind != NAMESAKES and each.kind not in ABSENT:
                meant = re.findall(r"w:E\d+", each.sparql)
                strange = (linked for linked in named if linked.entity.label not in each.question)
                wrong += [str(linked) for linked in strange if linked.entity.id not in meant]
        for each in asked[:8]:
            entities = [linked.entity.id for linked in (await link_by_names(graph, each.question)).linked]
            answer = await OdaWithoutModel(graph).answer(each.question, entities)
            assert (answer.answers, answer.status) == ((), "no_model"), each.question
    assert wrong == []


NOT_HERE = "Finish[Not in the graph: it holds no mayors]"


async def test_an_attempt_can_say_that_the_graph_does_not_hold_the_answer_and_that_ends_the_run() -> None:
    told = await counselled([*step(JAPAN), *step(NOT_HERE), "It looked.\n[yes]"])
    assert (told.answer.status, told.answer.stop_reason, told.said) == ("not_in_graph", "not_in_graph", ())
    assert told.answer.explanation == "it holds no mayors"
    assert "Final answer:\n<data>\nNot in the graph: it holds no mayors\n</data>" in told.prompts("judge")[0]
    assert "reflection" not in told.purposes


async def test_a_judge_can_say_it_too_and_in_the_papers_manner_what_was_answered_stands() -> None:
    told = await counselled([*step("Finish[Koike]"), "The steps show no mayors.\n[not in the graph]"])
    assert (told.answer.status, told.answer.answers) == ("partly", (GivenAnswer("Koike", "model"),))
    assert told.answer.explanation == "The steps show no mayors."
    assert "reflection" not in told.purposes


async def test_a_judge_who_denies_it_has_another_attempt_made() -> None:
    told = await counselled([*step(NOT_HERE), "It did not look.\n[no]", "LOOK", *step("Finish[Kyoto]"), "[yes]"])
    assert told.purposes.count("reflection") == 1
    assert "The answer 'Not in the graph: it holds no mayors' was not judged" in told.prompts("reflection")[0]
    assert [attempt.missing for attempt in told.answer.attempts] == ["it holds no mayors", None]


@pytest.mark.parametrize(
    "verdict", ["[not in the graph] [yes]", "It is not [not in the graph]", "not in the graph or no"]
)
async def test_a_third_verdict_beside_another_cannot_be_read(verdict: str) -> None:
    told = await counselled([*step("Finish[Kyoto]"), verdict, "[not in graph]"])
    assert (told.answer.stop_reason, told.answer.answers) == ("not_in_graph", (GivenAnswer("Kyoto", "model"),))
    assert told.purposes.count("judge") == 2
