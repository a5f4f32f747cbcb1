"""Worker processes that answer requests one at a time, and are killed at the deadline."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from subprocess import Popen
from typing import Final, Generic, TypeVar

import anyio
import anyio.to_thread

from kg_adapters.calls import FairPlaces
from kg_adapters.errors import BackendError, BackendUnavailable, KGError
from kg_adapters.worker_process import WorkerEnded, WorkerProcess

MAX_WAITING: Final = 64
SHORT_S: Final = 1.0
_GRACE_S: Final = 2.0
Reply = TypeVar("Reply")


class WorkerTimeout(Exception):
    """There was no reply in time.

    Attributes:
        busy: Whether all workers were busy with other requests all the time.
    """

    def __init__(self, *, busy: bool) -> None:
        super().__init__("all workers were busy" if busy else "it took too long")
        self.busy = busy


class WorkerPool(Generic[Reply]):
    """Has requests answered by processes; none is started before the first request.

    A worker that has answered is kept for the next request. One that is still busy when its caller's time is up, or
    when the caller is cancelled, is killed.

    How long a request takes shows only while it is answered. So all but one of the workers are for long requests:
    while others wait, what has run for `short_s` seconds either has a place in this long lane, or is stopped, waits for
    a place there, and starts again. Nothing is stopped while nobody waits.

    Args:
        function: What workers run, as `WorkerProcess` takes it: it sends one reply, or `KGError`, for each request.
        arguments: Its further arguments.
        reply: The type of a reply.
        workers: The most processes at once; waiting for one counts against a deadline.
        max_waiting: The most requests that may wait for a worker.
        short_s: After how many seconds a request is long.
    """

    def __init__(
        self,
        function: str,
        *arguments: object,
        reply: type[Reply],
        workers: int,
        max_waiting: int = MAX_WAITING,
        short_s: float = SHORT_S,
    ) -> None:
        self._function = function
        self._start = partial(WorkerProcess, function, *arguments)
        self._reply = reply
        self._max_waiting = max_waiting
        self._short_s = short_s
        self._places = FairPlaces(workers)
        self._long_places = FairPlaces(max(1, workers - 1))
        self._short: dict[anyio.CancelScope, float] = {}
        self._threads = anyio.CapacityLimiter(workers)
        self._idle: list[WorkerProcess] = []
        self._starting: set[WorkerProcess] = set()
        self._busy: set[WorkerProcess] = set()
        self._closed = False

    @property
    def busy(self) -> Sequence["Popen[bytes]"]:
        """The processes that are at work."""
        return [worker.process for worker in self._busy]

    @property
    def processes(self) -> Sequence["Popen[bytes]"]:
        """All processes: those at work, then those that start or wait for more."""
        return [*self.busy, *(worker.process for worker in (*self._starting, *self._idle))]

    @property
    def waiting(self) -> int:
        """How many requests wait for a worker."""
        return self._places.waiting + self._long_places.waiting

    async def ask(self, *request: object, timeout_s: float) -> Reply:
        """Return the reply to a request.

        Raises:
            BackendUnavailable: Too many others wait for a worker.
            WorkerTimeout: There was no reply in time.
            WorkerEnded: The worker ended instead of answering.
            BackendError: No process could be started, or the pool is closed.
            KGError: The reply is an error.
        """
        if self.waiting >= self._max_waiting:
            raise BackendUnavailable(
                f"The server is busy: {self.waiting} queries wait for their turn already. Ask again in a moment."
            )
        busy = True
        with anyio.move_on_after(timeout_s):
            if not self._places.free:
                self._make_way()
            async with self._places:
                busy = False
                worker = await self._worker()
                with self._short_lane():
                    return await self._reply_of(worker, request)
            async with self._long_places, self._places:
                return await self._reply_of(await self._worker(), request)
        raise WorkerTimeout(busy=busy)

    async def aclose(self) -> None:
        """End all workers; what they are still busy with fails."""
        self._closed = True
        for worker in (*self._busy, *self._starting):
            worker.kill()
        while self._idle:
            await _close(self._idle.pop(), _GRACE_S)

    @contextmanager
    def _short_lane(self) -> Generator[None]:
        """Let what is done in this context be stopped for others, unless it has a place in the long lane by then."""
        with anyio.CancelScope() as scope:
            self._short[scope] = anyio.current_time()
            if self._places.waiting:
                self._make_way()
            try:
                yield
            finally:
                if self._short.pop(scope, None) is None:
                    self._long_places.give_back()

    def _make_way(self) -> None:
        """Move requests to the long lane while it has places, and limit the time of the others."""
        for scope, started in tuple(self._short.items()):
            if self._long_places.take():
                del self._short[scope]
            else:
                scope.deadline = started + self._short_s

    async def _worker(self) -> WorkerProcess:
        """Return a worker that waits for a request."""
        if self._closed:
            raise BackendError("This graph is closed. Open it again.")
        while self._idle:
            worker = self._idle.pop()
            if worker.process.poll() is None:
                break
            worker.close()
        else:
            worker = self._start()
        if not worker.ready:
            await self._make_ready(worker)
        return worker

    async def _make_ready(self, worker: WorkerProcess) -> None:
        self._starting.add(worker)
        try:
            await anyio.to_thread.run_sync(worker.wait_until_ready, abandon_on_cancel=True, limiter=self._threads)
        except WorkerEnded:
            await _close(worker)
            raise
        except anyio.get_cancelled_exc_class():
            if self._closed:
                await _close(worker)
            else:
                # It goes on starting, for the next request.
                self._idle.append(worker)
            raise
        finally:
            self._starting.discard(worker)

    async def _reply_of(self, worker: WorkerProcess, request: tuple[object, ...]) -> Reply:
        self._busy.add(worker)
        try:
            reply = await anyio.to_thread.run_sync(worker.ask, *request, abandon_on_cancel=True, limiter=self._threads)
        except (WorkerEnded, anyio.get_cancelled_exc_class()):
            await _close(worker)
            raise
        finally:
            self._busy.discard(worker)
        if self._closed:
            await _close(worker)
        else:
            self._idle.append(worker)
        if isinstance(reply, KGError):
            raise reply
        if not isinstance(reply, self._reply):
            raise TypeError(f"{self._function} sent {type(reply)}, not {self._reply}")
        return reply


async def _close(worker: WorkerProcess, grace_s: float = 0.0) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(worker.close, grace_s)
