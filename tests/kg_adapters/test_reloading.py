"""A store that is imported again while it is open is answered from as it was, or as it is, never as a mixture."""

import logging
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from subprocess import Popen

import anyio
import pytest

from kg_adapters.errors import GraphReplaced, InvalidRequest
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.reloading import LocalGraph, ReloadingAdapter
from kg_adapters.models import PathRequest
from kg_adapters.requests import NeighborRequest
from kg_adapters.testing import HUB, TOWNS, KGAdapterContract, ValuesContract, iri, ntriples
from small_graphs import shared_store, store_of

OLD = (*TOWNS, 'tokyo label "Old Tokyo"@en')
NEW = (*TOWNS, 'tokyo label "New Tokyo"@en', "tokyo renamed edo")
QUERY = f'ASK {{ <{iri("tokyo").value}> ?p "New Tokyo"@en }}'


@pytest.fixture
async def graph(tmp_path: Path) -> AsyncIterator[ReloadingAdapter]:
    """The old graph, from a store that a test may replace."""
    opened = ReloadingAdapter(store_of(tmp_path, ntriples(OLD)))
    yield opened
    await opened.aclose()


def replace(folder: Path) -> None:
    store_of(folder, ntriples(NEW))


async def truth(graph: ReloadingAdapter) -> bool | None:
    return (await graph.select(QUERY, timeout_s=30, max_rows=1)).truth


async def processes(graph: LocalGraph) -> Sequence[Popen[bytes]]:
    assert isinstance(graph, LocalAdapter)
    return graph.sparql.pool.workers.processes


async def everything(graph: ReloadingAdapter) -> set[str]:
    """Return which graphs, old or new, all the ways to ask answer from."""
    tokyo = iri("tokyo")
    label = (await graph.labels([tokyo]))[tokyo].split()[0]
    found = (await graph.search("New Tokyo", limit=1))[0].matched_text.split()[0]
    relations = {summary.iri for summary in (await graph.schema()).relations}
    described = (await graph.describe([iri("edo")])) != {}
    asked = await truth(graph)
    claims = (iri("renamed") in relations, described, asked is True)
    return {label, found, *("New" if claim else "Old" for claim in claims)}


class TestReloadingAdapter(ValuesContract, KGAdapterContract):
    """As long as nothing is replaced, it is the graph itself."""

    async def open_graph(self, triples: str) -> ReloadingAdapter:
        return ReloadingAdapter(shared_store(triples, form="nt"))


async def test_a_store_that_was_imported_again_is_answered_from_as_it_is_now(
    graph: ReloadingAdapter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await everything(graph) == {"Old"}
    replace(tmp_path)
    assert await everything(graph) == {"New"}
    assert "was imported again; answers come from the new one" in caplog.text


async def test_whatever_is_asked_first_after_the_import_is_new(graph: ReloadingAdapter, tmp_path: Path) -> None:
    replace(tmp_path)
    assert await truth(graph) is True
    assert await everything(graph) == {"New"}


async def test_a_snapshot_stays_what_it_was(graph: ReloadingAdapter, tmp_path: Path) -> None:
    tokyo = iri("tokyo")
    async with graph.snapshot():
        before = await graph.labels([tokyo]), await graph.schema(), await truth(graph)
        replace(tmp_path)
        assert (await graph.labels([tokyo]), await graph.schema()) == before[:2]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(graph.labels, [tokyo])
        with pytest.raises(GraphReplaced, match="was imported again or removed"):
            await graph.search("Tokyo", limit=1)
        async with graph.snapshot(newest=True):
            assert await everything(graph) == {"New"}
        assert await graph.labels([tokyo]) == before[0]
    assert await everything(graph) == {"New"}


async def test_what_an_old_snapshot_holds_is_given_back_when_its_last_user_ends(
    graph: ReloadingAdapter, tmp_path: Path
) -> None:
    async with graph.snapshot(), graph.snapshot():
        await truth(graph)
        workers = await graph.ask(processes)
        replace(tmp_path)
        async with graph.snapshot(newest=True):
            assert [worker.returncode for worker in workers] == [None]
    assert [worker.returncode is None for worker in workers] == [False]


async def test_a_cursor_of_the_old_graph_is_told_to_be_one(tmp_path: Path) -> None:
    graph = ReloadingAdapter(store_of(tmp_path, ntriples(HUB)))
    page = (await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=3)))[iri("japan")]
    # As many statements as before, of the same length.
    store_of(tmp_path, ntriples(HUB).replace("person0000", "person9999"))
    with pytest.raises(InvalidRequest, match="as it was before it was imported again"):
        await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=3, cursor=page.cursor))
    store_of(tmp_path, ntriples(HUB))
    rest = await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=3, cursor=page.cursor))
    assert len(rest[iri("japan")].triples) == 3


@pytest.mark.parametrize("damage", ["content", "format"])
async def test_a_new_store_that_cannot_be_used_leaves_the_old_one_in_its_place(
    graph: ReloadingAdapter, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    assert await everything(graph) == {"Old"}
    replace(tmp_path)
    path = tmp_path / "store" / ("index/nodes.text.npy" if damage == "content" else "store.json")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"~" if damage == "content" else content.replace(b'"format": 7', b'"format": 9'))
    for _ in range(3):
        labels = await graph.labels([iri("tokyo")])
        found = await graph.search("New Tokyo", limit=1)
        assert (labels[iri("tokyo")], found[0].matched_text) == ("Old Tokyo", "Old Tokyo")
        with pytest.raises(GraphReplaced):
            await truth(graph)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "keeps answering as before" in warnings[0].getMessage()
    replace(tmp_path)
    assert await everything(graph) == {"New"}


async def test_a_store_that_was_removed_goes_on_where_it_can(graph: ReloadingAdapter, tmp_path: Path) -> None:
    tokyo = iri("tokyo")
    before = await graph.schema()
    shutil.rmtree(tmp_path / "store")
    assert (await graph.labels([tokyo]), await graph.schema()) == ({tokyo: "Old Tokyo"}, before)
    with pytest.raises(GraphReplaced, match="was imported again or removed"):
        await graph.search("Tokyo", limit=1)
    replace(tmp_path)
    assert await everything(graph) == {"New"}


async def test_a_store_between_the_two_renames_of_an_import_is_waited_for(
    graph: ReloadingAdapter, tmp_path: Path
) -> None:
    (tmp_path / "store").rename(tmp_path / ".store.old-1234abcd")
    assert (await graph.labels([iri("tokyo")]))[iri("tokyo")] == "Old Tokyo"
    assert [found.matched_text for found in await graph.search("Old Tokyo", limit=1)] == ["Old Tokyo"]


async def test_two_graphs_in_one_task_are_kept_apart(tmp_path: Path) -> None:
    folders = (tmp_path / "one", tmp_path / "two")
    for folder in folders:
        folder.mkdir()
    one, two = (ReloadingAdapter(store_of(folder, ntriples(OLD))) for folder in folders)
    async with one.snapshot():
        replace(folders[0])
        replace(folders[1])
        assert (await one.labels([iri("tokyo")]), await two.labels([iri("tokyo")])) == (
            {iri("tokyo"): "Old Tokyo"},
            {iri("tokyo"): "New Tokyo"},
        )


async def test_paths_and_neighbours_follow_too(graph: ReloadingAdapter, tmp_path: Path) -> None:
    replace(tmp_path)
    request = PathRequest(iri("tokyo"), iri("edo"), max_hops=1, limit=5)
    assert (await graph.paths(request)).total.value == 1
    assert (await graph.degrees([iri("edo")]))[iri("edo")].neighbors.value == 1
