"""The facts that a model was shown, each printed once and chosen by its number."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kg_agents.graph_values import Labels, Triple, plain_value
from kg_agents.parts_seen import PartSeen

_NUMBER: Final = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


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


class Names:
    """What ends of facts are called, with the id where two are called the same.

    Args:
        labels: What ids are called.
    """

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._counts = Counter(labels.nodes.values())

    def of(self, end: str) -> str:
        """Return the name of an end, its value, or its id where it has no name."""
        label = self._labels.nodes.get(end)
        if label is None:
            return plain_number(plain_value(end))
        return f"{label} ({end})" if self._counts[label] > 1 else label

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
            f"{called.get(relation, relation)} {self.of(tail)}"
            if head == node
            else f"{called.get(relation, relation)} of {self.of(head)}"
            for head, relation, tail in facts
        ]
        return f"({'; '.join(parts)})"


@dataclass
class Ledger:
    """All facts that were shown, by number from 1."""

    facts: list[Triple] = field(default_factory=list[Triple])
    _lists: dict[tuple[str, str, bool], PartSeen] = field(default_factory=dict[tuple[str, str, bool], PartSeen])
    _numbers: dict[Triple, int] = field(default_factory=dict[Triple, int])

    def lines(self, bundles: Iterable[Bundle], labels: Labels, hidden: Collection[Triple] = ()) -> list[str]:
        """Return lines that show facts with their numbers.

        Args:
            bundles: The facts.
            labels: What ids are called.
            hidden: Facts that are not shown again.
        """
        bundles = tuple(bundles)
        for bundle in bundles:
            self.see(bundle)
        names, without = Names(labels), {_key(fact) for fact in hidden}
        kept = (
            replace(each, facts=tuple(fact for fact in each.facts if _key(fact) not in without)) for each in bundles
        )
        return [self._line(bundle, names) for bundle in kept if bundle.facts]

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

    def number(self, fact: Triple) -> int:
        """Return the number of a fact, which it has from now on."""
        key = _key(fact)
        if key not in self._numbers:
            self.facts.append(fact)
            self._numbers[key] = len(self.facts)
        return self._numbers[key]

    def _line(self, bundle: Bundle, names: Names) -> str:
        facts = sorted(bundle.facts, key=self.number)
        left = f" ({len(facts)} of {bundle.total} shown)" if bundle.total > len(facts) else ""
        told = names.described(bundle.about, facts) if bundle.about else names.line(facts)
        return f"[{_ranges([self.number(fact) for fact in facts])}] {told}{left}"


def plain_number(text: str) -> str:
    """Return a number without the commas that make it easier to read, and any other text as it is."""
    return text.replace(",", "") if _NUMBER.fullmatch(text) else text


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers in their order, those that follow each other as one range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _key(fact: Triple) -> Triple:
    """Return a fact in a form in which those with the same value are equal."""
    head, relation, tail = fact
    return head, relation, plain_number(plain_value(tail))
