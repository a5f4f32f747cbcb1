"""The loop of ODA, its limits, and what it does with replies that are none."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kg_agents.evidence.answers import AgentAnswer, GivenAnswer
from kg_agents.llm import Completion, LlmError, PromptTooLong, Scripted, ScriptedLlm, Usage
from kg_agents.llm.dialogue import Limits
from kg_agents.llm.texts import tokens_in
from kg_agents.papers.oda import (
    ODA,
    OdaSettings,
    OdaWithoutModel,
)
from kg_agents.papers.oda.paper import far_ends
from kg_agents.tools.client import ComparingTools, ToolCall
from kg_agents.tools.knowledge import KnowledgeGraph
from oda_runs import ENOUGH, NEIGHBORS, PATH, ChangedTools, refusing, selecting, story, story_tools, taking
from small_graphs import GOETHE, NOVELS, PREFIXES, TOKYO

CAPITAL = ("Q1490", "P36", "Q179645")
QUESTION = "What is the capital of the prefecture Tokyo?"
PAPER = OdaSettings(manner="paper")


async def asked(
    folder: Path,
    *replies: Scripted,
    turtle: str = TOKYO,
    entities: Sequence[str] = ("Q1490",),
    settings: OdaSettings | None = None,
) -> tuple[AgentAnswer, ScriptedLlm, list[ToolCall]]:
    calls: list[ToolCall] = []
    llm = ScriptedLlm(replies)
    async with story(folder, turtle, on_call=calls.append) as graph:
        answer = await ODA(llm, graph, settings=settings or PAPER).answer(QUESTION, entities)
    return answer, llm, calls


async def test_a_round_observes_acts_reflects_and_remembers(tmp_path: Path) -> None:
    answer, llm, calls = await asked(
        tmp_path, NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH, "Answer:\nShinjuku"
    )
    assert (answer.texts, answer.evidence, answer.stop_reason) == (("Shinjuku",), (CAPITAL,), "answered")
    assert [call.tool for call in calls] == ["observe", "GetNeighbor", "memory-append", "memory-read", "observe"]
    assert [each.purpose for each in llm.asked] == ["action", "reflection", "action", "answer"]
    assert [step.action for step in answer.steps] == ["GetNeighbor[Q1490]", "Answer"]
    assert [re.findall(r"[QP]\d+", each) for each in answer.steps[0].kept] == [[*CAPITAL]]
    remembered = re.compile("Q1490.* -.*P36.*-> .*Q179645")
    assert [remembered.search(each.prompt) is not None for each in llm.asked] == [False, False, True, True]
    assert answer.usage.calls == 4


HUB = f"""{PREFIXES}
    wd:Q1 rdfs:label "Ada"@en ; wdt:P31 wd:Q5 .
    wd:Q2 rdfs:label "Bob"@en ; wdt:P31 wd:Q5 .
    wd:Q5 rdfs:label "human"@en .
    wdt:P31 rdfs:label "instance of"@en .
"""


async def test_a_path_in_the_manner_of_the_paper_may_pass_through_a_class(tmp_path: Path) -> None:
    _, llm, calls = await asked(
        tmp_path,
        PATH.format("Q1", "Q2"),
        selecting("Q1,P31,Q5", "Q2,P31,Q5"),
        ENOUGH,
        "Answer: human",
        turtle=HUB,
        entities=["Q1", "Q2"],
    )
    assert "Q1,P31,Q5" in llm.asked[1].prompt
    assert calls[1].arguments["limit"] == 100


async def test_a_reflection_keeps_more_triples_than_one_call_of_the_memory_takes(tmp_path: Path) -> None:
    names = [f"Q{number}" for number in range(100, 125)]
    turtle = "\n".join(
        (PREFIXES, "wdt:P36 rdfs:label 'capital'@en .", *(f"wd:Q1490 wdt:P36 wd:{name} ." for name in names))
    )
    answer, llm, _ = await asked(
        tmp_path,
        NEIGHBORS.format("Q1490"),
        selecting(*(f"Q1490,P36,{name}" for name in names)),
        ENOUGH,
        "Answer: Q100",
        turtle=turtle,
        settings=replace(PAPER, kept=30),
    )
    assert "at most 30" in llm.asked[1].prompt
    assert {tail for _, _, tail in answer.facts} == set(names)


def test_of_an_incoming_triple_the_head_is_the_next_entity_and_a_literal_is_none() -> None:
    found = [("a", "r", "b"), ("c", "r", "a"), ("a", "r", '"1999"'), ("a", "s", "b")]
    assert far_ends(found, ["a"]) == ("b", "c")


async def test_entities_of_the_question_that_were_not_looked_at_stay_candidates(tmp_path: Path) -> None:
    _, llm, _ = await asked(
        tmp_path,
        NEIGHBORS.format("Q476871"),
        selecting("Q476871,P840,Q2009"),
        NEIGHBORS.format("Q465360"),
        selecting("Q465360,P840,Q2009", "Q465360,P840,Q16"),
        ENOUGH,
        "Answer: Yukon",
        turtle=NOVELS,
        entities=("Q476871", "Q465360"),
    )
    offered = [
        re.findall(r"Q\d+", each.prompt.partition("each id with its label:\n<data>\n")[2].partition("\n</data>")[0])
        for each in llm.asked
        if each.purpose == "action"
    ]
    assert offered[1:] == [["Q2009", "Q465360"], ["Q2009", "Q16"]]


async def test_a_wrong_reply_goes_back_once_with_the_reason(tmp_path: Path) -> None:
    answer, llm, _ = await asked(
        tmp_path,
        NEIGHBORS.format("Q99"),
        NEIGHBORS.format("Q1490"),
        "Triples:\nQ1,P2,Q3",
        selecting("Q1490,P36,Q179645"),
        ENOUGH,
        "",
        "Answer: Shinjuku",
    )
    assert (answer.texts, answer.stop_reason) == (("Shinjuku",), "answered")
    again = llm.asked[1]
    assert [each.role for each in again.messages] == ["user", "assistant", "user"]
    assert "it names none of them" in again.prompt
    assert "'Q1,P2,Q3' is none of the candidate triples" in llm.asked[3].prompt
    assert "it holds no answer" in llm.asked[6].prompt


async def test_an_action_is_not_taken_twice(tmp_path: Path) -> None:
    answer, llm, calls = await asked(
        tmp_path,
        NEIGHBORS.format("Q1490"),
        "Triples: none",
        NEIGHBORS.format("Q1490"),
        ENOUGH,
        "Answer: I do not know",
    )
    assert [call.tool for call in calls].count("GetNeighbor") == 1
    assert "GetNeighbor[Q1490] was taken already" in llm.asked[3].prompt
    assert answer.stop_reason == "answered"


async def test_when_iterations_run_out_it_answers_from_what_it_has(tmp_path: Path) -> None:
    answer, _, _ = await asked(
        tmp_path,
        NEIGHBORS.format("Q1490"),
        selecting("Q1490,P36,Q179645"),
        "Answer: Shinjuku",
        settings=OdaSettings(manner="paper", iterations=1),
    )
    assert (answer.texts, answer.evidence, answer.stop_reason) == (("Shinjuku",), (CAPITAL,), "iterations")
    assert answer.explanation.startswith("No answer was chosen within the iterations")


@pytest.mark.parametrize(
    ("failing", "limits", "stop_reason", "explanation"),
    [
        (LlmError("The model is away."), Limits(), "model", "The model is away."),
        (ENOUGH, Limits(tokens=1), "tokens", "The limit of 1 tokens is reached."),
    ],
)
async def test_every_limit_has_its_own_reason_and_what_was_found_stays(
    tmp_path: Path, failing: Scripted, limits: Limits, stop_reason: str, explanation: str
) -> None:
    first = Completion(NEIGHBORS.format("Q1490"), Usage())
    kept = Completion(selecting("Q1490,P36,Q179645"), Usage(prompt_tokens=5))
    answer, _, _ = await asked(tmp_path, first, kept, failing, settings=OdaSettings(manner="paper", limits=limits))
    assert (answer.stop_reason, answer.explanation) == (stop_reason, explanation)
    assert (answer.status, answer.answers, answer.facts) == ("stopped", (), (CAPITAL,))


async def test_a_graph_that_refuses_ends_the_run_and_says_so(tmp_path: Path) -> None:
    answer, _, _ = await asked(tmp_path, ENOUGH, entities=["Q404"])
    assert answer.stop_reason == "graph"
    assert "This graph has no entity 'Q404'" in answer.explanation


async def test_actions_that_the_graph_refuses_end_a_run_with_its_fault_and_are_not_repeated(tmp_path: Path) -> None:
    llm = ScriptedLlm([NEIGHBORS.format("Q1490"), NEIGHBORS.format("Q1490"), NEIGHBORS.format("Q17"), "Answer: Edo"])
    async with story_tools(tmp_path, TOKYO) as tools:
        graph = KnowledgeGraph(refusing(tools, "GetNeighbor", "The endpoint is busy.\nTry again later."))
        answer = await ODA(llm, graph, settings=PAPER).answer(QUESTION, ["Q1490", "Q17"])
    assert (answer.stop_reason, answer.status, answer.answers) == ("graph", "partly", (GivenAnswer("Edo", "model"),))
    assert answer.explanation.startswith("The graph refused or failed several times in a row")
    assert [step.action for step in answer.steps] == ["GetNeighbor[Q1490]", "GetNeighbor[Q17]"]
    assert "\nGetNeighbor[Q1490] (failed: The endpoint is busy. Try again later.)\n" in llm.asked[1].prompt
    assert "GetNeighbor[Q1490] was taken already" in llm.asked[2].prompt


def as_people_write(call: ToolCall) -> ToolCall:
    """Return neighbours with a value as people write it."""
    data = {**call.data, "values": [["Q1490", "P1082", "13,960,236"]]}
    return replace(call, data=data) if call.tool == "GetNeighbor" else call


async def test_a_value_is_kept_as_evidence_and_leads_nowhere(tmp_path: Path) -> None:
    llm = ScriptedLlm([NEIGHBORS.format("Q1490"), selecting("Q1490,P1082,13,960,236"), ENOUGH, "Answer: 13,960,236"])
    async with story_tools(tmp_path, f"{TOKYO}wd:Q1490 wdt:P1082 13960236 .") as tools:
        graph = KnowledgeGraph(ChangedTools(tools, as_people_write))
        answer = await ODA(llm, graph, settings=PAPER).answer("How many people live in Tokyo?", ["Q1490"])
    assert answer.evidence == (("Q1490", "P1082", '"13960236"^^xsd:integer'),)
    assert (answer.texts, [step.action for step in answer.steps]) == (("13,960,236",), ["GetNeighbor[Q1490]", "Answer"])


async def test_without_a_model_an_entity_that_cannot_be_looked_at_does_not_hide_the_others(tmp_path: Path) -> None:
    async with story_tools(tmp_path, TOKYO) as tools:
        graph = KnowledgeGraph(refusing(tools, "GetNeighbor", "The endpoint is busy.", about="Q17'"))
        answer = await OdaWithoutModel(graph).answer(QUESTION, ["Q17", "Q1490"])
    assert (answer.status, CAPITAL in answer.facts) == ("no_model", True)


async def test_what_a_model_thinks_aloud_is_no_reply(tmp_path: Path) -> None:
    thinking = "<think>\nAction: Answer\nTriples: none\n</think>\n"
    replies = (NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH, "Shinjuku")
    answer, _, _ = await asked(tmp_path, *(thinking + reply for reply in replies))
    assert (answer.texts, answer.evidence, len(answer.steps)) == (("Shinjuku",), (CAPITAL,), 2)


async def test_without_an_entity_there_is_nothing_to_ask(tmp_path: Path) -> None:
    answer, llm, calls = await asked(tmp_path, entities=[])
    assert (answer.stop_reason, answer.texts, llm.asked, calls) == ("entities", (), [], [])


def crowd(size: int) -> str:
    """Return a graph in which Tokyo has so many wards."""
    wards = (f'wd:Q1490 wdt:P150 wd:Q{n} . wd:Q{n} rdfs:label "ward number {n}"@en .' for n in range(1, size + 1))
    return TOKYO + "\n".join(wards)


def knot(size: int) -> str:
    """Return a graph in which Tokyo has so many relations."""
    return TOKYO + "\n".join(
        f'wd:Q1490 wdt:P{1_000 + n} wd:Q{n} . wd:Q{n} rdfs:label "ward number {n}"@en .' for n in range(1, size + 1)
    )


async def test_a_long_list_of_candidates_is_reflected_on_in_batches(tmp_path: Path) -> None:
    settings = OdaSettings(manner="paper", kept=200, observation_tokens=500, limits=Limits(prompt_tokens=1_500))
    llm = ScriptedLlm([NEIGHBORS.format("Q1490"), ENOUGH, "Answer: Shinjuku"], {"reflection": [selecting("none")] * 99})
    async with story(tmp_path, crowd(150)) as graph:
        await ODA(llm, graph, settings=settings).answer(QUESTION, ["Q1490"])
    batches = [_candidates(each.prompt) for each in llm.asked if each.purpose == "reflection"]
    assert len(batches) > 1
    assert sorted(line for batch in batches for line in batch if ",P150," in line) == sorted(
        f"Q1490,P150,Q{n}" for n in range(1, 151)
    )
    assert all(tokens_in(each.prompt) <= 1_500 for each in llm.asked)


async def test_a_batch_that_the_model_cannot_take_is_halved_until_it_can(tmp_path: Path) -> None:
    none = taking(1_200, lambda _: selecting("none"))
    llm = ScriptedLlm([NEIGHBORS.format("Q1490"), ENOUGH, "Answer: x"], {"reflection": [none] * 99})
    async with story(tmp_path, crowd(150)) as graph:
        answer = await ODA(llm, graph, settings=PAPER).answer(QUESTION, ["Q1490"])
    asked = [each.prompt for each in llm.asked if each.purpose == "reflection"]
    taken = [_candidates(prompt) for prompt in asked if tokens_in(prompt) <= 1_200]
    assert [len(taken) > 1, len({line for batch in taken for line in batch}), sum(map(len, taken))] == [True, 153, 153]
    # The model's limit is learnt once and not met again and again.
    assert len(asked) - len(taken) < 5
    assert answer.stop_reason == "answered"


async def test_where_a_prompt_is_too_long_less_is_observed_and_it_says_so(tmp_path: Path) -> None:
    llm = ScriptedLlm([taking(700, lambda _: ENOUGH)] * 5, {"answer": ["Answer: x"]})
    async with story(tmp_path, knot(60)) as graph:
        answer = await ODA(llm, graph, settings=PAPER).answer(QUESTION, ["Q1490"])
    first, *_, last = (each.prompt.partition("choice among them:\n<data>\n")[2] for each in llm.asked[:-1])
    assert answer.answers == (GivenAnswer("x", "model"),)
    (kept, _), (left,) = last.split("\n["), re.findall(r"\n\[(\d+) lines are left out to save room\]\n", last)
    assert first.startswith(kept)
    assert first.partition("\n</data>")[0].count("\n") + 1 == kept.count("\n") + 1 + int(left)


async def test_what_earlier_batches_selected_is_kept_when_a_later_one_cannot_be_read(tmp_path: Path) -> None:
    replies: list[Scripted] = [_the_first, "Triples:\n?,?,?", "Triples:\n?,?,?"]
    settings = OdaSettings(manner="paper", limits=Limits(prompt_tokens=1_500))
    llm = ScriptedLlm(
        [NEIGHBORS.format("Q1490"), ENOUGH, "Answer: x"], {"reflection": [*replies, *[selecting("none")] * 9]}
    )
    async with story(tmp_path, crowd(150)) as graph:
        answer = await ODA(llm, graph, settings=settings).answer(QUESTION, ["Q1490"])
    assert (len(answer.facts), answer.stop_reason) == (1, "answered")


@pytest.mark.parametrize("failures", [[LlmError("The model is away.")], [PromptTooLong("The model is away.")] * 99])
async def test_what_was_selected_is_told_when_the_model_fails_in_a_later_batch(
    tmp_path: Path, failures: list[Scripted]
) -> None:
    llm = ScriptedLlm([NEIGHBORS.format("Q1490")], {"reflection": [_the_first, *failures]})
    settings = OdaSettings(manner="paper", limits=Limits(prompt_tokens=1_500))
    async with story(tmp_path, crowd(150)) as graph:
        answer = await ODA(llm, graph, settings=settings).answer(QUESTION, ["Q1490"])
    assert (len(answer.facts), answer.stop_reason) == (1, "model")


async def test_more_candidates_than_some_batches_hold_are_passed_over_and_counted(tmp_path: Path) -> None:
    settings = OdaSettings(manner="paper", batches=2, limits=Limits(prompt_tokens=1_200))
    llm = ScriptedLlm([NEIGHBORS.format("Q1490"), ENOUGH, "Answer: x"], {"reflection": [selecting("none")] * 2})
    async with story(tmp_path, crowd(150)) as graph:
        answer = await ODA(llm, graph, settings=settings).answer(QUESTION, ["Q1490"])
    shown = sum(len(_candidates(each.prompt)) for each in llm.asked if each.purpose == "reflection")
    assert answer.steps[0].found == f"153 triples, {153 - shown} of them not reflected on"


async def test_a_model_that_takes_no_prompt_at_all_ends_the_run(tmp_path: Path) -> None:
    answer, _, _ = await asked(tmp_path, *[PromptTooLong("Too long.")] * 9)
    assert (answer.stop_reason, answer.explanation) == ("model", "Too long.")


def _the_first(prompt: str) -> str:
    return selecting(_candidates(prompt)[0])


def _candidates(prompt: str) -> list[str]:
    return prompt.partition("in ids:\n<data>\n")[2].partition("\n</data>")[0].splitlines()


async def test_without_observation_nothing_is_observed(tmp_path: Path) -> None:
    _, llm, calls = await asked(
        tmp_path, ENOUGH, "Answer: x", settings=OdaSettings(manner="paper", ablation="no-observation")
    )
    assert [call.tool for call in calls] == ["Retrieve"]
    assert "Q1490" in llm.asked[0].prompt
    assert "guides the choice among them:\n<data>\n(nothing)\n</data>" in llm.asked[0].prompt


async def test_similar_reflection_ranks_by_the_cosine_of_relation_and_far_end_alone(tmp_path: Path) -> None:
    compared: dict[str, Sequence[str]] = {}

    async def cosines(question: str, texts: Sequence[str], /) -> Sequence[float]:
        compared[question] = texts
        return [1.0 if "partner" in text else 0.1 for text in texts]

    llm = ScriptedLlm([NEIGHBORS.format("Q5879"), ENOUGH, "Answer: x"])
    async with story_tools(tmp_path, GOETHE) as tools:
        agent = ODA(
            llm,
            KnowledgeGraph(ComparingTools(tools, cosines)),
            settings=OdaSettings(manner="paper", kept=1, ablation="similar-reflection"),
        )
        answer = await agent.answer("Who was the partner of Goethe?", ["Q5879"])
    assert [each.purpose for each in llm.asked] == ["action", "action", "answer"]
    assert answer.facts == (("Q5879", "P451", "Q1"),)
    (texts,) = compared.values()
    assert {"unmarried partner Lili Schönemann", "place of birth Frankfurt"} <= set(texts)


async def test_without_anything_that_compares_texts_similar_reflection_says_what_is_missing(tmp_path: Path) -> None:
    settings = OdaSettings(ablation="similar-reflection", failures=1)
    answer, _, _ = await asked(tmp_path, NEIGHBORS.format("Q1490"), "Answer: x", settings=settings)
    assert (answer.stop_reason, answer.steps[0].found.startswith("failed: ")) == ("graph", True)
    assert "compare-texts" in answer.steps[0].found


async def test_the_paper_answers_from_memory_and_knowledge_and_knows_no_way_to_abstain(tmp_path: Path) -> None:
    answer, llm, _ = await asked(tmp_path, ENOUGH, "Answer:\nShinjuku", settings=replace(PAPER, closed_book="allowed"))
    assert "from a memory of facts and from what you know" in llm.asked[-1].prompt
    assert "Not in the graph" not in llm.asked[-1].prompt
    assert [(each.text, each.source) for each in answer.answers] == [("Shinjuku", "graph")]


async def test_random_reflection_is_the_same_with_the_same_seed(tmp_path: Path) -> None:
    kept: list[object] = []
    async with story(tmp_path, TOKYO) as graph:
        for seed in (1, *range(1, 12)):
            llm = ScriptedLlm([NEIGHBORS.format("Q1490"), ENOUGH, "Answer: x"])
            agent = ODA(
                llm, graph, settings=OdaSettings(manner="paper", kept=1, seed=seed, ablation="random-reflection")
            )
            kept.append((await agent.answer(QUESTION, ["Q1490"])).facts)
    assert kept[0] == kept[1]
    assert len(set(map(str, kept))) > 1


async def test_generated_facts_are_the_memory_and_no_evidence(tmp_path: Path) -> None:
    answer, llm, calls = await asked(
        tmp_path,
        NEIGHBORS.format("Q1490"),
        "Facts:\nTokyo is the capital of Tokyo.\nTokyo is the capital of Japan.\nTokyo is large.",
        NEIGHBORS.format("Q17"),
        "It is so.",
        ENOUGH,
        "Answer: Japan",
        settings=OdaSettings(manner="paper", kept=2, ablation="generated-facts"),
    )
    assert (answer.answers, answer.model_answer, answer.facts) == (
        (GivenAnswer("Japan", "graph", (("Q1490", "P1376", "Q17"),)),),
        (),
        (),
    )
    assert [call.tool for call in calls] == ["observe", "GetNeighbor", "observe", "GetNeighbor", "observe"]
    assert "at most 2 facts" in llm.asked[1].prompt
    memory = llm.asked[-1].prompt.partition("kept, as paths:\n<data>\n")[2].partition("\n</data>")[0].splitlines()
    assert memory == [
        "Tokyo is the capital of Tokyo.",
        "Tokyo is the capital of Japan.",
        "It is so.",
    ]


async def test_without_a_model_the_facts_most_like_the_question_are_shown_and_no_answer(
    tmp_path: Path,
) -> None:
    async with story(tmp_path, GOETHE, embedder="minilm") as graph:
        answer = await OdaWithoutModel(graph).answer("Where was he born?", ["Q5879"])
    assert (answer.status, answer.answers, answer.evidence) == ("no_model", (), ())
    assert answer.facts[0] == ("Q5879", "P19", "Q1794")
    assert [step.action for step in answer.steps] == ["GetNeighbor[Q5879]"]
    assert answer.usage == Usage()
