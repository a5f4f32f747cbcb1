"""Whether what was answered is what is right."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kg_eval.metrics.values import fold, same_date, same_number, truth_of
from kg_eval.questions import Gold

HITS_TOLERANCE: Final = 0.001
"""How far a number may be off for Hits@1, as a share of the right one."""

SET_TOLERANCE: Final = 0.005
"""The same for sets of answers about the world."""

SET_RIGHT: Final = 0.99
"""Which F1 a set of answers needs to be right."""

UNKNOWN: Final = frozenset(
    {
        *("unknown", "none", "null", "nothing", "n/a", "no answer", "not known", "not in graph", "not found"),
        *("i do not know", "i don't know", "it is unknown", "cannot be answered", "not stated", "no such fact"),
    }
)
"""What says that there is no answer."""

_WITH_ID: Final = re.compile(r"(.*\S)\s*\(([A-Za-z][\w.-]*:[^\s()]+|[QPL]\d+)\)", re.DOTALL)


def said(texts: Iterable[str]) -> tuple[str, ...]:
    """Return answers, each once, without those that only say that there is none."""
    found = {_key(text): text for text in reversed([*texts]) if fold(text) and fold(text) not in UNKNOWN}
    return tuple(reversed(found.values()))


def is_right(text: str, gold: Gold, tolerance: float = HITS_TOLERANCE) -> bool:
    """Say whether an answer is a right one: by its id if it has one, or by name, number, date, yes or no."""
    name, entity = _parts(text)
    if entity and gold.id:
        return entity == gold.id
    if _close(name) in {_close(each) for each in (*gold.names, gold.id) if each}:
        return True
    right = truth_of(gold.text)
    if right is not None:
        return truth_of(name) is right
    return any(same_number(name, each, tolerance) or same_date(name, each) for each in gold.names)


def first_is_right(texts: Sequence[str], golds: Sequence[Gold]) -> bool:
    """Say whether the first answer is a right one: Hits@1."""
    return bool(texts) and any(is_right(texts[0], gold) for gold in golds)


def set_f1(texts: Sequence[str], golds: Sequence[Gold]) -> float:
    """Return how much of what is right was answered, and of what was answered is right: F1 of the two sets."""
    if not texts or not golds:
        return float(not texts and not golds)
    right = [[is_right(text, gold, SET_TOLERANCE) for gold in golds] for text in texts]
    precision = sum(map(any, right)) / len(texts)
    recall = sum(any(row[place] for row in right) for place in range(len(golds))) / len(golds)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _parts(text: str) -> tuple[str, str]:
    """Divide `name (id)`."""
    found = _WITH_ID.fullmatch(text.strip())
    return (found[1], found[2]) if found else (text, "")


def _key(text: str) -> str:
    name, entity = _parts(text)
    return entity or _close(name)


def _close(text: str) -> str:
    return fold(text).replace(" ", "")
