"""Make `.venv` hold this project with the pinned versions of everything it needs; runs on a bare Python.

Python 3.6 can read this file, so that people are told which one is needed.
"""

import argparse
import os
import re
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv"
PYTHON = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
NEEDED = (3, 11)


def main() -> int:
    """Create the environment where it is missing and install into it; print one line before and errors after."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dev", action="store_true", help="also install what the checks and tests need")
    dev = bool(parser.parse_args().dev)
    if sys.version_info < NEEDED:
        found = ".".join(map(str, sys.version_info[:3]))
        return _fail(f"Python 3.11 or newer is needed and this is {found}: run make PYTHON=/path/to/python3.11")
    print(
        f"Installing {'the project and its checks' if dev else 'the project'} into .venv (a minute or two) …",
        flush=True,
    )
    reason = "" if _has_pip() else _create()
    if reason:
        return _fail(reason)
    for step in _steps(dev=dev):
        command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", *step]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return _fail(
                f"{done.stdout}\npip install {' '.join(step)} failed; its message stands above. "
                "If it reached no registry, set what pip needs (PIP_INDEX_URL, HTTPS_PROXY) and run make again."
            )
    return 0


def _has_pip() -> bool:
    """Say whether `.venv` is there as a whole: one whose creation was interrupted has a Python, but no pip."""
    if not PYTHON.exists():
        return False
    asked = subprocess.run(
        [str(PYTHON), "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return asked.returncode == 0


def _steps(*, dev: bool) -> "list[list[str]]":
    import tomllib  # noqa: PLC0415 - an old Python, which is told so, has none

    # The pip of an old Python knows no dependency groups, and a build in isolation would not be pinned. One of the
    # checks comes as source alone, and the setuptools of an old Python makes no wheel of it.
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    builders, project = ["--upgrade", "pip", *build], ["--no-build-isolation", "--editable", "."]
    return [[*builders, "setuptools"], [*project, "--group", "dev"]] if dev else [builders, project]


def _create() -> str:
    """Create `.venv` with pip in it; return why that failed, or nothing."""
    from bring_pip import NoPip, bring_pip  # noqa: PLC0415 - an old Python cannot read it

    bundled = find_spec("ensurepip") is not None
    try:
        venv.create(FOLDER, with_pip=bundled, clear=FOLDER.exists())
        if not bundled:
            pinned = re.search(r"^pip==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
            bring_pip(PYTHON, pinned.group(1) if pinned else "", os.environ)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{error}\nPython cannot create .venv here; its message stands above."
    except NoPip as error:
        return (
            f"{error}\nThis Python has no ensurepip, and nothing else has pip; what was tried stands above. "
            "Set PIP_INDEX_URL to your package index, or install python3-venv (on Debian: "
            "apt install python3-venv), and run make again."
        )
    return ""


def _environment() -> "dict[str, str]":
    return {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_ROOT_USER_ACTION": "ignore"}


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Interrupted; run make again to resume.", file=sys.stderr)
        sys.exit(130)
