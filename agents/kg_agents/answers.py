"""What an agent answers: each answer with where it comes from, and what yields it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from kg_agents.graph_values import Labels, Triple
from kg_agents.llm import Usage

Source: TypeAlias = Literal["graph", "computed", "model"]
"""A fact of the graph states it; it is worked out from such facts; or the model says so by itself."""

Status: TypeAlias = Literal["answered", "partly", "not_in_graph", "unknown_entity", "stopped", "no_model"]
"""What came of a question; `partly`: of several answers some are missing, or nobody confirmed them."""

ClosedBook: TypeAlias = Literal["never", "apart", "allowed"]
"""What becomes of what a model says by itself: it is left out, stands apart, or counts as an answer."""

NOT_STATED: Final = "The facts that were found do not state it."

_FRUITLESS: Final[Mapping[str, Status]] = {
    "answered": "not_in_graph",
    "not_in_graph": "not_in_graph",
    "entities": "unknown_entity",
    "no_model": "no_model",
}
"""The status of a run without an answer, by why it ended; `stopped` otherwise."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run, in words: what was thought, done, found and kept."""

    number: int
    thought: str
    action: str
    found: str
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Args:
        text: The answer, in a few words.
        source: Where it comes from.
        facts: The triples and values that yield it, by id.
        computed: How it was worked out from them, step by step, as `expression = result`.
    """

    text: str
    source: Source
    facts: tuple[Triple, ...] = ()
    computed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """The answers to a question, what yields them, and how they were found.

    Args:
        question: The question.
        answers: Short answers, the best first; empty where none was found.
        status: What came of the question.
        labels: What the ids are called.
        stop_reason: Why the run ended, in a word: `answered`, or the limit that it met.
        explanation: The same in a sentence, where it did not end with an answer.
        steps: What was done.
        usage: What the model used.
        seconds: How long it took.
        model_answer: What the model says by itself, which nothing in the graph confirms.
        facts: What the run kept or read of the graph; no evidence of anything.
    """

    question: str
    answers: tuple[Answer, ...]
    status: Status
    labels: Labels
    stop_reason: str
    explanation: str
    steps: tuple[Step, ...]
    usage: Usage
    seconds: float
    model_answer: tuple[str, ...] = ()
    facts: tuple[Triple, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The answers without what yields them."""
        return tuple(each.text for each in self.answers)

    @property
    def evidence(self) -> tuple[Triple, ...]:
        """The triples and values that yield the answers, each once."""
        return tuple(dict.fromkeys(fact for each in self.answers for fact in each.facts))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a question: its answers, what the model says by itself, the status and the reason."""

    answers: tuple[Answer, ...]
    model_answer: tuple[str, ...]
    status: Status
    reason: str


def outcome_of(
    answers: Iterable[Answer], closed_book: ClosedBook, stop_reason: str, reason: str, own: Sequence[str] = ()
) -> Outcome:
    """Return what came of a question.

    Args:
        answers: What was answered, from whatever source; each text counts once.
        closed_book: What becomes of what the model says by itself.
        stop_reason: Why the run ended, in a word.
        reason: The same in a sentence; where it is empty and one is needed, there is a usual one.
        own: What the model says beside its answers, by itself.
    """
    added = (Answer(text, "model") for text in own if closed_book == "allowed")
    each_once = tuple({each.text: each for each in (*added, *answers)}.values())
    counted = tuple(each for each in each_once if each.source != "model" or closed_book == "allowed")
    apart = (*(each.text for each in each_once if each.source == "model"), *own) if closed_book == "apart" else ()
    beside = tuple(dict.fromkeys(text for text in apart if text not in {each.text for each in counted}))
    if not counted:
        status = _status_without_answer(stop_reason)
        return Outcome((), beside, status, reason or (NOT_STATED if status == "not_in_graph" else ""))
    whole = stop_reason == "answered" and len(counted) == len(each_once)
    return Outcome(counted, beside, "answered" if whole else "partly", reason or ("" if whole else NOT_STATED))


def _status_without_answer(stop_reason: str) -> Status:
    return _FRUITLESS.get(stop_reason, "stopped")


def without(answer: AgentAnswer, refuted: frozenset[Triple], closed_book: ClosedBook) -> AgentAnswer:
    """Return an answer without facts that the graph does not hold; what rested on one of them is the model's own."""
    if not refuted.intersection(answer.evidence):
        return answer
    left = (Answer(each.text, "model") if refuted.intersection(each.facts) else each for each in answer.answers)
    found = outcome_of(
        left,
        closed_book,
        answer.stop_reason,
        f"{answer.explanation} The graph does not hold all that was read.".strip(),
        answer.model_answer,
    )
    return replace(
        answer, answers=found.answers, model_answer=found.model_answer, status=found.status, explanation=found.reason
    )
