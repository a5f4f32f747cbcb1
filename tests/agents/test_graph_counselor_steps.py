"""Graph Counselor with one reply a step: what its prompts hold, and what a new attempt begins with."""

import re
from pathlib import Path

import pytest

from kg_agents.llm import Scripted, ScriptedLlm
from kg_agents.papers.graph_counselor import CounselorSettings, GraphCounselor
from oda_runs import CAPITAL, DEFINITION, JAPAN, Told, counselled, story
from small_graphs import GOETHE

SEXTANT = CounselorSettings()
STEPS = (
    f"Plan: find it\nThought: Japan first\nAction: {JAPAN}",
    f"Thought: its capital\nAction: {CAPITAL}",
    "Thought: there\nAction: Finish[Tokyo]",
)
GUESSED = "Action: Finish[Kyoto]"


async def told_by(*replies: Scripted, settings: CounselorSettings = SEXTANT) -> Told:
    return await counselled(replies, settings=settings)


async def test_plan_thought_and_action_are_one_reply() -> None:
    told = await told_by(*STEPS, "It is.\n[yes]")
    assert told.purposes == ["step", "step", "step", "judge"]
    assert told.graph.performed == [JAPAN, CAPITAL]
    assert (told.said, told.answer.status, told.answer.accepted) == (("Tokyo",), "answered", True)
    first, second, _ = told.answer.attempts[0].steps
    assert (first.plan, first.thought, second.plan) == ("find it", "Japan first", None)
    so_far = f"Plan 1: find it\nThought 1: Japan first\nAction 1: {JAPAN}\nObservation 1: Retrieve[Japan]: 1 node."
    assert so_far in told.prompts("step")[1]


async def test_the_judge_sees_the_steps_and_not_the_kinds_of_facts_of_the_graph() -> None:
    told = await told_by(*STEPS, "[yes]")
    (judged,) = told.prompts("judge")
    assert DEFINITION in told.prompts("step")[0]
    assert (DEFINITION in judged, f"Action 2: {CAPITAL}" in judged) == (False, True)


async def test_a_new_attempt_begins_with_the_calls_that_were_tried_and_what_they_gave() -> None:
    told = await told_by(
        f"Action: {JAPAN}", GUESSED, "Guessed.\n[no]", "Improved strategy: look it up", *STEPS[1:], "[yes]"
    )
    assert told.said == ("Tokyo",)
    before, after = told.prompts("step")[0], told.prompts("step")[2]
    assert "Tried" not in before
    assert f"{JAPAN}: 1 node. Japan (Q17)\n</data>" in after
    assert "Kyoto" not in after
    assert "Improved strategy: look it up" in after
    assert DEFINITION in told.prompts("reflection")[0]


async def test_an_answer_that_was_not_confirmed_may_be_given_again() -> None:
    told = await told_by(
        "Action: Finish[Tokyo]", "No step shows it.\n[no]", "Show it, and answer again.", *STEPS, "[yes]"
    )
    after = told.prompts("step")[1]
    assert ("Tried" in after, "Show it, and answer again." in after) == (False, True)
    assert "it may be right: then what shows it, and that it is given again" in told.prompts("reflection")[0]


async def test_an_attempt_that_brings_nothing_new_ends_the_run() -> None:
    told = await told_by(GUESSED, "Guessed.\n[no]", "Look.", GUESSED)
    assert told.purposes == ["step", "judge", "reflection", "step"]
    assert (told.answer.stop_reason, told.said, told.answer.accepted) == ("reflections", ("Kyoto",), False)


async def test_the_same_answer_after_other_calls_is_judged_again() -> None:
    told = await told_by("Action: Finish[Tokyo]", "[no]", "Look.", *STEPS, "[yes]")
    assert told.purposes.count("judge") == 2
    assert told.answer.accepted


async def test_an_action_without_headings_is_enough_and_several_sections_are_not_confused() -> None:
    told = await told_by(
        JAPAN, f"Action 2: {CAPITAL}\nObservation 2: Osaka\nAction 3: Finish[Osaka]", STEPS[2], "[yes]"
    )
    assert told.graph.performed == [JAPAN, CAPITAL]
    assert told.said == ("Tokyo",)


async def test_a_step_that_cannot_be_read_goes_back_once() -> None:
    told = await told_by("Thought: hm", *STEPS, "[yes]")
    assert "No function is called in it." in told.llm.asked[1].prompt
    assert told.answer.accepted


@pytest.mark.parametrize("functions", ["four", "all"])
async def test_which_functions_there_are_is_a_setting(functions: str) -> None:
    settings = CounselorSettings(functions="four" if functions == "four" else "all")
    told = await told_by(*STEPS, "[yes]", settings=settings)
    assert ("Intersect" in told.prompts("step")[0]) == (functions == "all")


async def test_the_linked_entities_own_relations_are_in_the_first_prompt(tmp_path: Path) -> None:
    llm = ScriptedLlm(["Action: Neighbor[Q5879, unmarried lover]", "Action: Finish[Lili Schönemann]", "[yes]"])
    async with story(tmp_path, GOETHE) as graph:
        answer = await GraphCounselor(llm, graph).answer("Who was the partner of Goethe?", ["Q5879"])
    first, second, judged = (each.prompt for each in llm.asked)
    partner = re.compile(r"unmarried partner.* \| Lili Schönemann")
    assert partner.search(judged.partition("Steps:")[0])
    assert partner.search(first)
    assert "It is about: Johann Wolfgang von Goethe" in first
    assert "unmarried partner" in second.partition("Observation 1:")[2]
    assert answer.usage.calls == 3


async def test_the_definition_and_the_examples_may_be_ones_own(tmp_path: Path) -> None:
    (tmp_path / "definition.md").write_text("Countries have a capital.", encoding="utf-8")
    (tmp_path / "graph_counselor-step.md").write_text("Question: an example of mine", encoding="utf-8")
    settings = CounselorSettings(examples_folder=str(tmp_path), definition_file=str(tmp_path / "definition.md"))
    told = await told_by(*STEPS, "[yes]", settings=settings)
    first = told.prompts("step")[0]
    assert "Countries have a capital." in first
    assert "Question: an example of mine" in first
    assert DEFINITION not in first
