"""What docs/ shows of the agents is what they do: a record, a notebook, and the code that asks a model."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from kg_agents.running import replay_question
from kg_agents.trace import read_trace
from pages import LOCAL_MODEL, ROOT, Block, blocks
from scripted_model import serving_model

RECORD: Final = ROOT / "docs" / "examples" / "goethe.jsonl"
AS_IN_A_NOTEBOOK: Final = (
    "import ast, asyncio, inspect, sys, types\n"
    "code = compile(sys.stdin.read(), 'block', 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n"
    "asyncio.run(types.FunctionType(code, {})())"
)


def python(*arguments: str, folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python with `kg-sextant` on the path."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environ = {**os.environ, "PATH": path, "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environ, input=given, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("block", [each for each in blocks("python") if each.asks_model], ids=str)
def test_lines_that_ask_a_model_get_the_answers_of_both_agents(block: Block, tmp_path: Path) -> None:
    oda = ("Keep: 1\nAction: Answer\nAnswer:\nFrankfurt [1]",)
    counselor = ("Action: Neighbor[Q5879, -influenced by]", "Action: Finish[Q7200]", "[yes]")
    with serving_model(*oda, *counselor) as service:
        asked = block.text.replace(LOCAL_MODEL, service.url)
        ended = python("-W", "error", "-c", AS_IN_A_NOTEBOOK, folder=tmp_path, given=asked)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("('Frankfurt',)\n('Alexander Pushkin',)\n", "", 0)
    assert [len([line for line in block.text.splitlines() if line]), len(service.asked)] == [5, 4]


async def test_the_record_of_the_page_runs_again() -> None:
    answer, same = await replay_question(RECORD)
    # It fails when the agents or their prompts have changed: `python tools/record_run.py` records it again.
    assert (answer.texts, same) == (("Frankfurt",), True)


def test_the_record_of_the_page_can_be_made_again(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "docs" / "examples").mkdir(parents=True)
    assert python("tools/record_run.py", folder=tmp_path).stdout == "goethe.jsonl: Frankfurt\n"
    made = read_trace(tmp_path / "docs" / "examples" / RECORD.name)
    assert [line.kind for line in made] == [line.kind for line in read_trace(RECORD)]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_keeps_the_format_of_notebooks(path: Path) -> None:
    schema = json.loads((ROOT / "tests" / "data" / "schemas" / "notebook.schema.json").read_text(encoding="utf-8"))
    check: Callable[[object, object], None] = import_module("jsonschema").validate
    check(json.loads(path.read_text(encoding="utf-8")), schema)


def test_a_command_is_found_beside_this_python_without_an_active_environment(tmp_path: Path) -> None:
    program = """
import asyncio
from kg_agents import connect

async def main():
    async with connect("kg-sextant serve sample") as graph:
        print(type(graph).__name__)

asyncio.run(main())
"""
    environ = {"PATH": os.defpath, "HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("KnowledgeGraph\n", 0), run.stderr
