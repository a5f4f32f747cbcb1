"""One run of ODA: its state, what it has explored, and how its model is asked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kg_agents.evidence.answers import GivenAnswer, OnStep, PartSeen, RunStep, ignore_step
from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.evidence.values import IdLabels, Remembered, Triple, split_graph
from kg_agents.linking import resolver
from kg_agents.llm import Llm
from kg_agents.llm.dialogue import Dialogue, Writer, fitting
from kg_agents.papers.oda.facts import Bundle, FactLines
from kg_agents.papers.oda.replies import Action, Offer
from kg_agents.parameters import OdaSettings
from kg_agents.replies import Conclusion
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_prompts import Prompt, examples_for, render

MAX_REASON: Final = 300
"""How much of the reason why an action failed the model is told."""


@dataclass
class OdaRun:
    """One question on its way to an answer.

    Args:
        question: The question.
        entities: The task-relevant entities of this round, by id.
        graph: The graph, through its tools.
        talk: The dialogue with the model.
        on_step: Called with every step.
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
    graph: KnowledgeGraph
    talk: Dialogue
    on_step: OnStep = ignore_step
    asked: tuple[str, ...] = field(init=False)
    ledger: Ledger = field(default_factory=Ledger)
    memory: str | None = None
    memory_text: str = ""
    facts: tuple[Triple, ...] = ()
    history: dict[str, str] = field(default_factory=dict[str, str])
    steps: list[RunStep] = field(default_factory=list[RunStep])
    answers: tuple[GivenAnswer, ...] = ()
    concluded: bool = False
    missing: str | None = None
    own: tuple[str, ...] = ()
    beliefs: tuple[str, ...] = ()
    failures: int = 0
    passed_over: int = 0
    parts: tuple[PartSeen, ...] = ()

    def __post_init__(self) -> None:
        """Begin with the entities of the question."""
        self.asked = self.entities

    @property
    def labels(self) -> IdLabels:
        """What ids are called."""
        return self.ledger.labels

    @property
    def memory_shown(self) -> str:
        """The memory as prompts show it."""
        return "\n".join((*self.memory_text.splitlines(), *self.beliefs))

    def keep(self, held: Remembered) -> None:
        """Take over what the memory holds now."""
        self.ledger.learn(held.labels)
        self.memory = held.memory
        self.facts = tuple(fact for _, fact in held.facts)
        self.memory_text = held.text.partition("\n")[2]

    async def conclude(self, found: Conclusion, cited: Sequence[Cited], *, as_given: bool = False) -> None:
        """Take over what the model concludes, and its answers with what they rest on.

        Args:
            found: What the model concludes.
            cited: Its answers, with the numbers that the run gave to what they cite.
            as_given: Whether answers stay as the model wrote them.
        """
        resolve = resolver(self.graph)
        self.answers = await self.ledger.answers(cited, self.question, self.asked, resolve, as_given=as_given)
        self.concluded, self.missing, self.own = True, found.missing, found.own

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
        self.steps.append(RunStep(len(self.steps) + 1, thought, action, found, kept))
        self.on_step(self.steps[-1])


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

    run: OdaRun
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
            # Where there are several graphs, an id may be written without its own.
            for name in (end, split_graph(end)[0], labels.get(end, end)):
                known.setdefault(name.casefold(), {})[end] = None
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


_PARTS: Final = (0.5, 0.25, 0.0)


def fitted(prompt: Prompt, best: str = "") -> Writer:
    """Return what writes a prompt with as much of its observation, and then of its memory, as fits.

    Args:
        prompt: The prompt, whole.
        best: Which of its texts is an observation, with the best lines first; empty for none.
    """
    observed, memory = (str(getattr(prompt, name, "")) for name in (best or "none", "memory"))

    def shorter() -> Iterator[str]:
        for shown, kept in _shortenings(observed, memory):
            yield render(replace(prompt, **{"memory": kept, **({best: shown} if best else {})}))

    return fitting(shorter, "the question and what it is about")


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


@dataclass(frozen=True, slots=True)
class OdaMeans:
    """The parameters, what the graph calls itself, and the model that reflects where it is another one."""

    settings: OdaSettings
    graph_name: str = ""
    reflector: Llm | None = None

    @property
    def own(self) -> bool:
        """Whether the model may add what it knows by itself."""
        return self.settings.own_answers != "never"

    def examples(self, kind: type[Prompt]) -> str:
        """Return examples of good replies to a prompt."""
        return examples_for(self.graph_name, kind.template, self.settings.examples_folder)
