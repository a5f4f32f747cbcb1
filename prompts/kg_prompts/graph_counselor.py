"""The prompts of Graph Counselor (appendix D): reasoning, judgement and reflection."""

from dataclasses import dataclass
from typing import ClassVar

from kg_prompts.rendering import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPrompt(Prompt):
    """What all agents of the paper are told of an attempt.

    Args:
        question: The question.
        definition: The definition of the graph.
        scratchpad: The steps so far.
        compound: Whether functions may stand inside each other and side by side.
        sets: Whether there are functions that work with sets and values.
        shortened: Whether observations of the scratchpad are shortened.
        examples: Examples of good replies.
    """

    question: str
    definition: str
    scratchpad: str = ""
    compound: bool = True
    sets: bool = True
    shortened: bool = False
    examples: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPrompt(AttemptPrompt):
    """What the three agents of a step are told alike (appendix D.1).

    Args:
        reflections: What was learnt from earlier attempts; empty at first.
        step: The number of the step, from 1.
        planned: Whether each step begins with a plan.
    """

    reflections: str
    step: int
    planned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPrompt(TaskPrompt):
    """What the planning agent is asked."""

    template: ClassVar[str] = "graph_counselor/plan.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtPrompt(TaskPrompt):
    """What the thought agent is asked."""

    template: ClassVar[str] = "graph_counselor/thought.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounselorActionPrompt(TaskPrompt):
    """What the execution agent is asked."""

    template: ClassVar[str] = "graph_counselor/action.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPrompt(Prompt):
    """Plan, thought and action in one reply.

    Args:
        question: The question, and what it is about.
        definition: What the graph holds around that.
        steps: The steps so far.
        tried: The calls of earlier attempts, with what they gave.
        lessons: What was learnt from earlier attempts; empty at first.
        step: The number of the step, from 1.
        sets: Whether there are functions that work with sets and values.
        examples: Examples of good replies.
    """

    template: ClassVar[str] = "graph_counselor/step.md"
    question: str
    definition: str
    steps: str = ""
    tried: str
    lessons: str
    step: int
    sets: bool = True
    examples: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPrompt(Prompt):
    """Whether an answer stands, from what lies around the question and the steps."""

    template: ClassVar[str] = "graph_counselor/check.md"
    question: str
    around: str
    steps: str = ""
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonPrompt(Prompt):
    """What to do after an attempt that gave no answer, or one that was not confirmed, in short."""

    template: ClassVar[str] = "graph_counselor/lesson.md"
    question: str
    definition: str
    steps: str = ""
    outcome: str
    most_steps: int
    sets: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePrompt(AttemptPrompt):
    """Whether an answer stands (appendix D.3)."""

    template: ClassVar[str] = "graph_counselor/judge.md"
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CounselorReflectionPrompt(AttemptPrompt):
    """What to learn from an attempt that failed (appendix D.2).

    Args:
        outcome: How it ended.
        most_steps: How many steps an attempt may take.
    """

    template: ClassVar[str] = "graph_counselor/reflection.md"
    outcome: str
    most_steps: int
