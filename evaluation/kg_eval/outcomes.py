"""What came of one question of a benchmark."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kg_agents.evidence.answers import Answer, Status
from kg_agents.llm import Usage
from kg_eval.questions import Record


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one question, with the question and what is right, so that it can be scored again by itself.

    Args:
        record: The question.
        prediction: What published scripts read: the model's last reply, or the answers joined by commas.
        answers: The answers that count, the best first, each with its source and its evidence.
        model_answer: What the model said by itself, which counts for nothing.
        status: What came of it.
        stop_reason: Why the run ended, in a word.
        explanation: The same in a sentence, where it did not end with an answer.
        usage: What models used.
        tool_calls: How many calls of tools were made.
        fallbacks: How many observations spelling scored because the embedder was away or busy.
        seconds: How long it took.
        missing_topics: The entities of the question that the graph does not have.
        skipped: Why it was not asked at all; empty where it was.
        unreadable: How many replies could not be read, even when asked again, by what they were for.
    """

    record: Record
    prediction: str = ""
    answers: tuple[Answer, ...] = ()
    model_answer: tuple[str, ...] = ()
    status: Status = "stopped"
    stop_reason: str = ""
    explanation: str = ""
    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    fallbacks: int = 0
    seconds: float = 0.0
    missing_topics: tuple[str, ...] = ()
    skipped: str = ""
    unreadable: Mapping[str, int] = field(default_factory=dict[str, int])
