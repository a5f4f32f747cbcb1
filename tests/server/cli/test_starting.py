"""What a command loads before it does anything: no more than it needs."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from kg_server.commands.output import uncollected

EVERY_COMMAND = """
import sys
import kg_server.cli
print(*sorted(sys.modules))
"""
LISTED = """
import sys
from pathlib import Path
import anyio
from mcp import Client
from kg_adapters import OpenOptions, open_graph
from kg_server.app import build_server
from kg_server.settings import Settings

async def tools():
    graph = await open_graph("sample", OpenOptions(cache_folder=Path(sys.argv[1])))
    async with Client(build_server(graph, Settings(), await graph.profile())) as client:
        await client.list_tools()
        print(*sorted(sys.modules))
    await graph.aclose()

anyio.run(tools)
"""
NAMED = """
import contextlib, io, sys
import kg_server.cli
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    kg_server.cli.main(["serve", "--help"])
print(*sorted(sys.modules))
"""
OPENED = """
import sys
from pathlib import Path
import anyio
from kg_adapters import OpenOptions, open_graph

async def first_answer():
    graph = await open_graph(sys.argv[1], OpenOptions(cache_folder=Path(sys.argv[2])))
    await graph.search("a", limit=1)
    await graph.aclose()

anyio.run(first_answer)
print(*sorted(sys.modules))
"""

INTERRUPTED = """
import importlib.abc, runpy, signal, sys

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname == awaited:
            signal.raise_signal(signal.SIGINT)

awaited = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupting())
runpy.run_module("kg_server", run_name="__main__")
"""


def loaded(program: str, *arguments: object) -> set[str]:
    words = [sys.executable, "-c", program, *map(str, arguments)]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def test_a_command_that_asks_no_graph_loads_neither_the_protocol_nor_an_engine() -> None:
    assert not loaded(EVERY_COMMAND) & {"mcp", "anyio", "numpy", "pyoxigraph", "tantivy", "jinja2", "rich", "openai"}


@pytest.mark.usefixtures("heard_interrupts")
@pytest.mark.parametrize(
    "module",
    ["kg_server.cli", "typer", "pydantic", "kg_server.commands.serve", "mcp", "uvicorn", "kg_server.http_limits"],
)
def test_an_interruption_at_any_moment_of_the_start_ends_quietly_with_130(tmp_path: Path, module: str) -> None:
    words = ["serve", "sample", "--cache-folder", str(tmp_path), "--http", "127.0.0.1:0"]
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


def test_a_command_loads_no_other() -> None:
    commands = {f"kg_server.commands.{name}" for name in ("ask", "call", "import_", "serve", "shell")}
    assert loaded(NAMED) & commands == {"kg_server.commands.serve"}


def test_a_server_lists_its_tools_without_what_only_their_answers_need(tmp_path: Path) -> None:
    loaded(LISTED, tmp_path)  # unpacks the sample
    for_answers = {
        "filelock",
        "rapidfuzz",
        "tantivy",
        "kg_adapters.algebra",
        "kg_adapters.embedding",
        "kg_adapters.local.paths.search",
        "kg_adapters.index.build.profiling",
        "kg_server.memory.sqlite_store",
        "kg_server.answers.neighbors",
        "kg_server.observation.answer",
    }
    assert not loaded(LISTED, tmp_path) & for_answers


def test_what_was_imported_once_opens_without_what_imports(tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n", encoding="utf-8")
    imports = {"kg_adapters.index.build.build", "kg_adapters.files.reader"}
    assert loaded(OPENED, tmp_path / "g.nt", tmp_path / "cache") >= imports
    assert not loaded(OPENED, tmp_path / "g.nt", tmp_path / "cache") & imports


@pytest.mark.parametrize("begins", [True, False])
def test_the_collector_rests_until_the_work_begins(begins: bool) -> None:
    with uncollected() as begin:
        assert not gc.isenabled()
        if begins:
            begin()
            assert gc.isenabled()
    assert gc.isenabled()
