"""Write constraints.txt again: all packages for the project, its tasks and its checks, the newest that fit together."""

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "constraints.txt"


def main() -> int:
    """Install into an empty environment without constraints and pin what arrived."""
    print("Resolving in a new environment …", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
        _run(python, "install", "--quiet", "--upgrade", "pip", *build, "setuptools")
        _run(python, "install", "--quiet", "--no-build-isolation", "--editable", ".[eval]", "--group", "dev")
        frozen = _run(python, "freeze", "--all", "--exclude-editable")
    TARGET.write_text(_pinned(frozen), encoding="utf-8")
    print(f"Pinned {len(TARGET.read_text(encoding='utf-8').splitlines())} packages in {TARGET.name}.")
    return 0


def _pinned(frozen: str) -> str:
    """Keep the lines `name==version`, without the project itself, installer leftovers or addresses of files."""
    lines: list[str] = []
    for line in frozen.splitlines():
        name, _, version = line.partition(" @ ")[0].partition("==")
        if version and not name.startswith("#"):
            lines.append(f"{name}=={version}")
    return "".join(f"{line}\n" for line in sorted(lines, key=str.lower))


def _run(python: Path, *arguments: str) -> str:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
