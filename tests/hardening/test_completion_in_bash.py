"""Somebody presses Tab in Bash: tools, arguments and entities stand there."""

import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli_runs import TURTLE

BASH = shutil.which("bash")
LIMIT_S = 120

pytestmark = pytest.mark.skipif(BASH is None, reason="needs Bash")


class Terminal:
    """A terminal with a shell in it.

    Args:
        handle: Our end of it.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._sent = ""

    def type(self, text: str) -> None:
        os.write(self._handle, text.encode())

    def wait_for(self, text: str) -> str:
        """Read until a text stands on the screen; return all before it, and forget what was read."""
        while text not in self._sent:
            ready, _, _ = select.select([self._handle], [], [], LIMIT_S)
            assert ready, f"{text!r} did not come, but {self._sent!r}"
            self._sent += os.read(self._handle, 65_536).decode(errors="replace").replace("\a", "")
        before, _, self._sent = self._sent.partition(text)
        return before


@contextmanager
def bash(folder: Path) -> Generator[Terminal]:
    """Give a Bash in which the command line is installed and completion is switched on as the page says."""
    assert BASH is not None
    (folder / "g.ttl").write_text(TURTLE, encoding="utf-8")
    inherited = {name: each for name, each in os.environ.items() if not name.startswith("KG_SEXTANT_")}
    told = {
        **inherited,
        "HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TERM": "dumb",
        "PS1": "ready> ",
        "KG_SEXTANT_GRAPH": str(folder / "g.ttl"),
        "KG_SEXTANT_EMBEDDER": "lexical",
        "KG_SEXTANT_CACHE_FOLDER": str(folder / "cache"),
    }
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [BASH, "--norc", "--noprofile", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=told,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        terminal = Terminal(ours)
        terminal.wait_for("ready> ")
        terminal.type('eval "$(kg-sextant --show-completion bash)"; kg-sextant call Schema > /dev/null; echo is "on"\n')
        terminal.wait_for("is on")
        yield terminal
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_tab_completes_tools_arguments_and_entities(tmp_path: Path) -> None:
    with bash(tmp_path) as terminal:
        for begun, completed in (("kg-sextant call GetNei", "ghbor "), ("ent", "ity="), ("Tok", "yo")):
            terminal.type(f"{begun}\t")
            terminal.wait_for(begun + completed)
        terminal.type("\n")
        assert "Tokyo (Q1490)" in terminal.wait_for("Japan (Q17)")
