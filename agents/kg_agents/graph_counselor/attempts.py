"""Attempts at a question: what each did, how it ended, and what was thought of it."""

from dataclasses import dataclass
from typing import Literal as Choice
from typing import TypeAlias

from kg_agents.graph_counselor.scratchpad import Step
from kg_agents.graph_counselor.verdicts import Judgement
from kg_agents.graph_values import Triple

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
        judgement: What the judge said; None where it was not asked.
        reflection: What was learnt from it for the next attempt; empty where there is none.
    """

    steps: tuple[Step, ...] = ()
    read: tuple[tuple[Triple, ...], ...] = ()
    end: End = "stopped"
    answer: str | None = None
    judgement: Judgement | None = None
    reflection: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the judge holds the answer to be right."""
        return self.judgement is not None and self.judgement.verdict == "yes"
