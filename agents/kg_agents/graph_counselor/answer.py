"""What Graph Counselor answers."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from kg_agents.answers import AgentAnswer, Answer, outcome_of
from kg_agents.answers import Step as ShownStep
from kg_agents.graph_counselor.attempts import Attempt
from kg_agents.graph_counselor.run import Run
from kg_agents.graph_counselor.scratchpad import Step
from kg_agents.graph_counselor.settings import CounselorSettings
from kg_agents.parts_seen import CUT, part_answered
from kg_agents.support import sources

REJECTED: Final = "No attempt was judged to be right; this is the last answer."

_VERDICT: Final = re.compile(r"\[not in (?:the )?graph\]\W*$", re.IGNORECASE)
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


def answer_of(run: Run, settings: CounselorSettings, stop_reason: str, explanation: str = "") -> CounselorAnswer:
    """Return what a run has found: the last answer that was given, with what yields it.

    Args:
        run: The run.
        settings: What becomes of what the model says by itself, and of the answers of earlier attempts.
        stop_reason: Why it ended, in a word.
        explanation: Why, in a sentence; the usual one where it is empty.
    """
    ended = run.attempts[-1] if run.attempts else Attempt()
    attempt = ended if ended.not_in_graph else (_last_answered(run) if settings.earlier_answer else None) or ended
    answers = _answers(run, attempt)
    seen = [part for step in attempt.read for part in step.parts]
    if stop_reason == "answered" and (part := part_answered(answers, seen, run.labels)):
        stop_reason, explanation = CUT, str(part)
    remarks = [explanation or _ENDINGS.get(stop_reason, ""), _remark(attempt)]
    found = outcome_of(answers, settings.closed_book, stop_reason, " ".join(remark for remark in remarks if remark))
    return CounselorAnswer(
        question=run.question,
        answers=found.answers,
        status=found.status,
        labels=run.labels,
        stop_reason=stop_reason,
        explanation=found.reason,
        steps=shown_steps(run),
        usage=run.talk.usage,
        seconds=run.talk.seconds,
        model_answer=found.model_answer,
        facts=tuple(dict.fromkeys(fact for step in attempt.read for fact in step.facts)),
        attempts=tuple(run.attempts),
        accepted=attempt.accepted,
    )


def _last_answered(run: Run) -> Attempt | None:
    return next((attempt for attempt in reversed(run.attempts) if attempt.answer is not None), None)


def _answers(run: Run, attempt: Attempt) -> tuple[Answer, ...]:
    """Return the answers of an attempt; those of one whose answer is not in the graph are the model's own."""
    text = attempt.answer or ""
    parts = attempt.quoted or _parts(text, _names_in(run, attempt))
    if attempt.not_in_graph:
        return tuple(Answer(part, "model") for part in parts)
    found = sources(parts, run.topic, attempt.read, run.labels, confirmed=attempt.accepted)
    # A new attempt is told what earlier ones read, and need not read it again.
    read = [step for each in run.attempts for step in each.read]
    return tuple(
        sources([each.text], run.topic, read, run.labels, confirmed=False)[0] if each.source == "model" else each
        for each in found
    )


def _remark(attempt: Attempt) -> str:
    """Return what is to be said of an answer that was not confirmed, or of one that is not in the graph."""
    judgement = attempt.judgement
    if attempt.not_in_graph:
        return attempt.missing or (_VERDICT.sub("", judgement.explanation).strip() if judgement else "")
    return REJECTED if judgement is not None and not attempt.accepted and attempt.answer is not None else ""


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
    tails = (tail.strip('"') for step in attempt.read for _, _, tail in step.facts)
    return frozenset((*run.labels.nodes, *run.labels.nodes.values(), *tails))


def _parts(text: str, names: Collection[str]) -> tuple[str, ...]:
    """Split an answer at its commas, unless the whole of it is one name."""
    if text in names:
        return (text,)
    return tuple(part for part in (part.strip() for part in text.split(", ")) if part)
