"""What runs inside a worker of a `WorkerPool`."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Final

RECURSION_LIMIT: Final = 5_000
"""Enough for some 400 triple patterns in one block; rdflib's parser takes a dozen frames for each."""
_GRACE_S: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1


def answer_lines(reply: Callable[[bytes], bytes]) -> None:
    """Answer each line of the input with one line, and end when the input does, even in the middle of an answer.

    Args:
        reply: Returns the answer to a line, newline included, and does not raise.
    """
    for line in iter(_listen().get, b""):
        sys.stdout.buffer.write(reply(line))
        sys.stdout.buffer.flush()


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


def end_with_parent(parent: int) -> None:
    """End this process when another one does, its parent, however that ends; Ctrl-C is left to that one.

    The parent holds the other end of standard input, and writes nothing.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        # A parser that does not let go of the interpreter would keep a thread from noticing.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _listen() -> SimpleQueue[bytes]:
    lines: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        lines.put(b"")
        # The parent is gone or done with us; an answer that is still under way is for nobody.
        time.sleep(_GRACE_S)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    return lines
