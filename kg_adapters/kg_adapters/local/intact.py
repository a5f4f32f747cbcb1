"""What every method of an adapter over a store does first: make sure that the store can be answered from."""

import time
from collections.abc import Awaitable, Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Protocol, TypeVar

import anyio.to_thread

from kg_adapters.local.seal import Damage
from kg_adapters.local.store import LocalStore

if TYPE_CHECKING:
    from kg_adapters.local.surroundings import Telling

_ONE_LOOK_S: Final = 0.001


class OverStore(Protocol):
    """Whoever answers from a store."""

    @property
    def store(self) -> LocalStore:
        """The store."""
        ...


S = TypeVar("S", bound=OverStore)
P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M")


def intact(method: M) -> M:
    """Answer from an index that was checked and is whole, or say that the store is damaged.

    The first call waits for the check of what was not checked at opening.

    Args:
        method: An async method of an `OverStore`.
    """
    # The type checkers have different names for what an async method returns; it stays what it was.
    return _checked(method)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportReturnType]


def telling(store: LocalStore) -> "Telling":
    """Return what makes a look-up in a store, which comes after the answer, say that the store is damaged."""
    looked_s = float("-inf")

    def told(make: Callable[[int], R]) -> Callable[[int], R]:
        def look_up(place: int) -> R:
            nonlocal looked_s
            try:
                # One look serves the look-ups that follow at once, hundreds in an answer.
                if (now := time.monotonic()) - looked_s > _ONE_LOOK_S:
                    if store.check.due:
                        store.check.run()
                    looked_s = now
                return make(place)
            except Damage as problem:
                raise store.damaged(problem) from problem

        return look_up

    return told


def _checked(method: Callable[Concatenate[S, P], Awaitable[R]]) -> Callable[Concatenate[S, P], Awaitable[R]]:
    async def answer(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check = self.store.check
        try:
            if check.due:
                await anyio.to_thread.run_sync(check.run, abandon_on_cancel=True)
            return await method(self, *args, **kwargs)
        except Damage as problem:
            raise self.store.damaged(problem) from problem

    update_wrapper(answer, method)
    return answer
