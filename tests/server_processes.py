"""How tests start a server over HTTP as a process of its own."""

import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from cli_runs import COMMAND


@contextmanager
def started(environ: Mapping[str, str], *options: str) -> Generator[subprocess.Popen[str]]:
    """Serve on a free port of loopback; the end of the block kills the server."""
    words = [*COMMAND, "serve", *options, "--http", "127.0.0.1:0"]
    with subprocess.Popen(words, env={**os.environ, **environ}, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str]) -> str:
    """Wait until a server says where it is."""
    assert process.stderr is not None
    return next(line.split()[-1] for line in process.stderr if line.startswith("Serving "))
