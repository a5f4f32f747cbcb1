"""Who works next where there are few places: short work before long, and each caller in turn."""

import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import anyio

MAX_WAITING: Final = 64
SHORT_S: Final = 1.0

T = TypeVar("T")


class TooManyWait(Exception):
    """There is no room to wait in.

    Attributes:
        waiting: How many wait already.
    """

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} wait already")
        self.waiting = waiting


@dataclass(eq=False)
class Turn:
    """One piece of work, from the moment it waits to its end.

    Attributes:
        begun: Whether it has had a place.
        gave_way: Whether it was stopped for shorter work and has to begin again.
    """

    caller: str
    begun: bool = False
    gave_way: bool = False
    called: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    started: float = 0.0
    refused: bool = False


class Turns:
    """Gives out places to work in.

    How long a query takes shows only while it runs, and then it cannot be moved to another process. So one place is
    reserved: whoever has it may be stopped once it has worked for `short_s` seconds and another waits that has not
    worked yet. It begins again, at the head of its caller's line, in a place that is not reserved. So at most
    `places - 1` pieces of long work hold up others, and short work waits for `short_s` and not for the end of long
    work; where nobody waits, all places are used to the end. A single place is not reserved.

    Callers take turns: one that asks for much waits behind itself. When no more may wait, the last in the longest line
    is refused, which is the newcomer unless another caller has more waiting.

    Args:
        places: How many may work at once.
        max_waiting: How many may wait.
        short_s: How many seconds the reserved place is anybody's own.
        clock: Tells the time, in seconds.
    """

    def __init__(
        self,
        places: int,
        *,
        max_waiting: int = MAX_WAITING,
        short_s: float = SHORT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free = max(1, places - 1)
        self._reservable = places > 1
        self._reserved: Turn | None = None
        self._max_waiting = max_waiting
        self._short_s = short_s
        self._clock = clock
        self._lines: OrderedDict[str, deque[Turn]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return sum(map(len, self._lines.values()))

    def turn(self, caller: str = "") -> Turn:
        """Return what `run` takes: the piece of work of one caller, who waits in line with it from now on.

        Raises:
            TooManyWait: There is no room to wait in.
        """
        turn = Turn(caller)
        self._make_room(caller)
        self._lines.setdefault(caller, deque()).append(turn)
        self._call()
        self._press()
        return turn

    async def run(self, turn: Turn, work: Callable[[], Awaitable[T]]) -> T:
        """Do work in its turn, and return what it returns; it may be cancelled and begun again.

        Raises:
            TooManyWait: Others with less to wait for took its place in the line.
        """
        done: list[T] = []
        while not done:
            try:
                await self._wait(turn)
                with turn.scope:
                    done.append(await work())
            finally:
                self._leave(turn)
            if not done:
                self._begin_again(turn)
        return done[0]

    async def _wait(self, turn: Turn) -> None:
        while not turn.called.is_set():
            with anyio.move_on_after(self._patience_s()):
                await turn.called.wait()
            self._press()
        if turn.refused:
            raise TooManyWait(self.waiting)

    def _patience_s(self) -> float:
        """Return after how many seconds the one in the reserved place may have to give way."""
        started = self._clock() if self._reserved is None else self._reserved.started
        return max(0.0, started + self._short_s - self._clock()) or self._short_s

    def _press(self) -> None:
        """Stop the one in the reserved place if its time is over and another waits that has not worked yet."""
        holder = self._reserved
        if holder is None or self._clock() - holder.started < self._short_s:
            return
        if any(not each.gave_way for line in self._lines.values() for each in line):
            holder.gave_way = True
            holder.scope.cancel()

    def _begin_again(self, turn: Turn) -> None:
        turn.called, turn.scope = anyio.Event(), anyio.CancelScope()
        self._lines.setdefault(turn.caller, deque()).appendleft(turn)
        self._lines.move_to_end(turn.caller, last=False)
        self._call()

    def _leave(self, turn: Turn) -> None:
        """Give back the place that somebody has, or its place in the line."""
        line = self._lines.get(turn.caller, deque[Turn]())
        if turn in line:
            line.remove(turn)
            self._forget_empty(turn.caller)
        elif turn is self._reserved:
            self._reserved = None
        elif turn.called.is_set() and not turn.refused:
            # All places are alike: whoever has the reserved one keeps what has become free.
            if self._reserved is None:
                self._free += 1
            self._reserved = None
        self._call()

    def _call(self) -> None:
        """Give out the places that are free."""
        while self._free and (turn := self._next(lambda _: True)) is not None:
            self._free -= 1
            self._start(turn)
        if self._reservable and self._reserved is None:
            turn = self._next(lambda each: not each.gave_way)
            if turn is not None:
                self._reserved = turn
                self._start(turn)

    def _start(self, turn: Turn) -> None:
        turn.begun, turn.started = True, self._clock()
        turn.called.set()

    def _next(self, may: Callable[[Turn], bool]) -> Turn | None:
        """Take out the first that may, of the caller whose turn it is, who then is the last."""
        for caller, line in self._lines.items():
            turn = next((each for each in line if may(each)), None)
            if turn is not None:
                line.remove(turn)
                self._lines.move_to_end(caller)
                self._forget_empty(caller)
                return turn
        return None

    def _make_room(self, caller: str) -> None:
        if self.waiting < self._max_waiting:
            return
        longest = max(self._lines.values(), key=len, default=deque[Turn]())
        if len(longest) <= len(self._lines.get(caller, ())) + 1:
            raise TooManyWait(self.waiting)
        last = longest.pop()
        last.refused = True
        last.called.set()

    def _forget_empty(self, caller: str) -> None:
        if not self._lines[caller]:
            del self._lines[caller]
