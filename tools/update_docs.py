"""Update the generated parts of README.md and docs/: output of commands and notebooks, included files, settings.

`--check` writes nothing; it prints what is stale and fails.
"""

import ast
import asyncio
import contextlib
import difflib
import inspect
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Generator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from kg_server.cli import main as kg_sextant
from kg_server.settings import APP, ENVIRONMENT_PREFIX, FIELDS

ROOT: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = ROOT / "docs" / "examples"
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
NOTEBOOKS: Final = tuple(sorted((ROOT / "docs").glob("*.ipynb")))
HOME: Final = "/home/you"
"""The folder that the commands run in, as the pages show it."""
_PATIENCE_S: Final = 600
"""How many seconds an answer may take on a busy machine."""

_SESSION: Final = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"(^<!-- (docs/\S+) -->\n```\w+\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_COUNTED: Final = re.compile(r"^Also around .*$", re.MULTILINE)
_SETTINGS: Final = re.compile(r"(?<=^<!-- settings -->\n).*?(?=^<!-- end -->$)", re.MULTILINE | re.DOTALL)


# The client passes the standard error that it finds on import to the servers it starts, so it must be a real file.
import_module("kg_agents")


class _Project(BaseModel):
    """The project table of a `pyproject.toml`, with its adapters."""

    name: str
    version: str
    entry_points: dict[str, dict[str, str]] = Field(alias="entry-points")


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs the commands that pages show, in this process.

    Args:
        folder: The current folder of the commands.
        environ: Their environment.
        settings_file: The settings file that they read unless they name another.
    """

    folder: Path
    environ: dict[str, str]
    settings_file: Path

    def session(self, shown: str) -> str:
        """Return the commands of a console block, each with its current output."""
        commands = [line for line in shown.splitlines() if line.startswith("$ ")]
        return "".join(f"{command}\n{self.output(shlex.split(command[2:]))}" for command in commands)

    def output(self, words: list[str]) -> str:
        """Return the output of one command, with its message if it fails.

        Raises:
            ValueError: The command is neither `cat` nor `kg-sextant`.
        """
        match words:
            case ["cat", name]:
                return (self.folder / name).read_text(encoding="utf-8")
            case ["kg-sextant", *arguments]:
                if arguments[:2] == ["call", "Sparql"]:
                    # The first query of a store prepares it, which may take longer than the tool's default.
                    self._kg_sextant([*arguments, f"timeout_s={_PATIENCE_S}"])
                return self._kg_sextant(arguments).replace(str(self.folder), HOME)
            case _:
                raise ValueError(f"a console block may run cat and kg-sextant, not {shlex.join(words)}")

    def _kg_sextant(self, arguments: list[str]) -> str:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                kg_sextant(["--config", str(self.settings_file), *arguments], self.environ)
            except SystemExit as end:
                failed = bool(end.code)
            else:
                failed = False
        # Lines of progress: a terminal shows them as a bar and removes it.
        messages = [line for line in err.getvalue().splitlines(keepends=True) if not line.endswith(" …\n")]
        return out.getvalue() + ("".join(messages) if failed else "")


@contextlib.contextmanager
def shell_with_examples() -> Generator[Shell]:
    """Provide a shell in a copy of `docs/examples`, with the same at `docs/examples`, and the example adapter."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, packages = Path(temporary).resolve() / "home", Path(temporary).resolve() / "packages"
        for copy in (folder, folder / "docs" / "examples"):
            shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        settings_file = folder.with_name("settings.toml")
        settings_file.write_text(f"timeout_s = {_PATIENCE_S}\n", encoding="utf-8")
        _register_example(packages)
        sys.path[:0] = [str(packages), str(EXAMPLES)]
        try:
            cache = str(folder.with_name("cache"))
            data = str(folder.with_name("data"))
            environ = {f"{ENVIRONMENT_PREFIX}CACHE_FOLDER": cache, f"{ENVIRONMENT_PREFIX}DATA_FOLDER": data}
            yield Shell(folder, environ, settings_file)
        finally:
            del sys.path[:2]


def _register_example(packages: Path) -> None:
    """Write the metadata that installing the example project would create."""
    table = tomllib.loads((EXAMPLES / "pyproject.toml").read_text(encoding="utf-8"))
    project = _Project.model_validate(table["project"])
    folder = packages / f"{project.name.replace('-', '_')}-{project.version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project.name}\nVersion: {project.version}\n")
    points = [
        line
        for group, names in project.entry_points.items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in names.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(points) + "\n")


def settings_table() -> str:
    """Return every setting with its form, default and purpose as a table of Markdown."""
    rows = ["| setting | default | what it is |", "|---|---|---|"]
    for name, field in FIELDS.items():
        default = "a folder of the system" if field.default_factory is not None else f"`{json.dumps(field.default)}`"
        rows.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(rows) + "\n"


def rewritten(text: str, shell: Shell) -> str:
    """Return a page with its generated parts updated."""
    text = _SESSION.sub(lambda found: shell.session(found[0]), text)
    text = _FILE.sub(lambda found: found[1] + (ROOT / found[2]).read_text(encoding="utf-8"), text)
    return _SETTINGS.sub(lambda _: settings_table(), text)


def _steady(text: str) -> str:
    """Return a page with the relations that `observe` only counts sorted: their order may differ by processor."""
    return _COUNTED.sub(lambda found: " ".join(sorted(found[0].replace(",", "").split())), text)


class _Stream(BaseModel):
    """The text that a cell printed."""

    output_type: Literal["stream"] = "stream"
    name: Literal["stdout"] = "stdout"
    text: list[str]


class _Cell(BaseModel):
    """A cell of a notebook; a cell of prose has neither a count nor outputs."""

    model_config = ConfigDict(extra="allow")

    cell_type: Literal["markdown", "code"]
    source: list[str]
    execution_count: int | None = None
    outputs: list[_Stream] = []


class _Notebook(BaseModel):
    """The cells of a notebook, and its other fields."""

    model_config = ConfigDict(extra="allow")

    cells: list[_Cell]


def performed(text: str) -> str:
    """Return a notebook with the current output of its cells, run in order."""
    notebook = _Notebook.model_validate_json(text)
    names: dict[str, object] = {"__name__": "__main__"}
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    with _temporary_home(), asyncio.Runner() as loop:
        for count, cell in enumerate(cells, start=1):
            printed = io.StringIO()
            code = compile("".join(cell.source), f"cell {count}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            with contextlib.redirect_stdout(printed):
                ended: object = FunctionType(code, names)()
                if inspect.iscoroutine(ended):
                    loop.run(ended)
            lines = printed.getvalue().splitlines(keepends=True)
            cell.execution_count, cell.outputs = (
                count,
                [_Stream(output_type="stream", name="stdout", text=lines)] if lines else [],
            )
    return json.dumps(notebook.model_dump(exclude_unset=True), indent=1, ensure_ascii=False) + "\n"


@contextlib.contextmanager
def _temporary_home() -> Generator[None]:
    """Give the servers that a notebook starts a temporary home, and no active virtual environment."""
    before = {name: os.environ.get(name) for name in ("HOME", "PATH")}
    with tempfile.TemporaryDirectory() as home:
        # Clients give the servers that they start no other environment.
        settings = Path(home, ".config", APP, "config.toml")
        settings.parent.mkdir(parents=True)
        settings.write_text(f"timeout_s = {_PATIENCE_S}\nwatchdog_s = 0\n", encoding="utf-8")
        os.environ.update(HOME=home, PATH=os.defpath)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def main(*, check: bool) -> int:
    """Update every page, or only report what is stale; return the exit code."""
    stale = 0
    with shell_with_examples() as shell:
        updated = {page: rewritten(page.read_text(encoding="utf-8"), shell) for page in PAGES}
    updated |= {page: performed(page.read_text(encoding="utf-8")) for page in NOTEBOOKS}
    for page, after in updated.items():
        before = page.read_text(encoding="utf-8")
        if _steady(after) == _steady(before):
            continue
        stale += 1
        name = str(page.relative_to(ROOT))
        if not check:
            page.write_text(after, encoding="utf-8")
            print(f"Updated {name}.")
            continue
        print(*difflib.unified_diff(before.splitlines(), after.splitlines(), name, "now", n=1, lineterm=""), sep="\n")
    if check and stale:
        print("To update the pages: python tools/update_docs.py")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
