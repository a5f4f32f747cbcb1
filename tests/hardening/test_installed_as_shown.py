"""The lines of README.md that install, run in the sources by a new user; what lacks an extra says how to add it."""

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from pages import ROOT

# One worker installs, for each line in turn.
pytestmark = pytest.mark.xdist_group("installed")

HANDED_ON = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "http", "LANG", "NO_PROXY")


class User:
    """Somebody with uv and pipx, an active environment, and an empty home; their paths have spaces."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "a home"
        self.environment = folder / "an environment"
        self.home.mkdir()
        tools = folder / "tools"
        for made in (tools, self.environment):
            venv.create(made, with_pip=True)
        subprocess.run([str(tools / "bin" / "pip"), "install", "--quiet", "uv", "pipx"], check=True)
        path = (self.home / ".local" / "bin", self.environment / "bin", tools / "bin", os.defpath)
        self._environ = {
            **{name: value for name, value in os.environ.items() if name.startswith(HANDED_ON)},
            "HOME": str(self.home),
            "PATH": os.pathsep.join(map(str, path)),
            "SHELL": "/bin/bash",
        }

    def run(self, line: str) -> tuple[int, str]:
        """Run a line in the sources; return its status and output."""
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=ROOT,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.mark.parametrize(
    ("line", "then"),
    [("uv tool install .", "uv tool update-shell"), ("pipx install .", "pipx ensurepath"), ("pip install .", "true")],
)
def test_the_command_stands_where_the_page_says_and_a_missing_extra_is_added_by_what_is_printed(
    line: str, then: str, user: User, tmp_path: Path
) -> None:
    table = shutil.copy(ROOT / "tests" / "data" / "tables" / "people.parquet", tmp_path / "people.parquet")
    reads = f"kg-sextant import '{table}' --to '{tmp_path / 'store'}'"
    for each in (line, then):
        status, output = user.run(each)
        assert (each, status) == (each, 0), output
    place = user.environment / "bin" if line.startswith("pip ") else user.home / ".local" / "bin"
    assert user.run("command -v kg-sextant")[1] == f"{place / 'kg-sextant'}\n"
    status, refused = user.run(reads)
    assert status != 0
    (command,) = re.findall("run `(.*)`", refused)
    status, output = user.run(command)
    assert status == 0, output
    status, output = user.run(reads)
    assert status == 0, output


def test_an_extra_is_installed_from_the_sources(user: User, tmp_path: Path) -> None:
    status, output = user.run("pip install '.[parquet]'")
    assert status == 0, output
    table = ROOT / "tests" / "data" / "tables" / "people.parquet"
    status, output = user.run(f"kg-sextant import '{table}' --to '{tmp_path / 'store'}'")
    assert status == 0, output
