"""Replies as JSON, which a service can have a model keep to, and the settings that go with each request."""

import json
from pathlib import Path

import pytest

from counselors import CAPITAL, JAPAN, counselled
from kg_agents.llm import ScriptedLlm
from kg_agents.papers.graph_counselor import CounselorSettings
from kg_agents.papers.oda import ODA, OdaSettings
from oda_runs import NEIGHBORS, story
from story_graphs import TOKYO

QUESTION = "What is the capital of the prefecture Tokyo?"


def turn(action: str, *answers: str, **more: object) -> str:
    cited = [{"text": each, "facts": [1, 2, 3]} for each in answers]
    return json.dumps({"thought": "so", "keep": [1, 2], "action": action, "answers": cited, **more})


async def test_oda_reads_turns_that_are_json_and_asks_for_them(tmp_path: Path) -> None:
    llm = ScriptedLlm([turn("GetNeighbor[c1, capital]"), turn("Answer", "Shinjuku")])
    async with story(tmp_path, TOKYO) as graph:
        answer = await ODA(llm, graph).answer(QUESTION, ["Q1490"])
    assert [(each.text, each.source) for each in answer.answers] == [("Shinjuku", "graph")]
    assert ("Q1490", "P36", "Q179645") in answer.evidence
    for request in llm.asked:
        assert [each.role for each in request.messages] == ["system", "user"]
        assert request.schema is not None
        assert request.schema["required"] == [
            *("thought", "keep", "action", "answers", "not_in_graph", "own_knowledge"),
        ]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (turn("Answer", not_in_graph="no such fact"), "not_in_graph"),
        (f"```json\n{turn('Answer', 'Shinjuku')}\n```", "answered"),
        ('{"action": "Answer", "answers": 7}\nAction: Answer\nAnswer:\nShinjuku [1, 2, 3]', "answered"),
        ("Keep: none\nAction: Answer\nAnswer:\nShinjuku [1, 2, 3]", "answered"),
    ],
)
async def test_what_a_service_makes_of_the_form_is_read(reply: str, status: str, tmp_path: Path) -> None:
    async with story(tmp_path, TOKYO) as graph:
        assert (await ODA(ScriptedLlm([reply]), graph).answer(QUESTION, ["Q1490"])).status == status


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (turn("Answer"), "it answers with nothing"),
        (turn("rm[c1]"), "it names no action"),
        (turn("GetNeighbor[c1]", keep=[77]), "there is no fact 77"),
    ],
)
async def test_a_form_that_is_filled_in_wrongly_goes_back_with_the_reason(
    reply: str, said: str, tmp_path: Path
) -> None:
    llm = ScriptedLlm([reply, turn("Answer", "Shinjuku")])
    async with story(tmp_path, TOKYO) as graph:
        assert (await ODA(llm, graph).answer(QUESTION, ["Q1490"])).texts == ("Shinjuku",)
    system, prompt, returned, reason = llm.asked[1].messages
    assert (system.role, prompt.role, returned.content) == ("system", "user", reply)
    assert said in reason.content


async def test_graph_counselor_reads_steps_that_are_json_and_asks_for_them() -> None:
    told = await counselled(
        (
            json.dumps({"plan": "find it", "thought": "first", "expression": JAPAN}),
            json.dumps({"thought": "then", "expression": CAPITAL, "answers": [], "not_in_graph": ""}),
            json.dumps({"plan": "", "thought": "there", "expression": "", "answers": ["Tokyo"]}),
            "It is.\n[yes]",
        ),
        settings=CounselorSettings(),
    )
    assert (told.said, told.answer.status, told.graph.performed) == (("Tokyo",), "answered", [JAPAN, CAPITAL])
    assert told.answer.attempts[0].steps[0].plan == "find it"
    assert [request.schema is not None for request in told.llm.asked] == [True, True, True, False]


async def test_graph_counselor_can_say_in_json_that_the_graph_does_not_hold_it() -> None:
    told = await counselled(
        (json.dumps({"not_in_graph": "no seas"}), "[not in the graph]"), settings=CounselorSettings(reflections=0)
    )
    assert (told.answer.status, told.said) == ("not_in_graph", ())


async def test_the_manner_of_the_paper_and_a_setting_leave_forms_out(tmp_path: Path) -> None:
    ending = "Thought: so\nAction: Answer\nAnswer:\nShinjuku"
    for settings, roles in (
        (OdaSettings(manner="paper"), ["user"]),
        (OdaSettings(structured=False, stop="###", model_seed=7), ["system", "user"]),
    ):
        llm = ScriptedLlm(
            [NEIGHBORS.format("Q1490"), ending, ending, ending] if settings.manner == "paper" else [ending]
        )
        async with story(tmp_path, TOKYO) as graph:
            await ODA(llm, graph, settings=settings).answer(QUESTION, ["Q1490"])
        first = llm.asked[0]
        assert ([each.role for each in first.messages], first.schema) == (roles, None)
    assert (first.stop, first.seed) == (("###",), 7)
