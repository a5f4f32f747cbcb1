"""A store's part for SPARQL, made by a process of its own while everything else is answered already."""

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from kg_adapters.errors import BackendError, BackendUnavailable, KGError
from kg_adapters.local.store import OXIGRAPH_FOLDER, LocalStore, open_store
from kg_adapters.worker_process import Send, WorkerEnded, WorkerProcess

DELAY_S: Final = 3.0
"""How long a server has been there before the process starts: many are asked one thing and end."""
_NICE: Final = 10
_POLL_S: Final = 0.05
_ROUNDED_S: Final = 90
_WAITING: Final = "waiting"
_DONE: Final = "done"


def make_part(_requests: Iterator[object], send: Send, folder: Path) -> None:
    """Make the part in this process, with less right to the processor than whoever answers questions.

    Sends how many statements were added and how many there are, or that another process makes the part; at last that it
    is there.
    """
    from kg_adapters.index.block_files import Damage
    from kg_adapters.local.quads import read_counts, read_quads
    from kg_adapters.local.sparql.store import make_sparql_store, written_rows
    from kg_adapters.local.store import verify_index
    from kg_adapters.local.written_lists import read_lists

    if sys.platform != "win32":
        os.nice(_NICE)
    store = open_store(folder)
    try:
        verify_index(store)
        lists = read_lists(store)
        counts = store.info.counts
        total = counts.triples + counts.features + len(lists.written) - len(lists.unfolded)
        beyond = read_counts(store)
        total += beyond.in_graphs + beyond.triple_terms

        def go_on(done: int) -> None:
            store.require_current()
            send((done, total))

        rows = partial(written_rows, store.index, lambda: lists)
        quads = partial(read_quads, store)
        make_sparql_store(folder / OXIGRAPH_FOLDER, rows, quads, math.inf, go_on, lambda: send(_WAITING))
    except Damage as problem:
        raise store.damaged(problem) from problem
    except OSError as error:
        raise BackendError(str(error)) from error
    send(_DONE)


class _Run:
    """One process, and how far it is.

    Raises:
        BackendError: It could not be started.
    """

    def __init__(self, folder: Path, total: int) -> None:
        self.begun = time.monotonic()
        self.done, self.total = 0, total
        self.waits = False
        self.ended = False
        self.failure: KGError | None = None
        started: Future[WorkerProcess] = Future()
        threading.Thread(target=self._follow, args=(folder, started), daemon=True).start()
        self.worker = started.result()

    def _follow(self, folder: Path, started: "Future[WorkerProcess]") -> None:
        # On Linux, the process ends with the thread that started it, so that thread stays.
        try:
            worker = WorkerProcess("kg_adapters.local.sparql.making:make_part", folder)
        except BackendError as error:
            started.set_exception(error)
            return
        started.set_result(worker)
        try:
            while not self._is_last(worker.receive()):
                pass
        except WorkerEnded:
            self.failure = BackendError("The process that makes the graph ready for SPARQL ended. Ask again.")
        worker.close()
        self.ended = True

    def _is_last(self, message: object) -> bool:
        self.waits = message == _WAITING
        match message:
            case (int(done), int(total)):
                self.done, self.total = done, total
            case KGError():
                self.failure = message
            case _:
                pass
        return message == _DONE or self.failure is not None


class SparqlMaking:
    """Makes one store's part for SPARQL where it is missing, once it is begun.

    Args:
        store: An open store.
        delay_s: After how many seconds it begins by itself.
    """

    def __init__(self, store: LocalStore, delay_s: float = DELAY_S) -> None:
        self._store = store
        self._target = store.folder / OXIGRAPH_FOLDER
        self._total = store.info.counts.triples + store.info.counts.features
        self._lock = threading.Lock()
        self._run: _Run | None = None
        self._closed = False
        self._timer = threading.Timer(delay_s, self._begin_unless_there)
        self._timer.daemon = True
        self._timer.start()

    @property
    def process(self) -> "subprocess.Popen[bytes] | None":
        """The process that makes it, or has made it."""
        return None if self._run is None else self._run.worker.process

    @property
    def done(self) -> int:
        """How many statements were added."""
        return 0 if self._run is None else self._run.done

    @property
    def total(self) -> int:
        """How many there are, as far as that is known."""
        return self._total if self._run is None else self._run.total

    @property
    def waits(self) -> bool:
        """Whether another process makes it."""
        return self._run is not None and self._run.waits

    async def ready(self, timeout_s: float) -> None:
        """Wait until the part is there, if that will be in time; begin it where it has not begun.

        Raises:
            BackendUnavailable: It is not there in time; the message says how far it is.
            BackendError: It could not be made, or this is closed.
            GraphReplaced: The folder holds another store by now.
        """
        if await anyio.to_thread.run_sync(_is_there, self._target):
            return
        run, end = self._begin(), time.monotonic() + timeout_s
        while not run.ended:
            left = _seconds_left(run)
            if time.monotonic() + (left or 0) > end:
                raise BackendUnavailable(_extent(run, left))
            await anyio.sleep(_POLL_S)
        if run.failure is not None:
            self._store.require_current()
            raise BackendError(str(run.failure))

    def close(self) -> None:
        """End the process, in the middle of its work if need be; the next one clears up behind it."""
        self._timer.cancel()
        with self._lock:
            self._closed = True
        if self._run is not None:
            self._run.worker.kill()
            self._run.worker.process.wait()

    def _begin_unless_there(self) -> None:
        # Closed meanwhile, no process to be had, or a disk that cannot be read: whoever asks gets the error.
        with suppress(BackendError, OSError):
            if not _is_there(self._target):
                self._begin()

    def _begin(self) -> _Run:
        """Return the run that is under way; one that has ended made nothing that is there still."""
        with self._lock:
            if self._closed:
                raise BackendError("This graph is closed. Open it again.")
            if self._run is None or self._run.ended:
                self._run = _Run(self._store.folder, self._total)
            return self._run


def _is_there(folder: Path) -> bool:
    from kg_adapters.local.sparql.store import is_intact

    return is_intact(folder)


def _seconds_left(run: _Run) -> float | None:
    """Return how many seconds the rest will take if it goes on as it did; None where nobody can say."""
    if not 0 < run.done < run.total:
        return None
    return (time.monotonic() - run.begun) * (run.total - run.done) / run.done


def _extent(run: _Run, left: float | None) -> str:
    share = f"{run.done:,} of {run.total:,} statements" if run.done else f"{run.total:,} statements"
    by = ", by another process" if run.waits else ""
    when = "Ask again in a while."
    if left is not None:
        about = f"{left / 60:.0f} minutes" if left > _ROUNDED_S else f"{max(5, 5 * round(left / 5))} seconds"
        when = f"Ask again in about {about}."
    return f"The graph is still being prepared for SPARQL{by}: {share}. The other tools answer already. {when}"
