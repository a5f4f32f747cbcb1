"""Scores of numbered lines, as a model gives them."""

import re
from collections.abc import Callable
from typing import Final

from kg_agents.dialogue import Unreadable

_SCORE: Final = re.compile(r"^\W*(\d{1,4})\W+?(?:score\W+)?([01]?\.\d+|[01])\W*$", re.IGNORECASE | re.MULTILINE)


def reading_scores(count: int) -> Callable[[str], dict[int, float] | Unreadable]:
    """Return what reads lines as `number: score`, the numbers from 1 to a count."""

    def read(reply: str) -> dict[int, float] | Unreadable:
        found = {int(number): float(score) for number, score in _SCORE.findall(reply)}
        valid = {number: score for number, score in found.items() if 1 <= number <= count}
        return valid or Unreadable(f"it has no line of the form `number: score` with a number from 1 to {count}.")

    return read


def numbered(lines: list[str]) -> str:
    """Return lines with their numbers, from 1."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
