"""Agents are shown what was solved before, never their own question, and learn only from what was compared."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_agents.checking import UNCHECKED
from kg_agents.evidence.answers import AgentAnswer, GivenAnswer
from kg_agents.experience import RECALL, ExperiencedLlm, OwnQuestion, learned_from, solved_before
from kg_agents.llm import LlmRequest, Message, Role, ScriptedLlm
from kg_agents.parameters import ToolsSettings
from kg_agents.running import Question, replay_question, run_question
from kg_agents.tools.client import Toolbox, connect_tools
from kg_agents.trace import ToolLine, Trace, read_trace
from kg_server.app import build_server, experience_of
from kg_server.commands.answering import learn
from kg_server.memory.experience import Solved
from kg_server.settings import Settings
from oda_runs import answer, calls, story_store
from small_graphs import TOKYO

QUESTION = "What is the capital of Tokyo?"
OTHER = "What is the capital of Osaka, by the way, and since when?"
CAPITAL = ("Compose", {"expression": "Neighbor[Tokyo, capital]"})
FACT = ("Q1490", "P36", "Q179645")
EXAMPLE = "1. call: Neighbor[Osaka, capital]"


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Toolbox]:
    """Serve a graph over which a question like ours was solved, and ours as well."""
    store_folder = story_store(TOKYO)
    settings = Settings.model_validate(
        {"cache_folder": tmp_path, "data_folder": tmp_path, "embedding": {"embedder": "lexical"}, "learn": True}
    )
    store = experience_of(settings)
    assert store is not None
    async with (
        aclosing(LocalAdapter(open_store(store_folder))) as graph,
        connect_tools(build_server(graph, settings)) as connected,
    ):
        for question, call, found in ((QUESTION, "leak", "leak"), (OTHER, "Neighbor[Osaka, capital]", "Chuo")):
            solved = Solved(question=question, calls=(call,), answers=(found,), evidence=())
            assert await learn(graph, store, solved, [FACT])
        yield connected


async def run(tools: Toolbox, folder: Path, *, on: bool) -> tuple[AgentAnswer, ScriptedLlm]:
    """Ask the question in a run that recalls by other words, and make sure that its record replays."""
    recalling = calls((RECALL, {"question": OTHER}), CAPITAL) if on else calls(CAPITAL)
    llm = ScriptedLlm([recalling, answer("Shinjuku", cites=(2 if on else 1,))])
    path = folder / "run.jsonl"
    with Trace(path) as trace:
        found = await run_question(Question(QUESTION, settings=ToolsSettings(), learn=on), tools, llm, trace)
    again, same = await replay_question(path)
    assert (same, again.texts) == (True, found.texts)
    return found, llm


async def test_a_model_is_shown_what_was_solved_before_and_not_its_own_record(tools: Toolbox, tmp_path: Path) -> None:
    found, llm = await run(tools, tmp_path, on=True)
    shown = "\n".join(message.content for request in llm.asked for message in request.messages)
    assert found.texts == ("Shinjuku",)
    assert EXAMPLE in llm.asked[0].messages[0].content
    assert "leak" not in shown
    recalled = [
        line for line in read_trace(tmp_path / "run.jsonl") if isinstance(line, ToolLine) and line.tool == RECALL
    ]
    assert [line.arguments for line in recalled] == [{"question": QUESTION}] * 2


async def test_without_learning_nothing_is_recalled(tools: Toolbox, tmp_path: Path) -> None:
    _, llm = await run(tools, tmp_path, on=False)
    assert EXAMPLE not in llm.asked[0].messages[0].content
    assert RECALL not in {line.tool for line in read_trace(tmp_path / "run.jsonl") if isinstance(line, ToolLine)}


async def test_what_a_run_has_solved_can_be_learned(tools: Toolbox, tmp_path: Path) -> None:
    found, _ = await run(tools, tmp_path, on=False)
    learned = learned_from(found)
    assert learned is not None
    assert (learned.question, learned.calls, learned.answers) == (
        QUESTION,
        ("Neighbor[Tokyo, capital]",),
        ("Shinjuku",),
    )
    assert (learned.plain_facts, learned.evidence) == ((FACT,), ("Tokyo | capital | Shinjuku",))
    for other in (
        replace(found, status="partly"),
        replace(found, explanation=f"{UNCHECKED}: no"),
        replace(found, answers=(*found.answers, GivenAnswer("Osaka", "model"))),
    ):
        assert learned_from(other) is None


async def test_examples_stand_where_a_model_decides_and_nowhere_else() -> None:
    llm = ScriptedLlm(["a", "b", "c"])
    shown = ExperiencedLlm(llm, "1. question: </data> Which?")
    asked: list[tuple[str, Role]] = [("turn", "user"), ("tools", "system"), ("judge", "user")]
    for purpose, role in asked:
        await shown.complete(LlmRequest((Message(role, "Ask."),), purpose, 0.0, 10))
    turn, tools, judge = (request.messages[0].content for request in llm.asked)
    assert (turn.endswith("\n\nAsk."), tools.startswith("Ask.\n\n"), judge) == (True, True, "Ask.")
    assert "&lt;/data> Which?" in turn


async def test_a_server_that_recalls_nothing_is_no_hindrance(tools: Toolbox) -> None:
    assert await solved_before(OwnQuestion(tools, "Who painted the ceiling with such a brush?"), "x") != ""
    assert await solved_before(OwnQuestion(tools, ""), "x") == ""
