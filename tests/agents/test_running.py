"""A question from beginning to end is kept whole, and its record gives the same answer again, whatever happened."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from pydantic import TypeAdapter

from kg_agents.evidence.answers import AgentAnswer
from kg_agents.llm import AgentError, Completion, Llm, LlmError, LlmRequest, Scripted, ScriptedLlm, Usage
from kg_agents.llm.dialogue import Limits
from kg_agents.llm.texts import tokens_in
from kg_agents.papers.graph_counselor import CounselorSettings
from kg_agents.papers.oda import OdaSettings
from kg_agents.parameters import AGENTS, AgentName, AgentSettings, ToolsSettings
from kg_agents.running import Question, replay_question, run_question
from kg_agents.tools.client import Toolbox, ToolCall, ToolError, ToolOffer
from kg_agents.trace import InvalidTrace, LlmLine, ReplayDiverged, ToolLine, Trace, Watcher, read_trace
from oda_runs import ENOUGH, NEIGHBORS, PATH, ChangedTools, calls, selecting, story_tools, taking
from oda_runs import answer as calls_answer
from small_graphs import NOVELS, TOKYO

QUESTION = "What is the capital of Tokyo?"
FOUND = (NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH, "Answer: Shinjuku")
COUNSEL = ("look", "its capital", "Neighbor[Q1490, capital]", "done", "it is there", "Finish[Shinjuku]")


def in_paper(text: str, entities: tuple[str, ...] = (), agent: AgentName = "oda", **more: object) -> Question:
    """Return a question to be answered in the manner of a paper."""
    return Question(
        text, entities, TypeAdapter[AgentSettings](AGENTS[agent]).validate_python({"manner": "paper", **more})
    )


def ended(answer: AgentAnswer) -> tuple[object, ...]:
    """Return all of an answer but the time that it took."""
    return (replace(answer, seconds=0.0),)


async def kept(
    path: Path,
    tools: Toolbox,
    llm: Llm | None,
    asked: Question,
    watcher: Watcher | None = None,
    judge: Llm | None = None,
) -> AgentAnswer:
    with Trace(path) as trace:
        return await run_question(asked, tools, llm, trace, judge=judge, watcher=watcher)


async def told_twice(folder: Path, llm: Llm | None, asked: Question, judge: Llm | None = None) -> AgentAnswer:
    """Answer a question about Tokyo, and check that the record says the same again."""
    path = folder / "run.jsonl"
    async with story_tools(folder, TOKYO) as tools:
        answer = await kept(path, tools, llm, asked, judge=judge)
    again, same = await replay_question(path)
    assert (same, ended(again)) == (True, ended(answer))
    return answer


async def test_finding_the_entities_is_in_the_record_and_in_the_account(tmp_path: Path) -> None:
    answer = await told_twice(tmp_path, ScriptedLlm(["Tokyo", *FOUND]), in_paper(QUESTION))
    lines = read_trace(tmp_path / "run.jsonl")
    assert [line.purpose for line in lines if isinstance(line, LlmLine)][:2] == ["mentions", "action"]
    assert [line.tool for line in lines if isinstance(line, ToolLine)][:2] == ["Retrieve", "observe"]
    assert (answer.texts, answer.usage.calls) == (("Shinjuku",), 5)


@pytest.mark.parametrize(
    ("replies", "stop_reason"),
    [
        ([LlmError("The model is away.")], "model"),
        (["nothing of the kind", LlmError("The model is away.")], "model"),
        (["Tokyo", ENOUGH, "", ""], "unreadable"),
        (["Tokyo", "?", "?", "?", "?", "Answer: x"], "unreadable"),
        (["\ud800Tokyo", "\udfff", "Thought: \ud83d\nAction: Answer", "Answer: \ud800x"], "answered"),
    ],
)
async def test_a_run_that_went_wrong_goes_wrong_in_the_same_way_again(
    tmp_path: Path, replies: Sequence[Scripted], stop_reason: str
) -> None:
    answer = await told_twice(tmp_path, ScriptedLlm(replies), in_paper(QUESTION))
    assert answer.stop_reason == stop_reason


async def test_a_run_without_a_model_is_kept_too(tmp_path: Path) -> None:
    answer = await told_twice(tmp_path, None, in_paper(QUESTION))
    assert (answer.status, answer.answers, ("Q1490", "P36", "Q179645") in answer.facts) == ("no_model", (), True)


async def test_the_judge_of_graph_counselor_is_kept_beside_the_model(tmp_path: Path) -> None:
    judge = ScriptedLlm(["It is not.\n[no]", "Look again.", "It is.\n[yes]"])
    asked = in_paper(QUESTION, ("Q1490",), "graph-counselor")
    answer = await told_twice(tmp_path, ScriptedLlm([*COUNSEL, *COUNSEL]), asked, judge)
    assert (answer.texts, [each.purpose for each in judge.asked]) == (("Shinjuku",), ["judge", "reflection", "judge"])


class Hanging(ScriptedLlm):
    """Replies by script, and is never heard of again after that."""

    async def complete(self, request: LlmRequest) -> Completion:
        try:
            return await super().complete(request)
        except LlmError:
            await anyio.sleep_forever()
            raise


class HangingTools:
    """Answers some calls, and never those of one tool."""

    def __init__(self, tools: Toolbox, never: str) -> None:
        self._tools = tools
        self._never = never

    async def offer(self) -> ToolOffer:
        return await self._tools.offer()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
        if tool == self._never:
            await anyio.sleep_forever()
        return await self._tools.call(tool, arguments)


@pytest.mark.parametrize(
    ("agent", "hangs", "seconds"),
    [
        ("oda", "model", 3.0),
        ("oda", "observe", 0.5),
        ("oda", "memory-append", 0.5),
        ("graph-counselor", "model", 3.0),
        ("graph-counselor", "Schema", 0.5),
        ("graph-counselor", "Compose", 0.5),
    ],
)
async def test_a_run_whose_time_was_over_ends_in_the_same_place_again(
    tmp_path: Path, agent: AgentName, hangs: str, seconds: float
) -> None:
    script = FOUND[:2] if agent == "oda" else COUNSEL[:4]
    limits = Limits(seconds=seconds)
    asked = in_paper(QUESTION, ("Tokyo",), agent, limits=limits)
    async with story_tools(tmp_path, TOKYO) as tools:
        answer = await kept(tmp_path / "run.jsonl", HangingTools(tools, hangs), Hanging(script), asked)
    again, same = await replay_question(tmp_path / "run.jsonl")
    assert (same, ended(again)) == (True, ended(answer))
    assert (answer.stop_reason, answer.explanation) == ("seconds", f"The limit of {seconds:g} seconds is reached.")
    assert (answer.status, answer.evidence) == ("stopped", ())
    assert answer.facts == ((("Q1490", "P36", "Q179645"),) if hangs == "model" else ())


@pytest.mark.parametrize("llm", [None, ScriptedLlm(["Tokyo"])])
@pytest.mark.parametrize("entities", [(), ("Q1490",)])
async def test_time_runs_out_while_entities_are_looked_for(
    tmp_path: Path, llm: Llm | None, entities: tuple[str, ...]
) -> None:
    asked = in_paper(QUESTION, entities, limits=Limits(seconds=0.3))
    async with story_tools(tmp_path, TOKYO) as tools:
        hanging = HangingTools(tools, "Retrieve")
        answer = await kept(tmp_path / "run.jsonl", hanging, llm, asked)
    again, same = await replay_question(tmp_path / "run.jsonl")
    assert (same, ended(again)) == (True, ended(answer))
    assert (answer.stop_reason, answer.explanation) == ("seconds", "The limit of 0.3 seconds is reached.")


@pytest.mark.parametrize("llm", [None, ScriptedLlm([])])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("Q404", "Nothing in the graph is named 'Q404'."),
        ("Shinjuki-m", "Nothing in the graph is named 'Shinjuki-m'. Near, not the same: Shinjuku (Q179645)."),
        ("qqqqqq", "Nothing in the graph is named 'qqqqqq'."),
    ],
)
async def test_an_entity_that_is_not_there_ends_the_run_in_a_sentence(
    tmp_path: Path, given: str, said: str, llm: Llm | None
) -> None:
    answer = await told_twice(tmp_path, llm, in_paper(QUESTION, (given,)))
    assert (answer.status, answer.answers, answer.facts) == ("unknown_entity", (), ())
    assert answer.explanation == said


async def test_an_entity_that_is_not_there_is_passed_over_where_another_is(tmp_path: Path) -> None:
    said: list[str] = []
    asked = in_paper(QUESTION, ("Q404", "Tokyo"))
    async with story_tools(tmp_path, TOKYO) as tools:
        watcher = Watcher(lambda linking: said.extend(linking.passed_over))
        answer = await kept(tmp_path / "run.jsonl", tools, ScriptedLlm(FOUND), asked, watcher)
    assert (said, answer.texts) == (["Nothing in the graph is named 'Q404'."], ("Shinjuku",))


@pytest.mark.parametrize(("name", "read"), [("Tokoy", "Read 'Tokoy' as Tokyo (Q1490)."), ("tokyo", "")])
async def test_a_name_that_is_corrected_is_shown_to_the_model_and_in_the_answer(
    tmp_path: Path, name: str, read: str
) -> None:
    llm = ScriptedLlm([calls(("GetNeighbor", {"entity": "Q1490"})), calls_answer("Shinjuku")])
    answer = await told_twice(tmp_path, llm, Question(QUESTION, (name,), ToolsSettings()))
    assert (answer.question, answer.explanation, answer.texts) == (QUESTION, read, ("Shinjuku",))
    assert f"{QUESTION}\n{read}".strip() in llm.asked[0].prompt
    assert ("Read " in llm.asked[0].prompt) is bool(read)
    paper = ScriptedLlm(FOUND)
    answer = await told_twice(tmp_path, paper, in_paper(QUESTION, (name,)))
    assert (answer.explanation, "Read " in paper.asked[0].prompt) == ("", False)


async def test_what_cannot_be_reached_is_an_error(tmp_path: Path) -> None:
    class Away:
        async def offer(self) -> ToolOffer:
            raise ToolError("tools/list: nobody is there")

        async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolCall:
            raise ToolError(f"{tool}: nobody is there") from ConnectionError()

    with pytest.raises(ToolError, match="Retrieve: nobody is there"):
        await kept(tmp_path / "run.jsonl", Away(), None, in_paper(QUESTION, ("Q1490",)))


def lacking(tools: Toolbox, missing: str) -> Toolbox:
    """Return the tools of a server that has not got one of them."""

    def unknown(call: ToolCall) -> ToolCall:
        if call.tool == missing:
            raise ToolError(f"{missing}: Unknown tool")
        return call

    return ChangedTools(tools, unknown)


@pytest.mark.parametrize(
    ("missing", "agent", "replies", "stop_reason", "answers"),
    [
        ("observe", "oda", (), "graph", ()),
        ("GetPath", "oda", (PATH.format("Q1490", "Q17"), *FOUND), "answered", ("Shinjuku",)),
        ("memory-append", "oda", (*FOUND[:2], NEIGHBORS.format("Q17"), "none", *FOUND[2:]), "answered", ("Shinjuku",)),
        ("Compose", "graph-counselor", COUNSEL[:3], "graph", ()),
        ("Schema", "graph-counselor", (), "graph", ()),
    ],
)
async def test_a_run_over_a_server_without_a_tool_ends_in_the_same_way_again(
    tmp_path: Path, missing: str, agent: AgentName, replies: Sequence[str], stop_reason: str, answers: tuple[str, ...]
) -> None:
    asked = in_paper(QUESTION, ("Q1490", "Q17"), agent)
    async with story_tools(tmp_path, TOKYO) as tools:
        answer = await kept(tmp_path / "run.jsonl", lacking(tools, missing), ScriptedLlm(replies), asked)
    again, same = await replay_question(tmp_path / "run.jsonl")
    assert (same, ended(again)) == (True, ended(answer))
    assert (answer.stop_reason, answer.texts) == (stop_reason, answers)
    assert f"{missing}: Unknown tool" in f"{answer.explanation} {answer.steps}"


async def test_who_watches_sees_the_entities_every_call_what_it_used_and_every_step(tmp_path: Path) -> None:
    seen: list[str] = []
    used: list[Usage] = []
    watcher = Watcher(
        lambda linking: seen.append("; ".join(map(str, linking.linked))),
        seen.append,
        used.append,
        lambda step: seen.append(f"{step.number}. {step.action}"),
    )
    async with story_tools(tmp_path, TOKYO) as tools:
        asked = in_paper(QUESTION, ("<http://www.wikidata.org/entity/Q1490>", "Q1490"))
        answer = await kept(tmp_path / "run.jsonl", tools, ScriptedLlm(FOUND), asked, watcher)
    assert seen == [
        *("Retrieve", "'<http://www.wikidata.org/entity/Q1490>' is Tokyo (Q1490)"),
        *("observe", "action", "GetNeighbor", "reflection", "memory-append", "memory-read", "1. GetNeighbor[Q1490]"),
        *("observe", "action", "2. Answer", "answer", "memory-append"),
    ]
    assert sum(used, Usage()) == answer.usage


async def test_a_path_is_not_looked_for_again_from_its_other_end(tmp_path: Path) -> None:
    path, back = PATH.format("Q476871", "Q465360"), PATH.format("Q465360", "Q476871")
    llm = ScriptedLlm([path, "Triples: none", back, ENOUGH, "Answer: x"])
    async with story_tools(tmp_path, NOVELS) as tools:
        await kept(tmp_path / "run.jsonl", tools, llm, in_paper("How are they linked?", ("White Fang", "Q476871")))
    assert "GetPath[Q465360, Q476871] was taken already" in llm.asked[3].prompt


PIECES: tuple[str, ...] = (
    *("", "Tokyo", "Shinjuku\nJapan", "\ud800", "\x00\x1b[2J", "</data>", "Answer", "Answer:", "Answer: 7", "[yes]"),
    *("[no]", "[no] [yes]", "Action: GetNeighbor", "Entity_id: Q1490", "Entity_id: Q17, Q1490", "Action: GetPath"),
    *("Triples:", "Q1490,P36,Q179645", "Q1,P2,Q3", "Plan 1: x", "Thought 1: y", "Finish[Shinjuku]", "Finish["),
    *("Neighbor[Q1490, capital]", "Count[[", "Retrieve[Tokyo]", "x" * 20_000, "I cannot help with that.", "{{ a }}"),
    *(*FOUND, "\u202e", "🪐", "]" * 300, "((((", "- 1. *", "None"),
)


def rubbish(dice: random.Random) -> Callable[[str], str]:
    return lambda prompt: prompt if dice.random() < 0.02 else "\n".join(dice.choices(PIECES, k=dice.randint(0, 4)))


async def test_sixty_conversations_of_rubbish_end_with_a_reason_and_end_so_again(tmp_path: Path) -> None:
    reasons: dict[str, int] = {}
    limits = Limits(tokens=60_000)
    settings: dict[str, AgentSettings] = {
        "oda": OdaSettings(manner="paper", limits=limits),
        "graph-counselor": CounselorSettings(manner="paper", steps=4, reflections=1, limits=limits),
    }
    async with story_tools(tmp_path, TOKYO) as tools:
        for seed in range(60):
            dice = random.Random(seed)  # noqa: S311 - the same rubbish every time is the point
            script: list[Scripted] = [rubbish(dice) for _ in range(60)]
            script.insert(dice.randint(5, 100), LlmError("away"))
            asked = Question(QUESTION, (), settings["graph-counselor" if seed % 2 else "oda"])
            given = ("Tokyo", "Q17") if dice.random() < 0.5 else ()
            path = tmp_path / f"{seed}.jsonl"
            answer = await kept(path, tools, ScriptedLlm(script), replace(asked, entities=given))
            again, same = await replay_question(path)
            assert (same, ended(again)) == (True, ended(answer)), seed
            reasons[answer.stop_reason] = reasons.get(answer.stop_reason, 0) + 1
    ends = {"answered", "entities", "iterations", "steps", "reflections", "unreadable", "model", "tokens"}
    assert set(reasons) <= ends
    assert len(reasons) >= 4


@pytest.fixture
async def record(tmp_path: Path) -> list[dict[str, object]]:
    """The lines of a run of ODA."""
    path = tmp_path / "whole.jsonl"
    async with story_tools(tmp_path, TOKYO) as tools:
        await kept(path, tools, ScriptedLlm(FOUND), in_paper(QUESTION, ("Q1490",)))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def written(folder: Path, lines: Sequence[Mapping[str, object]]) -> Path:
    path = folder / "changed.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"agent": "rm -rf"}, "line 1: this is not a line of a trace"),
        ({"parameters": {"iterations": "many"}}, "line 1: the parameter 'iterations' is wrong"),
        ({"parameters": {"limits": {"seconds": []}}}, r"line 1: the parameter 'limits.seconds' is wrong"),
        ({"agent": "graph-counselor", "parameters": {"reflections": -1}}, "the parameter 'reflections' is wrong"),
        ({"surprise": 1}, "line 1: this is not a line of a trace"),
    ],
)
async def test_a_record_whose_first_line_is_not_to_be_trusted_is_refused(
    tmp_path: Path, record: list[dict[str, object]], changes: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidTrace, match=said):
        await replay_question(written(tmp_path, [{**record[0], **changes}, *record[1:]]))


async def test_a_record_that_ends_too_early_or_was_changed_is_no_proof(
    tmp_path: Path, record: list[dict[str, object]]
) -> None:
    for length in range(1, len(record) - 1):
        with pytest.raises(ReplayDiverged, match="the record holds no more"):
            await replay_question(written(tmp_path, record[:length]))
    answer, same = await replay_question(written(tmp_path, record[:-1]))
    assert (answer.texts, same) == (("Shinjuku",), False)
    half = tmp_path / "half.jsonl"
    half.write_text("\n".join(map(json.dumps, record))[:-40], encoding="utf-8")
    with pytest.raises(InvalidTrace, match=f"line {len(record)}: this is not a line"):
        await replay_question(half)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("llm", {"messages": []}, r"the record holds 'action' with \(\)"),
        ("tool", {"tool": "\x1b[2J"}, r"the record holds '\\x1b\[2J'"),
        ("tool", {"arguments": {"a": "b" * 5_000}}, r"the record holds 'Retrieve' \{'a': 'b{100,200}\."),
    ],
)
async def test_a_record_of_something_else_is_quoted_briefly_and_harmlessly(
    tmp_path: Path, record: list[dict[str, object]], kind: str, changes: dict[str, object], said: str
) -> None:
    place = next(number for number, line in enumerate(record) if line["kind"] == kind)
    record[place] = {**record[place], **changes}
    with pytest.raises(ReplayDiverged, match=said) as raised:
        await replay_question(written(tmp_path, record))
    assert len(str(raised.value)) < 1_000


async def test_a_record_without_an_end_is_not_read_for_ever(tmp_path: Path, record: list[dict[str, object]]) -> None:
    path = written(tmp_path, record[:1])
    with path.open("r+b") as file:
        file.truncate(51_000_000)
    with pytest.raises(InvalidTrace, match="line 1: a trace is not as long as this"):
        await replay_question(path)
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InvalidTrace, match="line 1: this is not a line of a trace"):
        await replay_question(path)


async def test_a_record_that_holds_more_or_less_than_the_run_is_not_taken_for_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.jsonl"
    await told_twice(tmp_path, ScriptedLlm(FOUND), in_paper(QUESTION, ("Q1490",)))
    begun_line, *calls, end = path.read_text(encoding="utf-8").splitlines(keepends=True)

    async def said_of(*lines: str) -> str:
        path.write_text("".join(lines), encoding="utf-8")
        with pytest.raises(AgentError) as raised:
            await replay_question(path)
        return str(raised.value)

    assert "; the record holds no more. The run was interrupted here." in await said_of(begun_line, *calls[:-2])
    assert "without calls that the record holds (1)" in await said_of(begun_line, *calls, calls[-1], end)
    assert "line 13: this belongs to another run." in await said_of(begun_line, *calls, begun_line, end)
    assert "line 13: this belongs to another run." in await said_of(begun_line, *calls, end, end)


async def test_a_judge_with_a_shorter_context_does_not_shorten_the_prompts_of_the_other_model(tmp_path: Path) -> None:
    steps = [reply for number in range(4) for reply in ("p" * 3_000, "t" * 3_000, f"Neighbor[Q1490, P{number}]")]
    attempt = [*steps, "done", "it is there", "Finish[Shinjuku]"]
    said = iter(["[no]", "Look again.", "[yes]"])
    judge = ScriptedLlm([taking(4_500, lambda _: next(said))] * 20)
    asked = in_paper(QUESTION, ("Q1490",), "graph-counselor")
    answer = await told_twice(tmp_path, ScriptedLlm([*attempt, *attempt]), asked, judge)
    assert answer.stop_reason == "answered"
    lines = [line for line in read_trace(tmp_path / "run.jsonl") if isinstance(line, LlmLine)]
    assert {line.purpose for line in lines if line.too_long} == {"judge"}
    last = [line.messages[0].content for line in lines if line.purpose == "plan"][-1]
    assert tokens_in(last) > 4_500


async def test_finding_the_entities_counts_towards_the_limits_of_the_run(tmp_path: Path) -> None:
    limits = Limits(tokens=10)
    mention = Completion("Tokyo", Usage(prompt_tokens=10, calls=1))
    answer = await told_twice(tmp_path, ScriptedLlm([mention]), in_paper(QUESTION, limits=limits))
    assert (answer.stop_reason, answer.usage.tokens) == ("tokens", 10)
