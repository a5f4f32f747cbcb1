"""The logs of a run: its questions with their calls and outcomes, and the verdicts of judges."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from zipfile import BadZipFile

from inspect_ai.event import InfoEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log, write_eval_log
from inspect_ai.scorer import Score
from pydantic import Field, TypeAdapter, ValidationError

from kg_agents.llm import AgentError, Llm
from kg_agents.trace import LlmLine, ToolLine
from kg_eval.metrics.scores import JudgeVerdict, ScoredOutcome, Verdicts, judge, judge_metric
from kg_eval.plan import InvalidPlan, RunPlan

SOURCE: Final = "kg_eval"
"""The source of the events that hold calls."""


class DamagedRun(AgentError):
    """A log of a run cannot be read; the text names the file."""


_CALL: Final[TypeAdapter[LlmLine | ToolLine]] = TypeAdapter(Annotated[LlmLine | ToolLine, Field(discriminator="kind")])
OUTCOME: Final = TypeAdapter(ScoredOutcome)


@dataclass(frozen=True, slots=True)
class LoggedQuestion:
    """One answered question of a run with its calls."""

    outcome: ScoredOutcome
    calls: tuple[LlmLine | ToolLine, ...]


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """A run as far as it is done: its plan, its questions in their order, and what judges said of them."""

    plan: RunPlan
    questions: tuple[LoggedQuestion, ...]
    verdicts: Verdicts

    @property
    def outcomes(self) -> tuple[ScoredOutcome, ...]:
        """The outcome of each question."""
        return tuple(each.outcome for each in self.questions)


def read_run(folder: Path) -> LoggedRun:
    """Return the run whose logs a folder holds.

    Raises:
        InvalidPlan: There is no run in the folder.
        DamagedRun: A log of it cannot be read.
    """
    logs = _logs(folder, whole=True)
    if not logs:
        raise InvalidPlan(f"{folder} holds no run. Make one with `kg-sextant eval run … --out {folder}`.")
    found: dict[int, LoggedQuestion] = {}
    verdicts: dict[str, dict[str, JudgeVerdict]] = {}
    for path, sample in ((path, sample) for path, log in logs for sample in log.samples or ()):
        if "outcome" not in sample.metadata:
            continue
        events = (each.data for each in sample.events if isinstance(each, InfoEvent) and each.source == SOURCE)
        try:
            outcome = OUTCOME.validate_python(sample.metadata["outcome"])
            found[int(sample.metadata["number"])] = LoggedQuestion(outcome, tuple(map(_CALL.validate_python, events)))
        except ValidationError as error:
            raise DamagedRun(f"{path} was made by another version. Remove it to ask its questions again.") from error
        for judge_name, verdict in _verdicts(sample).items():
            verdicts.setdefault(judge_name, {})[outcome.record.id] = verdict
    return LoggedRun(_plan_of(logs[0][1]), tuple(found[number] for number in sorted(found)), verdicts)


async def judge_run(folder: Path, llm: Llm) -> None:
    """Have a model judge the answers of a run that it has not judged yet, and keep its verdicts in the logs.

    Raises:
        InvalidPlan: There is no run in the folder.
        DamagedRun: A log of it cannot be read.
        RunEnded: The model fails; its verdicts so far are kept.
    """
    read_run(folder)
    for path, log in _logs(folder):
        try:
            for sample in log.samples or ():
                outcome = OUTCOME.validate_python(sample.metadata["outcome"]) if "outcome" in sample.metadata else None
                if outcome is None or outcome.skipped or llm.name in _verdicts(sample):
                    continue
                sample.scores = {
                    **(sample.scores or {}),
                    judge_metric(llm.name): Score(value=await judge(outcome, llm)),
                }
        finally:
            write_eval_log(log, str(path))


def _verdicts(sample: EvalSample) -> dict[str, JudgeVerdict]:
    """Return what judges said of a question, by the name of the judge."""
    named = {name: found for name, found in (sample.scores or {}).items() if name.startswith(judge_metric("")[:-1])}
    return {
        name.removeprefix(judge_metric("")[:-1]).removesuffix(")"): _VERDICT.validate_python(found.value)
        for name, found in named.items()
    }


_VERDICT: Final[TypeAdapter[JudgeVerdict]] = TypeAdapter(JudgeVerdict)


def _logs(folder: Path, *, whole: bool = False) -> Sequence[tuple[Path, EvalLog]]:
    """Read the logs of a folder; `whole` puts long texts, which a log keeps apart, back in their places."""
    found: list[tuple[Path, EvalLog]] = []
    for path in sorted(folder.glob("*.eval")):
        try:
            found.append((path, read_eval_log(str(path.absolute()), resolve_attachments=whole)))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise DamagedRun(f"{path} cannot be read: {error}. Remove it to ask its questions again.") from error
    return found


def _plan_of(log: EvalLog) -> RunPlan:
    try:
        return RunPlan.model_validate((log.eval.metadata or {}).get("plan"))
    except ValidationError as error:
        raise DamagedRun(f"{log.location} is not a log of kg-sextant eval.") from error
