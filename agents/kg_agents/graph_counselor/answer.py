"""What Graph Counselor answers."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from kg_agents.answers import AgentAnswer
from kg_agents.answers import Step as ShownStep
from kg_agents.graph_counselor.attempts import Attempt
from kg_agents.graph_counselor.run import Run
from kg_agents.graph_counselor.scratchpad import Step
from kg_agents.graph_counselor.support import supporting
from kg_agents.graph_values import Labels

REJECTED: Final = "No attempt was judged to be right; this is the last answer."

_ENDINGS: Final = {
    "steps": "No answer was given within the steps of an attempt.",
    "unreadable": "Several replies in a row could not be read.",
}


@dataclass(frozen=True, slots=True)
class CounselorAnswer(AgentAnswer):
    """The answers, with the attempts that led to them.

    Args:
        attempts: Every attempt, the first first.
        accepted: Whether the answer was judged to be right.
    """

    attempts: tuple[Attempt, ...] = ()
    accepted: bool = False


def answer_of(run: Run, stop_reason: str, explanation: str = "") -> CounselorAnswer:
    """Return what a run has found: the last answer that was given, with what supports it.

    Args:
        run: The run.
        stop_reason: Why it ended, in a word.
        explanation: Why, in a sentence; the usual one where it is empty.
    """
    answered = [attempt for attempt in run.attempts if attempt.answer is not None]
    attempt = answered[-1] if answered else next(reversed(run.attempts), Attempt())
    text = attempt.answer or ""
    answers = tuple(dict.fromkeys(_named(part, run.labels) for part in _parts(text, _names_in(run, attempt))))
    remarks = [explanation or _ENDINGS.get(stop_reason, "")]
    if attempt.judgement is not None and not attempt.accepted:
        remarks.append(REJECTED)
    return CounselorAnswer(
        question=run.question,
        answers=answers,
        evidence=supporting(run.topic, text, attempt.read, run.labels),
        labels=run.labels,
        stop_reason=stop_reason,
        explanation=" ".join(remark for remark in remarks if remark),
        steps=shown_steps(run),
        usage=run.talk.usage,
        seconds=run.talk.seconds,
        attempts=tuple(run.attempts),
        accepted=attempt.accepted,
    )


def shown_steps(run: Run) -> tuple[ShownStep, ...]:
    """Return the steps of all attempts as people see them, numbered through."""
    steps = (shown(step) for attempt in run.attempts for step in attempt.steps)
    return tuple(replace(step, number=number) for number, step in enumerate(steps, start=1))


def shown(step: Step) -> ShownStep:
    """Return a step as people see it."""
    thought = "\n".join(text for text in (step.plan, step.thought) if text)
    return ShownStep(step.number, thought, step.action or "", step.observation or "")


def _names_in(run: Run, attempt: Attempt) -> frozenset[str]:
    """Return all ids, labels and values that an attempt has read."""
    tails = (tail.strip('"') for step in attempt.read for _, _, tail in step)
    return frozenset((*run.labels.nodes, *run.labels.nodes.values(), *tails))


def _parts(text: str, names: Collection[str]) -> tuple[str, ...]:
    """Split an answer at its commas, unless the whole of it is one name."""
    if text in names:
        return (text,)
    return tuple(part for part in (part.strip() for part in text.split(", ")) if part)


def _named(text: str, labels: Labels) -> str:
    """Return the label of an id, and any other text as it is: people are answered with names."""
    return labels.nodes.get(text, text)
