"""The evidence of a run: all that its model was shown of the graph, by number, and what of it an answer rests on.

Every agent registers what a prompt or a result shows when it renders it. An answer is *stated* where a fact or a
computed result that was shown says it, *concluded* where it cites what was shown without being stated by it, and the
model's own knowledge otherwise.
"""

import re
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, TypeAlias

from kg_agents.evidence.answers import BY_JUDGE, BY_MODEL, GivenAnswer
from kg_agents.evidence.matching import (
    date_of,
    dates_of,
    fold,
    is_name,
    parts_of,
    quantity_of,
    states_value,
    truth_of,
    words_of,
)
from kg_agents.evidence.values import (
    ComputedResult,
    IdLabels,
    NameMatch,
    Shown,
    Triple,
    names_in,
    plain_value,
    split_graph,
)

MAX_FACTS: Final = 100
"""The most facts given for one answer."""

ALL: Final = re.compile(r"all(?: of (?:them|these|it))?", re.IGNORECASE)
"""What stands in place of everything that the cited facts or results list."""

Resolve: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[NameMatch]]]
"""Returns the entities that texts name, by the server's own resolver."""

_LED: Final = re.compile(r"^\W*(?:(?:in|at|on|by|from|the|a|an)\s+)+", re.IGNORECASE)
_WITH_ID: Final = re.compile(
    r"(?P<name>.*\S)\s*\((?P<id>[^()\s]+)\)|(?P<first>[^()\s]+)\s*\((?P<label>.+)\)", re.DOTALL
)
_MOST_BESIDE: Final = 20
_BESIDE: Final = 5
_UNIT: Final = re.compile(r".*\(([^()]+)\)\s*$")
_GROUPED: Final = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Cited:
    """One answer, with the numbers that it cites.

    Args:
        text: The answer; `all` stands for everything that what it cites lists.
        numbers: What it cites.
        separable: Whether commas separate several answers in it, also where nothing states any of them.
    """

    text: str
    numbers: tuple[int, ...] = ()
    separable: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.text} [{', '.join(map(str, self.numbers))}]" if self.numbers else self.text


class Ledger:
    """Everything of the graph that a run has shown its model, by the numbers that the model cites."""

    def __init__(self) -> None:
        self.labels = IdLabels()
        self.last = 0
        """The greatest number that stands for something."""
        self._shown: dict[int, Shown] = {}
        self._numbers: dict[Triple, int] = {}

    def add(self, shown: Shown, number: int | None = None) -> int:
        """Register what is shown under a number, the next one unless given, and return the number."""
        number = self.last + 1 if number is None else number
        self._shown[number] = shown
        self.last = max(self.last, number)
        if shown.labels != IdLabels():
            self.labels = self.labels.merged(shown.labels)
        return number

    def number(self, fact: Triple) -> int:
        """Return the number of a fact that is registered by itself, which it has from now on, however it is written."""
        key = key_of(fact)
        if key not in self._numbers:
            self._numbers[key] = self.add(Shown((fact,)))
        return self._numbers[key]

    def learn(self, labels: IdLabels) -> None:
        """Add labels of ids."""
        self.labels = self.labels.merged(labels)

    @property
    def shown(self) -> tuple[Shown, ...]:
        """All that was shown, the earliest first."""
        return tuple(self._shown.values())

    @property
    def facts(self) -> tuple[Triple, ...]:
        """All facts that were shown, each once."""
        facts = [fact for each in self.shown for fact in each.facts]
        return tuple(reversed({key_of(fact): fact for fact in reversed(facts)}.values()))

    def cited(self, numbers: Iterable[int]) -> tuple[Shown, ...]:
        """Return what numbers stand for; those that stand for nothing are left out."""
        return tuple(self._shown[number] for number in dict.fromkeys(numbers) if number in self._shown)

    def listed(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return all that the cited results list, or in which the cited facts differ: ids and values, each once."""
        cited = self.cited(numbers)
        ends = dict.fromkeys(end for each in cited for end in each.listed)
        return tuple(ends) or _differing([fact for each in cited for fact in each.facts])

    async def answers(
        self,
        cited: Sequence[Cited],
        question: str,
        about: Collection[str],
        resolve: Resolve,
        *,
        confirmed: bool | None = None,
        as_given: bool = False,
    ) -> tuple[GivenAnswer, ...]:
        """Return answers with what states them, or what they were concluded from; each text once.

        Args:
            cited: What the model answers.
            question: The question.
            about: What the question is about, by id.
            resolve: The server's resolver of names, for answers in other words than those shown.
            confirmed: What a judge who saw the cited facts says; None without a judge.
            as_given: Whether texts stay as the model wrote them, rather than become the labels of what they name.
        """
        claims = _Claims(self, question, about, confirmed)
        unknown = [text for each in cited for text in claims.unstated(each)]
        if unknown and any(each.facts or each.computed for each in self.shown):
            claims.learn(await resolve(unknown))
        return claims.answers(cited, as_given=as_given)

    def as_shown(self, texts: Iterable[str], question: str, about: Collection[str] = ()) -> tuple[GivenAnswer, ...]:
        """Return answers, separated by commas, that cite nothing, with what states them word for word."""
        claims = _Claims(self, question, about, confirmed=None)
        return claims.answers([Cited(text, separable=True) for text in texts], as_given=True)


class _Claims:
    """Answers compared with what was shown, for one question."""

    def __init__(self, ledger: Ledger, question: str, about: Collection[str], confirmed: bool | None) -> None:
        self._ledger = ledger
        self._labels = ledger.labels
        self._confirmed = confirmed
        self._facts = ledger.facts
        self._asked_for = [fact for each in ledger.shown if not each.ahead for fact in each.facts]
        self._ids: dict[str, frozenset[str]] = {}
        self._found: dict[str, frozenset[str]] = {}
        behind = (fact for each in ledger.shown for computed in each.computed for fact in computed.facts)
        words = words_of(question)
        self._read = {name: end for each in ledger.shown for name, end in each.named.items()}
        read = (end for each in ledger.shown for name, end in each.named.items() if words_of(name) in words)
        self._starts = frozenset((*about, *read)) | named_in(question, (*self._facts, *behind), self._labels)
        self._called_so = frozenset(map(fold, self._labels.nodes.values()))
        self._named: dict[str, list[str]] = {}
        self._values: list[tuple[str, str]] = []
        for end, relation in dict.fromkeys((end, fact[1]) for fact in self._facts for end in (fact[0], fact[2])):
            self._index(end, relation)
        results = (each.result for shown in ledger.shown for each in (*shown.computed, *shown.counts))
        for end in dict.fromkeys(results):
            self._index(end, "")

    def _index(self, end: str, relation: str) -> None:
        label = self._labels.nodes.get(end)
        # Where there are several graphs, an id may be written without its own.
        bare = split_graph(end)[0] if label is not None or split_graph(relation)[1] else end
        for name in dict.fromkeys((fold(end), fold(bare), fold(label) if label else fold(plain_value(end)))):
            self._named.setdefault(name, []).append(end)
        if label is None:
            unit = _UNIT.match(self._labels.relations.get(relation, ""))
            self._values.append((end, unit[1] if unit else ""))

    def learn(self, named: Sequence[NameMatch]) -> None:
        """Take over which entities texts name."""
        self._found.clear()
        self._ids.update({each.text: frozenset(found.id for found in each.meant) for each in named if each.meant})
        self._labels = self._labels.merged(
            IdLabels({found.id: found.label for each in named for found in each.meant if found.label})
        )

    def unstated(self, cited: Cited) -> Iterator[str]:
        """Yield the texts that may name an entity in other words than those shown."""
        if self._ends(cited.text) or ALL.fullmatch(cited.text) or not is_name(cited.text):
            return
        yield cited.text
        if len(parts := parts_of(cited.text, self._is_known)) > 1:
            joined = (f"{first} and {second}" for first, second in pairwise(parts))
            names = (*(each for each in joined if each in cited.text), *parts)
            yield from (name for name in names if not self._ends(name) and is_name(name))

    def answers(self, cited: Iterable[Cited], *, as_given: bool) -> tuple[GivenAnswer, ...]:
        """See `Ledger.answers`."""
        alone = (one for each in cited for one in self._each(each))
        found = (answer for each in alone for answer in self._answers(each, as_given=as_given))
        return tuple({(each.text, each.graphs): each for each in found}.values())

    def _each(self, cited: Cited) -> Iterable[Cited]:
        """Return an answer, or in place of `all` each thing that is listed with what names it."""
        listed = self._ledger.listed(cited.numbers) if ALL.fullmatch(cited.text.strip(" .")) else ()
        if not listed:
            return [cited]
        naming: dict[str, list[int]] = {}
        for number in cited.numbers:
            for shown in self._ledger.cited([number]):
                for end in {*shown.listed, *ends_of(shown.facts)}:
                    naming.setdefault(end, []).append(number)
        return [Cited(self._written(end), tuple(naming[end])) for end in listed]

    def _written(self, end: str) -> str:
        """Return an id, but the label of one that could be read as a number; a value without its quotes."""
        return self._labels.nodes.get(end, end) if quantity_of(end) else plain_value(end)

    def _answers(self, cited: Cited, *, as_given: bool) -> Sequence[GivenAnswer]:
        """Return one answer, or each of a list in one text."""
        shown = self._ledger.cited(cited.numbers)
        texts: Sequence[str] = [cited.text]
        whole = self._stated(cited.text, shown)
        if whole is None and len(parts := parts_of(cited.text, self._is_known)) > 1:
            one_name = bool(self._ids.get(cited.text))
            if not one_name and any(self._ids.get(part) or self._stated(part, shown) for part in parts):
                texts = parts
            elif cited.separable:
                texts = parts_of(cited.text, self._is_known, at_and=False)
        found = [whole or self._stated(text, shown) or self._other(text, shown) for text in texts]
        given = as_given and not set(texts) & self._labels.nodes.keys()
        return [replace(each, text=text) for each, text in zip(found, texts, strict=True)] if given else found

    def _stated(self, text: str, cited: Sequence[Shown]) -> GivenAnswer | None:
        """Return the answer where something that was shown states it, what is cited before anything else."""
        found = self._computed(text, cited, cited) or self._in_facts(text, cited)
        if found is None and truth_of(text) is False and (denied := next((e for e in cited if e.denied), None)):
            found = GivenAnswer(text, "computed", denied.facts[:MAX_FACTS], (f"{denied.asked}: denied by the graph",))
        if found or truth_of(text) is not None:
            # An uncited yes or no could be the value of anything.
            return found
        if cited and quantity_of(text) is not None:
            # The model worked it out from what it cites, whatever else has the same value.
            return None
        return (
            self._computed(text, self._ledger.shown)
            or self._by_facts(text, self._asked_for, ())
            or self._by_facts(text, self._facts, ())
        )

    def _other(self, text: str, cited: Sequence[Shown]) -> GivenAnswer:
        """Return an answer that nothing states: concluded where it cites something, or the model's own."""
        cited = [each for each in cited if each.facts or each.computed or each.asked]
        ids = self._ids.get(text, frozenset[str]())
        entities = tuple(sorted(ids))
        if cited and (self._confirmed or (self._confirmed is None and not ids)):
            facts = tuple(dict.fromkeys(fact for each in cited for fact in each.facts))
            beside = other_sides(facts, self._starts.intersection(ends_of(facts)), self._starts, self._facts)
            steps = (f"{each.expression} = {self._called(each.result)}" for shown in cited for each in shown.computed)
            empty = (f"{each.asked}: nothing found" for each in cited if not (each.facts or each.computed))
            computed = tuple(dict.fromkeys((*steps, *empty)))[:_BESIDE]
            by = BY_JUDGE if self._confirmed else BY_MODEL
            return GivenAnswer(text, "computed", (*facts, *beside)[:MAX_FACTS], (*computed, f"{text}: {by}"), entities)
        return GivenAnswer(text if quantity_of(text) else self._called(text), "model", entities=entities)

    def _computed(self, text: str, shown: Sequence[Shown], cited: Sequence[Shown] = ()) -> GivenAnswer | None:
        """Return an answer that the latest computation gave which gave it, with what was read for it."""
        ends = self._ends(text)
        results = (each for found in reversed(shown) for each in reversed(found.computed))
        # A relation's count, which many a number equals, is evidence only where it is cited.
        counts = (each for found in cited for each in found.counts)
        for each in (*results, *counts):
            if each.result in ends or (truth_of(text) is not None and truth_of(each.result) is truth_of(text)):
                label = self._labels.nodes.get(each.result)
                facts = self._behind(each) if label else each.facts[:MAX_FACTS]
                step = f"{each.expression} = {label or each.result}"
                return GivenAnswer(
                    _whole(label, text) if label else text, "computed", facts, (step,), (each.result,) if label else ()
                )
        return None

    def _in_facts(self, text: str, cited: Sequence[Shown]) -> GivenAnswer | None:
        """Return an answer that cited facts state, with what the others of a comparison have in its place."""
        facts = tuple(dict.fromkeys(fact for each in cited for fact in each.facts))
        found = self._by_facts(text, facts, facts if all(_is_one_fact(each) for each in cited) else ())
        if found is None:
            named = self._ids.get(text, frozenset[str]())
            over = [fact for fact in facts if fact[1] in named or fold(self._called(fact[1])) == fold(text)]
            return GivenAnswer(text, "graph", tuple(over)[:MAX_FACTS]) if over else None
        goals = self._ends(text)
        silent = (each.facts for each in cited if not goals & ends_of(each.facts))
        beside = (fact for each in silent for fact in _touching(each, self._starts)[:_BESIDE])
        kept = dict.fromkeys((*found.facts, *beside))
        sides = other_sides(tuple(kept), goals, self._starts, self._facts)
        return replace(found, facts=tuple(dict.fromkeys((*kept, *sides))))

    def _by_facts(self, text: str, facts: Sequence[Triple], given: tuple[Triple, ...]) -> GivenAnswer | None:
        """Return an answer that facts name, with those given, or else the chains that lead to it."""
        ends = ends_of(facts)
        goals = self._ends(text) & ends
        if (truth := truth_of(text)) is not None:
            goals |= {end for end in ends if truth_of(plain_value(end)) is truth}
        if not goals and (dates := dates_of(text)):
            goals = self._range(dates, facts)
        if not goals:
            return None
        entities = tuple(sorted(goals & self._labels.nodes.keys()))
        called = _whole(self._labels.nodes[entities[0]], text) if len(entities) == 1 == len(goals) else text
        led = given or (*(found := chains(facts, goals, self._starts)), *other_sides(found, goals, self._starts, facts))
        return GivenAnswer(self._called(called), "graph", led, (), entities)

    def _range(self, dates: tuple[str, str], facts: Sequence[Triple]) -> frozenset[str]:
        """Return the two dates of a range where facts about one thing state both."""
        first, last = (self._ends(date) for date in dates)
        heads = {fact[0] for fact in facts if fact[2] in first} & {fact[0] for fact in facts if fact[2] in last}
        return frozenset(fact[2] for fact in facts if fact[0] in heads and fact[2] in first | last)

    def _ends(self, text: str) -> frozenset[str]:
        """Return the ends of facts and the results that a text is the id, the label or the value of."""
        if text not in self._found:
            self._found[text] = frozenset(self._compared(text))
        return self._found[text]

    def _compared(self, text: str) -> set[str]:
        labels = self._labels.nodes
        names = {fold(text), fold(_LED.sub("", text))} - {""}
        ends = {end for name in names for end in self._named.get(name, ())}
        if text in ends and text in labels:
            return {text}
        if quantity_of(text) is not None or date_of(text) is not None:
            ends = {end for end in ends if end not in labels or fold(labels[end]) in names}
            return ends | {end for end, unit in self._values if states_value(plain_value(end), text, unit)}
        if not ends and (written := _WITH_ID.fullmatch(text.strip())):
            pairs = ((written["name"], written["id"]), (written["label"], written["first"]))
            ids = ((name, each) for name, end in pairs if end for each in self._of_id(end))
            ends = {each for name, each in ids if each in labels and fold(labels[each]) == fold(name)}
        if not ends and (of := split_graph(text.strip()))[1]:
            ends = {end for end in self._compared(of[0]) if split_graph(end)[1] == of[1]}
        return ends | {end for end in self._ids.get(text, ()) if fold(end) in self._named}

    def _of_id(self, end: str) -> Iterator[str]:
        """Yield the ends that an id stands for, in whatever graph."""
        yield end
        yield from (each for each in self._named.get(fold(end), ()) if split_graph(each)[0] == end)

    def _is_known(self, text: str) -> bool:
        """Return whether a text is one name: that of an end, a label that was shown, or one that the server knows."""
        return bool(self._ends(text)) or fold(text) in self._called_so or text in self._ids

    def _behind(self, computed: ComputedResult) -> tuple[Triple, ...]:
        """Return the chains that lead to a node that was computed, its values, and those that it was ranked by."""
        starts = self._starts.union(self._read.get(each, each) for each in names_in(computed.expression))
        kept = set(chains(computed.facts, {computed.result}, starts))
        for fact in computed.facts:
            head, relation, tail = fact
            if relation == computed.by or (head == computed.result and tail not in self._labels.nodes):
                kept.add(fact)
        return tuple(fact for fact in dict.fromkeys(computed.facts) if fact in kept)[:MAX_FACTS]

    def _called(self, end: str) -> str:
        return self._labels.nodes.get(end) or self._labels.relations.get(end, end)


def _whole(label: str, text: str) -> str:
    """Return a label, or what was answered where that begins like a label that was shown cut."""
    return text if label.endswith("…") and text.startswith(label.removesuffix("…")) else label


def named_in(text: str, facts: Iterable[Triple], labels: IdLabels) -> frozenset[str]:
    """Return the ends of facts whose id, label or value stands in a text as whole words."""
    words = f" {words_of(text)} "
    return frozenset(
        end
        for end in ends_of(facts)
        if any((form := words_of(name)) and f" {form} " in words for name in _names_of(end, labels))
    )


def _names_of(end: str, labels: IdLabels) -> tuple[str, ...]:
    return (split_graph(end)[0], labels.nodes[end]) if end in labels.nodes else (end,)


def chains(facts: Sequence[Triple], goals: Collection[str], starts: Collection[str]) -> tuple[Triple, ...]:
    """Return the facts on a shortest way from each start to the nearest goal, walked in either direction.

    Where nothing links them, they are the facts about the goals.
    """
    ways = _ways(facts, goals, frozenset(starts) - frozenset(goals))
    kept = ways or {fact for fact in facts if fact[0] in goals or fact[2] in goals}
    return tuple(fact for fact in dict.fromkeys(facts) if fact in kept)[:MAX_FACTS]


def other_sides(
    facts: Sequence[Triple], goals: Collection[str], starts: Collection[str], known: Iterable[Triple]
) -> tuple[Triple, ...]:
    """Return what is known of the others, where a question names several and the answer is one of these.

    That is what the facts of the answer say of it: of two heights the one that is not the answer's.

    Args:
        facts: The facts that yield the answer.
        goals: The answer, by id.
        starts: What the question is about, by id.
        known: All that is known.
    """
    others = frozenset(starts).difference(goals)
    if not others or not frozenset(starts).intersection(goals):
        return ()
    said = {(relation, head in goals) for head, relation, tail in facts if head in goals or tail in goals}
    beside = (
        fact
        for fact in dict.fromkeys(known)
        for end in (True, False)
        if (fact[1], end) in said and fact[0 if end else 2] in others
    )
    return tuple(fact for fact in dict.fromkeys(beside) if fact not in facts)[:_MOST_BESIDE]


def ends_of(facts: Iterable[Triple]) -> frozenset[str]:
    """Return the heads and tails of facts."""
    return frozenset(end for head, _, tail in facts for end in (head, tail))


def _touching(facts: Iterable[Triple], ends: Collection[str]) -> list[Triple]:
    return [fact for fact in facts if fact[0] in ends or fact[2] in ends]


def _is_one_fact(shown: Shown) -> bool:
    return len(shown.facts) == 1 and not shown.computed


def _differing(facts: Sequence[Triple]) -> tuple[str, ...]:
    """Return the ends in which facts of one relation differ."""
    heads, tails = (tuple(dict.fromkeys(fact[end] for fact in facts)) for end in (0, 2))
    if len({relation for _, relation, _ in facts}) != 1 or min(len(heads), len(tails)) != 1:
        return ()
    return tails if len(heads) == 1 else heads


def _ways(facts: Sequence[Triple], goals: Collection[str], starts: Collection[str]) -> set[Triple]:
    around: dict[str, list[Triple]] = {}
    for fact in facts:
        for end in (fact[0], fact[2]):
            around.setdefault(end, []).append(fact)
    towards: dict[str, Triple] = {}
    reached, queue = set(goals), deque(sorted(goals))
    while queue:
        term = queue.popleft()
        for fact in around.get(term, ()):
            other = _other(fact, term)
            if other not in reached:
                reached.add(other)
                towards[other] = fact
                queue.append(other)
    return {fact for start in starts for fact in _way(start, towards)}


def _way(start: str, towards: Mapping[str, Triple]) -> Iterable[Triple]:
    term = start
    while (fact := towards.get(term)) is not None:
        yield fact
        term = _other(fact, term)


def _other(fact: Triple, term: str) -> str:
    return fact[2] if fact[0] == term else fact[0]


def key_of(fact: Triple) -> Triple:
    """Return a fact in a form in which those with the same value are equal."""
    head, relation, tail = fact
    return head, relation, plain_number(plain_value(tail))


def plain_number(text: str) -> str:
    """Return a number without the commas that make it easier to read, and any other text as it is."""
    return text.replace(",", "") if _GROUPED.fullmatch(text) else text
