"""Runs of benchmarks: a plan as a task of inspect_ai, and its logs read back."""

# `eval_async` names a type of a package that is not installed.
# pyright: reportUnknownVariableType=false

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

import anyio
from filelock import FileLock, Timeout
from inspect_ai import Task, eval_async
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import transcript
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import TypeAdapter

from kg_agents.experience import ExperiencedLlm, Learned, OwnQuestion, solved_before
from kg_agents.linking import link_by_model
from kg_agents.llm import AgentError, LlmError, Models, Usage
from kg_agents.llm.dialogue import FailedReply, RunEnded
from kg_agents.tools.client import InexactScore, Toolbox, ToolError
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.tools.several import graphs_of
from kg_agents.trace import AnyLine, CallLog, LlmLine, ToolLine, TracedLlm, TracedTools
from kg_boundary.private_files import private_folder
from kg_eval.logs import OUTCOME, SOURCE, LoggedQuestion, read_run
from kg_eval.methods.catalog import FIND_ENTITIES, LEARN, NEED_ENTITIES, WITHOUT_GRAPH, method_of
from kg_eval.methods.method import Asked, Means, Method
from kg_eval.metrics.scores import MAIN_METRIC, METRICS, ScoredOutcome, score
from kg_eval.plan import InvalidPlan, RunPlan, drawn
from kg_eval.questions import BenchmarkName, Edge, Gold, Record, read_questions

NO_TOPIC: Final = "The graph has none of the entities of this question."
NONE_GIVEN: Final = "The file gives no entity of this question, and the method begins from entities."
FAILURES_IN_A_ROW: Final = 5
"""After so many questions in a row that the model or the graph failed to answer, the run ends."""
_FAILED: Final = frozenset({"model", "graph"})
"""Ends of a question that say nothing about the method: it is asked again when the run is resumed."""
_SIMILAR_ANSWERS: Final = 200

Learn: TypeAlias = Callable[[Learned], Awaitable[object]]
"""Keeps a solved question."""


_RECORD: Final = TypeAdapter(Record)


class RunFailed(AgentError):
    """The model or the graph fails again and again; what was answered is kept, and the same command resumes."""


async def run(
    plan: RunPlan,
    folder: Path,
    tools: Toolbox,
    models: Models,
    *,
    at_once: int = 4,
    learn: Learn | None = None,
) -> int:
    """Ask the questions of a plan that no log in the folder answers yet, and return how many failed.

    Args:
        plan: What is asked, of which model and how.
        folder: The folder of its logs; a run of the same plan is resumed there.
        tools: The tools of the graph.
        models: The models.
        at_once: How many questions are asked at a time.
        learn: Keeps solved questions, where the plan says so.

    Raises:
        InvalidQuestions: The questions cannot be read.
        InvalidPlan: The folder holds a run of another plan, or a parameter is wrong.
        DamagedRun: A log in the folder cannot be read.
        RunFailed: The model or the graph fails again and again, or an observation is not scored as it must be.
    """
    with _alone(folder):
        answered = {each.outcome.record.id for each in _same_run(plan, folder)}
        waiting = [each for each in numbered_records(plan) if each[1].id not in answered]
        if not waiting:
            return 0
        ended = list[str]()
        task = task_of(plan, waiting, lambda: nullcontext(tools), lambda: models, learn=learn, ended=ended)
        (log,) = await eval_async(
            task,
            model=None,
            log_dir=str(folder),
            log_format="eval",
            log_buffer=1,
            log_realtime=False,
            score_display=False,
            max_samples=at_once,
            fail_on_error=False,
            ctl_server=False,
        )
    if ended or log.status != "success":
        reason = ended[0] if ended else f"inspect_ai ended the run: {log.status}."
        raise RunFailed(f"{reason} What was answered is kept in {folder}; the same command resumes.")
    return sum(each.error is not None for each in log.samples or ())


def numbered_records(plan: RunPlan) -> list[tuple[int, Record]]:
    """Return the questions of a plan with their numbers, which count from 1.

    Raises:
        InvalidQuestions: The questions cannot be read.
        InvalidPlan: The method cannot do what the plan says.
    """
    records = drawn(read_questions(plan.benchmark, plan.data), plan.sample, plan.seed)
    if plan.linking == "none" and plan.method in NEED_ENTITIES:
        raise InvalidPlan(f"{plan.method} begins from entities. Choose --linking gold or --linking model.")
    if plan.learn and plan.method not in LEARN:
        raise InvalidPlan(f"{plan.method} learns nothing. Choose one of {', '.join(sorted(LEARN))} with --learn.")
    return [*enumerate(records, start=1)]


def task_of(
    plan: RunPlan,
    records: Iterable[tuple[int, Record]],
    connect: Callable[[], AbstractAsyncContextManager[Toolbox]],
    models: Callable[[], Models],
    *,
    learn: Learn | None = None,
    ended: list[str] | None = None,
) -> Task:
    """Return a plan as a task of inspect_ai.

    Args:
        plan: How is asked.
        records: What is asked, as `numbered_records` returns it.
        connect: Connects to the tools of the graph for one question.
        models: Returns the models for one question.
        learn: Keeps solved questions, where the plan says so.
        ended: Takes the reason where the run ends early.

    Raises:
        InvalidPlan: A parameter of the method is wrong.
    """
    method = method_of(plan.method, plan.settings)
    samples = [
        Sample(
            input=record.question,
            target=[gold.text for gold in record.golds],
            id=record.id,
            metadata={"record": _RECORD.dump_python(record, mode="json"), "number": number},
        )
        for number, record in records
    ]
    failures = _Failures([] if ended is None else ended)
    return Task(
        name=f"{plan.benchmark}-{plan.method}",
        dataset=MemoryDataset(samples),
        solver=_solver(plan, method, connect, models, learn, failures)(),
        scorer=all_metrics(plan.benchmark),
        metadata={"plan": plan.model_dump(mode="json")},
    )


@dataclass
class _Failures:
    """Ends a run after too many failures in a row."""

    ended: list[str]
    in_a_row: int = 0

    def check(self) -> None:
        """Raise what ended the run, if anything did."""
        if self.ended:
            raise RunFailed(self.ended[0])

    def take(self, outcome: ScoredOutcome) -> None:
        """Count an outcome; raise where the model or the graph failed."""
        if outcome.stop_reason not in _FAILED or outcome.answers:
            self.in_a_row = 0
            return
        self.in_a_row += 1
        if self.in_a_row >= FAILURES_IN_A_ROW:
            self.ended.append(f"{self.in_a_row} questions in a row failed: {outcome.explanation}")
        raise LlmError(outcome.explanation)


def _solver(
    plan: RunPlan,
    method: Method,
    connect: Callable[[], AbstractAsyncContextManager[Toolbox]],
    models: Callable[[], Models],
    learn: Learn | None,
    failures: _Failures,
) -> Callable[[], Solver]:
    @solver(name="method")
    def by_method() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            del generate
            failures.check()
            seed = plan.seed + int(state.metadata["number"]) + state.epoch - 1
            record = _RECORD.validate_python(state.metadata["record"])
            log = _QuestionLog()
            async with connect() as tools:
                graphs = graphs_of((await tools.offer()).tools) if len(plan.graphs) > 1 else ()
                means = log.means(models(), tools, seed, graphs)
                try:
                    outcome = await _asked(record, plan, method, means, learn)
                except InexactScore as error:
                    failures.ended.append(str(error))
                    raise
            failures.take(outcome)
            outcome = replace(outcome, usage=log.usage, tool_calls=log.tool_calls, fallbacks=log.fallbacks)
            state.metadata["outcome"] = OUTCOME.dump_python(outcome, mode="json")
            state.output.completion = outcome.prediction
            return state

        return solve

    return by_method


@scorer(name="metrics", metrics={"*": [mean(), stderr()]})
def all_metrics(benchmark: BenchmarkName) -> Scorer:
    """Score in every metric, the one that the benchmark is published in first; what was not asked has no score."""
    main = MAIN_METRIC[benchmark]

    async def scored(state: TaskState, target: Target) -> Score:
        del target
        outcome = OUTCOME.validate_python(state.metadata["outcome"])
        values = {str(name): score(outcome, name) for name in sorted(METRICS, key=lambda each: each != main)}
        found = {name: float("nan") if value is None else value for name, value in values.items()}
        answers = "; ".join(f"{each.text} ({each.source})" for each in outcome.answers)
        return Score(
            value=found, answer=answers or outcome.prediction, explanation=outcome.skipped or outcome.explanation
        )

    return scored


class _QuestionLog(CallLog):
    """Counts the calls of one question, and keeps them in its log."""

    def __init__(self) -> None:
        super().__init__()
        self.usage = Usage()
        self.tool_calls = 0
        self.fallbacks = 0

    def write(self, line: AnyLine) -> None:
        """Add a line."""
        if isinstance(line, LlmLine):
            self.usage += line.usage
        elif isinstance(line, ToolLine):
            self.tool_calls += 1
            # The reason in brackets says why spelling alone had to score.
            self.fallbacks += str(line.data.get("scorer", "")).startswith("spelling alone (")
        else:
            return
        transcript().info(line.model_dump(mode="json", exclude={"data"}), source=SOURCE)

    def means(self, models: Models, tools: Toolbox, seed: int, graphs: tuple[str, ...]) -> Means:
        """Return models and tools whose calls are kept."""
        return Means(models.changed(lambda llm: TracedLlm(llm, self)), TracedTools(tools, self), seed, graphs)


async def _asked(record: Record, plan: RunPlan, method: Method, means: Means, learn: Learn | None) -> ScoredOutcome:
    """Ask a question, and return its outcome whatever happens."""
    began = anyio.current_time()
    try:
        outcome = await _answered(record, plan, method, means, learn)
    except RunEnded as end:
        outcome = ScoredOutcome(record, stop_reason=end.limit, explanation=str(end))
    except FailedReply as failure:
        outcome = ScoredOutcome(record, stop_reason="unreadable", explanation=str(failure))
    except InexactScore:
        raise
    except ToolError as error:
        outcome = ScoredOutcome(record, stop_reason="graph", explanation=str(error))
    seconds = round(anyio.current_time() - began, 3)
    return replace(outcome, unreadable=dict(means.unreadable), seconds=seconds)


async def _answered(record: Record, plan: RunPlan, method: Method, means: Means, learn: Learn | None) -> ScoredOutcome:
    """Find the entities, then the answer.

    Raises:
        RunEnded: A limit is reached, or the model fails.
        ToolError: The graph does not answer.
    """
    entities, missing = tuple[tuple[str, str], ...](), tuple[str, ...]()
    if plan.method not in WITHOUT_GRAPH:
        if plan.linking == "gold":
            entities, missing = await _given(record, means.graph)
            if not entities and (record.topics or plan.method in NEED_ENTITIES):
                return ScoredOutcome(record, missing_topics=missing, skipped=NO_TOPIC if record.topics else NONE_GIVEN)
        elif plan.linking == "model" and plan.method not in FIND_ENTITIES:
            found = await link_by_model(means.graph, record.question, means.talk())
            entities = tuple((each.entity.id, each.entity.label) for each in found.linked)
    if record.edge is not None:
        record = replace(record, golds=await golds_in(record.edge, record.golds, means.graph))
    if plan.learn:
        own = OwnQuestion(means.tools, record.question)
        llm = ExperiencedLlm(means.models.llm, await solved_before(own, record.question))
        means = replace(means, tools=own, models=replace(means.models, llm=llm))
    answer = await method.answer(Asked(record.question, entities, plan.first_graph), means)
    if plan.learn and learn is not None and answer.learned is not None:
        await learn(answer.learned)
    return ScoredOutcome(
        record,
        answer.prediction,
        answer.answers,
        answer.model_answer,
        answer.status,
        answer.stop_reason,
        answer.explanation,
        missing_topics=missing,
    )


async def _given(record: Record, graph: KnowledgeGraph) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the entities of a record that the graph has (id and label), and the ids of those that it lacks."""
    if not record.topics:
        return (), ()
    named = await graph.identify([topic.id for topic in record.topics])
    meant = {each.text: [(one.id, one.label) for one in each.meant] for each in named if each.is_one}
    found = dict.fromkeys(pair for topic in record.topics for pair in meant.get(topic.id, ()))
    return tuple(found), tuple(topic.id for topic in record.topics if topic.id not in meant)


async def golds_in(edge: Edge, golds: tuple[Gold, ...], graph: KnowledgeGraph) -> tuple[Gold, ...]:
    """Return right answers with their names, and with them what else the graph holds over the same relation.

    Raises:
        ToolError: The graph does not answer, or has no such relation.
    """
    found = await graph.neighbors(edge.topic, relation=edge.relation, direction=edge.direction, limit=_SIMILAR_ANSWERS)
    ends = [fact[0] if edge.direction == "in" else fact[2] for fact in found.triples]
    ids = dict.fromkeys((*(gold.id for gold in golds), *ends))
    return tuple(Gold(found.labels.nodes.get(end, end), end) for end in ids)


def _same_run(plan: RunPlan, folder: Path) -> tuple[LoggedQuestion, ...]:
    """Return what a folder holds of a plan already.

    Raises:
        InvalidPlan: It holds a run of another plan.
    """
    if not any(folder.glob("*.eval")):
        return ()
    kept = read_run(folder)
    if other := [name for name in RunPlan.model_fields if getattr(kept.plan, name) != getattr(plan, name)]:
        raise InvalidPlan(f"{folder} holds a run with another {', '.join(other)}. Choose another --out.")
    return kept.questions


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Make sure that one process at a time writes to a folder."""
    private_folder(folder)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InvalidPlan(f"Another run writes to {folder} now. Wait for it, or choose another --out.") from error
    try:
        yield
    finally:
        lock.release()
