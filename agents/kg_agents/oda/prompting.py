"""The prompts of ODA, and what its parts share to ask a model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from kg_agents.answers import Step
from kg_agents.dialogue import Unreadable, Writer, fitting, task_of
from kg_agents.graph_values import Found, Observed, Triple
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.llm import Llm
from kg_agents.oda.ledger import Exploration
from kg_agents.oda.replies import Action
from kg_agents.oda.run import Run
from kg_agents.parameters import OdaSettings
from kg_prompts import examples_for, render
from kg_prompts.oda import (
    ActionPrompt,
    AnswerPrompt,
    GeneratedFactsPrompt,
    PaperAnswerPrompt,
    ReflectionPrompt,
    TurnPrompt,
)

_PARTS: Final = (0.5, 0.25, 0.0)


@dataclass(frozen=True, slots=True)
class Wording:
    """How prompts are written.

    Args:
        graph: What the graph calls itself, for examples of its own; empty for none.
        folder: Where examples of the user's own are; empty for none.
    """

    graph: str = ""
    folder: str = ""

    def action(self, run: Run, observation: Observed) -> Writer:
        """Return what writes the prompt for an action (table 7)."""

        def write(observed: str, memory: str) -> str:
            return render(
                ActionPrompt(
                    question=run.question,
                    memory=memory,
                    candidates=_candidates(run),
                    observation=observed,
                    history="\n".join(f"{action}{outcome}" for action, outcome in run.history.items()),
                    paths=len(run.entities) > 1,
                    examples=examples_for(self.graph, ActionPrompt.template, self.folder),
                )
            )

        return _fitting(write, _body(observation.text), run.memory_shown)

    def turn(self, seen: Exploration, *, own: bool, last: bool) -> Writer:
        """Return what writes the prompt for a turn: which facts to keep, and what to do next.

        Args:
            seen: What the run has seen.
            own: Whether the model may add what it knows by itself.
            last: Whether there is no turn after it.
        """
        run, candidates = seen.run, seen.candidate_lines

        def write(facts: str, memory: str) -> str:
            return render(
                TurnPrompt(
                    question=run.question,
                    memory=memory,
                    facts=facts,
                    candidates="\n".join(candidates),
                    history="\n".join(run.history.values()),
                    paths=len(candidates) > 1,
                    own=own,
                    last=last,
                    examples=examples_for(self.graph, TurnPrompt.template, self.folder),
                )
            )

        return _fitting(write, "\n".join(seen.fresh), "\n".join(seen.memory_lines))

    def reflection(self, run: Run, observation: Observed, batch: Sequence[Triple], most: int) -> Writer:
        """Return what writes the prompt for a reflection on some candidates (table 8)."""

        def write(observed: str, memory: str) -> str:
            return render(
                ReflectionPrompt(
                    question=run.question,
                    candidates="\n".join(map(",".join, batch)),
                    labels=_labels_of(run, batch),
                    observation=observed,
                    memory=memory,
                    most=most,
                    examples=examples_for(self.graph, ReflectionPrompt.template, self.folder),
                )
            )

        return _fitting(write, _body(observation.text), run.memory_shown)

    def paper_answer(self, run: Run) -> Writer:
        """Return what writes the prompt for the answers from memory and knowledge, as in the paper (table 7)."""

        def write(_: str, memory: str) -> str:
            return render(PaperAnswerPrompt(question=run.question, memory=memory))

        return _fitting(write, "", run.memory_shown)

    def answer(self, run: Run, *, own: bool) -> Writer:
        """Return what writes the prompt for the answers, from the memory alone.

        Args:
            run: The run.
            own: Whether the model may add what it knows by itself.
        """

        def write(_: str, memory: str) -> str:
            return render(
                AnswerPrompt(
                    question=run.question,
                    memory=memory,
                    own=own,
                    examples=examples_for(self.graph, AnswerPrompt.template, self.folder),
                )
            )

        return _fitting(write, "", "\n".join((*_numbered(run), *run.beliefs)))

    def generation(self, run: Run, most: int) -> Writer:
        """Return what writes the prompt for facts that the model makes up (section 4.2)."""

        def write(_: str, memory: str) -> str:
            return render(
                GeneratedFactsPrompt(question=run.question, candidates=_candidates(run), memory=memory, most=most)
            )

        return _fitting(write, "", run.memory_shown)


def _fitting(write: Callable[[str, str], str], observation: str, memory: str) -> Writer:
    """Return what writes a prompt with as much of an observation, and then of a memory, as fits."""
    return fitting(
        lambda: (write(*shorter) for shorter in _shortenings(observation, memory)),
        "the question and what it is about",
    )


def _shortenings(observation: str, memory: str) -> Iterator[tuple[str, str]]:
    """Yield both texts, shorter and shorter: of the observation the best lines stay, of the memory the newest."""
    yield observation, memory
    for part in _PARTS:
        yield _best(observation, part), memory
    for part in _PARTS:
        yield _best(observation, 0.0), _newest(memory, part)


def _best(text: str, part: float) -> str:
    lines = text.splitlines()
    kept = lines[: int(len(lines) * part)]
    return "\n".join((*kept, _left_out(len(lines) - len(kept)))) if lines else ""


def _newest(text: str, part: float) -> str:
    lines = text.splitlines()
    first = len(lines) - int(len(lines) * part)
    return "\n".join((_left_out(first), *lines[first:])) if lines else ""


def _left_out(lines: int) -> str:
    return f"[{lines:,} lines are left out to save room]"


def _body(text: str) -> str:
    """Return a tool's answer without the line that sums it up."""
    return text.partition("\n")[2]


def _numbered(run: Run) -> Iterator[str]:
    return (f"{number}. {run.labels.triple(fact)}" for number, fact in enumerate(run.facts, start=1))


def _candidates(run: Run) -> str:
    return "\n".join(run.labels.node(each) for each in run.entities)


def _labels_of(run: Run, triples: Sequence[Triple]) -> str:
    """Return what the ids of some triples are called, one a line."""
    nodes = dict.fromkeys(end for head, _, tail in triples for end in (head, tail))
    relations = dict.fromkeys(relation for _, relation, _ in triples)
    known = [(each, run.labels.nodes.get(each)) for each in nodes]
    known += [(each, run.labels.relations.get(each)) for each in relations]
    return "\n".join(f"{each}: {label}" for each, label in known if label is not None)


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
