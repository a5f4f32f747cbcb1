"""Worker processes that answer one line with one line, and are killed at the deadline."""

import subprocess
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self, TypeVar

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from kg_adapters.calls import current_caller
from kg_adapters.errors import BackendError
from kg_boundary.machine import child_environment

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


_GRACE_S: Final = 2.0


class WorkerEnded(Exception):
    """A worker ended, or broke its word, before it had answered."""


class WorkerTimeout(Exception):
    """There was no answer in time.

    Attributes:
        busy: Whether all workers were busy with others all the time.
        gave_way: Whether it was stopped for shorter work, and had to begin again.
    """

    def __init__(self, *, busy: bool, gave_way: bool = False) -> None:
        super().__init__("all workers were busy" if busy else "it took too long")
        self.busy = busy
        self.gave_way = gave_way


class WorkerPool:
    """Has lines answered by processes; none is started before the first.

    A worker that has answered is kept for the next line. One that is still busy when its caller's time is up, or when
    the caller is cancelled, is killed. `worker_process.answer_lines` is the other end. Who is next is for `Turns` to
    say: a line must have the same answer when it is asked again.

    Args:
        command: What starts a worker.
        workers: The most processes at once; waiting for one counts against a deadline.
        max_line_bytes: A longer answer ends the worker.
        max_waiting: The most lines that may wait for a worker.
    """

    def __init__(
        self, command: Sequence[str], *, workers: int, max_line_bytes: int, max_waiting: int = MAX_WAITING
    ) -> None:
        self._command = tuple(command)
        self._max_line_bytes = max_line_bytes
        self._turns = Turns(workers, max_waiting=max_waiting)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._closed = False

    @property
    def busy(self) -> Sequence[Process]:
        """The processes that are at work."""
        return [worker.process for worker in self._busy]

    @property
    def processes(self) -> Sequence[Process]:
        """All processes: those at work, then those that wait for more."""
        return [*self.busy, *(worker.process for worker in self._idle)]

    async def ask(self, line: bytes, *, timeout_s: float) -> bytes:
        """Return the answer to a line that ends with a newline; the answer has none.

        Raises:
            TooManyWait: Too many others wait for a worker.
            WorkerTimeout: There was none in time.
            WorkerEnded: The worker ended instead of answering.
            BackendError: No process could be started, or the pool is closed.
        """
        turn = self._turns.turn(current_caller())
        try:
            with anyio.fail_after(timeout_s):
                return await self._turns.run(turn, partial(self._ask, line))
        except TimeoutError:
            raise WorkerTimeout(busy=not turn.begun, gave_way=turn.gave_way and not turn.called.is_set()) from None

    async def aclose(self) -> None:
        """End all workers; what they are still busy with fails."""
        self._closed = True
        for worker in self._busy:
            worker.kill()
        while self._idle:
            await self._idle.pop().aclose()

    async def _ask(self, line: bytes) -> bytes:
        worker = await self._worker()
        self._busy.add(worker)
        try:
            answer = await worker.ask(line, self._max_line_bytes)
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.DelimiterNotFound) as error:
            await worker.aclose()
            raise WorkerEnded from error
        except anyio.get_cancelled_exc_class():
            await worker.aclose(grace_s=0)
            raise
        finally:
            self._busy.discard(worker)
        if self._closed:
            await worker.aclose()
        else:
            self._idle.append(worker)
        return answer

    async def _worker(self) -> "_Worker":
        if self._closed:
            raise BackendError("This graph is closed. Open it again.")
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            await worker.aclose()
        return await _Worker.start(self._command)


@dataclass(frozen=True, eq=False)
class _Worker:
    """One worker process, and what it writes."""

    process: Process
    replies: BufferedByteReceiveStream

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        started: list[Process] = []
        try:
            # A start that is given up half-way would leave a process that nobody knows of.
            with anyio.CancelScope(shield=True):
                started.append(await anyio.open_process(command, stderr=subprocess.DEVNULL, env=child_environment()))
        except OSError as error:
            raise BackendError(
                f"No process could be started for SPARQL: {error}. Free some memory, then ask again."
            ) from error
        (process,) = started
        assert process.stdout is not None  # noqa: S101 - tells the type checkers what open_process does by default
        return cls(process, BufferedByteReceiveStream(process.stdout))

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def ask(self, line: bytes, max_bytes: int) -> bytes:
        assert self.process.stdin is not None  # noqa: S101 - as above
        await self.process.stdin.send(line)
        return await self.replies.receive_until(b"\n", max_bytes)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()

    async def aclose(self, *, grace_s: float = _GRACE_S) -> None:
        """Close the worker's input, which ends it; kill it if that takes longer than the grace."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(grace_s):
            await self.process.aclose()
