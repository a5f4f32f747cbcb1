"""A run is kept line by line, and runs again from what was kept."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kg_agents.evidence.answers import AgentAnswer
from kg_agents.llm import (
    Completion,
    Function,
    FunctionCall,
    LlmError,
    LlmRequest,
    Message,
    PromptTooLong,
    Scripted,
    ScriptedLlm,
    ToolsUnsupported,
    Usage,
)
from kg_agents.papers.oda import ODA, OdaSettings
from kg_agents.tools.client import ToolCall, ToolError, ToolOffer
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.trace import (
    AnswerLine,
    InvalidTrace,
    LlmLine,
    Replay,
    ReplayDiverged,
    RunLine,
    ToolLine,
    Trace,
    TracedLlm,
    TracedTools,
    read_trace,
)
from oda_runs import ENOUGH, NEIGHBORS, selecting, story_tools
from small_graphs import TOKYO

REPLIES = (NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH, "Answer: Shinjuku")
QUESTION = "What is the capital of Tokyo?"


ENDED = AnswerLine(answers=[], model_answer=[], status="stopped", stop_reason="", explanation="", tokens=0, seconds=0)

PAPER = OdaSettings(manner="paper")


def begun() -> RunLine:
    return RunLine(question=QUESTION, entities=["Q1490"], agent="oda", parameters={}, model="scripted", graph="story")


async def recorded(folder: Path, *replies: Scripted) -> tuple[Path, AgentAnswer]:
    path = folder / "traces" / "one.jsonl"
    async with story_tools(folder, TOKYO) as tools:
        with Trace(path) as trace:
            trace.write(begun())
            traced = KnowledgeGraph(TracedTools(tools, trace))
            answer = await ODA(TracedLlm(ScriptedLlm(replies), trace), traced, settings=PAPER).answer(
                QUESTION, ["Q1490"]
            )
            trace.write(AnswerLine.of(answer))
    return path, answer


async def replayed(path: Path, settings: OdaSettings = PAPER) -> AgentAnswer:
    replay = Replay(path)
    agent = ODA(replay.llm("scripted"), KnowledgeGraph(replay), settings=settings)
    return await agent.answer(replay.run.question, replay.run.entities)


async def test_a_run_is_kept_in_the_order_of_its_calls(tmp_path: Path) -> None:
    path, _ = await recorded(tmp_path, *REPLIES)
    lines = read_trace(path)
    order = [line.tool if isinstance(line, ToolLine) else line.kind for line in lines]
    assert order == [
        *["run", "observe", "llm", "GetNeighbor", "llm", "memory-append", "memory-read"],
        *["observe", "llm", "llm", "answer"],
    ]
    assert all(line.took_s >= 0 for line in lines if isinstance(line, LlmLine | ToolLine))
    assert [line.reply for line in lines if isinstance(line, LlmLine)] == list(REPLIES)


async def test_a_prompt_that_was_too_long_is_too_long_again(tmp_path: Path) -> None:
    path, answer = await recorded(tmp_path, PromptTooLong("Too long."), *REPLIES)
    assert (await replayed(path)).explanation == answer.explanation
    assert answer.explanation == "Too long."
    with pytest.raises(PromptTooLong):
        await Replay(path).llm("m").complete(LlmRequest(_first_call(path).messages, "action", 0, 1))


def _first_call(path: Path) -> LlmLine:
    return next(line for line in read_trace(path) if isinstance(line, LlmLine))


async def test_a_run_that_goes_another_way_says_where(tmp_path: Path) -> None:
    path, _ = await recorded(tmp_path, *REPLIES)
    with pytest.raises(ReplayDiverged, match=r"The run asks for 'observe' .*'hops': 1"):
        await replayed(path, OdaSettings(manner="paper", hops=1))
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.replace("one action only", "two actions") for line in lines), encoding="utf-8")
    with pytest.raises(ReplayDiverged, match="made by another version or with other parameters"):
        await replayed(path)
    path.write_text("\n".join(line for line in lines if '"kind": "llm"' not in line), encoding="utf-8")
    with pytest.raises(ReplayDiverged, match=r"asks for 'action' .*; the record holds no more"):
        await replayed(path)
    path.write_text("\n".join(line for line in lines if '"kind": "tool"' not in line), encoding="utf-8")
    with pytest.raises(ReplayDiverged, match=r"asks for 'observe' .*; the record holds no more"):
        await replayed(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a trace: its first line"),
        (b"{}\n", "line 1: this is not a line of a trace"),
        (b"\xff\xfe\n", "this is not a line of a trace"),
        (ENDED.model_dump_json().encode(), "is not a trace"),
        (json.dumps(begun().model_dump() | {"format": 9}).encode(), "has format 9; this version reads 2"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidTrace, match=message):
        read_trace(path)


@pytest.mark.parametrize(("lines", "number"), [((begun(), begun(), ENDED), 2), ((begun(), ENDED, ENDED), 2)])
def test_two_runs_in_one_file_are_refused(tmp_path: Path, lines: tuple[RunLine | AnswerLine, ...], number: int) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text("\n".join(line.model_dump_json() for line in lines), encoding="utf-8")
    with pytest.raises(InvalidTrace, match=f"line {number}: this belongs to another run"):
        read_trace(path)
    path.write_text("\n".join(line.model_dump_json() for line in (begun(), ENDED)), encoding="utf-8")
    assert read_trace(path) == [begun(), ENDED]


def test_the_folder_of_a_trace_is_its_owners_alone(tmp_path: Path) -> None:
    with Trace(tmp_path / "new" / "one.jsonl") as trace:
        trace.write(begun())
    assert os.name == "nt" or (tmp_path / "new").stat().st_mode & 0o077 == 0


def test_a_trace_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match="cannot be read: No such file"):
        read_trace(tmp_path / "none.jsonl")


@pytest.mark.parametrize("content", [b"dear diary\n", b"{}", ENDED.model_dump_json().encode(), b"\n", b"\xff"])
def test_a_file_that_is_no_trace_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "diary"
    path.write_bytes(content)
    with pytest.raises(InvalidTrace, match="diary holds no trace and is not overwritten"), Trace(path):
        raise AssertionError("it was opened")
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", begun().model_dump_json().encode() + b"\ncut off"])
def test_an_empty_file_and_a_trace_are_written_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(content)
    with Trace(path) as trace:
        trace.write(begun())
        assert read_trace(path) == [begun()]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidTrace, match="pipe holds no trace"), Trace(tmp_path / "pipe"):
        raise AssertionError("it was opened")


async def test_a_script_can_answer_by_purpose_and_comes_to_its_end() -> None:
    llm = ScriptedLlm(["other"], {"action": [lambda prompt: prompt.upper()]})
    spoken = (Message("user", "hello"),)
    first = await llm.complete(LlmRequest(spoken, "action", 0, 1))
    second = await llm.complete(LlmRequest(spoken, "answer", 0, 1))
    assert (first.text, second.text, first.usage) == ("HELLO", "other", Usage(1, 1, 0, 1))
    with pytest.raises(LlmError, match="no more replies for 'answer'"):
        await llm.complete(LlmRequest(spoken, "answer", 0, 1))
    assert [(each.purpose, each.prompt) for each in llm.asked][:2] == [("action", "hello"), ("answer", "hello")]


class Listed:
    """Offers one tool, or is not there."""

    def __init__(self, offer: ToolOffer | None) -> None:
        self._offer = offer

    async def offer(self) -> ToolOffer:
        if self._offer is None:
            raise ToolError("tools/list: nobody is there")
        return self._offer

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        return ToolCall(tool, arguments, "done", {}, failed=False)


LOOK = Function("look", "Looks around.", {"type": "object"})
CALLED = FunctionCall("c1", "look", "{}")
CONVERSATION = (Message("user", "Hello"), Message("assistant", "", (CALLED,)), Message("tool", "done", call_id="c1"))


async def kept_conversation(path: Path, *replies: Scripted, offer: ToolOffer | None = None) -> None:
    with Trace(path) as trace:
        trace.write(begun())
        tools, llm = TracedTools(Listed(offer), trace), TracedLlm(ScriptedLlm(replies), trace)
        with suppress(ToolError):
            await tools.offer()
        await tools.call("look", {})
        for _ in replies:
            with suppress(LlmError):
                await llm.complete(LlmRequest(CONVERSATION, "call", 0, 1, tools=(LOOK,)))


async def test_functions_calls_and_results_are_kept_and_come_back(tmp_path: Path) -> None:
    path, offer = tmp_path / "one.jsonl", ToolOffer("Be brief.", (LOOK,))
    reply = Completion("", Usage(1, 1, calls=1), "tool_calls", (replace(CALLED, arguments="\ud800"),))
    await kept_conversation(path, reply, ToolsUnsupported("It cannot."), offer=offer)
    replay, request = Replay(path), LlmRequest(CONVERSATION, "call", 0, 1)
    assert await replay.offer() == offer
    with pytest.raises(ReplayDiverged, match="asks for which tools there are; the record holds no more"):
        await replay.offer()
    assert (await replay.llm("m").complete(request)).calls == (replace(CALLED, arguments="?"),)
    with pytest.raises(ToolsUnsupported, match="It cannot"):
        await replay.llm("m").complete(request)
    changed = (*CONVERSATION[:2], Message("tool", "done", call_id="c2"))
    with pytest.raises(ReplayDiverged, match="other parameters"):
        await Replay(path).llm("m").complete(LlmRequest(changed, "call", 0, 1))


async def test_a_server_that_could_not_say_what_it_offers_cannot_say_so_again(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    await kept_conversation(path)
    with pytest.raises(ToolError, match="nobody is there"):
        await Replay(path).offer()


async def test_a_record_from_before_there_were_calls_is_still_replayed(tmp_path: Path) -> None:
    path, answer = await recorded(tmp_path, *REPLIES)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    old = [{name: each for name, each in line.items() if name not in {"calls", "no_tools"}} for line in lines]
    assert old != lines
    path.write_text("\n".join(map(json.dumps, old)), encoding="utf-8")
    assert (await replayed(path)).answers == answer.answers
