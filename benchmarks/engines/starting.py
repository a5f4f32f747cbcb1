"""How an engine of our own is started as a process, and ends with us."""

import os
import shutil
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

_ATTEMPTS: Final = 5
_STOP_S: Final = 20.0


class EngineError(RuntimeError):
    """The engine did not start, or refused what was to be loaded; the message holds what it said."""


@contextmanager
def started(
    folder: Path,
    ports: int,
    command: Callable[[Sequence[int]], Sequence[str]],
    ready: str,
    environment: Mapping[str, str] | None = None,
) -> Generator[Sequence[int]]:
    """Start a server on free ports, give these once it is ready, and end it when the block is left.

    Args:
        folder: Where it runs.
        ports: How many ports it needs.
        command: Returns its program and arguments for such ports.
        ready: What a line of its output holds once it answers.
        environment: More variables for it.

    Raises:
        EngineError: It does not start.
    """
    said = ""
    with ExitStack() as stack:
        # Somebody else may take a port that was free a moment ago.
        for _ in range(_ATTEMPTS):
            taken = _free_ports(ports)
            process = stack.enter_context(_process(folder, command(taken), environment))
            said = _said_until_ready(process, ready)
            if process.poll() is None:
                yield taken
                return
        raise EngineError(f"The engine did not start: {said}")


def _free_ports(number: int) -> Sequence[int]:
    """Return ports of loopback that nobody listened on a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def _process(
    folder: Path, command: Sequence[str], environment: Mapping[str, str] | None
) -> Generator["subprocess.Popen[str]"]:
    # Where the system can, it ends the server with us, however we end.
    guard = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    with subprocess.Popen(  # noqa: S603 - the engine
        [*guard, *command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _said_until_ready(process: "subprocess.Popen[str]", ready: str) -> str:
    """Return what a server says until it is ready, or has ended."""
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if ready in line:
            # A pipe that nobody reads fills up, and then the server would wait for ever.
            threading.Thread(target=_drain, args=(process.stdout,), daemon=True).start()
            return "".join(said)
    process.wait()
    return "".join(said)


def _drain(lines: IO[str] | Iterable[str]) -> None:
    deque(lines, maxlen=0)
