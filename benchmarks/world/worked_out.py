"""An expression worked out from facts that were shown, or what must be looked at before it can be."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from benchmarks.world.sights import Sight, Sights
from kg_server.compose.syntax import (
    BestCall,
    Clause,
    CountCall,
    EntityRef,
    FeatureCall,
    GroupCall,
    Leg,
    NeighborCall,
    Operand,
    SetCall,
    TotalCall,
    WhereCall,
    Words,
)

_NEAR: Final = 0.75
_NUMBER: Final = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_DATE: Final = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_ID: Final = re.compile(r" \([\w.-]*:[\w.-]+\)$")


class Wanting(Exception):
    """Something must be looked at first.

    Args:
        action: The action that does, as it is written.
        kept: The facts that lead there.
    """

    def __init__(self, action: str, kept: Iterable[int] = ()) -> None:
        super().__init__(action)
        self.action = action
        self.kept = tuple(kept)


class Absent(Exception):
    """The graph does not hold it; the text says what."""


@dataclass(frozen=True, slots=True)
class Found:
    """What an operand comes to: each thing or value, with the facts that lead to it."""

    by: Mapping[str, frozenset[int]]

    @property
    def behind(self) -> frozenset[int]:
        """The facts behind all of it."""
        return frozenset[int]().union(*self.by.values())


class Reasoner:
    """Works expressions out from what is shown, and from nothing else.

    Args:
        sights: What is shown.
    """

    def __init__(self, sights: Sights) -> None:
        self._sights = sights
        self.used: set[int] = set()

    def result(self, of: Operand) -> Found:  # noqa: PLR0911 - one for each kind of operand
        """Return what an operand comes to.

        Raises:
            Wanting: Something must be looked at first.
            Absent: The graph does not hold it.
        """
        match of:
            case EntityRef():
                return Found(dict.fromkeys(self._named(of.text), frozenset()))
            case NeighborCall() | FeatureCall():
                found = self.result(of.node)
                for leg in of.route.legs if of.route else ():
                    found = self._step(found, leg)
                return found
            case WhereCall():
                return self._filtered(of)
            case SetCall():
                return self._combined(of)
            case CountCall():
                found = self.result(of.of)
                return Found({str(len(found.by)): found.behind})
            case GroupCall():
                return self._grouped(of)
            case BestCall() | TotalCall():
                return self._ranked(of)
            case _:
                raise Absent(f"{type(of).__name__} cannot be worked out by hand.")

    def _named(self, text: str) -> list[str]:
        """Return the shown things that bear a name or one near it; several where it is shared."""
        plain = {name: _ID.sub("", name).casefold() for name in self._sights.names}
        if same := [name for name, each in plain.items() if each == text.casefold()]:
            return same
        if near := get_close_matches(text.casefold(), list(plain.values()), n=1, cutoff=_NEAR):
            return [name for name, each in plain.items() if each == near[0]]
        told = [each.found for each in self._sights.done if each.action == "Search" and each.about == text]
        if not told:
            raise Wanting(f"Search[{text}]")
        if named := [name for name in self._sights.candidates if told[0].startswith(f"{_ID.sub('', name)} (")]:
            return named
        raise Absent(f"Nothing is named {text}.")

    def _step(self, start: Found, leg: Leg) -> Found:
        """Follow one relation from everything that was reached."""
        reached: dict[str, frozenset[int]] = {}
        for end, behind in start.by.items():
            for fact in self._around(end, leg, among=len(start.by), kept=start.behind):
                far = fact.tail if fact.head == end else fact.head
                reached[far] = reached.get(far, frozenset()) | behind | {fact.number}
        return Found(reached)

    def _around(self, end: str, leg: Leg, *, among: int, kept: Iterable[int]) -> list[Sight]:
        """Return the facts of one relation and thing, all of them.

        Raises:
            Wanting: They were not all shown.
        """
        relation, backwards = leg.name.text, leg.mark == "-"
        near = [fact for fact in self._sights.facts if end in {fact.head, fact.tail}]
        shown = [fact for fact in near if fact.relation == relation and end == (fact.tail if backwards else fact.head)]
        looked_at = self._was_looked_at(end, relation)
        # A relation may be stored the other way round, under another name.
        shown = shown or ([fact for fact in near if fact.new] if looked_at else [])
        if looked_at or (shown and (end, relation) not in self._sights.partial):
            self.used |= {fact.number for fact in shown}
            return shown
        if among > 1 and kept:
            raise Wanting(f"Look[{relation}]", kept)
        raise Wanting(f"GetNeighbor[{self._written(end)}, {relation}]", kept)

    def _written(self, end: str) -> str:
        """Return a candidate by its number, and anything else by name."""
        known = self._sights.candidates
        return f"c{known.index(end) + 1}" if end in known else end

    def _was_looked_at(self, end: str, relation: str) -> bool:
        return any(
            (each.action, each.about) in {("Look", relation), ("GetNeighbor", f"{end}, {relation}")}
            for each in self._sights.done
        )

    def _filtered(self, call: WhereCall) -> Found:
        found = self.result(call.node)
        for clause in call.clauses:
            (leg,) = clause.route.legs
            wanted, values = self._value(clause), dict[str, frozenset[int]]()
            for member, behind in found.by.items():
                facts = self._around(member, leg, among=len(found.by), kept=found.behind)
                ends = {(fact.tail if fact.head == member else fact.head): fact.number for fact in facts}
                right = {number for end, number in ends.items() if _holds(end, clause.operator or "", wanted.by)}
                if right:
                    values[member] = behind | right | wanted.behind
            found = Found(values)
        return found

    def _value(self, clause: Clause) -> Found:
        if clause.value is None or isinstance(clause.value, Words):
            return Found({clause.value.text if clause.value else "": frozenset()})
        if isinstance(clause.value, EntityRef):
            return Found({clause.value.text: frozenset()})
        return self.result(clause.value)

    def _combined(self, call: SetCall) -> Found:
        if all(isinstance(each, NeighborCall) and each.route is None for each in call.operands):
            return self._between([each.node for each in call.operands if isinstance(each, NeighborCall)])
        first, *others = self._all(call.operands)
        merged = dict(first.by)
        for other in others:
            if call.function == "Union":
                merged |= other.by
            elif call.function == "Intersect":
                merged = {each: behind | other.by[each] for each, behind in merged.items() if each in other.by}
            else:
                merged = {each: behind for each, behind in merged.items() if each not in other.by}
        return Found(merged)

    def _all(self, operands: Sequence[Operand]) -> list[Found]:
        """Return what each operand comes to; all are looked at, so that it is known what of them was shown."""
        found, wanting = list[Found](), list[Wanting]()
        for each in operands:
            try:
                found.append(self.result(each))
            except Wanting as want:
                wanting.append(want)
        if wanting:
            raise wanting[0]
        return found

    def _between(self, nodes: Sequence[Operand]) -> Found:
        """Return what is next to both of two things."""
        (one,), (other,) = (self.result(node).by for node in nodes)
        if not any(each.action == "GetPath" for each in self._sights.done):
            raise Wanting(f"GetPath[{self._written(one)}, {self._written(other)}]")
        near = [self._next_to(each) for each in (one, other)]
        return Found({each: near[0][each] | near[1][each] for each in near[0] if each in near[1]})

    def _next_to(self, end: str) -> dict[str, frozenset[int]]:
        touching = ((fact, fact.tail if fact.head == end else fact.head) for fact in self._sights.facts)
        return {far: frozenset({fact.number}) for fact, far in touching if end in {fact.head, fact.tail}}

    def _grouped(self, call: GroupCall) -> Found:
        members, (leg,) = self.result(call.node), call.route.legs
        counts, behind = Counter[str](), dict[str, frozenset[int]]()
        for member, before in members.by.items():
            for fact in self._around(member, leg, among=len(members.by), kept=members.behind):
                far = fact.tail if fact.head == member else fact.head
                counts[far] += 1
                behind[far] = behind.get(far, frozenset()) | before | {fact.number}
        return Found({far: behind[far] for far, _ in counts.most_common()})

    def _ranked(self, call: BestCall | TotalCall) -> Found:
        members, (leg,) = self.result(call.node), call.route.legs
        values: dict[str, tuple[float, frozenset[int]]] = {}
        for member, before in members.by.items():
            for fact in self._around(member, leg, among=len(members.by), kept=members.behind):
                if (number := _rank(fact.tail)) is not None:
                    values[member] = number, before | {fact.number}
        behind = frozenset[int]().union(*(facts for _, facts in values.values()))
        if isinstance(call, TotalCall):
            return Found({f"{_TOTALS[call.function]([number for number, _ in values.values()]):.10g}": behind})
        best = sorted(values, key=lambda member: values[member][0], reverse=call.function == "Top")
        return Found(dict.fromkeys(best[: call.n], behind))


_TOTALS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "Sum": sum,
    "Mean": lambda numbers: sum(numbers) / len(numbers),
    "Min": min,
    "Max": max,
}


def _holds(end: str, operator: str, wanted: Iterable[str]) -> bool:
    """Whether a value compares with one of others as asked; without an operator it is enough that it is there."""
    return not operator or any(_TESTS[operator](*_comparable(end, each)) for each in wanted)


_TESTS: Final[Mapping[str, Callable[[float | str, float | str], bool]]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: str(left) < str(right) if isinstance(left, str) else left < float(right),
    "<=": lambda left, right: str(left) <= str(right) if isinstance(left, str) else left <= float(right),
    ">": lambda left, right: str(left) > str(right) if isinstance(left, str) else left > float(right),
    ">=": lambda left, right: str(left) >= str(right) if isinstance(left, str) else left >= float(right),
}


def _comparable(end: str, wanted: str) -> tuple[float, float] | tuple[str, str]:
    """Return two texts in a form that compares: numbers, a date and a year as years, other dates and names as texts."""
    plain = end[:4] if _DATE.fullmatch(end) and wanted.isdigit() else _ID.sub("", end)
    left, right = number_in(plain), number_in(wanted)
    return (plain.casefold(), wanted.casefold()) if left is None or right is None else (left, right)


def _rank(text: str) -> float | None:
    """Return the number by which a value is ranked; of a date, with its month and day."""
    return number_in(text.replace("-", "") if _DATE.fullmatch(text) else text)


def number_in(text: str) -> float | None:
    """Return the number that a text is, where it is one."""
    return float(text.replace(",", "")) if _NUMBER.fullmatch(text) else None
