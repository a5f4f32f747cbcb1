"""What an agent answers."""

from dataclasses import dataclass

from kg_agents.graph_values import Labels, Triple
from kg_agents.llm import Usage


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run, in words: what was thought, done, found and kept."""

    number: int
    thought: str
    action: str
    found: str
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """The answers to a question, what supports them, and how they were found.

    Args:
        question: The question.
        answers: Short answers, the best first; empty where none was found.
        evidence: The triples that support them, by id.
        labels: What the ids are called.
        stop_reason: Why the run ended, in a word: `answered`, or the limit that it met.
        explanation: The same in a sentence, where it did not end with an answer.
        steps: What was done.
        usage: What the model used.
        seconds: How long it took.
    """

    question: str
    answers: tuple[str, ...]
    evidence: tuple[Triple, ...]
    labels: Labels
    stop_reason: str
    explanation: str
    steps: tuple[Step, ...]
    usage: Usage
    seconds: float
