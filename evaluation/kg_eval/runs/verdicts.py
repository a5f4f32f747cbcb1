"""What a judge said of the answers of a run, kept as it goes, so that nothing is judged twice."""

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_agents.llm import Llm
from kg_boundary.shown import json_text
from kg_eval.metrics.judging import JudgeVerdict, judge
from kg_eval.outcomes import Outcome
from kg_eval.runs.journal import DamagedRun
from kg_eval.runs.plan import InvalidPlan

VERDICTS: Final = "verdicts.jsonl"


class VerdictLine(BaseModel):
    """What a judge said of one question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    judge: str
    verdict: JudgeVerdict


async def judge_run(folder: Path, outcomes: tuple[Outcome, ...], llm: Llm) -> dict[str, JudgeVerdict]:
    """Have a model judge the answers of a run that it has not judged yet, and return all its verdicts by id.

    Raises:
        InvalidPlan: Another model has judged this run.
        RunEnded: The model fails; what it said so far is kept.
    """
    verdicts, name = read_verdicts(folder)
    if verdicts and name != llm.name:
        raise InvalidPlan(f"{folder} was judged by {name} already. Remove {folder / VERDICTS} to judge it anew.")
    with (folder / VERDICTS).open("a", encoding="utf-8") as file:
        for outcome in outcomes:
            id_ = outcome.record.id
            if id_ in verdicts or outcome.skipped:
                continue
            verdicts[id_] = await judge(outcome, llm)
            line = VerdictLine(id=id_, judge=llm.name, verdict=verdicts[id_])
            file.write(json_text(line.model_dump()) + "\n")
            file.flush()
    return verdicts


def read_verdicts(folder: Path) -> tuple[dict[str, JudgeVerdict], str]:
    """Return the verdicts of a run by id, and who judged; nothing where nobody did.

    Raises:
        DamagedRun: The file holds something else.
    """
    path = folder / VERDICTS
    if not path.exists():
        return {}, ""
    texts = path.read_text(encoding="utf-8").splitlines()
    try:
        lines = [VerdictLine.model_validate_json(text) for text in texts]
    except ValidationError as error:
        raise DamagedRun(f"{path} holds no verdicts. Remove it to judge anew.") from error
    return {line.id: line.verdict for line in lines}, lines[0].judge if lines else ""
