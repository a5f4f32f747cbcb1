"""What a run of ODA has seen: the facts that were shown, and the entities that can still be looked at."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kg_agents.graph_values import Triple
from kg_agents.oda.ledger import Bundle, Ledger, Names, bundled
from kg_agents.oda.run import Run
from kg_agents.oda.turn_replies import Offer


@dataclass
class Exploration:
    """The frontier and the facts of one run.

    Args:
        run: The run.
        most: How many candidates a prompt shows.
        open: The entities of the question and of the memory that can still tell something, by id.
        observed: Those that were observed.
        exhausted: Those that can tell nothing more.
        ledger: The facts that were shown.
        fresh: The lines that the next prompt shows.
    """

    run: Run
    most: int
    open: dict[str, None]
    observed: set[str] = field(default_factory=set[str])
    exhausted: set[str] = field(default_factory=set[str])
    ledger: Ledger = field(default_factory=Ledger)
    fresh: list[str] = field(default_factory=list[str])

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
        shown = (end for head, _, tail in self.ledger.facts for end in (head, tail) if not end.startswith('"'))
        for end in dict.fromkeys((*self.open, *shown)):
            known.setdefault(end.casefold(), {})[end] = None
            known.setdefault(labels.get(end, end).casefold(), {})[end] = None
        names = {name: tuple(ids) for name, ids in known.items()}
        return Offer(len(self.ledger.facts), self.candidates, names, tuple(self.run.history))

    @property
    def candidate_lines(self) -> list[str]:
        """The candidates as a prompt shows them."""
        names = Names(self.run.labels)
        lines = [f"c{number} {names.of(each)}" for number, each in enumerate(self.candidates, start=1)]
        left = len(self.open) - len(lines)
        return [*lines, f"and {left} more, by name"] if left else lines

    @property
    def memory_lines(self) -> list[str]:
        """The facts that were kept as a prompt shows them."""
        return self.ledger.lines(bundled(self.run.facts), self.run.labels)

    def keep(self, numbers: Iterable[int]) -> tuple[Triple, ...]:
        """Put facts into the memory; their ends can be looked at. Return those that it did not hold."""
        run, held = self.run, self.ledger.facts
        chosen = dict.fromkeys(held[each - 1] for each in numbers if 1 <= each <= len(held))
        fresh = tuple(fact for fact in chosen if fact not in run.facts)
        run.facts = (*run.facts, *fresh)
        for head, _, tail in fresh:
            for end in (head, tail):
                if not end.startswith('"') and end not in self.exhausted:
                    self.open.setdefault(end)
        return fresh

    def show(self, bundles: Iterable[Bundle]) -> None:
        """Have the next prompt show facts that the memory does not hold."""
        self.fresh += self.ledger.lines(bundles, self.run.labels, self.run.facts)

    def leave(self, entity: str) -> None:
        """Leave an entity that can tell nothing more."""
        self.exhausted.add(entity)
        self.open.pop(entity, None)
