"""A terminal for tests: a process of the command line that runs in it, and what it writes there."""

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cli_runs import COMMAND


@dataclass(frozen=True)
class Shown:
    """How a command ended, and all that it sent to its terminal."""

    code: int
    sent: str


def run_in_terminal(folder: Path, *words: str, term: str = "xterm", environ: Mapping[str, str] | None = None) -> Shown:
    """Run a command whose output and errors both go to a terminal; its own folders lie in `folder`."""
    ours, theirs = pty.openpty()
    inherited = {name: each for name, each in os.environ.items() if not name.startswith("KG_SEXTANT_")}
    folders = {f"KG_SEXTANT_{name}_FOLDER": str(folder / name.lower()) for name in ("CACHE", "DATA")}
    told = {**inherited, **folders, "TERM": term, "PYTHONUTF8": "1", **(environ or {})}
    process = subprocess.Popen([*COMMAND, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=told)
    os.close(theirs)
    sent: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(ours, sent))
    reader.start()
    try:
        code = process.wait(timeout=120)
        reader.join(timeout=120)
    finally:
        process.kill()
        os.close(ours)
    return Shown(code, b"".join(sent).decode("utf-8"))


def _read_all(terminal: int, sent: list[bytes]) -> None:
    """Read until nobody can write any more, which on Linux is an error."""
    assert sys.platform != "win32"
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:
            return
        if not part:
            return
        sent.append(part)
