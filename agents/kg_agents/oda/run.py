"""The state of one run: the memory, the task-relevant entities, and what was done."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kg_agents.answers import Answer, PartSeen, Step
from kg_agents.dialogue import Dialogue
from kg_agents.evidence import Ledger
from kg_agents.graph_values import Labels, Observed, Remembered, Triple
from kg_agents.oda.replies import Action

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


def far_ends(triples: Sequence[Triple], near: Sequence[str]) -> tuple[str, ...]:
    """Return the entities that triples lead to: their tails or, of those found from the tail, their heads.

    Args:
        triples: The triples; where a tail is a literal, they lead nowhere.
        near: The entities that they were found from.
    """
    ends = (head if tail in near else tail for head, _, tail in triples)
    return tuple(dict.fromkeys(end for end in ends if not end.startswith('"')))
