"""Reading the end of a run: answers with the facts that they rest on, what is not there, and what the model knows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kg_agents.answers import Answer
from kg_agents.dialogue import Unreadable
from kg_agents.graph_values import Labels, Triple, plain_value
from kg_agents.grounding import concluded, other_sides, shown, stated, terms_named
from kg_agents.reply_texts import MAX_ANSWER, read_answers

_MISSING: Final = re.compile(
    r"^[^\w\n]*(?:answer\W{1,4})?not in (?:the )?(?:graph|memory)\b[^\w\n]*(?P<why>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_OWN: Final = re.compile(r"^[^\w\n]*(?:my )?own knowledge[^\w\n]*?(?::|$)", re.IGNORECASE | re.MULTILINE)
_NUMBERS: Final = r"\d{1,3}(?:\s*[-\u2013]\s*\d{1,3})?"
_CITED: Final = re.compile(rf"\s*[\[(]((?:facts? )?{_NUMBERS}(?:\s*[,;]\s*{_NUMBERS})*)[\])]\s*\.?$", re.IGNORECASE)
_RANGE: Final = re.compile(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?")
_ALL: Final = frozenset({"all", "all of them", "all of these"})
_MAX_REASON: Final = 300


@dataclass(frozen=True, slots=True)
class Cited:
    """One answer, and the numbers of the facts that it rests on, from 1; `all` stands for what these facts list."""

    text: str
    facts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a model concludes.

    Args:
        answers: Its answers.
        own: What it knows by itself.
        missing: Why the graph does not hold the answer; None where the model does not say that.
    """

    answers: tuple[Cited, ...] = ()
    own: tuple[str, ...] = ()
    missing: str | None = None


def read_conclusion(reply: str) -> Conclusion | Unreadable:
    """Read what a model concludes: answers, that there are none, what it knows by itself, or several of these."""
    own_at = _OWN.search(reply)
    main, behind = (reply[: own_at.start()], reply[own_at.end() :]) if own_at else (reply, "")
    own = read_answers(behind) if behind.strip() else ()
    known = () if isinstance(own, Unreadable) else own
    missing = _MISSING.search(main)
    if missing is not None:
        return Conclusion((), known, missing["why"].strip()[:_MAX_REASON])
    answers = read_answers(main)
    if isinstance(answers, Unreadable):
        return Conclusion((), known, "") if known else answers
    return Conclusion(tuple(map(_cited, answers)), known)


def grounded(
    conclusion: Conclusion,
    facts: Sequence[Triple],
    starts: Sequence[str],
    labels: Labels,
    numbered: Sequence[Triple] | None = None,
) -> tuple[Answer, ...]:
    """Return answers with where they come from.

    An answer that cited facts state comes from them; one that others state comes from the chains that lead to it. A
    number, or a yes or no, that facts are cited for is worked out from these. Everything else is the model's own.

    Args:
        conclusion: What the model concludes.
        facts: The facts of the memory.
        starts: What the question is about, by id.
        labels: What ids are called.
        numbered: The facts by the numbers that the model saw, from 1; those of the memory unless given.
    """
    shown_facts = facts if numbered is None else numbered
    found: list[Answer] = []
    for each in conclusion.answers:
        cited = [shown_facts[number - 1] for number in each.facts if 1 <= number <= len(shown_facts)]
        if each.text.casefold() in _ALL and (listed := _listed(cited)):
            found += (Answer(shown(plain_value(end), labels), "graph", (fact,)) for end, fact in listed.items())
        elif goals := terms_named(each.text, cited, labels):
            beside = other_sides(cited, goals, starts, shown_facts)
            found.append(Answer(shown(each.text, labels), "graph", (*cited, *beside)))
        else:
            found.append(
                concluded(each.text, (*cited, *_beside(cited, starts, shown_facts)))
                or stated(each.text, facts, starts, labels)
                or Answer(shown(each.text, labels), "model")
            )
    return tuple(found)


def _beside(cited: Sequence[Triple], starts: Sequence[str], known: Sequence[Triple]) -> tuple[Triple, ...]:
    """Return what is known of others that the question names, where facts are cited for some of them."""
    ends = {end for head, _, tail in cited for end in (head, tail)}
    return other_sides(cited, ends.intersection(starts), starts, known)


def _listed(facts: Sequence[Triple]) -> dict[str, Triple]:
    """Return the ends in which facts of one relation differ, each with the first fact that names it."""
    heads, tails = ({fact[end]: fact for fact in reversed(facts)} for end in (0, 2))
    if len({relation for _, relation, _ in facts}) != 1 or min(len(heads), len(tails)) != 1:
        return {}
    return dict(reversed((tails if len(heads) == 1 else heads).items()))


def _cited(line: str) -> Cited:
    found = _CITED.search(line)
    if found is None or not found.start():
        return Cited(line)
    ranges = ((int(each[1]), int(each[2] or each[1])) for each in _RANGE.finditer(found[1]))
    numbers = dict.fromkeys(number for first, last in ranges for number in range(first, last + 1))
    return Cited(line[: found.start()].strip()[:MAX_ANSWER], tuple(numbers))
