"""Functions for worker processes whose work lasts as long as a test wants."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from kg_adapters.worker_process import Send


def work(requests: Iterator[tuple[Path]], send: Send) -> None:
    """Reply with a file's name once the file is there."""
    for (path,) in requests:
        while not path.exists():
            time.sleep(0.001)
        send(path.name)


def name_environment(requests: Iterator[tuple[()]], send: Send) -> None:
    """Reply with the names of all variables of the environment."""
    for _ in requests:
        send(" ".join(os.environ))


def end(requests: Iterator[tuple[()]], send: Send) -> None:
    """End instead of replying."""
    next(requests)
