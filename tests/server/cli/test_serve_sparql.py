"""What SPARQL needs of a large store is made beside a server's answers, whatever becomes of the server."""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.sparql.making import SparqlMaking, make_part
from kg_adapters.local.store import OXIGRAPH_FOLDER, open_store
from server_processes import address_of, started

STATEMENTS = 150_000
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes where Linux shows them")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    source = folder / "large.nt"
    source.write_text("".join(f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> .\n" for n in range(STATEMENTS)))
    return build_store([source], folder / "store", ImportOptions(sparql=False)).folder


@pytest.fixture
def store(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "store"))


def makers(store: Path) -> list[int]:
    """Return the processes in which a server makes what SPARQL needs of a store."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [number for number in numbers if _makes(number, store)]


def _makes(process: int, store: Path) -> bool:
    function, parent = ["", "", *words_of(process)][-2:]
    return function == f"{make_part.__module__}:{make_part.__name__}" and str(store) in words_of(int(parent))


def words_of(process: int) -> list[str]:
    """Return the command line of a process; nothing where it has ended."""
    try:
        return Path("/proc", str(process), "cmdline").read_bytes().decode().removesuffix("\0").split("\0")
    except OSError:
        return []


def left_overs(store: Path) -> list[str]:
    """Return what a process has in hand, or has left there."""
    return [path.name for path in store.glob(".oxigraph-*")]


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(900):
        while not condition():  # noqa: ASYNC110 - what another process does sets no event
            await anyio.sleep(0.01)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_a_server_says_how_far_it_is_and_answers_everything_else(store: Path) -> None:
    words = ["-m", "kg_server", "serve", str(store)]
    async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
        await until(lambda: makers(store))
        (maker,) = makers(store)
        os.kill(maker, signal.SIGSTOP)
        try:
            refused = await client.call_tool("Sparql", {"query": COUNT, "timeout_s": 0.1})
            answered = await client.call_tool("GetNeighbor", {"entity": "http://e/7"})
        finally:
            os.kill(maker, signal.SIGCONT)
        await until((store / OXIGRAPH_FOLDER).is_dir)
        counted = await client.call_tool("Sparql", {"query": COUNT, "timeout_s": 60})
    assert (refused.is_error, answered.is_error, counted.is_error) == (True, False, False)
    assert text_of(refused).startswith("The graph is still being made ready for SPARQL: ")
    assert "The other tools answer already. Ask again in " in text_of(refused)
    assert str(STATEMENTS) in text_of(counted)


async def test_a_server_over_http_makes_it_before_anybody_asks(store: Path) -> None:
    with started({}, str(store)) as process:
        address_of(process)
        await until((store / OXIGRAPH_FOLDER).is_dir)
        await until(lambda: not makers(store))


async def test_a_server_that_is_killed_leaves_no_process_and_nothing_that_stays(store: Path) -> None:
    with started({}, str(store)) as process:
        await until(lambda: left_overs(store))
        (maker,) = makers(store)
        os.kill(maker, signal.SIGSTOP)
        process.kill()
        await until(lambda: not Path("/proc", str(maker)).exists())
    assert not (store / OXIGRAPH_FOLDER).exists()
    making = SparqlMaking(open_store(store))
    await making.ready(900)
    making.close()
    assert left_overs(store) == []
