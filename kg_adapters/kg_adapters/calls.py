"""The call that is under way: its deadline, and whether its answers were cut."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

import anyio

_SPARE_S: Final = 0.1
_SPARE_SHARE: Final = 0.05


def time_left_s(at_most_s: float) -> float:
    """Return how many seconds a step may take: so many, or what is left of the call, less a little to answer in."""
    left_s = anyio.current_effective_deadline() - anyio.current_time()
    if left_s >= at_most_s + _SPARE_S:
        return at_most_s
    if left_s <= 0.0:  # Of what is cancelled, minus infinity.
        return 0.0
    left_s -= min(_SPARE_S, _SPARE_SHARE * left_s)
    return min(at_most_s, math.floor(left_s * 100) / 100)


@dataclass(slots=True)
class Completeness:
    """What is known of the answers that one question needed.

    Attributes:
        partial: Whether one of them was cut.
        lacking: What an answer lacks for it, in full sentences.
    """

    partial: bool = False
    lacking: list[str] = field(default_factory=list[str])


_WATCHING: Final[ContextVar[tuple[Completeness, ...]]] = ContextVar("_WATCHING", default=())


@contextmanager
def watching_completeness() -> Generator[Completeness]:
    """Learn of the partial answers that come within this context, and in tasks that are started in it."""
    seen = Completeness()
    token = _WATCHING.set((*_WATCHING.get(), seen))
    try:
        yield seen
    finally:
        _WATCHING.reset(token)


def lacking() -> str:
    """Return what the answer to the call that is under way lacks, in full sentences."""
    return " ".join(_WATCHING.get()[0].lacking) if _WATCHING.get() else ""


def note_partial(lacking: str = "") -> None:
    """Record that an answer is a part of what it would have been with more time, and perhaps what it lacks."""
    for seen in _WATCHING.get():
        seen.partial = True
        if lacking and lacking not in seen.lacking:
            seen.lacking.append(lacking)
