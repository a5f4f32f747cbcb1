"""Attempts at a question: what each did, how it ended, and what was thought of it."""

from dataclasses import dataclass
from typing import Literal as Choice
from typing import TypeAlias

from kg_agents.graph_counselor.actions import NOT_IN_GRAPH
from kg_agents.graph_counselor.scratchpad import Step
from kg_agents.graph_counselor.verdicts import Judgement
from kg_agents.support import Read

End: TypeAlias = Choice["finished", "steps", "unreadable", "stopped"]
"""How an attempt ended: with an answer, at the limit of steps, with replies that could not be read, or with the run."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One pass of the inner loop.

    Args:
        steps: Its steps.
        read: What each step read from the graph, in the same order.
        end: How it ended.
        answer: The answer; None where it gave none.
        quoted: The answers one by one, where it put each in quotation marks.
        missing: Why the graph does not hold the answer; None where the attempt did not find that.
        judgement: What the judge said; None where it was not asked.
        reflection: What was learnt from it for the next attempt; empty where there is none.
    """

    steps: tuple[Step, ...] = ()
    read: tuple[Read, ...] = ()
    end: End = "stopped"
    answer: str | None = None
    missing: str | None = None
    judgement: Judgement | None = None
    reflection: str = ""
    quoted: tuple[str, ...] = ()

    @property
    def claim(self) -> str | None:
        """What is judged: the answer, or that there is none in the graph."""
        return self.answer if self.missing is None else f"{NOT_IN_GRAPH}: {self.missing}"

    @property
    def not_in_graph(self) -> bool:
        """Whether the graph does not hold the answer: as the judge says, or as the attempt says and nobody denies."""
        if self.judgement is None:
            return self.missing is not None
        return self.judgement.verdict == "missing" or (self.missing is not None and self.accepted)

    @property
    def settled(self) -> bool:
        """Whether there is nothing to try again."""
        return self.accepted or self.not_in_graph

    @property
    def accepted(self) -> bool:
        """Whether the judge holds the answer to be right."""
        return self.judgement is not None and self.judgement.verdict == "yes"
