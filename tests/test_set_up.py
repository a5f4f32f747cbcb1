"""Setting up on a bare Python, as `make demo` does it first."""

import ast
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution, distributions, version
from pathlib import Path
from typing import Final

import pytest
from packaging.specifiers import SpecifierSet

from loopback_service import Reply, answering
from pages import ROOT

SCRIPT: Final = ROOT / "tools" / "set_up.py"


def test_a_python_that_is_too_old_can_still_read_the_script_that_tells_it_so() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 6))
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    evaluated = [
        node.returns
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Subscript)
    ]
    assert (futures, evaluated) == ([], [])


def sources(folder: Path) -> Path:
    """Write what setting up reads into a folder, and return the script."""
    (folder / "tools").mkdir()
    for name in ("pyproject.toml", "tools/bring_pip.py", "tools/set_up.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "constraints.txt").write_text(f"pip=={version('pip')}\n", encoding="utf-8")
    return folder / "tools" / SCRIPT.name


def test_an_environment_whose_creation_was_interrupted_is_made_anew(tmp_path: Path) -> None:
    script = sources(tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "failed; its message stands above." in done.stderr
    assert "No module named pip" not in done.stderr
    subprocess.run([str(python), "-m", "pip", "--version"], stdout=subprocess.DEVNULL, check=True)


def test_every_pinned_version_runs_on_the_oldest_python_that_the_project_takes() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    oldest = f"{needed.removeprefix('>=')}.0"
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    takes = {each.name: each.metadata["Requires-Python"] for each in distributions() if each.name in pinned}
    assert len(takes) > 100
    assert {name: each for name, each in takes.items() if each and oldest not in SpecifierSet(each)} == {}


WHEEL: Final = f"pip-{version('pip')}-py3-none-any.whl"

WITHOUT_ENSUREPIP: Final = """
import runpy, sys
from importlib.machinery import PathFinder

class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "ensurepip" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Bare
sys.path.insert(0, "tools")
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script in a Python like Debian's."""

NO_FILES: Final = {"PIP_CONFIG_FILE": os.devnull}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the installed pip came from."""
    made = tmp_path_factory.mktemp("wheel") / WHEEL
    with zipfile.ZipFile(made, "w") as archive:
        for file in distribution("pip").files or ():
            if file.suffix != ".pyc" and ".." not in file.parts and file.name not in {"INSTALLER", "REQUESTED"}:
                archive.write(str(file.locate()), file.as_posix())
    return made


def set_up_without_ensurepip(folder: Path, environ: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Set up with a Python that has neither pip nor `ensurepip`, where no other installer is on the path."""
    script = sources(folder)
    bare = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    home = folder / "home"
    return subprocess.run(
        [str(bare / "bin" / "python"), "-c", WITHOUT_ENSUREPIP, str(script.relative_to(folder))],
        cwd=folder,
        env={"HOME": str(home), "XDG_CONFIG_DIRS": str(home), "PATH": str(bare / "bin"), "PIP_RETRIES": "0", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def pip_of(folder: Path) -> str:
    """Return what pip says of itself in the environment that was set up; nothing where there is none."""
    python = folder / ".venv" / "bin" / "python"
    asked = subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True, text=True, check=False)
    return asked.stdout


@pytest.mark.parametrize("form", ["html", "json"])
def test_pip_comes_from_the_index_that_a_file_of_pip_names_where_ensurepip_is_missing(
    form: str, wheel: Path, tmp_path: Path
) -> None:
    content, login = wheel.read_bytes(), base64.b64encode(b"me:a b").decode()
    digest = hashlib.sha256(content).hexdigest()
    logins = set[str | None]()
    pages = {
        "html": Reply(
            f'<a href="../{WHEEL}?file#sha256={digest}">{WHEEL}</a>'.encode(), 200, {"Content-Type": "text/html"}
        ),
        "json": Reply(
            {"files": [{"filename": WHEEL, "url": f"../{WHEEL}?file", "hashes": {"sha256": digest}}]},
            200,
            {"Content-Type": "application/vnd.pypi.simple.v1+json"},
        ),
    }

    def answer(query: bytes, authorization: str | None) -> Reply:
        logins.add(authorization)
        return Reply(content, 200, {"Content-Type": "application/zip"}) if query else pages[form]

    with answering(answer) as url:
        settings = tmp_path / "home" / ".config" / "pip" / "pip.conf"
        settings.parent.mkdir(parents=True)
        index = url.replace("//", "//me:a%20b@")
        settings.write_text(f"[global]\nindex-url = {index}/\n", encoding="utf-8")
        done = set_up_without_ensurepip(tmp_path, {})
    # The index of this test has nothing else.
    assert "failed; its message stands above." in done.stderr
    assert pip_of(tmp_path).startswith(f"pip {version('pip')} ")
    assert logins == {f"Basic {login}"}


def test_pip_comes_from_a_folder_of_wheels_without_an_index(wheel: Path, tmp_path: Path) -> None:
    set_up_without_ensurepip(tmp_path, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheel.parent)})
    assert pip_of(tmp_path).startswith(f"pip {version('pip')} ")


def test_a_pip_that_differs_from_its_checksum_is_refused(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "pip").mkdir()
    shutil.copy(wheel, tmp_path / "pip")
    page = f'<a href="{WHEEL}#sha256={"0" * 64}">pip</a>'
    (tmp_path / "pip" / "index.html").write_text(page, encoding="utf-8")
    done = set_up_without_ensurepip(tmp_path, {**NO_FILES, "PIP_INDEX_URL": tmp_path.as_uri()})
    assert done.returncode == 1
    assert f"{tmp_path.as_uri()}/pip/: {WHEEL} differs from its sha256\n" in done.stderr
    assert pip_of(tmp_path) == ""


def test_where_nothing_has_pip_the_message_says_what_to_set_or_install(tmp_path: Path) -> None:
    done = set_up_without_ensurepip(tmp_path, NO_FILES)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "No package index is set for pip (PIP_INDEX_URL).",
        "apt-get download python3-pip-whl: failed",
        "This Python has no ensurepip, and nothing else has pip; what was tried stands above. Set PIP_INDEX_URL to "
        "your package index, or install python3-venv (on Debian: apt install python3-venv), and run make again.",
    ]
