"""Each benchmark as a task: its questions, a method over a graph, and the metrics."""

import shlex
from collections.abc import Callable
from typing import Final, get_args

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import TypeAdapter

from kg_agents.llm import LlmError
from kg_agents.tools.client import ExactTools, connect_tools
from kg_eval.methods.catalog import method_of, scores_as_in_paper
from kg_eval.methods.method import Means
from kg_eval.metrics.scores import MAIN_METRIC, METRICS, score
from kg_eval.outcomes import Outcome
from kg_eval.questions import BenchmarkName, Record, read_questions
from kg_eval.runs.answering import FAILED, asked, check
from kg_eval.runs.plan import RunPlan
from kg_sextant.models import InspectLlm

_RECORD: Final = TypeAdapter(Record)
_OUTCOME: Final = TypeAdapter(Outcome)


@solver(name="method")
def method_over_graph(plan: dict[str, object], server: str) -> Solver:
    """Answer with a method of a plan, over a server of a graph: a command line or a URL."""
    planned = RunPlan.model_validate(plan)
    method = method_of(planned.method, planned.settings)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        del generate
        record = _RECORD.validate_python(state.metadata["record"])
        llm = InspectLlm(get_model())
        async with connect_tools(server) as served:
            tools = ExactTools(served) if scores_as_in_paper(method) else served
            outcome = await asked(record, planned, method, Means(llm, tools, seed=planned.seed + state.epoch))
        if outcome.stop_reason in FAILED and not outcome.answers:
            raise LlmError(outcome.explanation)
        state.metadata["outcome"] = _OUTCOME.dump_python(outcome, mode="json")
        state.output.completion = outcome.prediction
        return state

    return solve


@scorer(name="metrics", metrics={"*": [mean(), stderr()]})
def all_metrics(benchmark: BenchmarkName) -> Scorer:
    """Score in every metric, the one that the benchmark is published in first; what was not asked has no score."""
    main = MAIN_METRIC[benchmark]

    async def scored(state: TaskState, target: Target) -> Score:
        del target
        outcome = _OUTCOME.validate_python(state.metadata["outcome"])
        values = {str(name): score(outcome, name) for name in sorted(METRICS, key=lambda each: each != main)}
        said = "; ".join(f"{each.text} ({each.source})" for each in outcome.answers)
        why = outcome.skipped or outcome.explanation
        found = {name: float("nan") if value is None else value for name, value in values.items()}
        return Score(value=found, answer=said or outcome.prediction, explanation=why)

    return scored


def _task_of(benchmark: BenchmarkName) -> Callable[..., Task]:
    @task(name=benchmark)
    def made(
        data: str,
        graph: str = "sample",
        method: str = "oda",
        linking: str = "gold",
        settings: str = "",
        seed: int = 0,
        server: str = "",
    ) -> Task:
        written = [each.strip() for each in settings.split(",") if each.strip()]
        fields = {"data": data, "graph": graph, "method": method, "linking": linking, "settings": written, "seed": seed}
        plan = RunPlan.model_validate({"benchmark": benchmark, "model": "inspect", **fields})
        check(plan)
        samples = [
            Sample(
                input=record.question,
                target=[gold.text for gold in record.golds],
                id=record.id,
                metadata={"record": _RECORD.dump_python(record, mode="json")},
            )
            for record in read_questions(benchmark, plan.data)
        ]
        target = server or f"kg-sextant serve {shlex.quote(graph)}"
        return Task(
            dataset=MemoryDataset(samples),
            solver=method_over_graph(plan.model_dump(mode="json"), target),
            scorer=all_metrics(benchmark),
        )

    return made


TASKS: Final[dict[BenchmarkName, Callable[..., Task]]] = {each: _task_of(each) for each in get_args(BenchmarkName)}
"""The tasks by the benchmark that they ask: `kg_sextant/qald10` and so on."""
