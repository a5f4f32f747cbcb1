"""Whether what was given is what a question asks for, by the rules of the world's README."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.world.questions import NO_SUCH_ENTITY, NO_SUCH_FACT, Asked

_ENOUGH: Final = 0.99
_NEAR: Final = 0.005
_NUMBER: Final = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
_DATE: Final = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")


@dataclass(frozen=True, slots=True)
class Given:
    """What an answer gives.

    Args:
        nodes: The short ids of entities and relations.
        values: Numbers, dates, `true` and `false`, as they are printed.
        unknown: What the answer says that the graph does not know; empty where it says nothing of the kind.
    """

    nodes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    unknown: str = ""


def is_right(asked: Asked, given: Given) -> bool:
    """Whether an answer is the right one; to what the graph cannot answer, only one that says so is."""
    if asked.kind in (NO_SUCH_FACT, NO_SUCH_ENTITY):
        return not given.nodes and not given.values and asked.wanted.casefold() in given.unknown.casefold()
    if asked.answer_ids:
        found, wanted = set(given.nodes), set(asked.answer_ids)
        return _agreement(len(found & wanted), len(found), len(wanted)) >= _ENOUGH
    matched = sum(any(_same(value, str(answer)) for value in given.values) for answer in asked.answers)
    return _agreement(matched, len(set(given.values)), len(asked.answers)) >= _ENOUGH


def _agreement(both: int, found: int, wanted: int) -> float:
    """Return F1."""
    return 2 * both / (found + wanted) if found + wanted else 1.0


def _same(given: str, wanted: str) -> bool:
    if _DATE.fullmatch(wanted) and not wanted.isdigit():
        return given.startswith(wanted)
    numbers = _numbers((given, wanted))
    if len(numbers) == 2:
        return abs(numbers[0] - numbers[1]) <= _NEAR * abs(numbers[1])
    return given.casefold() == wanted.casefold()


def _numbers(texts: Sequence[str]) -> list[float]:
    found = (_NUMBER.match(text) for text in texts)
    return [float(each[0].replace(",", "")) for each in found if each is not None]
