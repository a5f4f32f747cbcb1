"""One page for a run, which opens from disk: every question with its calls, evidence and verdict."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from kg_agents.trace import RecordedMessage
from kg_eval.metrics.summary import scores_of
from kg_eval.outcomes import Outcome
from kg_eval.reports.tables import Done
from kg_eval.runs.journal import CallLine, ModelLine, OutcomeLine

_RIGHT: Final = 0.99
"""From which score on a question is shown as right."""

_MARK: Final = "@@CONTENT@@"


def page_of(run: Done, lines: Sequence[Sequence[ModelLine | CallLine | OutcomeLine]], metric: str = "") -> str:
    """Return the page of a run.

    Args:
        run: The run.
        lines: The lines of each question, those of one question together.
        metric: The metric of the verdicts; by default the one that the benchmark's figures are published in.
    """
    named = next(iter(run.metrics(metric)), metric)
    values = scores_of(run.outcomes, run.verdicts, official=True).get(named, {})
    plan = run.plan.model_dump(mode="json", exclude_defaults=True)
    content = {
        "title": f"{run.name}: {run.plan.benchmark}, {run.plan.method}",
        "plan": ", ".join(f"{name} {value}" for name, value in plan.items()),
        "figures": "; ".join(
            f"{name} {100 * figure.value:.2f} ({100 * figure.low:.2f} to {100 * figure.high:.2f})"
            for name, figure in run.summary.metrics.items()
        ),
        "questions": [each for question in lines if (each := _question(question, values)) is not None],
    }
    # In a script a browser looks for nothing but its end, and for what may begin a comment.
    written = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    return files("kg_eval").joinpath("reports/page.html").read_text(encoding="utf-8").replace(_MARK, written)


def _question(
    lines: Sequence[ModelLine | CallLine | OutcomeLine], values: Mapping[str, float]
) -> dict[str, object] | None:
    """Return what is shown of a question; None where nothing came of it yet."""
    outcome = next((line.outcome for line in lines if isinstance(line, OutcomeLine)), None)
    if outcome is None:
        return None
    found = values.get(outcome.record.id)
    return {
        "id": outcome.record.id,
        "question": outcome.record.question,
        "kind": outcome.record.kind or outcome.record.group,
        "verdict": "none" if found is None else "right" if found >= _RIGHT else "wrong",
        "source": outcome.answers[0].source if outcome.answers else "-",
        "facts": _facts(outcome),
        "calls": [_call(line) for line in lines if not isinstance(line, OutcomeLine)],
    }


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    usage = outcome.usage
    return [
        ("Answer", "; ".join(f"{each.text} ({each.source})" for each in outcome.answers)),
        ("Right", "; ".join(gold.text for gold in outcome.record.golds) or "not in the graph"),
        ("Evidence", "; ".join(" | ".join(fact) for each in outcome.answers for fact in each.facts)),
        ("Worked out", "; ".join(step for each in outcome.answers for step in each.computed)),
        ("The model says by itself", "; ".join(outcome.model_answer)),
        ("End", " ".join((outcome.status, outcome.stop_reason, outcome.skipped or outcome.explanation))),
        ("Unreadable replies", ", ".join(f"{purpose} {count}" for purpose, count in outcome.unreadable.items())),
        ("Missing entities", ", ".join(outcome.missing_topics)),
        (
            "Used",
            f"{usage.calls} model calls, {usage.tokens} tokens, {outcome.tool_calls} tool calls, {outcome.seconds:g} s",
        ),
    ]


def _call(line: ModelLine | CallLine) -> dict[str, str]:
    if isinstance(line, ModelLine):
        asked = "\n\n".join(map(_message, line.messages))
        calls = (f"{call.name} {call.arguments}" for call in line.completion.calls)
        said = "\n".join(filter(None, (line.completion.text, *calls)))
        return {"name": f"{line.model}, {line.purpose}", "asked": asked, "answered": said}
    arguments = json.dumps(line.arguments, ensure_ascii=False)
    return {"name": f"{line.tool} {arguments}", "asked": "", "answered": line.text}


def _message(message: tuple[str, str] | RecordedMessage) -> str:
    if isinstance(message, tuple):
        return ": ".join(message)
    calls = (f"{call.name} {call.arguments}" for call in message.calls)
    return "\n".join((f"{message.role}: {message.content}", *calls))
