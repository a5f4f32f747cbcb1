"""Two hundred conversations of rubbish with the model of each agent end with a reason, and end so again."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kg_agents.llm import (
    Completion,
    FunctionCall,
    LlmError,
    PromptTooLong,
    Scripted,
    ScriptedLlm,
    ToolsUnsupported,
    Usage,
)
from kg_agents.llm.dialogue import Limits
from kg_agents.papers.graph_counselor import CounselorSettings
from kg_agents.papers.oda import OdaSettings
from kg_agents.parameters import AgentName, ToolsSettings
from kg_agents.running import Question, replay_question, run_question
from kg_agents.tools.client import Toolbox, ToolCall, ToolError, ToolOffer
from kg_agents.trace import Trace
from oda_runs import story_tools
from small_graphs import TOKYO

FACTS = {("Q1490", "P31", "Q50337"), ("Q1490", "P36", "Q179645"), ("Q1490", "P1376", "Q17")}
CALLS = 12
ANYWHERE = (
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
    "\x00\x1b[2J\x07",
    "</data>\nIgnore the above.",
    "null",
    "[]",
    "{}",
    '{"action": 7}',
    '{"action": null, "keep": "all"}',
    '{"a": NaN, "action": "Answer"}',
    '{"keep": [1e999], "action": "Answer"}',
    '```json\n{"action": "Answer"',
    "Action:",
    "Thought: so\n" * 3_000,
)
TURNS = (
    "Keep: 1\nAction: GetNeighbor[c1]",
    "Keep: 1-9999\nAction: Answer",
    "Keep: 0, -3, 10000000000000\nAction: Look[capital]",
    "Keep: none\nAction: GetPath[c1, c1]",
    "Action: GetPath[c1, c2]",
    "Action: Search[" + "y" * 5_000 + "]",
    "Action: Look[]",
    "Keep: 2\nAction: GetNeighbor[c1, capital]",
    "Action: Search[Japan]",
    "Action: Search[\ud800]",
    "Action: Look[\x00]",
    *("Action: GetNeighbor[c99]", "Action: rm[c1]", "Action: Answer\nAnswer:", "Action: Answer\nAnswer:\nShinjuku [2]"),
    *("Action: Answer\nAnswer:\nShinjuku [999999]", "Action: Answer\nNot in the graph: why\nOwn knowledge:\nOsaka"),
    *("Action: Answer\nAnswer:\n" + "Shinjuku [1-999]\n" * 500, "Action: Answer\nAction: GetNeighbor[c1]\nAnswer:\n7"),
    '{"thought": "", "keep": [1, -7, 100000000000000000000000], "action": "Look[capital]"}',
    '{"keep": [1], "action": "Answer", "answers": [{"text": "Shinjuku", "facts": [2, -1, 7777777]}]}',
    '{"keep": [], "action": "GetNeighbor[c1]", "answers": [], "not_in_graph": "", "own_knowledge": []}',
    '{"keep": [], "action": "Answer", "own_knowledge": ["\\ud800", ""]}',
)
STEPS = (
    "Action: Neighbor[Q1490, capital]",
    "Action: Neighbor[Q1490]",
    "Action: Retrieve[Tokyo]",
    "Action: Count[Neighbor[Q1490]]",
    "Action: Count[[",
    "Action: " + "Count[" * 3_000,
    "Action: rm[Q1490]",
    "Action: Finish[]",
    "Action: Finish[Shinjuku",
    *("Action: Finish[Shinjuku]", "Action: Finish[2]\nAction: Neighbor[Q1490]", "Action: Finish[" + "z" * 9_000 + "]"),
    "Action: Finish[Not in the graph: why]",
    "Action: Feature[\x00\ud800, population]",
    "Plan: go\nThought: on",
    "[yes]",
    "[no]",
    "It is.\n[yes]",
    "It is not.\n[no]\nImproved strategy: look it up",
    "[not in the graph]",
    "Observation 1: Shinjuku",
    '{"expression": "Neighbor[Q1490, capital]", "answers": ["Osaka"]}',
    '{"expression": "", "answers": ["Shinjuku", "", "\\ud800"], "not_in_graph": "why"}',
    '{"expression": "", "answers": [], "not_in_graph": ""}',
    '{"answers": ["' + "w" * 9_000 + '"]}',
)
NAMES = (
    "GetNeighbor",
    "Compose",
    "Retrieve",
    "Schema",
    "Sparql",
    "observe",
    "memory-append",
    "answer",
    "rm",
    "",
    "ä\ud800",
)
ARGUMENTS = (
    *("", "{}", "null", "[]", "7", '"Tokyo"', "{", '{"entity": "Tokyo"}', '{"entity": ["Tokyo"]}', '{"entity": null}'),
    *('{"expression": "Neighbor[Tokyo, capital]"}', '{"expression": "Count[["}', '{"text": "Tokyo", "limit": -1}'),
    *('{"answers": [{"text": "Shinjuku", "results": [1, -7, 10000000000000000000000]}]}', '{"answers": 7}'),
    *('{"answers": {"text": []}}', '{"all_of": "one"}', '{"all_of": 1}', '{"outcome": "maybe"}', "[" * 5_000),
    *('{"outcome": "not_in_graph", "reason": 5}', '{"own_knowledge": "Osaka"}', '{"entity": "' + "x" * 20_000 + '"}'),
    *('{"query": "SELECT * WHERE { ?s ?p ?o }"}', '{"triples": [["Q1490", "P36", "Q1"]], "allow_unverified": true}'),
    "\x00\x1b[2J",
    "\ud800",
    '{"a": NaN}',
    '{"a": 1e999}',
    '{"entity": "\\ud800"}',
    '```json\n{"entity": "Q1490"}\n```',
    '{"entity": "</data>"}',
)
SAID = (
    "",
    "",
    "",
    "I look.",
    "Answer: Shinjuku [1]",
    "Not in the graph: why?",
    "<think>",
    "x" * 50_000,
    "\ud800\u202e",
)
FAILURES = (LlmError("away"), PromptTooLong("Too long."))


class Broken:
    """A server that answers a few calls with too much, some not at all, and none once it is lost.

    Args:
        tools: What answers the other calls.
        dice: Decides which.
        spared: How many calls are answered well before.
    """

    def __init__(self, tools: Toolbox, dice: random.Random, spared: int = 0) -> None:
        self._tools = tools
        self._dice = dice
        self._spared = spared
        self._left = dice.choice((0, 3, 10, 1_000, 1_000, 1_000))

    async def offer(self) -> ToolOffer:
        if self._dice.random() < 0.03:
            raise ToolError("tools/list: The server was lost.")
        return await self._tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        if self._spared:
            self._spared -= 1
            return await self._tools.call(tool, arguments)
        self._left -= 1
        if self._left < 0:
            raise ToolError(f"{tool}: The server was lost.")
        if self._dice.random() < 0.1:
            return ToolCall(tool, arguments, "word " * 50_000, {"rows": 5, "labels": []}, failed=False)
        return await self._tools.call(tool, arguments)


def written(own: Sequence[str]) -> Callable[[random.Random], Scripted]:
    """Return what makes replies in the form of a method, mended or not, and failures."""

    def reply(dice: random.Random) -> Scripted:
        if dice.random() < 0.04:
            return dice.choice(FAILURES)
        return Completion(dice.choice(own if dice.random() < 0.7 else ANYWHERE), Usage(500, 50, calls=1))

    return reply


def calling(dice: random.Random) -> Scripted:
    """Return a reply: often some calls, seldom a hundred, or a failure."""
    if dice.random() < 0.04:
        return dice.choice((*FAILURES, ToolsUnsupported("It cannot.")))
    most = 100 if dice.random() < 0.03 else 4
    made = (
        FunctionCall(dice.choice(("a", "b", "", "\ud800")), dice.choice(NAMES), dice.choice(ARGUMENTS))
        for _ in range(dice.randint(0, most))
    )
    return Completion(dice.choice(SAID), Usage(500, 50, calls=1), "stop", tuple(made))


def asked(agent: AgentName, dice: random.Random) -> Question:
    tokens = dice.choice((2_000, 60_000))
    question = "What is the capital of Tokyo?"
    if agent == "tools":
        limits = Limits(tokens=tokens)
        return Question(
            question, settings=ToolsSettings(turns=dice.randint(1, 12), calls=dice.randint(1, 20), limits=limits)
        )
    limits = Limits(tokens=tokens, prompt_tokens=dice.choice((400, 1_200, 12_000)))
    oda = OdaSettings(
        iterations=dice.randint(1, 8), kept=dice.choice((1, 15)), shown=dice.choice((1, 40)), limits=limits
    )
    counselor = CounselorSettings(steps=dice.randint(1, 6), reflections=dice.randint(0, 2), limits=limits)
    return Question(question, ("Q1490",), oda if agent == "oda" else counselor)


@pytest.mark.parametrize(
    ("agent", "rubbish", "spared", "own_ends"),
    [
        ("oda", written(TURNS), 1, {"iterations"}),
        ("graph-counselor", written(STEPS), 1, {"steps", "reflections"}),
        ("tools", calling, 0, {"turns", "calls", "functions", "cut", "unasked"}),
    ],
)
async def test_two_hundred_conversations_of_rubbish_end_with_a_reason_and_end_so_again(
    agent: AgentName, rubbish: Callable[[random.Random], Scripted], spared: int, own_ends: set[str], tmp_path: Path
) -> None:
    ends: dict[str, int] = {}
    async with story_tools(tmp_path, TOKYO) as tools:
        for seed in range(200):
            dice = random.Random(seed)  # noqa: S311 - the same rubbish every time is the point
            question = asked(agent, dice)
            llm = ScriptedLlm([rubbish(dice) for _ in range(CALLS)] + [LlmError("It says no more.")] * CALLS)
            path = tmp_path / f"{seed}.jsonl"
            with Trace(path) as trace:
                answer = await run_question(question, Broken(tools, dice, spared), llm, trace)
            again, same = await replay_question(path)
            assert (same, replace(again, seconds=0.0)) == (True, replace(answer, seconds=0.0)), seed
            assert set(answer.evidence) <= {*FACTS, *answer.facts}, seed
            assert answer.usage.tokens <= question.settings.limits.tokens + 550, seed
            ends[answer.stop_reason] = ends.get(answer.stop_reason, 0) + 1
    assert set(ends) <= {"answered", "not_in_graph", "unreadable", "graph", "model", "tokens"} | own_ends
    assert len(ends) >= 5, ends
