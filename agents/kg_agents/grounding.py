"""Where an answer comes from: the facts that state it, or from which it can be worked out."""

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kg_agents.answers import Answer
from kg_agents.graph_values import Labels, Triple, plain_value

MAX_FACTS: Final = 100
"""How many facts are given for one answer at most."""

BY_MODEL: Final = "concluded by the model from these facts"

_VERDICTS: Final = frozenset({"yes", "no", "true", "false"})
_NUMBER: Final = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_UNIT: Final = re.compile(r"\s*[^\W\d]{0,12}[²³]?", re.UNICODE)
_LED: Final = re.compile(r"^\W*(?:(?:in|at|on|by|from|the|a|an)\s+)+", re.IGNORECASE)
_YEAR: Final = 4
_MOST_BESIDE: Final = 20
"""How many facts about what an answer was chosen from are given at most."""


def stated(text: str, facts: Sequence[Triple], starts: Collection[str], labels: Labels) -> Answer | None:
    """Return an answer that facts state, with the chains of them that lead there; None where none of them names it.

    Args:
        text: The answer.
        facts: What is known.
        starts: What the question is about, by id.
        labels: What ids are called.
    """
    goals = terms_named(text, facts, labels)
    if not goals:
        return None
    led = chains(facts, goals, starts)
    return Answer(shown(text, labels), "graph", (*led, *other_sides(led, goals, starts, facts)))


def concluded(text: str, facts: Sequence[Triple]) -> Answer | None:
    """Return a number, or a yes or no, that a model worked out from facts; None where it is neither, or has none."""
    if not facts or not is_conclusion(text):
        return None
    return Answer(text, "computed", tuple(facts)[:MAX_FACTS], (f"{text}: {BY_MODEL}",))


def is_conclusion(text: str) -> bool:
    """Say whether a text is a number, or a yes or no: what facts can yield without naming it."""
    return text.strip(" .").casefold() in _VERDICTS or _number(text) is not None


def shown(text: str, labels: Labels) -> str:
    """Return the label of an id, and any other text as it is: people are answered with names.

    A number is a number, also where an id is one.
    """
    return text if _number(text) is not None else labels.nodes.get(text, text)


def terms_named(text: str, facts: Iterable[Triple], labels: Labels) -> frozenset[str]:
    """Return the ends of facts that a text is the id, the label or the value of."""
    ends = dict.fromkeys(end for head, _, tail in facts for end in (head, tail))
    return frozenset(end for end in ends if is_name_of(text, end, labels.nodes.get(end)))


def is_name_of(text: str, end: str, label: str | None) -> bool:
    """Say whether a text is the id, the label or the value of an end of a fact."""
    if label and _number(text) is not None:
        return folded(text) == folded(label)
    value = plain_value(end)
    names = {end, value, *((label, f"{label} ({end})", f"{end} ({label})") if label else ())}
    words = {folded(text), folded(_LED.sub("", text))} - {""}
    if words.intersection(map(folded, names)):
        return True
    number = _number(text)
    return (number is not None and number == _number(value)) or _is_part_of_date(text.strip(), value)


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


def folded(text: str) -> str:
    """Return the words of a text, without regard to case and marks."""
    return " ".join(re.findall(r"\w+", text.casefold()))


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


def _number(text: str) -> float | None:
    """Return the number that a text is, with a unit behind it or none."""
    text = text.strip(" .")
    found = _NUMBER.match(text)
    if found is None or not _UNIT.fullmatch(text, found.end()):
        return None
    return float(found[0].replace(",", ""))


def _is_part_of_date(text: str, value: str) -> bool:
    """Say whether a text is a date less precise than a value: its year, or its year and month."""
    return len(text) >= _YEAR and text.replace("-", "").isdecimal() and value.startswith(f"{text}-")
