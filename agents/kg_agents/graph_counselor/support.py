"""Which of the statements that an attempt read support its answer."""

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kg_agents.graph_values import Labels, Triple

MAX_SUPPORT: Final = 100
"""How many statements are given at most."""

GIVES: Final = "gives"
"""The relation between an expression and the number that it comes to."""


def supporting(question: str, answer: str, steps: Sequence[Sequence[Triple]], labels: Labels) -> tuple[Triple, ...]:
    """Return the statements that support an answer, in the order in which they were read.

    These are the links between what the answer names and what the question names, or what is said about the former
    where nothing links them. If the answer is a number that an expression gave, they are what that step read. If the
    answer names nothing that was read, they are what the last step read that read anything.

    Args:
        question: The question.
        answer: The answer.
        steps: What each step read.
        labels: The labels of ids.
    """
    every = tuple(dict.fromkeys(statement for step in steps for statement in step))
    for step in reversed(steps):
        if any(relation == GIVES and tail == answer.strip() for _, relation, tail in step):
            return tuple(dict.fromkeys(step))[:MAX_SUPPORT]
    terms = tuple(dict.fromkeys(term for each in every for term in _ends(each)))
    goals = _named(answer, terms, labels)
    if not goals:
        last = next((step for step in reversed(steps) if step), ())
        return tuple(dict.fromkeys(last))[:MAX_SUPPORT]
    starts = _named(question, terms, labels) - goals
    about = {each for each in every if goals.intersection(_ends(each))}
    naming = {each for each in about if goals.issuperset(_ends(each))}
    links = _links(every, goals, starts)
    kept = links | naming if links else about
    return tuple(each for each in every if each in kept)[:MAX_SUPPORT]


def _named(text: str, terms: Iterable[str], labels: Labels) -> set[str]:
    """Return the terms whose id, label or value stands in a text as whole words."""
    words = f" {_words(text)} "
    return {
        term
        for term in terms
        if any((form := _words(name)) and f" {form} " in words for name in (term, labels.nodes.get(term, "")))
    }


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _links(every: Collection[Triple], goals: set[str], starts: set[str]) -> set[Triple]:
    """Return the statements on a shortest way from each start to the nearest goal, walked in either direction."""
    around: dict[str, list[Triple]] = {}
    for statement in every:
        for end in _ends(statement):
            around.setdefault(end, []).append(statement)
    towards: dict[str, Triple] = {}
    reached, queue = set(goals), deque(sorted(goals))
    while queue:
        term = queue.popleft()
        for statement in around.get(term, ()):
            other = _other(statement, term)
            if other not in reached:
                reached.add(other)
                towards[other] = statement
                queue.append(other)
    return {statement for start in starts for statement in _way(start, towards)}


def _way(start: str, towards: Mapping[str, Triple]) -> Iterable[Triple]:
    term = start
    while (statement := towards.get(term)) is not None:
        yield statement
        term = _other(statement, term)


def _ends(statement: Triple) -> tuple[str, str]:
    return statement[0], statement[2]


def _other(statement: Triple, term: str) -> str:
    head, _, tail = statement
    return tail if head == term else head
