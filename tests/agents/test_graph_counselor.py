"""Graph Counselor's loops, with a model and a graph that play by script."""

from dataclasses import replace
from typing import Literal

import pytest

from kg_agents.evidence.answers import GivenAnswer
from kg_agents.evidence.answers import RunStep as ShownStep
from kg_agents.evidence.ledger import Cited
from kg_agents.evidence.values import IdLabels
from kg_agents.llm import ScriptedLlm, Usage
from kg_agents.llm.dialogue import Limits
from kg_agents.papers.graph_counselor import (
    Attempt,
    AttemptStep,
    CounselorAnswer,
    CounselorSettings,
    GraphCounselor,
    Judgement,
)
from kg_agents.tools.knowledge import KnowledgeGraph
from oda_runs import CAPITAL, DEFINITION, JAPAN, PAPER, QUESTION, TOKYO, PlayedGraph, counselled, gives, step

FOUND = (*step(JAPAN), *step(CAPITAL), *step("Finish[Tokyo]"))
GUESSED = step("Finish[Kyoto]", plan="guess")


async def test_steps_of_plan_thought_action_and_observation_lead_to_an_answer_that_the_judge_confirms() -> None:
    told = await counselled([*FOUND, "It is what the graph says.\n[yes]"])
    labels = IdLabels({"Q17": "Japan", "Q1490": "Tokyo"}, {"P36": "capital"})
    steps = (
        AttemptStep(1, "plan it", "think of it", JAPAN, "Retrieve[Japan]: 1 node.\nJapan (Q17)"),
        AttemptStep(2, "plan it", "think of it", CAPITAL, "1 node.\nJapan (Q17) | capital (P36) | Tokyo (Q1490)"),
        AttemptStep(3, "plan it", "think of it", "Finish[Tokyo]", "Answer is Tokyo"),
    )
    said = Judgement("yes", "It is what the graph says.\n[yes]")
    assert replace(told.answer, usage=Usage()) == CounselorAnswer(
        question=QUESTION,
        answers=(GivenAnswer("Tokyo", "graph", (("Q17", "P36", "Q1490"),), (), ("Q1490",)),),
        status="answered",
        labels=labels,
        stop_reason="answered",
        explanation="",
        steps=tuple(
            ShownStep(each.number, "plan it\nthink of it", each.action or "", each.observation or "") for each in steps
        ),
        usage=Usage(),
        seconds=0.0,
        facts=(("Q17", "P36", "Q1490"),),
        attempts=(Attempt(steps, (2, 3, 4), "finished", "Tokyo", None, said, cited=(Cited("Tokyo"),)),),
        accepted=True,
    )
    assert told.purposes == ["plan", "thought", "action"] * 3 + ["judge"]
    assert told.graph.performed == [JAPAN, CAPITAL]
    assert told.answer.usage.calls == 10


async def test_each_agent_sees_what_the_others_wrote_before_it() -> None:
    told = await counselled(
        [*step(JAPAN, "PLAN-1", "THOUGHT-1"), *step("Finish[Tokyo]", "PLAN-2", "THOUGHT-2"), "[yes]"]
    )
    second_action = told.prompts("action")[1]
    so_far = (
        "Plan 1: PLAN-1\nThought 1: THOUGHT-1\nAction 1: Retrieve[Japan]\nObservation 1: Retrieve[Japan]: 1 node.\n"
        "Japan (Q17)\nPlan 2: PLAN-2\nThought 2: THOUGHT-2"
    )
    assert so_far in second_action
    assert QUESTION in second_action
    assert DEFINITION in second_action
    assert "PLAN-2" not in told.prompts("plan")[1]
    assert f"{so_far}\nAction 2: Finish[Tokyo]\nObservation 2: Answer is Tokyo" in told.prompts("judge")[0]


async def test_a_rejected_attempt_is_reflected_on_and_the_next_begins_with_what_was_learnt_and_nothing_else() -> None:
    replies = (*GUESSED, "Guessed. [no]", "LOOK IT UP", *FOUND, "[yes]")
    told = await counselled(replies)
    assert (told.said, told.answer.stop_reason, told.answer.accepted) == (("Tokyo",), "answered", True)
    first, second = told.answer.attempts
    assert (first.answer, first.judgement, first.reflection) == (
        "Kyoto",
        Judgement("no", "Guessed. [no]"),
        "LOOK IT UP",
    )
    assert (second.answer, second.reflection) == ("Tokyo", "")
    before, after = told.prompts("plan")[:2]
    assert "LOOK IT UP" not in before
    assert "LOOK IT UP" in after
    assert "Kyoto" not in after
    (reflection,) = told.prompts("reflection")
    assert "The answer 'Kyoto' was not judged to be right. The judge said: Guessed. [no]" in reflection
    assert "Action 1: Finish[Kyoto]" in reflection


async def test_the_evidence_is_what_states_the_answer_and_nothing_of_attempts_that_were_rejected() -> None:
    other = gives("…", ["1", "Q17", "P38", "Q8146", "node"], labels={"Q8146": "yen"})
    graph = PlayedGraph({**TOKYO, "Neighbor[Q17, currency]": other})
    told = await counselled(
        [*step("Neighbor[Q17, currency]"), *step("Finish[yen]"), "[no]", "Look.", *FOUND, "[yes]"], graph
    )
    assert told.answer.answers == (GivenAnswer("Tokyo", "graph", (("Q17", "P36", "Q1490"),), (), ("Q1490",)),)


async def test_what_an_earlier_attempt_read_states_an_answer_too() -> None:
    told = await counselled([*step(CAPITAL), *step("Finish[Kyoto]"), "[no]", "Look.", *step("Finish[Tokyo]"), "[yes]"])
    assert told.answer.answers == (GivenAnswer("Tokyo", "graph", (("Q17", "P36", "Q1490"),), (), ("Q1490",)),)
    assert told.answer.status == "answered"


async def test_a_reflection_keeps_its_strategy_whatever_is_cut() -> None:
    strategy = "3. Improved strategy\n- Ask for the capital."
    settings = CounselorSettings(manner="paper", limits=Limits(prompt_tokens=2_000), reflections=3)
    told = await counselled([*GUESSED, "[no]", f"{'recap ' * 300}\n{strategy}", *FOUND, "[yes]"], settings=settings)
    kept = told.answer.attempts[0].reflection
    assert kept.startswith("recap recap")
    assert kept.endswith(f"characters left out]\n{strategy}")
    assert strategy in told.prompts("plan")[1]
    assert len(kept) < settings.reflection_characters + 50


@pytest.mark.parametrize(
    ("learnt", "shown"), [("all", "Reflection 1:\nFIRST\n\nReflection 2:\nSECOND"), ("latest", "Reflection 1:\nSECOND")]
)
async def test_every_reflection_stays_in_the_context_or_only_the_latest(
    learnt: Literal["all", "latest"], shown: str
) -> None:
    settings = CounselorSettings(manner="paper", learnt=learnt)
    told = await counselled([*GUESSED, "[no]", "FIRST", *GUESSED, "[no]", "SECOND", *FOUND, "[yes]"], settings=settings)
    third = told.prompts("plan")[2]
    assert (shown in third, "FIRST" in third) == (True, learnt == "all")


async def test_an_earlier_answer_may_be_dropped_where_the_last_attempt_gives_none() -> None:
    settings = CounselorSettings(manner="paper", reflections=1, steps=1, earlier_answer=False)
    told = await counselled([*GUESSED, "[no]", "Look.", *step(JAPAN)], settings=settings)
    assert (told.said, told.answer.stop_reason, told.answer.status) == ((), "steps", "stopped")


async def test_the_paper_has_four_functions_and_two_verdicts() -> None:
    count = "Count[Neighbor[Q17, capital]]"
    told = await counselled([*step(count), CAPITAL, *step("Finish[Tokyo]"), "[yes]"])
    first, again = told.prompts("action")[:2]
    assert ("Count[" in first, "Feature[Retrieve[keyword], feature]" in first) == (False, True)
    assert "There is no function 'Count'. The functions are Retrieve, Feature, Degree and Neighbor;" in again
    assert told.graph.performed == [CAPITAL]
    assert not any("not in the graph" in asked.prompt.lower() for asked in told.llm.asked)


async def test_if_no_attempt_is_judged_right_the_last_answer_is_returned_and_marked() -> None:
    settings = CounselorSettings(manner="paper", reflections=1)
    told = await counselled([*GUESSED, "[no]", "Look.", *step("Finish[Osaka]"), "[no]"], settings=settings)
    assert (told.said, told.answer.stop_reason, told.answer.accepted) == (("Osaka",), "reflections", False)
    assert told.answer.explanation == "No attempt was judged to be right; this is the last answer."
    assert [attempt.answer for attempt in told.answer.attempts] == ["Kyoto", "Osaka"]


async def test_the_last_answer_counts_even_if_a_later_attempt_gives_none() -> None:
    settings = CounselorSettings(manner="paper", reflections=1, steps=1)
    told = await counselled([*GUESSED, "[no]", "Look.", *step(JAPAN)], settings=settings)
    assert (told.said, told.answer.stop_reason) == (("Kyoto",), "steps")
    assert told.answer.explanation == (
        "No answer was given within the steps of an attempt. "
        "No attempt was judged to be right; this is the last answer."
    )


async def test_a_verdict_that_cannot_be_read_goes_back_once() -> None:
    told = await counselled([*FOUND, "not yes", "[yes]"])
    first, second = (asked.messages for asked in told.llm.asked if asked.purpose == "judge")
    assert [message.role for message in second] == ["user", "assistant", "user"]
    assert second[:1] == first
    assert second[1].content == "not yes"
    assert "Expected [yes], [no] or [not in the graph] on the last line." in second[2].content
    assert told.answer.accepted


async def test_a_verdict_that_cannot_be_read_twice_is_not_yes() -> None:
    told = await counselled([*GUESSED, "yes and no", "yes or no", "Look.", *FOUND, "[yes]"])
    judgement = told.answer.attempts[0].judgement
    assert judgement is not None
    assert judgement.verdict == "unreadable"
    assert told.said == ("Tokyo",)


async def test_an_attempt_without_an_answer_is_not_judged_but_reflected_on() -> None:
    told = await counselled(
        [*step(JAPAN), "Finish sooner.", *GUESSED, "[yes]"], settings=CounselorSettings(manner="paper", steps=1)
    )
    assert told.purposes == ["plan", "thought", "action", "reflection", "plan", "thought", "action", "judge"]
    assert "There was no answer after 1 steps, which is the most there may be." in told.prompts("reflection")[0]
    assert [attempt.end for attempt in told.answer.attempts] == ["steps", "finished"]


async def test_an_empty_reflection_is_asked_for_once_more_and_then_left_out() -> None:
    told = await counselled([*GUESSED, "[no]", "", "<think>hm", *FOUND, "[yes]"])
    assert told.answer.attempts[0].reflection == ""
    assert "Reflection 1" not in told.prompts("plan")[1]
    assert told.answer.accepted


async def test_judge_and_reflecting_agent_may_be_other_models() -> None:
    llm = ScriptedLlm([*GUESSED, *FOUND])
    judge, reflector = ScriptedLlm(["[no]", "[yes]"]), ScriptedLlm(["Look."])
    counselor = GraphCounselor(
        llm, KnowledgeGraph(PlayedGraph(TOKYO)), judge=judge, reflector=reflector, settings=PAPER
    )
    answer = await counselor.answer(QUESTION)
    assert answer.texts == ("Tokyo",)
    assert ([asked.purpose for asked in judge.asked], [asked.purpose for asked in reflector.asked]) == (
        ["judge", "judge"],
        ["reflection"],
    )
    assert answer.usage.calls == 4 * 3 + 3


async def test_models_are_sampled_as_in_the_paper() -> None:
    told = await counselled([*GUESSED, "[no]", "Look.", *GUESSED, "[yes]"])
    sampled = [(each.purpose, each.temperature, each.top_p, each.max_tokens) for each in told.llm.asked]
    attempt = [(purpose, 0.7, 0.9, 500) for purpose in ("plan", "thought", "action", "judge")]
    assert sampled == [*attempt, ("reflection", 0.7, 0.9, 1_500), *attempt]


async def test_each_step_judgement_and_reflection_is_shown_as_it_happens() -> None:
    seen: list[ShownStep] = []
    llm = ScriptedLlm([*GUESSED, "Guessed. [no]", "Look.", *step(JAPAN), *step("Finish[Tokyo]"), "[yes]"])
    await GraphCounselor(llm, KnowledgeGraph(PlayedGraph(TOKYO)), on_step=seen.append, settings=PAPER).answer(QUESTION)
    assert seen == [
        ShownStep(1, "guess\nthink of it", "Finish[Kyoto]", "Answer is Kyoto"),
        ShownStep(1, "Guessed. [no]", "Judge", "no"),
        ShownStep(1, "Look.", "Reflect", ""),
        ShownStep(1, "plan it\nthink of it", JAPAN, "Retrieve[Japan]: 1 node.\nJapan (Q17)"),
        ShownStep(2, "plan it\nthink of it", "Finish[Tokyo]", "Answer is Tokyo"),
        ShownStep(2, "[yes]", "Judge", "yes"),
    ]


async def test_the_steps_of_all_attempts_are_numbered_through() -> None:
    told = await counselled([*GUESSED, "[no]", "Look.", *FOUND, "[yes]"])
    assert [(each.number, each.action) for each in told.answer.steps] == [
        (1, "Finish[Kyoto]"),
        (2, JAPAN),
        (3, CAPITAL),
        (4, "Finish[Tokyo]"),
    ]


async def test_entities_that_are_known_are_named_with_the_question() -> None:
    llm = ScriptedLlm([*GUESSED, "[yes]"])
    await GraphCounselor(llm, KnowledgeGraph(PlayedGraph()), settings=PAPER).answer(QUESTION, ["Q17", "Q1490"])
    assert f"{QUESTION}\nIt is about: Q17, Q1490\n" in llm.asked[0].prompt


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        ("Tokyo", ("Tokyo",)),
        ("Q1490", ("Tokyo",)),
        ("Tokyo, Kyoto, Tokyo", ("Tokyo", "Kyoto")),
        ("Minsk, Belarus", ("Minsk, Belarus",)),
        ("red, white", ("red, white",)),
        ("1,234", ("1,234",)),
        ("2", ("2",)),
        ('"St Mary\'s Church, Twickenham"', ("St Mary's Church, Twickenham",)),
        ('"Minsk, Belarus", "Tokyo"', ("Minsk, Belarus", "Tokyo")),
    ],
)
async def test_answers_are_names_and_several_have_commas_between_them(said: str, answers: tuple[str, ...]) -> None:
    labels = {"Q1490": "Tokyo", "Q2": "Minsk, Belarus", "2": "a node by the number two"}
    read = gives("…", ["1", "Q1490", "P1", "red, white", "text"], labels=labels)
    told = await counselled(
        [*step("Feature[Q1490, P1]"), *step(f"Finish[{said}]"), "[yes]"], PlayedGraph({"Feature[Q1490, P1]": read})
    )
    assert told.said == answers


async def test_without_planning_a_step_begins_with_its_thought() -> None:
    told = await counselled(
        ["think", JAPAN, "think", "Finish[Tokyo]", "[yes]"],
        settings=CounselorSettings(manner="paper", ablation="no-planning"),
    )
    assert told.purposes == ["thought", "action"] * 2 + ["judge"]
    assert told.answer.attempts[0].steps[0] == AttemptStep(
        1, None, "think", JAPAN, "Retrieve[Japan]: 1 node.\nJapan (Q17)"
    )
    assert "steps of thought, action and observation" in told.prompts("thought")[0]


@pytest.mark.parametrize("action", ["Retrieve[a], Retrieve[b]", "Neighbor[Retrieve[Japan], capital]"])
async def test_with_single_functions_an_action_of_several_goes_back(action: str) -> None:
    told = await counselled(
        [*step(action), CAPITAL, *step("Finish[Tokyo]"), "[yes]"],
        settings=CounselorSettings(manner="paper", ablation="single-functions"),
    )
    assert "It holds more than one function." in told.prompts("action")[1]
    assert "Intersect" not in told.prompts("action")[0]
    assert told.graph.performed == [CAPITAL]
    assert told.answer.accepted


async def test_without_reflection_the_first_answer_stands_unjudged() -> None:
    told = await counselled(GUESSED, settings=CounselorSettings(manner="paper", ablation="no-reflection"))
    assert told.purposes == ["plan", "thought", "action"]
    assert (told.said, told.answer.stop_reason, told.answer.accepted) == (("Kyoto",), "answered", False)
    assert (told.answer.status, told.answer.answers) == ("answered", (GivenAnswer("Kyoto", "model"),))


async def test_how_often_is_reflected_is_a_setting() -> None:
    settings = CounselorSettings(manner="paper", reflections=0)
    told = await counselled([*GUESSED, "[no]"], settings=settings)
    assert (told.answer.stop_reason, len(told.answer.attempts)) == ("reflections", 1)
