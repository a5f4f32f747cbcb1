"""SPARQL engines of our own, started as processes, and what stands between them and their clients."""

import os
import shutil
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

_ATTEMPTS: Final = 5
_STOP_S: Final = 20.0


class EngineError(RuntimeError):
    """The engine did not start, or refused what was to be loaded; the message holds its output."""


@contextmanager
def started(
    folder: Path,
    ports: int,
    command: Callable[[Sequence[int]], Sequence[str]],
    ready: str,
    environment: Mapping[str, str] | None = None,
) -> Generator[Sequence[int]]:
    """Start a server on free ports, yield these once it is ready, and end it when the block is left.

    Args:
        folder: Where it runs.
        ports: How many ports it needs.
        command: Returns its program and arguments for such ports.
        ready: What a line of its output holds once it answers.
        environment: More variables for it.

    Raises:
        EngineError: It does not start.
    """
    output: list[str] = []
    # Where the system can, it ends the server with us, however we end.
    guard = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    # Another program may take a port that was free a moment ago.
    for _ in range(_ATTEMPTS):
        with ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in range(ports)]
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            taken = [each.getsockname()[1] for each in sockets]
        with subprocess.Popen(  # noqa: S603 - the engine
            [*guard, *command(taken)],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    output.append(line)
                    if ready in line:
                        # A pipe that nobody reads fills up, and then the server would wait for ever.
                        threading.Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
                        yield taken
                        return
            finally:
                process.terminate()
                try:
                    process.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
    raise EngineError(f"The engine did not start: {''.join(output)}")
