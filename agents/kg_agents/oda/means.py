"""What every part of ODA works with, and what a part is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from kg_agents.answers import Step
from kg_agents.asking import task_of
from kg_agents.dialogue import Unreadable, Writer
from kg_agents.graph_values import Found, Observed, Triple
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.llm import Llm
from kg_agents.oda.prompting import Wording
from kg_agents.oda.replies import Action
from kg_agents.oda.run import Run
from kg_agents.oda.settings import OdaSettings

T = TypeVar("T")

OnStep: TypeAlias = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Means:
    """The graph, the parameters, the wording of the prompts, and the model that reflects where it is another one."""

    graph: KnowledgeGraph
    settings: OdaSettings
    wording: Wording
    reflector: Llm | None = None

    async def ask(
        self,
        run: Run,
        write: Writer,
        purpose: str,
        read: Callable[[str], T | Unreadable],
        form: type[BaseModel] | None = None,
        llm: Llm | None = None,
    ) -> T:
        """Return what the model's reply says.

        Args:
            run: The run.
            write: Writes the prompt.
            purpose: What for, in a word.
            read: Reads the reply.
            form: What the reply fills in, where the service can have it do so.
            llm: The model, where it is another one.

        Raises:
            FailedReply: Neither the first nor the second reply could be read.
        """
        return await run.talk.ask(task_of(self.settings, purpose, write, form), read, llm)


@dataclass(frozen=True, slots=True)
class Reflected:
    """What a reflection brought: triples to keep, and those that lead on to the entities of the next round."""

    kept: tuple[Triple, ...]
    leading: tuple[Triple, ...]


class Rounds(Protocol):
    """Observes, acts and reflects until the model wants to answer."""

    async def __call__(self, run: Run, on_step: OnStep, /) -> str:
        """Return why the rounds ended, in a word.

        Args:
            run: The run, which they carry on.
            on_step: Told of every step.

        Raises:
            RunEnded: A limit is reached.
        """
        ...


class Observe(Protocol):
    """Looks ahead from the task-relevant entities."""

    async def __call__(self, run: Run, /) -> Observed:
        """Return what lies near them.

        Raises:
            RunEnded: The graph cannot be observed.
        """
        ...


class Act(Protocol):
    """Chooses an action."""

    async def __call__(self, run: Run, observation: Observed, /) -> Action:
        """Return the action.

        Raises:
            FailedReply: None that is possible was chosen.
        """
        ...


class Choose(Protocol):
    """Chooses the task-relevant entities of the next round."""

    def __call__(self, run: Run, action: Action, leading: Sequence[Triple], /) -> tuple[str, ...]:
        """Return them by id, those that tell most first; `leading` are the triples that lead on to them."""
        ...


class Reflect(Protocol):
    """Judges what an action found."""

    async def __call__(self, run: Run, observation: Observed, action: Action, found: Found, /) -> Reflected:
        """Return what is worth keeping.

        Raises:
            FailedReply: Nothing that was found was chosen.
        """
        ...
