from collections.abc import AsyncGenerator
from inspect import getmembers, isfunction
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError

from calls import reply_of
from cli_runs import write_graph
from kg_adapters.errors import InvalidSource
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.forwarding import ForwardingAdapter
from kg_adapters.local.pending import PendingAdapter
from kg_adapters.local.reloading import ReloadingAdapter
from kg_adapters.progress import Progress
from kg_adapters.protocol import KGAdapter
from kg_adapters.testing.degree_contract import DegreeContract
from kg_adapters.testing.neighbor_contract import NeighborContract
from kg_adapters.testing.paging_contract import PagingContract
from kg_server.app import build_server
from kg_server.commands.graphs import opened, opened_or_pending
from kg_server.commands.progress import ImportStopped, StoppableProgress
from kg_server.commands.serve import server_of
from kg_server.settings import Settings
from small_graphs import store_of

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
    async with opened_or_pending(settings, patience_s=0) as graph:
        assert isinstance(graph, PendingAdapter)
        async with Client(server_of(graph, settings)) as client:
            yield client


class TestPendingAdapter(NeighborContract, PagingContract, DegreeContract):
    """Where a question has many arguments, every one of them is passed on."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.path = tmp_path

    async def open_graph(self, triples: str) -> KGAdapter:
        graph = PendingAdapter(self.path)
        graph.take(LocalAdapter(store_of(self.path, triples)))
        return graph


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


async def test_a_graph_that_opens_at_once_needs_no_stand_in(settings: Settings) -> None:
    async with opened_or_pending(settings, patience_s=60) as graph:
        assert isinstance(graph, ReloadingAdapter)


async def test_handshake_and_lists_do_not_wait_but_calls_do_and_say_how_far_it_is(tmp_path: Path) -> None:
    graph = PendingAdapter(tmp_path / "big.nt.gz")
    graph.note(Progress("reading", 430, 1_000, 1_200_000))
    async with Client(server_of(graph, Settings(timeout_s=0.01))) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(CALLS)
        reply = reply_of(await client.call_tool("Retrieve", CALLS["Retrieve"]))
        expected = "The graph 'big' is still being imported, 43% of its files read. Call again in a while."
        assert (reply.is_error, reply.text) == (True, expected)
        with pytest.raises(MCPError, match="'big' is still being imported"):
            await client.read_resource("kg://schema")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_waits_is_answered_as_soon_as_the_graph_is_open(tmp_path: Path, mode: str) -> None:
    graph, summaries = PendingAdapter(tmp_path), list[str]()
    async with (
        Client(server_of(graph, Settings(timeout_s=60)), mode=mode) as client,
        anyio.create_task_group() as tasks,
    ):

        async def ask() -> None:
            summaries.append(reply_of(await client.call_tool("Degree", {"entity": "http://a"})).summary)

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert summaries == []
        graph.take(LocalAdapter(store_of(tmp_path, "<http://a> <http://b> <http://c> .")))
    await graph.aclose()
    assert summaries == ["a (<http://a>) has 1 distinct neighbour over 1 relation."]


async def test_a_graph_that_cannot_be_opened_in_the_end_says_so_to_every_call_and_in_the_log(
    broken: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opened_or_pending(broken, patience_s=0) as graph, Client(server_of(graph, broken)) as client:
        reply = reply_of(await client.call_tool("Schema", {}))
    assert reply.is_error
    assert reply.text.startswith("japan.ttl, line 1, column 1: ")
    # The client is told the name of the file, and whoever sits at the machine where it lies.
    assert f"kg-sextant: {Path(broken.graph).parent}/{reply.text}" in capsys.readouterr().err.splitlines()


async def test_a_graph_that_cannot_be_opened_at_once_ends_the_command(broken: Settings) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with opened_or_pending(broken, patience_s=60):
            pass
    assert [type(error) for error in caught.value.exceptions] == [InvalidSource]


def test_an_import_that_nobody_waits_for_ends_at_its_next_step() -> None:
    seen: list[Progress] = []
    progress = StoppableProgress(seen.append)
    step = Progress("reading", 1, 2, 3)
    progress(step)
    progress.stop()
    with pytest.raises(ImportStopped):
        progress(step)
    assert seen == [step]
