"""Write what README.md and docs/ take from the code: output of commands and notebooks, files, prompts, settings.

`--check` writes nothing: it prints what is stale and fails.
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
from shown_agents import shown_prompts, trace_line

from kg_server.cli import main as kg_sextant
from kg_server.settings import ENVIRONMENT_PREFIX, Settings

ROOT: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = ROOT / "docs" / "examples"
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
NOTEBOOKS: Final = tuple(sorted((ROOT / "docs").glob("*.ipynb")))
HOME: Final = "/home/you"
"""What the pages call the folder that the commands run in."""

_SESSION: Final = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"(^<!-- (docs/\S+) -->\n```\w+\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_PROMPT: Final = re.compile(r"(^<!-- prompt (\S+) -->\n```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_TRACE: Final = re.compile(r"(^<!-- trace (\S+) (\d+) -->\n```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_SCORED: Final = re.compile(r"(?:^.* \| -?\d\.\d\d \| hop \d\n)+", re.MULTILINE)
_SCORE: Final = re.compile(r"\| -?\d\.\d\d \|")
_COUNTED: Final = re.compile(r"^Also around .*$", re.MULTILINE)
_SETTINGS: Final = re.compile(r"(?<=^<!-- settings -->\n).*?(?=^<!-- end -->$)", re.MULTILINE | re.DOTALL)


# Servers inherit the standard error that their client finds when it is imported: it has to be a real one.
import_module("kg_agents")


class _Project(BaseModel):
    """What a `pyproject.toml` says about the adapters of its project."""

    name: str
    version: str
    entry_points: dict[str, dict[str, str]] = Field(alias="entry-points")


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs the commands that pages show, in this process.

    Args:
        folder: Where they run.
        environ: The environment that they see.
        settings_file: The settings file that they read unless they name one.
    """

    folder: Path
    environ: dict[str, str]
    settings_file: Path

    def session(self, shown: str) -> str:
        """Return the commands of a console block, each with what it prints now."""
        commands = [line for line in shown.splitlines() if line.startswith("$ ")]
        return "".join(f"{command}\n{self.output(shlex.split(command[2:]))}" for command in commands)

    def output(self, words: list[str]) -> str:
        """Return what one command prints; of a command that fails also its message.

        Raises:
            ValueError: It is neither `cat` nor `kg-sextant`.
        """
        match words:
            case ["cat", name]:
                return (self.folder / name).read_text(encoding="utf-8")
            case ["kg-sextant", *arguments]:
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
        # A terminal draws the progress as a bar and takes it away again.
        messages = [line for line in err.getvalue().splitlines(keepends=True) if not line.endswith(" …\n")]
        return out.getvalue() + ("".join(messages) if failed else "")


@contextlib.contextmanager
def shell_with_examples() -> Generator[Shell]:
    """Give a shell in a folder with the files of `docs/examples`, where the example adapter is installed."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, packages = Path(temporary).resolve() / "home", Path(temporary).resolve() / "packages"
        folder.mkdir()
        for file in EXAMPLES.iterdir():
            if file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())
        settings_file = folder.with_name("settings.toml")
        settings_file.touch()
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
    """Write what installing the example project would leave behind, but its modules."""
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
    for name, field in Settings.model_fields.items():
        default = "a folder of the system" if field.default_factory is not None else f"`{json.dumps(field.default)}`"
        rows.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(rows) + "\n"


def rewritten(text: str, shell: Shell) -> str:
    """Return a page with everything that it takes from the code as it is now."""
    text = _SESSION.sub(lambda found: shell.session(found[0]), text)
    text = _FILE.sub(lambda found: found[1] + (ROOT / found[2]).read_text(encoding="utf-8"), text)
    text = _PROMPT.sub(lambda found: found[1] + shown_prompts()[found[2]], text)
    text = _TRACE.sub(lambda found: found[1] + trace_line(ROOT / found[2], int(found[3])), text)
    return _SETTINGS.sub(lambda _: settings_table(), text)


def _steady(text: str) -> str:
    """Return a page with what is ordered by scores sorted and without scores: their last digits differ by processor."""
    text = _COUNTED.sub(lambda found: " ".join(sorted(found[0].replace(",", "").split())), text)
    return _SCORED.sub(lambda found: "".join(sorted(_SCORE.sub("|", found[0]).splitlines(keepends=True))), text)


class _Stream(BaseModel):
    """What a cell printed."""

    output_type: Literal["stream"] = "stream"
    name: Literal["stdout"] = "stdout"
    text: list[str]


class _Cell(BaseModel):
    """A cell of a notebook; one of prose has neither a count nor outputs."""

    model_config = ConfigDict(extra="allow")

    cell_type: Literal["markdown", "code"]
    source: list[str]
    execution_count: int | None = None
    outputs: list[_Stream] = []


class _Notebook(BaseModel):
    """The cells of a notebook, and what else it says."""

    model_config = ConfigDict(extra="allow")

    cells: list[_Cell]


def performed(text: str) -> str:
    """Return a notebook with what its cells print now, run one after the other as a notebook runs them."""
    notebook = _Notebook.model_validate_json(text)
    names: dict[str, object] = {"__name__": "__main__"}
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    with _home_of_its_own(), asyncio.Runner() as loop:
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
def _home_of_its_own() -> Generator[None]:
    """Keep what servers that a notebook starts write out of the way; no environment is active for them."""
    before = {name: os.environ.get(name) for name in ("HOME", "PATH")}
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, PATH=os.defpath)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def main(*, check: bool) -> int:
    """Rewrite every page, or only say what is stale; return the exit code."""
    stale = 0
    for page in (*PAGES, *NOTEBOOKS):
        before = page.read_text(encoding="utf-8")
        if page.suffix == ".ipynb":
            after = performed(before)
        else:
            with shell_with_examples() as shell:
                after = rewritten(before, shell)
        if _steady(after) == _steady(before):
            continue
        stale += 1
        name = str(page.relative_to(ROOT))
        if not check:
            page.write_text(after, encoding="utf-8")
            print(f"{name} is written anew.")
            continue
        print(*difflib.unified_diff(before.splitlines(), after.splitlines(), name, "now", n=1, lineterm=""), sep="\n")
    if check and stale:
        print("To write the pages anew: python tools/update_docs.py")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
