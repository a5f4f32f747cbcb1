"""Cache answers by key, and ask once for what several callers want at the same time."""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import anyio

from kg_adapters.calls import note_partial, watching_completeness
from kg_adapters.errors import BackendError, KGError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
Question: TypeAlias = tuple[Hashable, ...]
"""What an answer is to, with what it is about at its end."""


@dataclass(frozen=True, slots=True)
class CachedAnswer(Generic[V]):
    """An answer about one thing; `value` is None where the graph does not mention it."""

    value: V | None


@dataclass(eq=False)
class _Flight(Generic[K, V]):
    """A request under way: `landed` when it ended, with `answers` or an `error`; with neither if it was cancelled."""

    landed: anyio.Event = field(default_factory=anyio.Event)
    answers: Mapping[K, V] = field(default_factory=dict[K, V])
    error: KGError | None = None
    partial: bool = False


class AnswerCache(Generic[K, V]):
    """Keeps answers by key; the least recently used goes first, and neither errors nor partial answers are kept.

    Who asks for what is under way gets the same answer, kept or not.

    Args:
        max_entries: How many answers to keep.
        expiry_s: After how many seconds an answer is forgotten.
        clock: Tells the time, in seconds.
    """

    def __init__(self, max_entries: int, expiry_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_entries = max_entries
        self._expiry_s = expiry_s
        self._clock = clock
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._flights: dict[K, _Flight[K, V]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, keys: Sequence[K], load: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> dict[K, V]:
        """Return the answers to keys; those that are neither kept nor under way are asked for together.

        Args:
            keys: What is asked for, each once.
            load: What asks; its answer has every key that it is given.

        Raises:
            KGError: `load` failed, for this caller or for the one who asked for the same.
        """
        found: dict[K, V] = {}
        while missing := [key for key in keys if key not in found and not self._recall(key, found)]:
            mine = [key for key in missing if key not in self._flights]
            if mine:
                found.update(await self._load(mine, load))
            else:
                found.update(await self._wait(self._flights[missing[0]]))
        return {key: found[key] for key in keys}

    def _recall(self, key: K, found: dict[K, V]) -> bool:
        kept = self._kept.get(key)
        if kept is None or kept[0] <= self._clock():
            return False
        self._kept.move_to_end(key)
        found[key] = kept[1]
        return True

    async def _load(self, keys: Sequence[K], load: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> Mapping[K, V]:
        flight = _Flight[K, V]()
        self._flights.update(dict.fromkeys(keys, flight))
        try:
            with watching_completeness() as seen:
                flight.answers = await load(keys)
            flight.partial = seen.partial
        except KGError as error:
            flight.error = error
            raise
        finally:
            for key in keys:
                del self._flights[key]
            flight.landed.set()
        if not flight.partial:
            self._keep(flight.answers)
        return flight.answers

    async def _wait(self, flight: _Flight[K, V]) -> Mapping[K, V]:
        await flight.landed.wait()
        if flight.error is not None:
            raise flight.error
        if flight.partial:
            # Whoever watches this caller's answers has not seen those of the other.
            note_partial()
        return flight.answers

    def _keep(self, answers: Mapping[K, V]) -> None:
        end = self._clock() + self._expiry_s
        for key, answer in answers.items():
            self._kept[key] = (end, answer)
            self._kept.move_to_end(key)
        while len(self._kept) > self._max_entries:
            self._kept.popitem(last=False)


async def each(
    cache: AnswerCache[Question, CachedAnswer[V]],
    question: Question,
    things: Iterable[K],
    ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]],
) -> dict[K, V]:
    """Return the answers about nodes or triples, of which only those that are not known are asked about."""
    keys: dict[Question, K] = {(*question, thing): thing for thing in things}
    if not keys:
        return dict(await ask(()))

    async def load(missing: Sequence[Question]) -> Mapping[Question, CachedAnswer[V]]:
        asked = [keys[key] for key in missing]
        answers = await ask(asked)
        if not set(asked).issuperset(answers):
            raise BackendError("The graph's adapter answered what nobody asked. Report this as a bug in it.")
        return {key: CachedAnswer(answers.get(keys[key])) for key in missing}

    found = await cache.get(list(keys), load)
    return {keys[key]: kept.value for key, kept in found.items() if kept.value is not None}


def checked(answer: object, kind: type[T]) -> T:
    """Return an answer that is of its kind, so that what an adapter does wrong is not cached.

    Raises:
        BackendError: It is not.
    """
    if not isinstance(answer, kind):
        raise BackendError(
            f"The graph's adapter answered {type(answer).__name__} instead of {kind.__name__}. "
            "Report this as a bug in it."
        )
    return answer


async def one(cache: AnswerCache[Question, V], question: Question, ask: Callable[[], Awaitable[V]]) -> V:
    """Return the answer to one question."""

    async def load(_: Sequence[Question]) -> Mapping[Question, V]:
        return {question: await ask()}

    return (await cache.get([question], load))[question]
