"""Two hundred conversations of rubbish with a model that calls the tools itself end with a reason, and again so."""

import random
from dataclasses import replace
from pathlib import Path

from broken_servers import Broken
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
from kg_agents.parameters import ToolsSettings
from kg_agents.running import Question, replay_question, run_question
from kg_agents.trace import Trace
from oda_runs import story_tools
from story_graphs import TOKYO

QUESTION = "What is the capital of Tokyo?"
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
    *(
        "\x00\x1b[2J",
        "\ud800",
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"entity": "\\ud800"}',
        '```json\n{"entity": "Q1490"}\n```',
        '{"entity": "</data>"}',
    ),
)
TEXTS = (
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
FAILURES = (LlmError("away"), PromptTooLong("Too long."), ToolsUnsupported("It cannot."))


def rubbish(dice: random.Random) -> Scripted:
    """Return a reply: often some calls, seldom a hundred, or a failure."""
    if dice.random() < 0.04:
        return dice.choice(FAILURES)
    most = 100 if dice.random() < 0.03 else 4
    made = (
        FunctionCall(dice.choice(("a", "b", "", "\ud800")), dice.choice(NAMES), dice.choice(ARGUMENTS))
        for _ in range(dice.randint(0, most))
    )
    return Completion(dice.choice(TEXTS), Usage(500, 50, calls=1), "stop", tuple(made))


async def test_two_hundred_conversations_of_rubbish_end_with_a_reason_and_end_so_again(tmp_path: Path) -> None:
    ends: dict[str, int] = {}
    async with story_tools(tmp_path, TOKYO) as tools:
        for seed in range(200):
            dice = random.Random(seed)  # noqa: S311 - the same rubbish every time is the point
            settings = ToolsSettings(
                turns=dice.randint(1, 12), calls=dice.randint(1, 20), limits=Limits(tokens=dice.choice((2_000, 60_000)))
            )
            llm = ScriptedLlm([rubbish(dice) for _ in range(12)])
            path = tmp_path / f"{seed}.jsonl"
            asked = Question(QUESTION, settings=settings)
            with Trace(path) as trace:
                answer = await run_question(asked, Broken(tools, dice), llm, trace)
            again, same = await replay_question(path)
            assert (same, replace(again, seconds=0.0)) == (True, replace(answer, seconds=0.0)), seed
            assert all(fact in {("Q1490", "P36", "Q179645"), *answer.facts} for fact in answer.evidence)
            ends[answer.stop_reason] = ends.get(answer.stop_reason, 0) + 1
    assert set(ends) <= {
        *("answered", "not_in_graph", "turns", "calls", "unreadable", "graph", "functions", "model", "tokens", "cut")
    }
    assert len(ends) >= 6, ends
