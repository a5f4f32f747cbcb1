"""The parameters of the agent that calls the tools itself."""

from dataclasses import dataclass, field

from kg_agents.answers import ClosedBook
from kg_agents.dialogue import Limits


@dataclass(frozen=True, slots=True)
class ToolsSettings:
    """How the model converses with the tools, and limits.

    Args:
        turns: The most replies; in the last one the model can only answer.
        calls: The most calls of tools.
        at_once: How many calls of one reply are made at the same time.
        failures: After so many calls in a row that the server did not answer, the model has to answer.
        temperature: How freely the model chooses its words.
        reply_tokens: How long a reply may be.
        result_tokens: How much of one result the model is shown.
        only: The tools that it is offered, separated by commas; all of them where it is empty.
        seed: What the model's dice begin with, where its service lets that be set.
        closed_book: What becomes of what the model says by itself.
        limits: What the whole run may use.
    """

    turns: int = 12
    calls: int = 20
    at_once: int = 8
    failures: int = 3
    temperature: float = 0.0
    reply_tokens: int = 2_000
    result_tokens: int = 4_000
    only: str = ""
    seed: int | None = None
    closed_book: ClosedBook = "apart"
    limits: Limits = field(default_factory=lambda: Limits(prompt_tokens=24_000))

    @property
    def reflects(self) -> bool:
        """Whether a model is asked to reflect; no reply of this agent is for that alone."""
        return False
