"""Why questions went wrong, read from what a run kept of them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.world.one_call import Calls
from benchmarks.world.oracle import MOST_STEPS, shown
from kg_eval.methods.catalog import WITHOUT_GRAPH
from kg_eval.metrics.scores import score
from kg_eval.outcomes import Outcome
from kg_eval.reports.tables import Done, Table
from kg_eval.runs.journal import CallLine, Line, ModelLine, OutcomeLine, read_lines
from kg_eval.runs.plan import MethodName

CHAINED: Final = frozenset({"tog", "tog-r"})
TEXTS: Final = frozenset({"text-rag", "graph-rag-1", "graph-rag-2"})
LEFT_OUT: Final = "the list is longer than its width"
DRAWN: Final = "near, but not among the relations kept or the entities drawn"
UNSEEN: Final = "choices show names alone, not the value, the comparison or the relation that tells them apart"
STEPS: Final = "one node at a time, more nodes than steps"
UNSAID: Final = "no expression says it: a relation between two entities, or a relation to its end"
UNKNOWN: Final = "nobody knows this world"
OTHER: Final = "nothing that the run kept tells"
FAR: Final = "further away than its hops"
CUT: Final = "its text leaves it out: no hop, or beyond 20 neighbours of a type, or too long"


def reasons_of(runs: Sequence[Done], folder: Path, calls: Mapping[str, Calls]) -> tuple[Table, Table]:
    """Return how many questions of each kind were right, and why the others were not.

    Args:
        runs: The runs, of one question each.
        folder: Where they are kept.
        calls: The calls that answer the questions, by their ids.
    """
    kinds = sorted({each.record.kind for run in runs for each in run.outcomes})
    rows = [
        (kind, *(_right(each for each in run.outcomes if each.record.kind == kind) for run in runs)) for kind in kinds
    ]
    names = [run.name for run in runs]
    missed = [(run.name, reason, ", ".join(ids)) for run in runs for reason, ids in _missed(run, folder, calls).items()]
    return (
        Table("right, by kind of question", ("kind", *names), tuple(rows)),
        Table("reasons for what is missed", ("run", "reason", "questions"), tuple(missed)),
    )


def _right(outcomes: Iterable[Outcome]) -> str:
    scores = [score(each, "set") for each in outcomes]
    return f"{scores.count(1.0)} of {len(scores)}"


def _missed(run: Done, folder: Path, calls: Mapping[str, Calls]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted((folder / run.name / "questions").iterdir()):
        lines = read_lines(path)
        outcome = next((line.outcome for line in lines if isinstance(line, OutcomeLine)), None)
        if outcome is not None and score(outcome, "set") != 1:
            reason = _reason(run.plan.method, outcome, lines, calls[outcome.record.id])
            found.setdefault(reason, []).append(outcome.record.id)
    return found


def _reason(method: MethodName, outcome: Outcome, lines: Sequence[Line], calls: Calls) -> str:
    read = shown("\n".join(line.text for line in lines if isinstance(line, CallLine)), outcome.record)
    if method in CHAINED:
        return LEFT_OUT if outcome.answers else DRAWN if read else UNSEEN
    if method == "graph-cot" and _asked(lines, "action") > MOST_STEPS:
        return STEPS
    if method in WITHOUT_GRAPH:
        return UNKNOWN
    if method in TEXTS:
        return CUT if read else FAR
    return UNSAID if calls.compose is None else OTHER


def _asked(lines: Sequence[Line], purpose: str) -> int:
    return sum(isinstance(line, ModelLine) and line.purpose == purpose for line in lines)
