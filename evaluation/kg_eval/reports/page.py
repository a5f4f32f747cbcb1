"""One page for a run, which opens from disk: every question with its calls, evidence and verdict."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from kg_agents.llm import Message
from kg_agents.trace import LlmLine, ToolLine
from kg_eval.logs import LoggedQuestion
from kg_eval.metrics.scores import ScoredOutcome, scores_of
from kg_eval.reports.tables import Done

_RIGHT: Final = 0.99
"""From which score on a question is shown as right."""

_MARK: Final = "@@CONTENT@@"


def page_of(run: Done, metric: str = "") -> str:
    """Return the page of a run.

    Args:
        run: The run.
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
        "questions": [_question(each, values) for each in run.questions],
    }
    # In a script a browser looks for nothing but its end, and for what may begin a comment.
    written = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    return files("kg_eval").joinpath("reports/page.html").read_text(encoding="utf-8").replace(_MARK, written)


def _question(question: LoggedQuestion, values: Mapping[str, float]) -> dict[str, object]:
    outcome = question.outcome
    found = values.get(outcome.record.id)
    return {
        "id": outcome.record.id,
        "question": outcome.record.question,
        "kind": outcome.record.kind or outcome.record.group,
        "verdict": "none" if found is None else "right" if found >= _RIGHT else "wrong",
        "source": outcome.answers[0].source if outcome.answers else "-",
        "facts": _facts(outcome),
        "calls": [*map(_call, question.calls)],
    }


def _facts(outcome: ScoredOutcome) -> list[tuple[str, str]]:
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


def _call(call: LlmLine | ToolLine) -> dict[str, str]:
    if isinstance(call, LlmLine):
        asked = "\n\n".join(map(_message, call.messages))
        functions = (f"{each.name} {each.arguments}" for each in call.calls)
        said = "\n".join(filter(None, (call.reply, *functions, call.error)))
        return {"name": f"{call.model}, {call.purpose}", "asked": asked, "answered": said}
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"name": f"{call.tool} {arguments}", "asked": "", "answered": call.text or call.error}


def _message(message: Message) -> str:
    calls = (f"{call.name} {call.arguments}" for call in message.calls)
    return "\n".join((f"{message.role}: {message.content}", *calls))
