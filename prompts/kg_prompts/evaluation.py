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


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPrompt(Prompt):
    """A question without anything from a graph.

    Args:
        question: The question.
        thinking: Whether the steps are written down before the answer.
        examples: Whether six examples are shown.
    """

    template: ClassVar[str] = "evaluation/question.md"
    question: str
    thinking: bool
    examples: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrompt(Prompt):
    """A question with what was found in the graph.

    Args:
        question: The question.
        context: What was found.
    """

    template: ClassVar[str] = "evaluation/context.md"
    question: str
    context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationsPrompt(Prompt):
    """Which relations of an entity help most (Think-on-Graph).

    Args:
        question: The question.
        entity: The entity, by name.
        relations: The relations, by number.
        most: How many may be chosen.
    """

    template: ClassVar[str] = "evaluation/relations.md"
    question: str
    entity: str
    relations: str
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitiesPrompt(Prompt):
    """How much each entity at the end of a relation helps (Think-on-Graph).

    Args:
        question: The question.
        relation: The relation, with where it starts.
        candidates: The entities, by number.
    """

    template: ClassVar[str] = "evaluation/entities.md"
    question: str
    relation: str
    candidates: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnoughPrompt(Prompt):
    """Whether chains of facts suffice for an answer (Think-on-Graph)."""

    template: ClassVar[str] = "evaluation/enough.md"
    question: str
    chains: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCotPrompt(Prompt):
    """The next thought or action (Graph-CoT).

    Args:
        question: The question.
        entities: What it is about, where that is known.
        definition: What the graph holds.
        scratchpad: What was thought, done and observed.
        part: What is written next, as `Thought 2`.
    """

    template: ClassVar[str] = "evaluation/graph_cot.md"
    question: str
    entities: str
    definition: str
    scratchpad: str
    part: str
