"""What README says, done by a new user: a wheel in a fresh home, and every command of the pages in order."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from benchmark_players import QUESTION, write_rows
from pages import EXAMPLES, PAGES, ROOT, blocks, kg_sextant_words
from patience import PATIENCE_S
from small_graphs import TOKYO, write_story

# One worker installs it, once.
pytestmark = pytest.mark.xdist_group("installed")

SHOWN_HOME: Final = "/home/you"

HANDED_ON: Final = ("PIP_", "SSL_", "REQUESTS_", "HTTP", "http", "LANG", "NO_PROXY")

GENEROUS: Final = {"KG_SEXTANT_TIMEOUT_S": "120"}
"""On a busy machine letters would stand in for a model that is late, and answers would be others."""

ALONE: Final = frozenset({"call", "tools", "config", "doctor"})
"""Commands that end by themselves and need no model."""


@dataclass(frozen=True)
class User:
    """Somebody who has installed the wheel, and whose environment is not active.

    Args:
        home: The home folder, with the files of `docs/examples`.
        programs: The folder of the installed commands.
    """

    home: Path
    programs: Path

    def run(self, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment, or of the system."""
        inherited = {name: value for name, value in os.environ.items() if name.startswith(HANDED_ON)}
        own = self.programs / words[0]
        return subprocess.run(
            [str(own) if own.exists() else words[0], *words[1:]],
            cwd=self.home,
            env={**inherited, **GENEROUS, "HOME": str(self.home), "PATH": os.defpath, "PYTHONUTF8": "1", **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def shown(self, words: Sequence[str]) -> str:
        """Return what a page would show of a command: what it prints, and its message where it fails."""
        ended = self.run(*words)
        told = [line for line in ended.stderr.splitlines(keepends=True) if not line.endswith(" …\n")]
        text = ended.stdout + ("".join(told) if ended.returncode else "")
        return text.replace(str(self.home), SHOWN_HOME)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    folder = tmp_path_factory.mktemp("user").resolve()
    home = Path(shutil.copytree(EXAMPLES, folder / "home", ignore=shutil.ignore_patterns("__pycache__")))
    venv.create(folder / "environment", with_pip=True)
    made = User(home, folder / "environment" / "bin")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    constraints = str(ROOT / "constraints.txt")
    for what in ([str(wheel), "nbconvert", "ipykernel"], ["--no-deps", str(EXAMPLES)]):
        ended = made.run("pip", "install", "--quiet", "--constraint", constraints, *what)
        assert ended.returncode == 0, ended.stderr
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_what_the_installed_program_prints(page: Path, user: User) -> None:
    for block in (each for each in blocks("console") if each.page == page.name):
        commands = [line for line in block.text.splitlines() if line.startswith("$ ")]
        printed = "".join(f"{command}\n{user.shown(shlex.split(command[2:]))}" for command in commands)
        # The order of lines with nearly the same score depends on the processor.
        assert sorted(printed.splitlines()) == sorted(block.text.splitlines()), block


def test_commands_of_the_pages_that_end_by_themselves_succeed(user: User) -> None:
    failed = {}
    for line in dict.fromkeys(line for block in blocks("bash", "sh") for line in block.text.splitlines()):
        words = kg_sextant_words(line)
        if words is None or words[0] not in ALONE or not line.startswith("kg-sextant "):
            continue
        graph = words[words.index("--graph") + 1] if "--graph" in words else "sample"
        named = [word.lstrip("@") for word in (*words, graph) if "." in word and "=" not in word and " " not in word]
        if "://" in line or "wikidata" in line or "<" in line or any(not (user.home / name).exists() for name in named):
            continue
        ended = user.run("kg-sextant", *words)
        if ended.returncode:
            failed[line] = (ended.returncode, ended.stderr)
    assert failed == {}


def test_the_command_that_config_writes_starts_the_server_anywhere(user: User) -> None:
    file = user.home / "client" / "mcp.json"
    assert user.run("kg-sextant", "config", "cursor", "people.ttl", "--write", "--file", str(file)).returncode == 0
    entry = json.loads(file.read_text(encoding="utf-8"))["mcpServers"]["kg-sextant"]
    assert Path(entry["command"]) == user.programs / "kg-sextant"
    assert entry["args"] == ["serve", str(user.home / "people.ttl")]
    assert user.run(entry["command"], "doctor", entry["args"][1]).returncode == 0


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_is_valid_and_runs_under_nbconvert(notebook: Path, user: User) -> None:
    check = "import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], as_version=4))"
    valid = user.run("python", "-W", "error", "-c", check, str(notebook))
    assert (valid.returncode, valid.stderr) == (0, "")
    ended = user.run(
        *("python", "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", str(user.home), str(notebook))
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
    printed, expected = (
        [
            "".join(output["text"])
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
            for output in cell.get("outputs", ())
        ]
        for path in (user.home / notebook.name, notebook)
    )
    assert printed == expected


PLAYED = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

def reply(messages, tools, choice, config):
    if not tools:
        output = ModelOutput.from_content("m", "The answer is {Shinjuku}.")
    elif messages[-1].role == "tool":
        output = ModelOutput.for_tool_call("m", "answer", {"answers": [{"text": "Shinjuku", "results": [1]}]})
    else:
        output = ModelOutput.for_tool_call("m", "Compose", {"expression": "Neighbor[Tokyo, capital]"})
    output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
    return output

arguments = json.loads(sys.argv[1])
model = get_model("mockllm/model", custom_outputs=reply)
(log,) = eval("kg_eval/jsonl", model=model, task_args=arguments, epochs=2, display="none", log_dir="logs")
means = {each.name: each.metrics["mean"].value for each in log.results.scores}
print(json.dumps([log.status, means["set"], [sample.metadata["outcome"]["answers"] for sample in log.samples]]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks") / "environment"
    venv.create(folder, with_pip=True)
    made = folder / "bin" / "python"
    install = [str(made), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*install, f"{ROOT}[eval]"], check=True, timeout=560)
    return made


@pytest.mark.parametrize(("method", "source"), [("direct", "model"), ("graph-rag-1", "graph"), ("tools", "graph")])
def test_a_benchmark_runs_as_a_task_of_inspect(python: Path, tmp_path: Path, method: str, source: str) -> None:
    rows = [{"question": f"{QUESTION} ({n})", "answers": ["Shinjuku"], "entities": ["Q1490"]} for n in range(2)]
    arguments = {
        "data": str(write_rows(tmp_path, "jsonl", rows)),
        "graph": str(write_story(tmp_path, TOKYO)),
        "method": method,
    }
    path = os.pathsep.join((str(python.parent), os.environ["PATH"]))
    ended = subprocess.run(
        [str(python), "-c", PLAYED, json.dumps(arguments)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path), "PYTHONPATH": ""},
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    status, right, answers = json.loads(ended.stdout.splitlines()[-1])
    assert (status, right, [[(each["text"], each["source"]) for each in of] for of in answers]) == (
        *("success", 1.0),
        [[("Shinjuku", source)]] * 4,
    )
