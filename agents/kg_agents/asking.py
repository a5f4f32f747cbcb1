"""What a model is asked by an agent with prompts: the task, as the parameters have it."""

from typing import Protocol

from pydantic import BaseModel

from kg_agents.dialogue import Task, Writer
from kg_agents.schemas import schema_of
from kg_prompts import render
from kg_prompts.system import SystemPrompt


class Sampling(Protocol):
    """The parameters of an agent that say how a model is asked."""

    @property
    def temperature(self) -> float:
        """How freely the model chooses its words."""
        ...

    @property
    def reply_tokens(self) -> int:
        """How long a reply may be."""
        ...

    @property
    def structured(self) -> bool:
        """Whether replies are asked for as JSON, where the service can enforce it."""
        ...

    @property
    def as_in_paper(self) -> bool:
        """Whether the method is the paper's, which has no system prompt."""
        ...

    @property
    def stop(self) -> str:
        """A text before which replies end; none where it is empty."""
        ...

    @property
    def model_seed(self) -> int | None:
        """What the model's dice begin with, where its service lets that be set."""
        ...


def task_of(
    chosen: Sampling,
    purpose: str,
    write: Writer,
    form: type[BaseModel] | None = None,
    *,
    max_tokens: int | None = None,
    top_p: float | None = None,
) -> Task:
    """Return what a model is asked for a purpose.

    Args:
        chosen: The parameters of the agent.
        purpose: What for, in a word.
        write: Writes the prompt.
        form: What the reply fills in, where the service can have it do so.
        max_tokens: How long this reply may be, where that is something else than usual.
        top_p: From which share of the likeliest words the model chooses; its own value when None.
    """
    return Task(
        purpose,
        write,
        max_tokens or chosen.reply_tokens,
        chosen.temperature,
        top_p,
        system="" if chosen.as_in_paper else render(SystemPrompt()),
        schema=schema_of(form) if form is not None and chosen.structured else None,
        stop=chosen.stop,
        seed=chosen.model_seed,
    )
