"""The call that is under way: its deadline, its cost, its turn, and whether its answers were cut."""

import math
from collections import deque
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


@dataclass(slots=True)
class Work:
    """Who a call is for, and what it has taken so far.

    Attributes:
        owner: Whoever makes it; "" for the only one.
        requests: How many requests were sent to the graph's service.
        failure: What the tool failed with.
    """

    owner: str = ""
    requests: int = 0
    failure: Exception | None = None


_WORK: Final[ContextVar[Work | None]] = ContextVar("_WORK", default=None)


@contextmanager
def working_for(owner: str) -> Generator[Work]:
    """Record what is done within this context, and in tasks and threads that are started in it."""
    work = Work(owner)
    token = _WORK.set(work)
    try:
        yield work
    finally:
        _WORK.reset(token)


def note_request() -> None:
    """Record that a request is sent to the graph's service."""
    if (work := _WORK.get()) is not None:
        work.requests += 1


def note_failure(failure: Exception) -> None:
    """Record what the tool that is called failed with, which its answer says only in words."""
    if (work := _WORK.get()) is not None:
        work.failure = failure


class FairPlaces:
    """A number of places, as a semaphore has; callers who wait take turns, however much each of them waits for.

    Args:
        places: How many there are.

    Attributes:
        free: How many of them are free.
    """

    def __init__(self, places: int) -> None:
        self.free = places
        self._waiting: dict[str, deque[anyio.Event]] = {}

    @property
    def waiting(self) -> int:
        """How many tasks wait for a place."""
        return sum(map(len, self._waiting.values()))

    def take(self) -> bool:
        """Take a place if one is free, and return whether it was."""
        taken = self.free > 0
        self.free -= taken
        return taken

    def give_back(self) -> None:
        """Give a place back: to the caller who has waited longest since its last turn, if any waits."""
        owner = next(iter(self._waiting), None)
        if owner is None:
            self.free += 1
            return
        queue = self._waiting.pop(owner)
        queue.popleft().set()
        if queue:
            self._waiting[owner] = queue

    async def __aenter__(self) -> None:
        """Wait for a place, and take it."""
        if self.take():
            return
        work, turn = _WORK.get(), anyio.Event()
        owner = "" if work is None else work.owner
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn.wait()
        except anyio.get_cancelled_exc_class():
            if turn.is_set():
                self.give_back()
            else:
                self._waiting[owner].remove(turn)
                if not self._waiting[owner]:
                    del self._waiting[owner]
            raise

    async def __aexit__(self, *_: object) -> None:
        """Give the place back."""
        self.give_back()
