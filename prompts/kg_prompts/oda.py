"""The prompts of ODA: tables 7 and 8 of the paper, its ablation with generated facts, and the search for mentions."""

from dataclasses import dataclass
from typing import ClassVar

from kg_prompts.rendering import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPrompt(Prompt):
    """Which action comes next (table 7).

    Args:
        question: The question.
        memory: The paths of the memory.
        candidates: The task-relevant entities, an id with its label on each line.
        observation: The observation subgraph.
        history: The actions that were taken.
        paths: Whether GetPath may be chosen: there are two candidates or more.
        examples: Examples of good replies.
    """

    template: ClassVar[str] = "oda/action.md"
    question: str
    memory: str
    candidates: str
    observation: str
    history: str
    paths: bool
    examples: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionPrompt(Prompt):
    """Which of the triples that were found to keep (table 8).

    Args:
        question: The question.
        candidates: The triples of the last action, as `head,relation,tail` in ids.
        labels: The labels of what they mention.
        observation: The observation subgraph.
        memory: The paths of the memory.
        most: How many triples may be selected; K in the paper.
        examples: Examples of good replies.
    """

    template: ClassVar[str] = "oda/reflection.md"
    question: str
    candidates: str
    labels: str
    observation: str
    memory: str
    most: int
    examples: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperAnswerPrompt(Prompt):
    """The answers, from the memory and from what the model knows (table 7)."""

    template: ClassVar[str] = "oda/paper_answer.md"
    question: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPrompt(Prompt):
    """The answers, from the memory alone, with the facts that yield them.

    Args:
        question: The question.
        memory: The facts of the memory, by number.
        own: Whether the model may add, apart from them, what it knows by itself.
        examples: Examples of good replies.
    """

    template: ClassVar[str] = "oda/answer.md"
    question: str
    memory: str
    own: bool = True
    examples: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPrompt(Prompt):
    """Which of the new facts to keep, and the next action or the answer, in one reply.

    Args:
        question: The question.
        memory: The facts that were kept, by number.
        facts: The facts that were found since, by number.
        candidates: The entities to look at, by number.
        history: The actions that were taken, and what came of them.
        paths: Whether GetPath may be chosen: there are two candidates or more.
        own: Whether the model may add what it knows by itself.
        last: Whether there is no turn after this one.
        examples: Examples of good replies.
    """

    template: ClassVar[str] = "oda/turn.md"
    question: str
    memory: str
    facts: str
    candidates: str
    history: str
    paths: bool = True
    own: bool = True
    last: bool = False
    examples: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFactsPrompt(Prompt):
    """Facts that the model makes up in place of a reflection (section 4.2)."""

    template: ClassVar[str] = "oda/generated_facts.md"
    question: str
    candidates: str
    memory: str
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionsPrompt(Prompt):
    """The names in a question."""

    template: ClassVar[str] = "oda/mentions.md"
    question: str
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingPrompt(Prompt):
    """Which entities a question is about, of those that share a name or come near it.

    Args:
        question: The question.
        candidates: The entities by number, each with what tells it from others.
    """

    template: ClassVar[str] = "oda/linking.md"
    question: str
    candidates: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPrompt(Prompt):
    """The second chance of a reply that could not be read, with the reason."""

    template: ClassVar[str] = "shared/retry.md"
    reason: str
