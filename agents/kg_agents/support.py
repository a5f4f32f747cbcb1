"""Where the answers of an attempt come from: what it read of the graph, and what the graph worked out for it."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kg_agents.answers import Answer
from kg_agents.graph_values import Labels, Triple
from kg_agents.grounding import MAX_FACTS, chains, concluded, folded, is_name_of, shown, stated
from kg_agents.parts_seen import PartSeen

_PLAIN: Final = frozenset({"retrieve", "feature", "neighbor", "neighbour", "getneighbor", "getneighbour"})
"""Functions that look up; what any other gives is worked out."""

_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_FUNCTION: Final = re.compile(r"(\w+)\s*\[")


@dataclass(frozen=True, slots=True)
class Worked:
    """What an expression came to.

    Args:
        expression: The expression.
        result: A node by id, a number or a value.
        facts: The triples that were read for it.
        by: The relation by which the result was ranked, by id; empty where it was not.
    """

    expression: str
    result: str
    facts: tuple[Triple, ...] = ()
    by: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """What one step read: triples in their true direction, what was worked out, and lists of which it saw a part."""

    facts: tuple[Triple, ...] = ()
    worked: tuple[Worked, ...] = ()
    parts: tuple[PartSeen, ...] = ()


def is_worked_out(expression: str) -> bool:
    """Say whether an expression does more than look up: counts, combines, filters or ranks."""
    names = _FUNCTION.findall(_QUOTED.sub("", expression))
    return any(name.lower() not in _PLAIN for name in names)


def sources(
    answers: Iterable[str], question: str, steps: Sequence[Read], labels: Labels, *, confirmed: bool
) -> tuple[Answer, ...]:
    """Return answers with where they come from.

    Args:
        answers: The answers of an attempt.
        question: The question, with what it is about.
        steps: What each step read.
        labels: The labels of ids.
        confirmed: Whether a judge who saw the steps confirmed the answers: a number, or a yes or no, that no step
            states is then worked out from what the last one read.
    """
    facts = tuple(dict.fromkeys(fact for step in steps for fact in step.facts))
    behind = (fact for step in steps for worked in step.worked for fact in worked.facts)
    starts = named_in(question, (*facts, *behind), labels)
    last = next((step.facts for step in reversed(steps) if step.facts), ())
    return tuple(
        _worked_out(text, steps, starts, labels)
        or stated(text, facts, starts, labels)
        or (concluded(text, last) if confirmed else None)
        or Answer(shown(text, labels), "model")
        for text in answers
    )


def named_in(text: str, facts: Iterable[Triple], labels: Labels) -> frozenset[str]:
    """Return the ends of facts whose id, label or value stands in a text as whole words."""
    words = f" {folded(text)} "
    ends = dict.fromkeys(end for head, _, tail in facts for end in (head, tail))
    return frozenset(
        end
        for end in ends
        if any((form := folded(name)) and f" {form} " in words for name in (end, labels.nodes.get(end, "")))
    )


def _worked_out(text: str, steps: Sequence[Read], starts: Collection[str], labels: Labels) -> Answer | None:
    """Return an answer that the latest expression gave which gave it, with what was read for it."""
    for worked in (worked for step in reversed(steps) for worked in reversed(step.worked)):
        label = labels.nodes.get(worked.result)
        if is_name_of(text, worked.result, label):
            facts = _behind(worked, starts, labels) if label else worked.facts[:MAX_FACTS]
            return Answer(shown(text, labels), "computed", facts, (f"{worked.expression} = {label or worked.result}",))
    return None


def _behind(worked: Worked, starts: Collection[str], labels: Labels) -> tuple[Triple, ...]:
    """Return the chains that lead to a node that was worked out, its values, and those that it was ranked with."""
    kept = set(chains(worked.facts, {worked.result}, starts))
    for fact in worked.facts:
        head, relation, tail = fact
        if relation == worked.by or (head == worked.result and tail not in labels.nodes):
            kept.add(fact)
    return tuple(fact for fact in dict.fromkeys(worked.facts) if fact in kept)[:MAX_FACTS]
