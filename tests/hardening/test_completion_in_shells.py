"""Somebody presses Tab in Bash, Zsh or Fish: tools, arguments and entities stand there."""

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

LIMIT_S = 120
SHELLS = {
    "bash": (("--norc", "--noprofile", "-i"), 'eval "$(kg-sextant --show-completion)"'),
    "zsh": (("-f", "-i"), 'autoload -Uz compinit; compinit -u; eval "$(kg-sextant --show-completion)"'),
    "fish": (("--no-config", "-i"), "kg-sextant --show-completion | source"),
}
"""How each is started without anybody's configuration, and how completion is switched on in it."""
NAMED = 'wd:Q2 rdfs:label "Ginza: the town"@en ; wdt:P17 wd:Q17 .'


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
def completing(shell: str, folder: Path) -> Generator[Terminal]:
    """Give a shell in which the command line is installed and completion is switched on."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}")
    (folder / "g.ttl").write_text(TURTLE + NAMED, encoding="utf-8")
    inherited = {name: each for name, each in os.environ.items() if not name.startswith("KG_SEXTANT_")}
    told = {
        **inherited,
        "HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TERM": "dumb",
        "KG_SEXTANT_GRAPH": str(folder / "g.ttl"),
        "KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical",
        "KG_SEXTANT_CACHE_FOLDER": str(folder / "cache"),
    }
    options, switched_on = SHELLS[shell]
    ours, theirs = pty.openpty()
    # Fish wants the terminal to be its own: it is when the first process of a session opens it by name.
    opened = ("sh", "-c", 'exec "$@" <>"$0" >&0 2>&0', os.ttyname(theirs))
    process = subprocess.Popen([*opened, program, *options], env=told, start_new_session=True)
    try:
        terminal = Terminal(ours)
        terminal.type(f'{switched_on}; kg-sextant call Schema > /dev/null; echo is "on"\n')
        terminal.wait_for("is on")
        yield terminal
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        os.close(ours)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_completes_tools_arguments_and_entities(shell: str, tmp_path: Path) -> None:
    with completing(shell, tmp_path) as terminal:
        terminal.type('kg-sextant call Retri\tte\tGin\t\necho an"swered"\n')
        assert "'Ginza: the town' names one thing." in terminal.wait_for("answered")
