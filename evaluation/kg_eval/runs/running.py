"""A run from its plan: each question once, several at a time, kept as it goes."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio
from filelock import FileLock, Timeout
from pydantic import ValidationError

from kg_agents.llm import AgentError, Llm
from kg_agents.tools.client import InexactScore, Toolbox
from kg_boundary.private_files import private_folder, write_private
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import json_text
from kg_eval.methods.catalog import method_of
from kg_eval.methods.method import Means, Method
from kg_eval.outcomes import Outcome
from kg_eval.questions import Record, read_questions
from kg_eval.runs.answering import FAILED, Learn, asked, check
from kg_eval.runs.journal import Account, Journal, KeptLlm, KeptTools, OutcomeLine, read_lines
from kg_eval.runs.plan import InvalidPlan, RunPlan, drawn

PLAN_FILE: Final = "run.json"
QUESTIONS: Final = "questions"
FAILURES_IN_A_ROW: Final = 5
"""After so many questions in a row that the model or the graph failed to answer, the run ends."""

AT_ONCE: Final = 4


class RunFailed(AgentError):
    """The model or the graph fails again and again; what was done is kept, and the same command goes on."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a run: the one that answers, and others that judge and reflect."""

    llm: Llm
    judge: Llm | None = None
    reflector: Llm | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: how many of how many questions are done, and how many of them were so before."""

    done: int
    questions: int
    before: int


async def run(
    plan: RunPlan,
    folder: Path,
    tools: Toolbox,
    models: Models,
    *,
    at_once: int = AT_ONCE,
    on_progress: Callable[[Progress], None] = lambda _: None,
    learn: Learn | None = None,
) -> int:
    """Ask the questions of a plan that were not asked yet, and return how many failed.

    Args:
        plan: What is asked, of whom and how.
        folder: Where it is kept; what is there goes on where it was interrupted.
        tools: The tools of the graph.
        models: The models.
        at_once: How many questions are asked at a time.
        on_progress: Told of each question that is done.
        learn: Keeps questions that were solved, where the plan says so.

    Raises:
        InvalidQuestions: The questions cannot be read.
        InvalidPlan: The folder holds a run of another plan, or a parameter is wrong.
        RunFailed: The model or the graph fails again and again, or an observation is not scored as it must be.
    """
    records = drawn(read_questions(plan.benchmark, plan.data), plan.sample, plan.seed)
    check(plan)
    questions = _Questions(
        plan, method_of(plan.method, plan.settings), tools, models, folder, on_progress, len(records), learn
    )
    with _alone(folder):
        _check_plan(plan, folder)
        questions.waiting = [*enumerate(records, start=1)]
        async with anyio.create_task_group() as tasks:
            for _ in range(at_once):
                tasks.start_soon(questions.ask_all)
        fallbacks = sum(each.fallbacks for each in read_outcomes(folder))
        _write_plan(plan.model_copy(update={"fallbacks": fallbacks}), folder)
    if questions.ended:
        raise RunFailed(
            f"{questions.ended} What was answered is kept in {folder}; the same command goes on from there."
        )
    return questions.failed


@dataclass
class _Questions:
    """The questions of a run, and how far they are."""

    plan: RunPlan
    method: Method
    tools: Toolbox
    models: Models
    folder: Path
    on_progress: Callable[[Progress], None]
    count: int
    learn: Learn | None
    waiting: list[tuple[int, Record]] = field(default_factory=list[tuple[int, Record]])
    done: int = 0
    before: int = 0
    failed: int = 0
    in_a_row: int = 0
    ended: str = ""

    async def ask_all(self) -> None:
        """Ask one question after the other, until there is none left or too many failed."""
        while self.waiting and not self.ended:
            number, record = self.waiting.pop(0)
            journal = Journal(journal_path(self.folder, number))
            if journal.outcome is not None:
                self.before += 1
            else:
                with journal:
                    self._take(await self._asked(number, record, journal), journal)
            self.done += 1
            self.on_progress(Progress(self.done, self.count, self.before))

    def _take(self, outcome: Outcome, journal: Journal) -> None:
        """Keep what came of a question, unless the model or the graph failed: then it is asked again next time."""
        if outcome.stop_reason in FAILED and not outcome.answers:
            self.failed, self.in_a_row = self.failed + 1, self.in_a_row + 1
            if self.in_a_row >= FAILURES_IN_A_ROW:
                self.ended = f"{self.in_a_row} questions in a row failed: {outcome.explanation}"
            return
        self.in_a_row = 0
        journal.finish(outcome)

    async def _asked(self, number: int, record: Record, journal: Journal) -> Outcome:
        """Ask a question, and return what came of it, whatever happened."""
        account = Account()
        began = time.monotonic()
        means = self._means(number, journal, account)
        try:
            outcome = await asked(record, self.plan, self.method, means, self.learn)
        except InexactScore as error:
            self.ended = str(error)
            outcome = Outcome(record, stop_reason="graph", explanation=str(error))
        took = time.monotonic() - began + account.earlier_s
        return replace(
            outcome,
            usage=account.usage,
            tool_calls=account.tool_calls,
            fallbacks=account.fallbacks,
            seconds=round(took, 3),
        )

    def _means(self, number: int, journal: Journal, account: Account) -> Means:
        def kept(llm: Llm | None) -> Llm | None:
            return None if llm is None else KeptLlm(llm, journal, account)

        models = self.models
        return Means(
            KeptLlm(models.llm, journal, account),
            KeptTools(self.tools, journal, account),
            kept(models.judge),
            kept(models.reflector),
            self.plan.seed + number,
        )


def journal_path(folder: Path, number: int) -> Path:
    """Return the file of a question, by its place among those that are asked, from 1."""
    return folder / QUESTIONS / f"{number:05}.jsonl"


def read_plan(folder: Path) -> RunPlan:
    """Return the plan of a run.

    Raises:
        InvalidPlan: There is no run in the folder.
    """
    try:
        return RunPlan.model_validate_json(read_regular(folder / PLAN_FILE))
    except (OSError, ValidationError) as error:
        raise InvalidPlan(f"{folder} holds no run. Make one with `kg-sextant eval run … --out {folder}`.") from error


def read_outcomes(folder: Path) -> tuple[Outcome, ...]:
    """Return what came of the questions of a run that are done, in their order.

    Raises:
        DamagedRun: A file of it is not what was written there.
    """
    lines = (line for path in sorted((folder / QUESTIONS).glob("*.jsonl")) for line in read_lines(path))
    return tuple(line.outcome for line in lines if isinstance(line, OutcomeLine))


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Make sure that one process at a time writes to a folder."""
    private_folder(folder / QUESTIONS)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InvalidPlan(f"Another run writes to {folder} now. Wait for it, or choose another --out.") from error
    try:
        yield
    finally:
        lock.release()


def _check_plan(plan: RunPlan, folder: Path) -> None:
    """Write the plan of a new run; of one that goes on, make sure that it is the same."""
    if not (folder / PLAN_FILE).exists():
        _write_plan(plan, folder)
        return
    kept = read_plan(folder)
    other = [name for name in RunPlan.model_fields if getattr(kept, name) != getattr(plan, name)]
    if named := [name for name in other if name != "fallbacks"]:
        raise InvalidPlan(f"{folder} holds a run with another {', '.join(named)}. Choose another --out.")


def _write_plan(plan: RunPlan, folder: Path) -> None:
    write_private(folder / PLAN_FILE, json_text(plan.model_dump(mode="json"), indent=1).encode())
