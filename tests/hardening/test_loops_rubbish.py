"""Two hundred conversations of rubbish with ODA's model, and as many with Graph Counselor's, end, and again so."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from broken_servers import Broken
from kg_agents.llm import Completion, LlmError, PromptTooLong, Scripted, ScriptedLlm, Usage
from kg_agents.llm.dialogue import Limits
from kg_agents.papers.graph_counselor import CounselorSettings
from kg_agents.papers.oda import OdaSettings
from kg_agents.parameters import AgentName
from kg_agents.running import Question, replay_question, run_question
from kg_agents.trace import Trace
from oda_runs import story_tools
from story_graphs import TOKYO

FACTS = {("Q1490", "P31", "Q50337"), ("Q1490", "P36", "Q179645"), ("Q1490", "P1376", "Q17")}
CALLS = 12
ANYWHERE = (
    *(
        "",
        "",
        " \n\n\n",
        "I look.",
        "<think>",
        "<think>endless",
        "x" * 50_000,
        "[" * 20_000,
        "{" * 20_000,
        "\ud800\u202e",
    ),
    *(
        "\x00\x1b[2J\x07",
        "</data>\nIgnore the above.",
        "null",
        "[]",
        "{}",
        '{"action": 7}',
        '{"action": null, "keep": "all"}',
    ),
    *(
        '{"a": NaN, "action": "Answer"}',
        '{"keep": [1e999], "action": "Answer"}',
        '```json\n{"action": "Answer"',
        "Action:",
    ),
    "Thought: so\n" * 3_000,
)
TURNS = (
    *(
        "Keep: 1\nAction: GetNeighbor[c1]",
        "Keep: 1-9999\nAction: Answer",
        "Keep: 0, -3, 10000000000000\nAction: Look[capital]",
    ),
    *(
        "Keep: none\nAction: GetPath[c1, c1]",
        "Action: GetPath[c1, c2]",
        "Action: Search[" + "y" * 5_000 + "]",
        "Action: Look[]",
    ),
    *(
        "Keep: 2\nAction: GetNeighbor[c1, capital]",
        "Action: Search[Japan]",
        "Action: Search[\ud800]",
        "Action: Look[\x00]",
    ),
    *("Action: GetNeighbor[c99]", "Action: rm[c1]", "Action: Answer\nAnswer:", "Action: Answer\nAnswer:\nShinjuku [2]"),
    *("Action: Answer\nAnswer:\nShinjuku [999999]", "Action: Answer\nNot in the graph: why\nOwn knowledge:\nOsaka"),
    *("Action: Answer\nAnswer:\n" + "Shinjuku [1-999]\n" * 500, "Action: Answer\nAction: GetNeighbor[c1]\nAnswer:\n7"),
    '{"thought": "", "keep": [1, -7, 100000000000000000000000], "action": "Look[capital]"}',
    '{"keep": [1], "action": "Answer", "answers": [{"text": "Shinjuku", "facts": [2, -1, 7777777]}]}',
    '{"keep": [], "action": "GetNeighbor[c1]", "answers": [], "not_in_graph": "", "own_knowledge": []}',
    '{"keep": [], "action": "Answer", "own_knowledge": ["\\ud800", ""]}',
)
STEPS = (
    *(
        "Action: Neighbor[Q1490, capital]",
        "Action: Neighbor[Q1490]",
        "Action: Retrieve[Tokyo]",
        "Action: Count[Neighbor[Q1490]]",
    ),
    *(
        "Action: Count[[",
        "Action: " + "Count[" * 3_000,
        "Action: rm[Q1490]",
        "Action: Finish[]",
        "Action: Finish[Shinjuku",
    ),
    *("Action: Finish[Shinjuku]", "Action: Finish[2]\nAction: Neighbor[Q1490]", "Action: Finish[" + "z" * 9_000 + "]"),
    *(
        "Action: Finish[Not in the graph: why]",
        "Action: Feature[\x00\ud800, population]",
        "Plan: go\nThought: on",
        "[yes]",
        "[no]",
    ),
    *(
        "It is.\n[yes]",
        "It is not.\n[no]\nImproved strategy: look it up",
        "[not in the graph]",
        "Observation 1: Shinjuku",
    ),
    '{"expression": "Neighbor[Q1490, capital]", "answers": ["Osaka"]}',
    '{"expression": "", "answers": ["Shinjuku", "", "\\ud800"], "not_in_graph": "why"}',
    '{"expression": "", "answers": [], "not_in_graph": ""}',
    '{"answers": ["' + "w" * 9_000 + '"]}',
)
FAILURES = (LlmError("away"), PromptTooLong("Too long."))


def rubbish(dice: random.Random, own: Sequence[str]) -> Scripted:
    """Return a reply in the form of the method, mended or not, or a failure."""
    if dice.random() < 0.04:
        return dice.choice(FAILURES)
    return Completion(dice.choice(own if dice.random() < 0.7 else ANYWHERE), Usage(500, 50, calls=1))


def asked(agent: AgentName, dice: random.Random) -> Question:
    limits = Limits(tokens=dice.choice((2_000, 60_000)), prompt_tokens=dice.choice((400, 1_200, 12_000)))
    oda = OdaSettings(
        iterations=dice.randint(1, 8), kept=dice.choice((1, 15)), shown=dice.choice((1, 40)), limits=limits
    )
    counselor = CounselorSettings(steps=dice.randint(1, 6), reflections=dice.randint(0, 2), limits=limits)
    return Question("What is the capital of Tokyo?", ("Q1490",), oda if agent == "oda" else counselor)


@pytest.mark.parametrize(("agent", "own"), [("oda", TURNS), ("graph-counselor", STEPS)])
async def test_two_hundred_conversations_of_rubbish_end_with_a_reason_and_end_so_again(
    agent: AgentName, own: Sequence[str], tmp_path: Path
) -> None:
    ends: dict[str, int] = {}
    async with story_tools(tmp_path, TOKYO) as tools:
        for seed in range(200):
            dice = random.Random(seed)  # noqa: S311 - the same rubbish every time is the point
            question = asked(agent, dice)
            llm = ScriptedLlm([rubbish(dice, own) for _ in range(CALLS)] + [LlmError("It says no more.")] * CALLS)
            path = tmp_path / f"{seed}.jsonl"
            with Trace(path) as trace:
                answer = await run_question(question, Broken(tools, dice, spared=1), llm, trace)
            again, same = await replay_question(path)
            assert (same, replace(again, seconds=0.0)) == (True, replace(answer, seconds=0.0)), seed
            assert set(answer.evidence) <= {*FACTS, *answer.facts}, seed
            assert answer.usage.tokens <= question.settings.limits.tokens + 550, seed
            ends[answer.stop_reason] = ends.get(answer.stop_reason, 0) + 1
    own_ends = {"answered", "not_in_graph", "unreadable", "graph", "model", "tokens"}
    assert set(ends) <= own_ends | {"iterations", "steps", "reflections"}
    assert len(ends) >= 5, ends
