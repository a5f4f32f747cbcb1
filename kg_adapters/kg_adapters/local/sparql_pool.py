"""SPARQL over one local store, in worker processes that are killed at the deadline."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from kg_adapters.local.sparql_messages import Request, read_answer
from kg_adapters.local.store import OXIGRAPH_FOLDER
from kg_adapters.models import SparqlAnswer
from kg_adapters.prefixes import WELL_KNOWN, Prefixes

MAX_ANSWER_BYTES: Final = 2_000_000
WORKER_MEMORY_BYTES: Final = 4 << 30
# JSON may take six characters for one of the answer's.
_MAX_LINE_BYTES: Final = 8 * MAX_ANSWER_BYTES
_GRACE_S: Final = 2.0
_WORKER: Final = "kg_adapters.local.sparql_worker"
_ENDED: Final = (
    "The process that ran the query ended before it answered, most likely for lack of memory. "
    "Make the query more selective, drop nesting, or add a LIMIT. Other queries are not affected."
)


class SparqlPool:
    """Answers SPARQL from a store's `oxigraph` folder; no process is started before the first query.

    A worker that has answered is kept for the next query. One that is still busy when its caller's time is up, or when
    the caller is cancelled, is killed.

    Args:
        folder: The store; `ensure_sparql_store` makes sure that it can answer.
        prefixes: What queries may use without declaring it, beside the well-known prefixes.
        workers: The most processes at once; waiting for one counts against a query's deadline.
        memory_bytes: How much memory a query may take.
    """

    def __init__(
        self, folder: Path, prefixes: Prefixes, *, workers: int = 2, memory_bytes: int = WORKER_MEMORY_BYTES
    ) -> None:
        self._command = [sys.executable, "-P", "-m", _WORKER, str(folder / OXIGRAPH_FOLDER), str(memory_bytes)]
        self._namespaces = {**WELL_KNOWN, **prefixes.namespaces}
        self._most = workers
        self._slots = anyio.Semaphore(workers)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._closed = False

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        """Run a query, as `SupportsSparql.select` promises.

        Raises:
            InvalidRequest: The query is not SPARQL, does more than read this graph, or a bound makes no sense.
            BackendTimeout: It was stopped after `timeout_s` seconds.
            BackendError: The engine failed, or the pool is closed.
        """
        if timeout_s <= 0 or max_rows < 1:
            raise InvalidRequest(f"timeout_s must be above 0 and max_rows at least 1, not {timeout_s} and {max_rows}.")
        request = Request(query, self._namespaces, max_rows, MAX_ANSWER_BYTES).line()
        waited = True
        try:
            with anyio.fail_after(timeout_s):
                async with self._slots:
                    waited = False
                    line = await self._ask(request)
        except TimeoutError:
            raise BackendTimeout(_timeout(timeout_s, self._most if waited else 0)) from None
        return read_answer(line)

    async def aclose(self) -> None:
        """End all workers; queries that are still running fail."""
        self._closed = True
        for worker in self._busy:
            worker.kill()
        while self._idle:
            await self._idle.pop().aclose()

    async def _ask(self, request: bytes) -> bytes:
        worker = await self._worker()
        self._busy.add(worker)
        try:
            line = await worker.ask(request)
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.DelimiterNotFound) as error:
            await worker.aclose()
            raise BackendError(_ENDED) from error
        except anyio.get_cancelled_exc_class():
            await worker.aclose(grace_s=0)
            raise
        finally:
            self._busy.discard(worker)
        if self._closed:
            await worker.aclose()
        else:
            self._idle.append(worker)
        return line

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
        try:
            process = await anyio.open_process(command, stderr=subprocess.DEVNULL)
        except OSError as error:
            raise BackendError(
                f"No process could be started for SPARQL: {error}. Free some memory, then ask again."
            ) from error
        assert process.stdout is not None  # noqa: S101 - tells the type checkers what open_process does by default
        return cls(process, BufferedByteReceiveStream(process.stdout))

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def ask(self, request: bytes) -> bytes:
        assert self.process.stdin is not None  # noqa: S101 - as above
        await self.process.stdin.send(request)
        return await self.replies.receive_until(b"\n", _MAX_LINE_BYTES)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()

    async def aclose(self, *, grace_s: float = _GRACE_S) -> None:
        """Close the worker's input, which ends it; kill it if that takes longer than the grace."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(grace_s):
            await self.process.aclose()


def _timeout(timeout_s: float, busy_workers: int) -> str:
    if busy_workers:
        return (
            f"The query did not start within {timeout_s:g} s: all {busy_workers} SPARQL workers were busy. "
            "Try again, or with a larger timeout_s."
        )
    return (
        f"The query was stopped after {timeout_s:g} s. Add a LIMIT, make a pattern more selective (name an entity or a "
        "relation), or ask with a larger timeout_s."
    )
