"""What runs inside a worker of a `WorkerPool`."""

import os
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


def answer_lines(reply: Callable[[bytes], bytes]) -> None:
    """Answer each line of the input with one line, and end when the input does, even in the middle of an answer.

    Args:
        reply: Returns the answer to a line, newline included, and does not raise.
    """
    for line in iter(_listen().get, b""):
        sys.stdout.buffer.write(reply(line))
        sys.stdout.buffer.flush()


def limit_memory(more_bytes: int) -> None:
    """Let this process take only so much more address space, and leave no core file; Linux only."""
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - Windows has none

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


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
