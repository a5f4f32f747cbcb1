"""A message that names an extra names a command that works where the product was installed from."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from pages import ROOT

NEEDED: Final = (
    "annotated_types",
    "kg_boundary",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
)
METADATA: Final = """Metadata-Version: 2.4
Name: kg-sextant
Version: 0.1.0
Provides-Extra: draw
Provides-Extra: parquet
Requires-Dist: here>=1; extra == 'draw'
Requires-Dist: arro3-io>=0.9; extra == 'parquet'
"""


@dataclass(frozen=True)
class Installed:
    """An environment without pip in which the package seems installed, and its clone; both paths have a space."""

    prefix: Path
    packages: Path
    clone: Path

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    def came_from(self, **origin: object) -> None:
        """Note the origin as installers do; nothing of it if it came from an index."""
        (self.packages / "kg_sextant-0.1.0.dist-info" / "direct_url.json").write_text(json.dumps(origin))

    def has(self, package: str) -> None:
        """Install a package, by its metadata and an empty module."""
        info = self.packages / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {package}\nVersion: 1.0\n")
        (self.packages / f"{package}.py").touch()

    def command(self, *extras: str) -> list[str]:
        program = "import sys; from kg_boundary.installation import install_command as of; print(of(*sys.argv[1:]))"
        return shlex.split(
            subprocess.run(
                [str(self.python), "-c", program, *extras],
                env={**os.environ, "PYTHONPATH": str(self.packages)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
        )


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    made = Installed(tmp_path / "my environment", tmp_path / "packages", tmp_path / "my clone")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made.prefix)], check=True)
    made.clone.mkdir()
    (made.packages / "kg_sextant-0.1.0.dist-info").mkdir(parents=True)
    (made.packages / "kg_sextant-0.1.0.dist-info" / "METADATA").write_text(METADATA)
    for name in NEEDED:
        source = Path(import_module(name).__file__ or "")
        source = source.parent if source.name == "__init__.py" else source
        (made.packages / source.name).symlink_to(source)
    return made


def test_from_a_clone_it_installs_the_clone_as_it_was_installed(installed: Installed) -> None:
    for editable, words in ((False, []), (True, ["--editable"])):
        installed.came_from(url=installed.clone.as_uri(), dir_info={"editable": editable})
        expected = ["uv", "pip", "install", "--python", str(installed.python), *words, f"{installed.clone}[parquet]"]
        assert installed.command("parquet") == expected


def test_the_pip_of_the_environment_is_used_where_there_is_one(installed: Installed) -> None:
    installed.came_from(url=installed.clone.as_uri(), dir_info={})
    installed.has("pip")
    start = [str(installed.python), "-m", "pip", "install"]
    assert installed.command("parquet") == [*start, f"{installed.clone}[parquet]"]
    assert installed.command() == [*start, str(installed.clone)]


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, "kg-sextant[parquet]"),
        (
            {"url": "https://example.org/kg", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "kg-sextant[parquet] @ git+https://example.org/kg@c0ffee",
        ),
        (
            {"url": "https://example.org/kg_sextant-0.1.0-py3-none-any.whl", "archive_info": {}},
            "kg-sextant[parquet] @ https://example.org/kg_sextant-0.1.0-py3-none-any.whl",
        ),
        ({"url": "file:///gone/kg_sextant-0.1.0-py3-none-any.whl", "archive_info": {}}, "arro3-io>=0.9"),
    ],
)
def test_it_installs_from_where_it_came_from(
    origin: dict[str, object] | None, wanted: str, installed: Installed
) -> None:
    if origin is not None:
        installed.came_from(**origin)
    assert installed.command("parquet")[-1] == wanted


def test_environments_of_uv_and_pipx_are_made_again_with_the_extras_that_they_have(installed: Installed) -> None:
    installed.came_from(url=installed.clone.as_uri(), dir_info={})
    installed.has("here")
    wanted = f"{installed.clone}[draw,parquet]"
    for mark, words in (
        ("uv-receipt.toml", ["uv", "tool", "install"]),
        ("pipx_metadata.json", ["pipx", "install", "--force"]),
    ):
        (installed.prefix / mark).touch()
        assert installed.command("parquet") == [*words, wanted]
    installed.clone.rmdir()
    assert installed.command("parquet") == ["pipx", "inject", "kg-sextant", "arro3-io>=0.9"]


def test_no_message_names_the_package_index_for_an_extra() -> None:
    roots = ("boundary", "kg_adapters", "server/kg_server", "agents", "prompts", "evaluation")
    sources = [path for root in roots for path in (ROOT / root).rglob("*.py")]
    assert [path.name for path in sources if "kg-sextant[" in path.read_text(encoding="utf-8")] == []
