"""How a server starts: what it loads, and calls that wait until the graph is open."""

import gc
import subprocess
import sys
from collections.abc import AsyncGenerator
from inspect import getmembers, isfunction
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError

from calls import late_graph, reply_of
from cli_runs import write_graph
from kg_adapters.errors import InvalidSource
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.reloading import ForwardingAdapter, ReloadingAdapter
from kg_adapters.open_options import OnProgress, Progress
from kg_adapters.protocol import KGAdapter
from kg_adapters.testing.neighbors import DegreeContract, NeighborContract, PagingContract
from kg_server.app import build_server
from kg_server.commands.graphs import opened, opening
from kg_server.commands.output import ImportStopped, StoppableProgress, uncollected
from kg_server.settings import Settings
from kg_server.view import VIEW_URI
from small_graphs import store_of

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
@pytest.mark.parametrize("module", ["kg_server.cli", "typer", "kg_server.commands.serve", "uvicorn"])
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
        "kg_adapters.index.paths.search",
        "kg_adapters.index.profiling",
        "kg_server.memory.sqlite_storage",
        "kg_server.answers.neighbors",
        "kg_server.observation.answer",
    }
    assert not loaded(LISTED, tmp_path) & for_answers


def test_what_was_imported_once_opens_without_what_imports(tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n", encoding="utf-8")
    imports = {"kg_adapters.importing.build", "kg_adapters.files.reader"}
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


CALLS: dict[str, dict[str, object]] = {
    "observe": {"question": "Which city is the capital?", "entities": ["wd:Q17"]},
    "Retrieve": {"text": "Tokyo"},
    "GetNeighbor": {"entity": "wd:Q17"},
    "GetPath": {"source": "wd:Q17", "target": "wd:Q1490"},
    "Feature": {"entity": "wd:Q1490"},
    "Degree": {"entity": "wd:Q17"},
    "Schema": {},
    "Sparql": {"query": "SELECT ?x { wd:Q17 wdt:P36 ?x }"},
    "Compose": {"expression": "Count[Neighbor[wd:Q17, wdt:P36]]"},
    "memory-append": {"triples": []},
    "memory-read": {"memory": "mem_guessed"},
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        graph=str(write_graph(tmp_path)), cache_folder=tmp_path / "cache", data_folder=tmp_path, timeout_s=60
    )


@pytest.fixture
def broken(settings: Settings) -> Settings:
    """Settings with a graph that cannot be read."""
    Path(settings.graph).write_text("this is no Turtle", encoding="utf-8")
    return settings


@pytest.fixture
async def pending(settings: Settings) -> AsyncGenerator[Client]:
    """A client of a server whose graph opens behind its back."""
    async with opening(settings, patience_s=0) as graphs:
        assert graphs.first.known is None
        async with Client(build_server(graphs, settings)) as client:
            yield client


class TestReloadingAdapter(NeighborContract, PagingContract, DegreeContract):
    """Where a question has many arguments, every one of them is passed on."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.path = tmp_path

    async def open_graph(self, triples: str) -> KGAdapter:
        return ReloadingAdapter(store_of(self.path, triples))


def test_it_passes_on_everything_that_a_local_graph_offers() -> None:
    offered = {name for name, _ in getmembers(LocalAdapter, isfunction) if not name.startswith("_")}
    assert offered - set(dir(ForwardingAdapter)) == {"aclose"}


async def test_a_server_whose_graph_opens_late_answers_like_one_that_was_open(
    pending: Client, settings: Settings
) -> None:
    late = {tool: reply_of(await pending.call_tool(tool, arguments)) for tool, arguments in CALLS.items()}
    async with opened(settings) as graph, Client(build_server(graph, settings)) as client:
        tools = await client.list_tools()
        assert {tool: reply_of(await client.call_tool(tool, arguments)) for tool, arguments in CALLS.items()} == late
    assert await pending.list_tools() == tools
    assert {tool.name for tool in tools.tools} == set(CALLS)


async def test_a_graph_that_opens_within_a_moment_is_described_in_the_instructions(settings: Settings) -> None:
    async with opening(settings, patience_s=60) as graphs, Client(build_server(graphs, settings)) as client:
        assert "Literals are names and descriptions only" in str(client.instructions)


async def test_handshake_and_lists_do_not_wait_but_calls_do_and_say_how_far_it_is(settings: Settings) -> None:
    async def importing(note: OnProgress) -> KGAdapter:
        note(Progress("reading", 430, 1_000, 1_200_000))
        await anyio.sleep_forever()
        raise AssertionError("it never opens")

    settings = settings.model_copy(update={"timeout_s": 0.01})
    graphs = late_graph(settings, importing)
    async with Client(build_server(graphs, settings)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(CALLS)
        reply = reply_of(await client.call_tool("Retrieve", CALLS["Retrieve"]))
        expected = "The graph 'japan' is still being imported, 43% of its files read. Call again in a while."
        assert (reply.is_error, reply.text) == (True, expected)
        with pytest.raises(MCPError, match="'japan' is still being imported"):
            await client.read_resource("kg://schema")
        assert (await client.read_resource(VIEW_URI)).contents
    await graphs.aclose()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_waits_is_answered_as_soon_as_the_graph_is_open(
    tmp_path: Path, settings: Settings, mode: str
) -> None:
    summaries, imported = list[str](), anyio.Event()

    async def importing(_: OnProgress) -> KGAdapter:
        await imported.wait()
        return LocalAdapter(store_of(tmp_path, "<http://a> <http://b> <http://c> ."))

    graphs = late_graph(settings, importing)
    async with Client(build_server(graphs, settings), mode=mode) as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            summaries.append(reply_of(await client.call_tool("Degree", {"entity": "http://a"})).summary)

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert summaries == []
        imported.set()
    await graphs.aclose()
    assert [each.endswith(" has 1 distinct neighbour over 1 relation.") for each in summaries] == [True]


async def test_a_graph_that_cannot_be_opened_in_the_end_says_so_to_every_call_and_in_the_log(
    broken: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opening(broken, patience_s=0) as graphs, Client(build_server(graphs, broken)) as client:
        reply = reply_of(await client.call_tool("Schema", {}))
    assert reply.is_error
    assert reply.text.startswith("japan.ttl, line 1, column 1: ")
    # The client gets the name of the file, the person at the machine its path.
    assert f"kg-sextant: {Path(broken.graph).parent}/{reply.text}" in capsys.readouterr().err.splitlines()


async def test_a_graph_that_cannot_be_opened_at_once_ends_the_command(broken: Settings) -> None:
    with pytest.raises(InvalidSource):
        async with opening(broken, patience_s=60):
            pass


def test_an_import_that_nobody_waits_for_ends_at_its_next_step() -> None:
    seen: list[Progress] = []
    progress = StoppableProgress(seen.append)
    step = Progress("reading", 1, 2, 3)
    progress(step)
    progress.stop()
    with pytest.raises(ImportStopped):
        progress(step)
    assert seen == [step]
