"""Answers that an engine cut for lack of time: the next one may be whole, so nobody should keep them."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Completeness:
    """What is known of the answers that one question needed.

    Attributes:
        partial: Whether one of them was cut.
    """

    partial: bool = False


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


def note_partial() -> None:
    """Say that an answer is a part of what it would have been with more time."""
    for seen in _WATCHING.get():
        seen.partial = True
