"""Every command of README.md runs as it is typed, in a folder like a clone."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from pages import EXAMPLES, ROOT, Block, blocks, prose
from scripted_model import serving_model

README: Final = ROOT / "README.md"

ELSEWHERE: Final = {
    "make test": "runs these tests",
    "uv tool install .": "needs a package index; make installed runs it",
    "uv tool update-shell": "goes with it",
    "pipx install .": "needs a package index; make installed runs it",
    "pipx ensurepath": "goes with it",
    "pip install .": "needs a package index; make installed runs it",
    "pip install '.[parquet]'": "needs a package index; make installed runs it",
    "claude mcp ": "needs Claude Code",
}
"""The beginnings of commands that do not run here, with the reason."""

STAYS: Final = re.compile(r"kg-sextant (explore\b|serve .*--http )")
"""Commands that end when they are interrupted."""
INTERRUPTED: Final = (0, 130)
"""Their status then; 0 where this process, and so what it starts, was told to ignore interrupts."""

SHELL_BLOCKS: Final = [block for block in blocks("bash", "sh") if block.page == README.name]
_SHOWN: Final = frozenset(line.partition("#")[0].strip() for block in SHELL_BLOCKS for line in block.text.splitlines())
MENTIONED: Final = [
    line for line in re.findall(r"`((?:kg-sextant|make|uv|pipx|pip)\s[^`]+)`", prose(README)) if line not in _SHOWN
]

KEPT: Final = "Goethe\nKeep: 2\nAction: Answer\nAnswer:\n1749 [2]"


@contextmanager
def clone(folder: Path) -> Generator[dict[str, str]]:
    """Make a folder look like a clone after `make demo`; give the environment of a shell in it, and a model."""
    shutil.copytree(EXAMPLES, folder / "docs" / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools/set_up.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    environment = folder / ".venv"
    (environment / "stamps").mkdir(parents=True)
    for part in Path(sys.prefix).iterdir():
        if part.name != "stamps":
            (environment / part.name).symlink_to(part)
    (environment / "stamps" / "run").touch()
    home = folder.with_name("home")
    home.mkdir()
    with serving_model(KEPT) as model:
        yield {
            **{name: value for name, value in os.environ.items() if not name.startswith(("KG_SEXTANT_", "OPENAI_"))},
            "HOME": str(home),
            "PATH": os.pathsep.join((str(environment / "bin"), os.environ["PATH"])),
            "BROWSER": "true %s",
            "KG_SEXTANT_LLM__BASE_URL": model.url,
        }


def ended(script: str, folder: Path, environ: dict[str, str], *, stays: bool) -> tuple[int, str]:
    """Run a script and return its status and output; a server is interrupted when it has an address."""
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec 2>&1; set -e; {script}"],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if stays and "http://" in line:
                process.send_signal(signal.SIGINT)
    return process.returncode, "".join(lines)


@pytest.mark.parametrize(
    "block", [*SHELL_BLOCKS, *(Block(README.name, 0, "sh", line, False) for line in MENTIONED)], ids=str
)
def test_the_commands_of_a_block_run_as_typed_in_a_clone(block: Block, tmp_path: Path) -> None:
    before = ""
    with clone(tmp_path / "clone") as environ:
        for line in block.text.splitlines():
            if line.startswith(tuple(ELSEWHERE)):
                continue
            if line.startswith("export "):
                before += f"{line}\n"
                continue
            stays = STAYS.match(line) is not None
            typed = line.replace("0.0.0.0:8000", "127.0.0.1:0")
            status, output = ended(f"{before}{'exec ' * stays}{typed}", tmp_path / "clone", environ, stays=stays)
            assert status in (INTERRUPTED if stays else (0,)), f"{line}: {output}"
            if line.startswith("make demo"):
                (shown,) = (each.text for each in blocks("text") if each.page == README.name)
                assert shown in output


def test_each_command_that_does_not_run_here_is_in_the_page() -> None:
    lines = [line for block in SHELL_BLOCKS for line in block.text.splitlines()] + MENTIONED
    assert [start for start in ELSEWHERE if not any(line.startswith(start) for line in lines)] == []


def test_the_first_two_commands_set_up_and_answer_and_test() -> None:
    first = SHELL_BLOCKS[0].text.splitlines()
    assert [line.partition("#")[0].strip() for line in first] == ["make demo", "make test"]
