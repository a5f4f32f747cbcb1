"""Worker processes that answer one line with one line, and are killed at the deadline."""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from kg_adapters.callers import current_caller
from kg_adapters.errors import BackendError
from kg_adapters.turns import MAX_WAITING, Turns
from kg_boundary.child_environment import child_environment

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
