"""One run of ODA: its state, the prompts that are written from it, and the parts that a round is put together from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from kg_agents.evidence.answers import Answer, PartSeen, Step
from kg_agents.evidence.ledger import Ledger
from kg_agents.evidence.values import Found, Labels, Observed, Remembered, Triple
from kg_agents.llm import Llm
from kg_agents.llm.dialogue import Dialogue, Unreadable, Writer, fitting, task_of
from kg_agents.papers.oda.facts import Bundle, FactLines
from kg_agents.papers.oda.replies import Action, Offer
from kg_agents.parameters import OdaSettings
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_prompts import examples_for, render
from kg_prompts.oda import (
    ActionPrompt,
    AnswerPrompt,
    GeneratedFactsPrompt,
    PaperAnswerPrompt,
    ReflectionPrompt,
    TurnPrompt,
)

MAX_REASON: Final = 300
"""How much of the reason why an action failed the model is told."""

NOTHING_OBSERVED = Observed((), Labels(), "")


@dataclass
class Run:
    """One question on its way to an answer.

    Args:
        question: The question.
        entities: The task-relevant entities of this round, by id.
        talk: The dialogue with the model.
        asked: The entities of the first round.
        ledger: What the model was shown of the graph.
        history: The actions that were taken, and of those that failed the reason.
        concluded: Whether the model has answered, with the answers or without any.
        missing: What the graph does not hold, as the model says; None where it does not say that.
        own: What the model says by itself, beside its answers.
        beliefs: Sentences that the model believes, in place of facts (section 4.2).
        passed_over: How many of the triples that were found last the model was not shown.
        parts: The lists of which a part was seen, and no more.
    """

    question: str
    entities: tuple[str, ...]
    talk: Dialogue
    asked: tuple[str, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)
    memory: str | None = None
    memory_text: str = ""
    facts: tuple[Triple, ...] = ()
    history: dict[str, str] = field(default_factory=dict[str, str])
    steps: list[Step] = field(default_factory=list[Step])
    answers: tuple[Answer, ...] = ()
    concluded: bool = False
    missing: str | None = None
    own: tuple[str, ...] = ()
    beliefs: tuple[str, ...] = ()
    failures: int = 0
    passed_over: int = 0
    parts: tuple[PartSeen, ...] = ()

    def learn(self, labels: Labels) -> None:
        """Add labels of ids."""
        self.ledger.learn(labels)

    @property
    def labels(self) -> Labels:
        """What ids are called."""
        return self.ledger.labels

    @property
    def offered(self) -> dict[str, str | None]:
        """The entities that an action may be about, with their labels."""
        return {each: self.labels.nodes.get(each) for each in self.entities}

    @property
    def waiting(self) -> tuple[str, ...]:
        """The entities of the question whose neighbours were not looked at yet."""
        return tuple(each for each in self.asked if str(Action("GetNeighbor", (each,))) not in self.history)

    @property
    def memory_shown(self) -> str:
        """The memory as prompts show it."""
        return "\n".join((*self.memory_text.splitlines(), *self.beliefs))

    def keep(self, held: Remembered) -> None:
        """Take over what the memory holds now."""
        self.learn(held.labels)
        self.memory = held.memory
        self.facts = tuple(fact for _, fact in held.facts)
        self.memory_text = held.text.partition("\n")[2]

    def conclude(self, answers: tuple[Answer, ...], missing: str | None, own: tuple[str, ...]) -> None:
        """Take over what the model concludes."""
        self.concluded, self.answers, self.missing, self.own = True, answers, missing, own

    def note(self, action: Action, found: str, kept: Sequence[Triple] = ()) -> None:
        """Take note of a step that was taken."""
        self.history[str(action)] = ""
        self.failures = 0
        self._add(action.thought, str(action), found, tuple(self.labels.triple(each) for each in kept))

    def fail(self, reason: str, action: Action | None = None) -> None:
        """Take note of a step that failed, and of the action that the graph refused, if it was that."""
        self.failures += 1
        if action is not None:
            self.history[str(action)] = f" (failed: {' '.join(reason.split())[:MAX_REASON]})"
        self._add(action.thought if action else "", str(action or ""), f"failed: {reason}", ())

    def _add(self, thought: str, action: str, found: str, kept: tuple[str, ...]) -> None:
        self.steps.append(Step(len(self.steps) + 1, thought, action, found, kept))


@dataclass
class Exploration:
    """The frontier and the facts of one run.

    Args:
        run: The run.
        most: How many candidates a prompt shows.
        open: The entities of the question and of the memory that can still tell something, by id.
        observed: Those that were observed.
        exhausted: Those that can tell nothing more.
        fresh: The lines that the next prompt shows.
    """

    run: Run
    most: int
    open: dict[str, None]
    observed: set[str] = field(default_factory=set[str])
    exhausted: set[str] = field(default_factory=set[str])
    fresh: list[str] = field(default_factory=list[str])
    lines: FactLines = field(init=False)

    def __post_init__(self) -> None:
        """Write lines with the numbers of the run."""
        self.lines = FactLines(self.run.ledger)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The entities that a prompt offers, those of the question first, then the latest."""
        asked = [each for each in self.run.asked if each in self.open]
        others = [each for each in reversed(self.open) if each not in asked]
        return (*asked, *others)[: self.most]

    @property
    def offer(self) -> Offer:
        """What a turn may name."""
        known: dict[str, dict[str, None]] = {}
        labels = self.run.labels.nodes
        shown = (end for head, _, tail in self.run.ledger.facts for end in (head, tail) if not end.startswith('"'))
        for end in dict.fromkeys((*self.open, *shown)):
            known.setdefault(end.casefold(), {})[end] = None
            known.setdefault(labels.get(end, end).casefold(), {})[end] = None
        names = {name: tuple(ids) for name, ids in known.items()}
        return Offer(self.run.ledger.last, self.candidates, names, tuple(self.run.history))

    @property
    def candidate_lines(self) -> list[str]:
        """The candidates as a prompt shows them."""
        names = self.lines.names
        lines = [f"c{number} {names.of(each)}" for number, each in enumerate(self.candidates, start=1)]
        left = len(self.open) - len(lines)
        return [*lines, f"and {left} more, by name"] if left else lines

    @property
    def memory_lines(self) -> list[str]:
        """The facts that were kept as a prompt shows them."""
        return self.lines.lines(self.lines.grouped(self.run.facts))

    def keep(self, numbers: Iterable[int]) -> tuple[Triple, ...]:
        """Put facts into the memory; their ends can be looked at. Return those that it did not hold."""
        run = self.run
        chosen = dict.fromkeys(fact for each in run.ledger.cited(numbers) for fact in each.facts)
        fresh = tuple(fact for fact in chosen if fact not in run.facts)
        run.facts = (*run.facts, *fresh)
        for head, _, tail in fresh:
            for end in (head, tail):
                # A node without a name was shown with all that it holds.
                if not end.startswith('"') and end not in self.exhausted and end not in self.lines.held:
                    self.open.setdefault(end)
        return fresh

    def show(self, bundles: Iterable[Bundle]) -> None:
        """Have the next prompt show facts that the memory does not hold."""
        self.fresh += self.lines.lines(self.lines.described(bundles), self.run.facts)

    def leave(self, entity: str) -> None:
        """Leave an entity that can tell nothing more."""
        self.exhausted.add(entity)
        self.open.pop(entity, None)


def far_ends(triples: Sequence[Triple], near: Sequence[str]) -> tuple[str, ...]:
    """Return the entities that triples lead to: their tails or, of those found from the tail, their heads.

    Args:
        triples: The triples; where a tail is a literal, they lead nowhere.
        near: The entities that they were found from.
    """
    ends = (head if tail in near else tail for head, _, tail in triples)
    return tuple(dict.fromkeys(end for end in ends if not end.startswith('"')))


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

    async def conclude(self, run: Run, /) -> None:
        """Have the model answer from the memory (table 7).

        Raises:
            FailedReply: It gave no answer.
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
