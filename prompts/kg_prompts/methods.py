"""Whole methods as one prompt each, for a model that has the tools itself."""

from dataclasses import dataclass
from typing import ClassVar

from kg_prompts.rendering import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class OdaMethod(Prompt):
    """ODA: rounds of observation, action and reflection (section 2 of the paper).

    Args:
        question: The question.
        entities: Ids or names to begin with; empty to find them first.
        graph: What the graph calls itself.
        iterations: The most rounds.
        triples: The most triples that one reflection keeps; K in the paper.
        solved: Solved questions like it, as examples; may be empty.
    """

    template: ClassVar[str] = "methods/oda.md"
    question: str
    entities: str
    graph: str
    iterations: int = 8
    triples: int = 15
    solved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCounselorMethod(Prompt):
    """Graph Counselor: steps of plan, thought, action and observation, then judgement and reflection (section 2).

    Args:
        question: The question.
        entities: Ids or names that it is about; may be empty.
        graph: What the graph calls itself.
        steps: The most steps of an attempt; T in the paper.
        reflections: How often a failed attempt may be repeated; N in the paper.
        compound: Whether functions may stand inside each other and side by side.
        sets: Whether there are functions that work with sets and values.
        solved: Solved questions like it, as examples; may be empty.
    """

    template: ClassVar[str] = "methods/graph_counselor.md"
    question: str
    entities: str
    graph: str
    steps: int = 10
    reflections: int = 2
    compound: bool = True
    sets: bool = True
    solved: str = ""
