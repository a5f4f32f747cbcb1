"""A store's part for SPARQL, made by a process of its own while everything else is answered already."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from kg_adapters.errors import BackendError, BackendUnavailable
from kg_adapters.local.store import OXIGRAPH_FOLDER, LocalStore
from kg_boundary.machine import child_environment

DONE: Final = "done"
FAILED: Final = "failed "
WAITING: Final = "waiting"
"""What the process says."""
DELAY_S: Final = 3.0
"""How long a server has been there before the process starts: many are asked one thing and end."""
_MAKER: Final = "kg_adapters.local.sparql.maker"
_LOOK_S: Final = 0.05
_ROUNDED_S: Final = 90


class _Run:
    """One process, and what it has told.

    Raises:
        OSError: It could not be started.
    """

    def __init__(self, folder: Path, total: int) -> None:
        self.begun = time.monotonic()
        self.done, self.total = 0, total
        self.waits = False
        self.outcome: str | None = None
        started: Future[subprocess.Popen[str]] = Future()
        threading.Thread(target=self._run, args=(folder, started), daemon=True).start()
        self.process = started.result()

    def _run(self, folder: Path, started: "Future[subprocess.Popen[str]]") -> None:
        # On Linux, what ends with its parent ends with the thread that started it, so that thread stays.
        command = [sys.executable, "-P", "-m", _MAKER, str(folder), str(os.getpid())]
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(  # noqa: S603 - a module of ours
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=child_environment()
            )
        except OSError as error:
            started.set_exception(error)
            return
        started.set_result(process)
        last = ""
        with process:
            assert process.stdout is not None  # noqa: S101 - tells the type checkers what Popen was told
            for line in process.stdout:
                last = line.strip()
                self._hear(last)
        told = last == DONE or last.startswith(FAILED)
        self.outcome = last if told else f"{FAILED}The process that makes the graph ready for SPARQL ended. Ask again."

    def _hear(self, line: str) -> None:
        self.waits = line == WAITING
        done, _, total = line.partition(" ")
        if done.isdecimal() and total.isdecimal():
            self.done, self.total = int(done), int(total)


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
    def process(self) -> "subprocess.Popen[str] | None":
        """The process that makes it, or has made it."""
        return None if self._run is None else self._run.process

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
        while run.outcome is None:
            left = _seconds_left(run)
            if time.monotonic() + (left or 0) > end:
                raise BackendUnavailable(_extent(run, left))
            await anyio.sleep(_LOOK_S)
        if run.outcome != DONE:
            self._store.require_current()
            raise BackendError(run.outcome.removeprefix(FAILED))

    def close(self) -> None:
        """End the process, in the middle of its work if need be; the next one clears up behind it."""
        self._timer.cancel()
        with self._lock:
            self._closed = True
        if self._run is not None:
            self._run.process.kill()
            self._run.process.wait()

    def _begin_unless_there(self) -> None:
        # Closed meanwhile, no process to be had, or a disk that cannot be read: whoever asks is told.
        with suppress(BackendError, OSError):
            if not _is_there(self._target):
                self._begin()

    def _begin(self) -> _Run:
        """Return the run that is under way; one that has ended made nothing that is there still."""
        with self._lock:
            if self._closed:
                raise BackendError("This graph is closed. Open it again.")
            if self._run is None or self._run.outcome is not None:
                try:
                    self._run = _Run(self._store.folder, self._total)
                except OSError as error:
                    raise BackendError(
                        f"No process could be started for SPARQL: {error}. Free some memory, then ask again."
                    ) from error
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
    return f"The graph is still being made ready for SPARQL{by}: {share}. The other tools answer already. {when}"
