"""A run asks every question once with every method, keeps each call, and goes on where it was stopped."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from inspect_ai.event import InfoEvent
from inspect_ai.log import read_eval_log, write_eval_log

from benchmark_players import QUESTION, PlayingLlm, in_order, reply_of, write_rows
from kg_agents.llm import Completion, LlmError, LlmRequest, Models, ScriptedLlm
from kg_agents.tools.client import ExactTools, ToolCall
from kg_agents.trace import ToolLine
from kg_eval.logs import SOURCE, DamagedRun, read_run
from kg_eval.methods.catalog import NEED_ENTITIES
from kg_eval.metrics.scores import score
from kg_eval.plan import InvalidPlan, MethodName, RunPlan, drawn
from kg_eval.questions import BenchmarkName, Gold, Record
from kg_eval.reports.tables import as_text, done, tables_of
from kg_eval.running import NO_TOPIC, NONE_GIVEN, RunFailed, run
from oda_runs import ChangedTools, answer, calls, stories_tools, story_tools
from small_graphs import PREFIXES, TOKYO

FACT = ("Q1490", "P36", "Q179645")


def planned(data: Path, method: MethodName = "direct", benchmark: BenchmarkName = "jsonl", **more: object) -> RunPlan:
    fields = {"benchmark": benchmark, "data": data, "method": method, "model": "player", "graph": "story", **more}
    return RunPlan.model_validate(fields)


def own(folder: Path, *answers: str) -> Path:
    """Write questions of one's own about Tokyo, each with its answer."""
    rows = [{"question": f"{QUESTION} {n}", "answers": [text], "entities": ["Q1490"]} for n, text in enumerate(answers)]
    return write_rows(folder, "jsonl", rows)


@pytest.mark.parametrize("method", sorted(NEED_ENTITIES))
async def test_a_question_without_entities_is_skipped_by_a_method_that_begins_from_them(
    tmp_path: Path, method: MethodName
) -> None:
    plan = planned(write_rows(tmp_path, "grbench"), method, "grbench")
    async with story_tools(tmp_path, TOKYO) as tools:
        assert await run(plan, tmp_path / "run", tools, Models(PlayingLlm(reply_of(method, "Shinjuku")))) == 0
    assert [each.skipped for each in read_run(tmp_path / "run").outcomes] == [NONE_GIVEN]


@pytest.mark.parametrize(
    ("method", "calls", "tools_called", "source"),
    [
        ("direct", 1, 0, "model"),
        ("cot", 1, 0, "model"),
        ("self-consistency", 10, 0, "model"),
        ("text-rag", 1, 2, "model"),
        ("graph-rag-1", 1, 2, "graph"),
        ("graph-rag-2", 1, 5, "graph"),
        ("tog", 3, 3, "graph"),
        ("tog-r", 3, 3, "graph"),
        ("graph-cot", 4, 3, "graph"),
        ("oda", 4, None, "graph"),
        ("graph-counselor", 7, None, "graph"),
        ("tools", 2, 3, "graph"),
    ],
)
async def test_what_a_method_used_and_what_its_answer_rests_on_is_kept(
    tmp_path: Path, method: MethodName, calls: int, tools_called: int | None, source: str
) -> None:
    settings = ("manner=paper",) if method in {"oda", "graph-counselor"} else ()
    plan = planned(write_rows(tmp_path, "jsonl"), method, settings=settings)
    async with story_tools(tmp_path, TOKYO) as tools:
        await run(plan, tmp_path / "run", tools, Models(PlayingLlm(reply_of(method, "Shinjuku"))))
    (question,) = read_run(tmp_path / "run").questions
    outcome = question.outcome
    (answer,) = outcome.answers
    assert (answer.text, answer.source, FACT in answer.facts) == ("Shinjuku", source, source == "graph")
    assert (outcome.usage.calls, outcome.usage.prompt_tokens) == (calls, 100 * calls)
    assert outcome.tool_calls == tools_called or tools_called is None
    kinds = [call.kind for call in question.calls]
    assert (kinds.count("llm"), kinds.count("tool")) == (calls, outcome.tool_calls)


async def test_a_run_over_two_graphs_scores_what_the_second_states(tmp_path: Path) -> None:
    rows = [{"question": "Who directed Sand?", "answers": ["Bo Kim"], "entities": ["Sand"]}]
    graphs = ["people=people.ttl", "films=films.ttl"]
    plan = planned(write_rows(tmp_path, "jsonl", rows), "tools", graph=graphs)
    other = {
        name: f"""@prefix ex: <http://{name}/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
            ex:q1 rdfs:label "{label}" ; ex:p1 ex:q2 . ex:q2 rdfs:label "Bo Kim" ."""
        for name, label in (("people", "Ann"), ("films", "Sand"))
    }
    look = calls(("GetNeighbor", {"entity": "ex:q1", "graph": "films"}))
    async with stories_tools(tmp_path, other) as tools:
        await run(plan, tmp_path / "run", tools, Models(ScriptedLlm([look, answer("Bo Kim")])))
    done_run = read_run(tmp_path / "run")
    (outcome,) = done_run.outcomes
    assert [each.facts for each in outcome.answers] == [(("ex:q1 [films]", "ex:p1 [films]", "ex:q2 [films]"),)]
    assert (score(outcome, "set"), done_run.plan.graphs) == (1.0, graphs)
    # An answer in another language is known by its id, whatever its graph.
    by_id = replace(outcome.record, golds=(Gold("Bo der Große", "ex:q2"),))
    assert score(replace(outcome, record=by_id), "set") == 1.0
    assert (plan.first_graph, planned(tmp_path, graph="a=b").first_graph) == ("people.ttl", "a=b")


class Stopping(PlayingLlm):
    """A player that fails from some call on."""

    def __init__(self, calls: int, method: MethodName) -> None:
        super().__init__(reply_of(method, "Shinjuku"))
        self._left = calls

    async def complete(self, request: LlmRequest) -> Completion:
        if not self._left:
            raise LlmError("The model is away.")
        self._left -= 1
        return await super().complete(request)


async def test_a_resumed_run_asks_only_what_was_not_answered(tmp_path: Path) -> None:
    plan = planned(own(tmp_path, *["Shinjuku"] * 4), "tools")
    first, second = Stopping(3, "tools"), Stopping(100, "tools")
    async with story_tools(tmp_path, TOKYO) as tools:
        assert await run(plan, tmp_path / "run", tools, Models(first), at_once=1) == 3
        assert len(read_run(tmp_path / "run").outcomes) == 1
        assert await run(plan, tmp_path / "run", tools, Models(second), at_once=1) == 0
        assert await run(plan, tmp_path / "run", tools, Models(Stopping(0, "tools")), at_once=1) == 0
    outcomes = read_run(tmp_path / "run").outcomes
    assert ([each.record.id for each in outcomes], len(second.asked)) == (["1", "2", "3", "4"], 6)
    assert [each.usage.calls for each in outcomes] == [2] * 4


def busy(call: ToolCall) -> ToolCall:
    """Return an observation as of a server whose embedder is busy."""
    return replace(call, data={**call.data, "scorer": "spelling alone (busy)"}) if call.tool == "observe" else call


async def test_a_run_in_the_manner_of_the_paper_ends_where_spelling_scores_and_others_count_it(tmp_path: Path) -> None:
    data, models = own(tmp_path, "Shinjuku", "Shinjuku"), Models(PlayingLlm(reply_of("oda", "Shinjuku")))
    plan = planned(data, "oda", settings=("manner=paper",))
    async with story_tools(tmp_path, TOKYO) as tools:
        with pytest.raises(RunFailed, match=r"this one was scored by spelling alone \(busy\)"):
            await run(plan, tmp_path / "exact", ExactTools(ChangedTools(tools, busy)), models, at_once=1)
        await run(plan, tmp_path / "run", ChangedTools(tools, busy), models)
    assert read_run(tmp_path / "exact").outcomes == ()
    kept = read_run(tmp_path / "run")
    fallbacks = sum(each.fallbacks for each in kept.outcomes)
    assert fallbacks > 0
    table, *_ = tables_of([done("run", kept)])
    assert f"run: {fallbacks} observations were scored by spelling, as the embedder was busy." in table.remarks


JUDGED = ("Action: Neighbor[Tokyo, capital]", "Action: Finish[Shinjuku]")


@pytest.mark.parametrize(
    ("method", "setting", "replies", "lost", "status"),
    [
        ("graph-counselor", "reflections=0", (*JUDGED, "maybe", "perhaps"), {"judge": 1}, "partly"),
        ("graph-counselor", "judge_unreadable=yes", (*JUDGED, "maybe", "perhaps"), {"judge": 1}, "answered"),
        ("graph-counselor", "judge_unreadable=yes", (*JUDGED, "[no]"), {}, "answered"),
        ("graph-cot", "steps=1", ("I think.", "I do."), {"action": 1}, "stopped"),
        ("tog", "depth=1", ("the capital", "the first", "{Shinjuku}"), {"relations": 1}, "answered"),
    ],
)
async def test_replies_that_nobody_could_read_are_counted_and_shown(
    tmp_path: Path, method: MethodName, setting: str, replies: tuple[str, ...], lost: dict[str, int], status: str
) -> None:
    plan = planned(own(tmp_path, "Shinjuku"), method, settings=(setting,))
    async with story_tools(tmp_path, TOKYO) as tools:
        await run(plan, tmp_path / "run", tools, Models(PlayingLlm(in_order(*replies))))
    kept = read_run(tmp_path / "run")
    (outcome,) = kept.outcomes
    assert (outcome.unreadable, outcome.status) == (lost, status)
    shown = "\n".join(map(as_text, tables_of([done("run", kept)])))
    said = [f"run: replies that could not be read, even when asked again: {name} 1." for name in lost]
    assert [line for line in shown.splitlines() if "could not be read" in line] == said


async def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    plan = planned(own(tmp_path, "Shinjuku"))
    async with story_tools(tmp_path, TOKYO) as tools:
        models = Models(PlayingLlm(reply_of("direct", "Shinjuku")))
        await run(plan, tmp_path / "run", tools, models)
        (log,) = (tmp_path / "run").glob("*.eval")
        other = read_eval_log(str(log))
        for sample in other.samples or ():
            sample.events = [InfoEvent(source=SOURCE, data={"kind": "model", "purpose": "answer"})]
        write_eval_log(other, str(log))
        with pytest.raises(DamagedRun, match=rf"{log.name} was made by another version\. Remove it"):
            read_run(tmp_path / "run")
        log.write_bytes(log.read_bytes()[:100])
        with pytest.raises(DamagedRun, match=rf"{log.name} cannot be read: .* Remove it to ask its questions again"):
            await run(plan, tmp_path / "run", tools, models)


async def test_topics_that_the_graph_lacks_are_skipped_and_counted(tmp_path: Path) -> None:
    rows = [
        {"question": "Which?", "answers": ["a"], "entities": ["Q999999", "Q888888"]},
        {"question": QUESTION, "answers": ["Shinjuku"], "entities": ["Q1490", "Q999999"]},
    ]
    plan = planned(write_rows(tmp_path, "jsonl", rows), "tog")
    async with story_tools(tmp_path, TOKYO) as tools:
        await run(plan, tmp_path / "run", tools, Models(PlayingLlm(reply_of("tog", "Shinjuku"))))
    found = [(each.skipped, each.missing_topics, len(each.answers)) for each in read_run(tmp_path / "run").outcomes]
    assert found == [(NO_TOPIC, ("Q999999", "Q888888"), 0), ("", ("Q999999",), 1)]


async def test_simple_questions_take_all_tails_of_the_relation_for_right(tmp_path: Path) -> None:
    row = {"question": "Of what?", "topic": "Q17", "relation": "P1376", "direction": "in", "answer": "Q1490"}
    plan = planned(write_rows(tmp_path, "simplequestions", [row]), "direct", "simplequestions")
    async with story_tools(tmp_path, TOKYO) as tools:
        await run(plan, tmp_path / "run", tools, Models(PlayingLlm(reply_of("direct", "Tokyo"))))
    (outcome,) = read_run(tmp_path / "run").outcomes
    assert ([gold.text for gold in outcome.record.golds], score(outcome, "hits@1")) == (["Tokyo"], 1.0)


async def test_a_model_that_fails_again_and_again_ends_the_run(tmp_path: Path) -> None:
    plan = planned(own(tmp_path, *["a"] * 20))
    model = Stopping(0, "direct")
    async with story_tools(tmp_path, TOKYO) as tools:
        with pytest.raises(
            RunFailed, match=r"5 questions in a row failed: The model is away\. .* the same command resumes"
        ):
            await run(plan, tmp_path / "run", tools, Models(model), at_once=1)


async def test_a_folder_holds_one_run(tmp_path: Path) -> None:
    data = own(tmp_path, "a")
    async with story_tools(tmp_path, TOKYO) as tools:
        models = Models(PlayingLlm(reply_of("direct", "a")))
        await run(planned(data), tmp_path / "run", tools, models)
        with pytest.raises(InvalidPlan, match=r"holds a run with another method, seed\. Choose another --out"):
            await run(planned(data, "cot", seed=1), tmp_path / "run", tools, models)
        with pytest.raises(InvalidPlan, match="oda begins from entities"):
            await run(planned(data, "oda", linking="none"), tmp_path / "other", tools, models)
        for written, message in [
            ("sample=1", "Did you mean samples"),
            ("samples", "Write name=value"),
            ("samples=many", "samples cannot be used: it must be a whole number"),
        ]:
            with pytest.raises(InvalidPlan, match=message):
                await run(planned(data, "self-consistency", settings=(written,)), tmp_path / "o", tools, models)


def test_a_sample_is_the_same_for_the_same_seed_and_keeps_the_order() -> None:
    numbers = [Record(str(n), "Q?", ()) for n in range(100)]
    once = drawn(numbers, 10, 3)
    assert (once, len(once), sorted(once, key=numbers.index)) == (drawn(numbers, 10, 3), 10, list(once))
    assert once != drawn(numbers, 10, 4)
    assert drawn(numbers, 200, 0) == tuple(numbers)


VALUES = f"""{PREFIXES}
wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P36 wd:Q179645 ; wdt:P1082 846 .
wd:Q179645 rdfs:label "Shinjuku"@en ; wdt:P1082 346 .
wdt:P36 rdfs:label "capital"@en .
wdt:P1082 rdfs:label "population"@en .
"""


@pytest.mark.parametrize("method", ["tog", "graph-rag-2"])
async def test_a_value_answers_and_is_no_entity_to_go_on_from(tmp_path: Path, method: MethodName) -> None:
    def reply(prompt: str) -> str:
        if "Its relations, by number" in prompt:
            return "\n".join(f"{number}: 0.5" for number in re.findall(r"^(\d+)\. ", prompt, re.MULTILINE))
        return "No" if "suffice" in prompt else "{846}" if "846" in prompt else "{unknown}"

    rows = [{"question": "How many live in Tokyo?", "answers": [846], "entities": ["Q1490"]}]
    plan = planned(write_rows(tmp_path, "jsonl", rows), method, settings=("depth=2",) if method == "tog" else ())
    async with story_tools(tmp_path, VALUES) as tools:
        assert await run(plan, tmp_path / "run", tools, Models(PlayingLlm(reply))) == 0
    (question,) = read_run(tmp_path / "run").questions
    asked = [
        call.arguments["entity"] for call in question.calls if isinstance(call, ToolLine) and call.tool == "GetNeighbor"
    ]
    assert {*asked} <= {"Q1490", "Q179645"}
    if method == "graph-rag-2":
        assert [(each.text, each.source, each.facts) for each in question.outcome.answers] == [
            ("846", "graph", (("Q1490", "P1082", "846"),))
        ]
