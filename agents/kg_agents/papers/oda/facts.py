"""The facts that a run of ODA has shown, by number, and what is left to explore."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kg_agents.evidence.answers import PartSeen
from kg_agents.evidence.ledger import Ledger, key_of, plain_number
from kg_agents.evidence.values import IdLabels, Triple, plain_value

_MOST_HELD: Final = 4
"""How many facts describe a node without a name at most."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Facts that share a relation and one end.

    Args:
        facts: The facts, the most telling first.
        total: How many there are in the graph; more than are here where some are left out.
        about: The node without a name that they describe together; empty where they share more than that.
    """

    facts: tuple[Triple, ...]
    total: int
    about: str = ""

    def cut(self, most: int) -> "Bundle":
        """Return it with the first facts only."""
        return replace(self, facts=self.facts[:most])


def bundled(facts: Sequence[Triple], totals: Mapping[tuple[str, bool], int] | None = None) -> tuple[Bundle, ...]:
    """Return facts that share a relation and one end together, in the order in which each first comes.

    Args:
        facts: The facts.
        totals: How many there are of a relation, by whether the end that they share is the tail; where that is known.
    """
    shared = Counter(key for fact in facts for key in _sides(fact))
    groups: dict[tuple[str, str, bool], list[Triple]] = {}
    for fact in facts:
        groups.setdefault(max(_sides(fact), key=lambda side: shared[side]), []).append(fact)
    known = totals or {}
    return tuple(
        Bundle(tuple(group), max(len(group), known.get((relation, incoming), 0)))
        for (_, relation, incoming), group in groups.items()
    )


def _sides(fact: Triple) -> tuple[tuple[str, str, bool], tuple[str, str, bool]]:
    head, relation, tail = fact
    return (head, relation, False), (tail, relation, True)


class FactNames:
    """What ends of facts are called, with the id where two are called the same; nodes without a name by what they hold.

    Args:
        labels: What ids are called.
        held: What nodes without a name hold, by node.
    """

    def __init__(self, labels: IdLabels, held: Mapping[str, Sequence[Triple]]) -> None:
        self._labels = labels
        self._counts = Counter(labels.nodes.values())
        self._held = held

    def of(self, end: str) -> str:
        """Return the name of an end, its value, what it holds, or its id where nothing else is known."""
        label = self._labels.nodes.get(end)
        if label is not None:
            return self._labels.node(end) if self._counts[label] > 1 else label
        if end in self._held:
            return self.described(end, self._held[end][:_MOST_HELD])
        return "(no name)" if end.startswith("_:") else plain_number(plain_value(end))

    def line(self, facts: Sequence[Triple]) -> str:
        """Return facts that share a relation and one end on one line."""
        head, relation, tail = facts[0]
        called = self._labels.relations.get(relation, relation)
        if len(facts) > 1 and all(each[2] == tail for each in facts):
            return f"{'; '.join(self.of(each[0]) for each in facts)} | {called} | {self.of(tail)}"
        return f"{self.of(head)} | {called} | {'; '.join(self.of(each[2]) for each in facts)}"

    def described(self, node: str, facts: Sequence[Triple]) -> str:
        """Return the facts of a node without a name as one description of it."""
        called = self._labels.relations
        parts = [
            f"{called.get(relation, relation)} {self._plain(tail)}"
            if head == node
            else f"{called.get(relation, relation)} of {self._plain(head)}"
            for head, relation, tail in facts
        ]
        return f"({'; '.join(parts)})"

    def _plain(self, end: str) -> str:
        return "(no name)" if end in self._held else self.of(end)


@dataclass
class FactLines:
    """Writes facts as the lines of a prompt, with their numbers, and notes how much of each list was shown."""

    ledger: Ledger
    held: dict[str, list[Triple]] = field(default_factory=dict[str, list[Triple]])
    _lists: dict[tuple[str, str, bool], PartSeen] = field(default_factory=dict[tuple[str, str, bool], PartSeen])

    def lines(self, bundles: Iterable[Bundle], hidden: Collection[Triple] = ()) -> list[str]:
        """Return lines that show facts with their numbers.

        Args:
            bundles: The facts.
            hidden: Facts that were shown before and are left out.
        """
        bundles = tuple(bundles)
        for bundle in bundles:
            self.see(bundle)
        names, without = self.names, set(map(key_of, hidden))
        new = [(each, tuple(fact for fact in each.facts if key_of(fact) not in without)) for each in bundles]
        # A description without some of its facts would no longer say which node it describes.
        return [self._line(each, each.facts if each.about else kept, names) for each, kept in new if kept]

    @property
    def names(self) -> FactNames:
        """What ends of facts are called by now."""
        return FactNames(self.ledger.labels, self.held)

    def hold(self, facts: Iterable[Triple]) -> None:
        """Take note of what nodes without a name hold."""
        labels = self.ledger.labels.nodes
        for fact in facts:
            node = fact[2] if fact[0] in labels else fact[0]
            known = self.held.setdefault(node, [])
            if key_of(fact) not in map(key_of, known):
                known.append(fact)

    def described(self, bundles: Iterable[Bundle]) -> Iterator[Bundle]:
        """Yield bundles in which facts that lead to a node without a name stand with what it holds."""
        about: dict[str, dict[Triple, Triple]] = {}
        for bundle in bundles:
            if plain := tuple(fact for fact in bundle.facts if not {fact[0], fact[2]} & self.held.keys()):
                yield replace(bundle, facts=plain)
            for fact in bundle.facts:
                for node in {fact[0], fact[2]} & self.held.keys():
                    facts = about.setdefault(node, {key_of(each): each for each in self.held[node]})
                    facts.setdefault(key_of(fact), fact)
        yield from (Bundle(tuple(facts.values()), len(facts), node) for node, facts in about.items())

    def grouped(self, facts: Iterable[Triple]) -> Iterator[Bundle]:
        """Yield facts in bundles, those of a node without a name in one that describes it."""
        about: dict[str, list[Triple]] = {}
        plain: list[Triple] = []
        for fact in facts:
            node = next((end for end in (fact[0], fact[2]) if end in self.held), None)
            (plain if node is None else about.setdefault(node, [])).append(fact)
        yield from bundled(plain)
        yield from (Bundle(tuple(held), len(held), node) for node, held in about.items())

    @property
    def parts(self) -> tuple[PartSeen, ...]:
        """The lists of which a part was seen, and no more."""
        return tuple(each for each in self._lists.values() if each.total > len(each.members))

    def see(self, bundle: Bundle) -> None:
        """Take note of how much of a list a bundle is; what is one fact alone is a list of no known side."""
        facts = frozenset(bundle.facts)
        sides = (key for fact in facts for key in _sides(fact))
        shared = [key for key, count in Counter(sides).items() if count == len(facts) > 1]
        for key in shared:
            before = self._lists.get(key, PartSeen(frozenset()))
            members = frozenset(head if key[2] else tail for head, _, tail in facts)
            total = max(bundle.total, before.total)
            self._lists[key] = PartSeen(before.members | members, total, before.facts | facts)

    def _line(self, bundle: Bundle, kept: Sequence[Triple], names: FactNames) -> str:
        facts = sorted(kept, key=self.ledger.number)
        before = len(bundle.facts) - len(facts)
        earlier = f", {before} before" if before else ""
        left = f" ({len(facts)} of {bundle.total} shown{earlier})" if bundle.total > len(bundle.facts) else ""
        told = names.described(bundle.about, facts) if bundle.about else names.line(facts)
        return f"[{_ranges([self.ledger.number(fact) for fact in facts])}] {told}{left}"


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers in their order, those that follow each other as one range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
