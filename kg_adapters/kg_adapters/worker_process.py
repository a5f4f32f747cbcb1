"""A child process that runs one function of this project, and the pickled messages between the two."""

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Final, TypeAlias

from kg_adapters.errors import BackendError, KGError
from kg_boundary.machine import child_environment

Send: TypeAlias = Callable[[object], None]
RECURSION_LIMIT: Final = 5_000
"""Enough for some 400 triple patterns in one block; rdflib's parser takes a dozen frames for each."""
_GRACE_S: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1
_BROKEN: Final = (EOFError, OSError, ValueError, pickle.UnpicklingError)
"""What reading and writing raise once the other side is gone."""


class WorkerEnded(Exception):
    """A worker process ended before it had answered."""


class WorkerProcess:
    """A child process that runs `function(requests, send, *arguments)`; all methods block.

    Its first message is None, once it is ready.
    It inherits neither settings nor secrets, and ends with this process. On Linux it ends with the thread that started
    it, even in the middle of foreign code.

    Args:
        function: `module:name` of what it runs: with an iterator over the requests, and with what sends a message.
        arguments: Further arguments.
        hash_seed: Makes hashes of texts the same in all processes that are started with it.

    Raises:
        BackendError: No process could be started.

    Attributes:
        process: The process.
        ready: Whether `wait_until_ready` has come to its end.
    """

    def __init__(self, function: str, *arguments: object, hash_seed: int | None = None) -> None:
        command = [sys.executable, "-P", "-m", __name__, function, str(os.getpid())]
        pipe = subprocess.PIPE
        environment = child_environment() | ({} if hash_seed is None else {"PYTHONHASHSEED": str(hash_seed)})
        try:
            self.process = subprocess.Popen(  # noqa: S603 - a module of ours
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment
            )
        except OSError as error:
            raise BackendError(f"No process could be started: {error}. Free some memory, then ask again.") from error
        assert self.process.stdin is not None  # noqa: S101 - for the type checkers: Popen was given pipes
        assert self.process.stdout is not None  # noqa: S101 - as above
        self._requests: IO[bytes] = self.process.stdin
        self._messages: IO[bytes] = self.process.stdout
        self.ready = False
        self._getting_ready = threading.Lock()
        # Also where nobody closes it.
        self._end = weakref.finalize(self, _end, self.process)
        with suppress(WorkerEnded):
            self._send(arguments)

    def wait_until_ready(self) -> None:
        """Receive the first message; several threads may wait for it.

        Raises:
            WorkerEnded: The process ended, or was killed, before it sent one.
        """
        with self._getting_ready:
            if not self.ready:
                self.receive()
                self.ready = True

    def ask(self, *request: object) -> object:
        """Send a request, and return the next message.

        Raises:
            WorkerEnded: The process ended, or was killed, before it sent one.
        """
        self._send(request)
        return self.receive()

    def receive(self) -> object:
        """Wait for the next message and return it; it is a `KGError` if the function raised one.

        Raises:
            WorkerEnded: The process ended, or was killed, before it sent one.
        """
        try:
            (message,) = _load(self._messages)
        except _BROKEN as error:
            raise WorkerEnded from error
        return message

    def kill(self) -> None:
        """Kill the process without waiting for its end."""
        self.process.kill()

    def close(self, grace_s: float = 0.0) -> None:
        """End the process: close its input, and kill it if it is still there after the grace."""
        if grace_s:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._requests.close()
                self.process.wait(grace_s)
        self._end()

    def _send(self, message: tuple[object, ...]) -> None:
        try:
            _dump(message, self._requests)
        except _BROKEN as error:
            raise WorkerEnded from error


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    with suppress(OSError), process:
        pass


def limit_memory(more_bytes: int) -> None:
    """Let this process take at most so much more address space, and leave no core file; Linux only."""
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - Windows has none

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more_bytes
    allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
    if allowed != resource.RLIM_INFINITY:
        most = min(most, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(function: str, parent: str) -> None:
    """Run a function in this process, as `WorkerProcess` describes."""
    _end_with(int(parent))
    messages, sys.stdout = sys.stdout.buffer, sys.stderr

    def send(message: object) -> None:
        _dump((message,), messages)

    requests = _requests(sys.stdin.buffer)
    arguments = next(requests)
    module, _, name = function.partition(":")
    run = getattr(import_module(module), name)
    send(None)
    try:
        run(requests, send, *arguments)
    except KGError as error:
        send(error)


def _end_with(parent: int) -> None:
    """End this process when its parent does, however that ends; Ctrl-C is left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        # A parser that does not let go of the interpreter would keep a thread from noticing.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def _requests(pipe: IO[bytes]) -> Iterator[tuple[object, ...]]:
    """Yield what arrives; soon after the input has ended, this process does, even in the middle of an answer."""
    arrived: SimpleQueue[tuple[object, ...] | None] = SimpleQueue()

    def listen() -> None:
        with suppress(*_BROKEN):
            while True:
                arrived.put(_load(pipe))
        arrived.put(None)
        time.sleep(_GRACE_S)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    return iter(arrived.get, None)


def _dump(message: tuple[object, ...], pipe: IO[bytes]) -> None:
    pickle.dump(message, pipe)
    pipe.flush()


def _load(pipe: IO[bytes]) -> tuple[object, ...]:
    message: tuple[object, ...] = pickle.load(pipe)  # noqa: S301 - what this project wrote
    return message


if __name__ == "__main__":
    main(*sys.argv[1:])
