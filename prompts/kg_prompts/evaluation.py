"""The prompts of benchmarks: the judge's, and those of the methods that are compared with."""

from dataclasses import dataclass
from typing import ClassVar

from kg_prompts.rendering import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPrompt(Prompt):
    """Whether a prediction is right, in one word.

    Args:
        question: The question.
        prediction: What was answered.
        gold: What is right.
    """

    template: ClassVar[str] = "evaluation/verdict.md"
    question: str
    prediction: str
    gold: str
