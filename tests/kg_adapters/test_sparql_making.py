"""What SPARQL needs of a large store is made by a process beside the answering of everything else."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pyoxigraph
import pytest

from kg_adapters.errors import BackendError, BackendUnavailable, GraphReplaced
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.reloading import ReloadingAdapter
from kg_adapters.local.sparql.making import SparqlMaking
from kg_adapters.local.sparql.store import sparql_part
from kg_adapters.local.store import OXIGRAPH_FOLDER, LocalStore, open_store
from kg_adapters.terms import Iri
from patience import PATIENCE_S

STATEMENTS = 110_000
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows stops no process")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.nt"
    path.write_text("".join(f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> .\n" for n in range(STATEMENTS)))
    return path


@pytest.fixture(scope="module")
def built(source: Path) -> Path:
    return build_store([source], source.with_name("store"), ImportOptions(sparql=False)).folder


@pytest.fixture
def store(built: Path, tmp_path: Path) -> LocalStore:
    return open_store(shutil.copytree(built, tmp_path / "store"))


@asynccontextmanager
async def served(store: LocalStore) -> AsyncGenerator[tuple[LocalAdapter, SparqlMaking]]:
    graph = LocalAdapter(store, prepares=True)
    assert graph.sparql.making is not None
    try:
        yield graph, graph.sparql.making
    finally:
        await graph.aclose()


async def count(graph: LocalAdapter | ReloadingAdapter, timeout_s: float = 900) -> str:
    answer = await graph.select(COUNT, timeout_s=timeout_s, max_rows=1)
    return str(answer.rows[0][0])


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what another process does sets no event
            await anyio.sleep(0.01)


async def test_it_is_made_before_anybody_asks(store: LocalStore) -> None:
    making = SparqlMaking(store, delay_s=0)
    await until((store.folder / OXIGRAPH_FOLDER).is_dir)
    await making.ready(900)
    making.close()
    assert making.process is not None
    assert making.process.returncode is not None


async def test_a_query_that_cannot_wait_so_long_is_told_how_far_it_is_and_other_questions_are_answered(
    store: LocalStore,
) -> None:
    async with served(store) as (graph, making), anyio.create_task_group() as tasks:
        tasks.start_soon(count, graph)
        await until(lambda: 0 < making.done < STATEMENTS)
        assert making.process is not None
        os.kill(making.process.pid, signal.SIGSTOP)
        try:
            with pytest.raises(BackendUnavailable) as told:
                await graph.select(COUNT, timeout_s=0.01, max_rows=1)
            assert await graph.describe([Iri("http://e/7")])
        finally:
            os.kill(making.process.pid, signal.SIGCONT)
        assert "is still being prepared for SPARQL: " in str(told.value)
        assert f"of {STATEMENTS:,} statements. The other tools answer already. Ask again in " in str(told.value)
    assert (store.folder / OXIGRAPH_FOLDER).is_dir()


async def test_who_closes_the_graph_ends_the_process_and_the_next_one_begins_anew(store: LocalStore) -> None:
    async with served(store) as (graph, making), anyio.create_task_group() as tasks:
        tasks.start_soon(_fails, graph)
        await until(lambda: making.done > 0)
        process = making.process
        assert process is not None
        await graph.aclose()
        assert process.returncode == -signal.SIGKILL
    assert not (store.folder / OXIGRAPH_FOLDER).exists()
    async with served(store) as (again, _):
        assert str(STATEMENTS) in await count(again)
    assert [path.name for path in store.folder.iterdir() if path.name.startswith(".oxigraph-")] == []


async def _fails(graph: LocalAdapter) -> None:
    with pytest.raises(BackendError):
        await count(graph)


async def test_a_query_does_not_wait_longer_where_the_part_is_lost_while_the_graph_is_open(store: LocalStore) -> None:
    async with served(store) as (graph, _):
        assert str(STATEMENTS) in await count(graph)
        shutil.rmtree(store.folder / OXIGRAPH_FOLDER)
        with pytest.raises(BackendUnavailable, match="is still being prepared for SPARQL: "):
            await graph.select(COUNT, timeout_s=0.01, max_rows=1)
        assert str(STATEMENTS) in await count(graph)


async def test_of_two_graphs_on_one_store_one_makes_it_and_the_other_says_so(store: LocalStore) -> None:
    async with served(store) as (one, making), served(store) as (other, waiting), anyio.create_task_group() as tasks:
        tasks.start_soon(count, one)
        await until(lambda: making.done > 0)
        assert making.process is not None
        os.kill(making.process.pid, signal.SIGSTOP)
        try:
            tasks.start_soon(count, other)
            await until(lambda: waiting.waits)
            with pytest.raises(BackendUnavailable, match="being prepared for SPARQL, by another process: "):
                await other.select(COUNT, timeout_s=0.01, max_rows=1)
        finally:
            os.kill(making.process.pid, signal.SIGCONT)
    assert (making.done, waiting.done) == (STATEMENTS, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process ends with a thread")
async def test_the_process_goes_on_when_the_thread_ends_that_asked_for_it(store: LocalStore) -> None:
    async with served(store) as (_, making):

        async def ask_in_vain() -> None:
            with pytest.raises(BackendUnavailable):
                await making.ready(0.01)
            await until(lambda: making.done > 0)

        asker = threading.Thread(target=anyio.run, args=(ask_in_vain,))
        asker.start()
        await anyio.to_thread.run_sync(asker.join)
        first = making.process
        await making.ready(900)
        assert making.process is first


async def test_how_far_it_is_counts_lists_as_they_were_written(tmp_path: Path) -> None:
    members = " ".join(f"ex:{n}" for n in range(5_000))
    source = tmp_path / "list.ttl"
    source.write_text(f"@prefix ex: <http://e/> . ex:a ex:p ({members}) .", encoding="utf-8")
    folder = build_store([source], tmp_path / "store", ImportOptions(sparql=False)).folder
    making = SparqlMaking(open_store(folder))
    await making.ready(900)
    making.close()
    assert making.done == making.total == 10_001


async def test_a_process_that_cannot_make_it_says_why_and_is_tried_again(store: LocalStore) -> None:
    in_the_way = store.folder / "oxigraph.lock"
    in_the_way.mkdir()
    async with served(store) as (graph, _):
        with pytest.raises(BackendError, match=r"it cannot be made in .*store: Is a directory"):
            await count(graph)
        in_the_way.rmdir()
        assert str(STATEMENTS) in await count(graph)


async def test_a_store_that_is_replaced_is_made_ready_anew(store: LocalStore, source: Path, tmp_path: Path) -> None:
    graph = ReloadingAdapter(store, prepares=True)
    try:
        assert str(STATEMENTS) in await count(graph)
        more = tmp_path / "more.nt"
        more.write_text("<http://e/new> <http://e/p> <http://e/7> .\n", encoding="utf-8")
        build_store([source, more], store.folder, ImportOptions(sparql=False))
        assert str(STATEMENTS + 1) in await count(graph)
    finally:
        await graph.aclose()


async def test_a_query_that_waits_while_the_store_is_replaced_is_told_so(store: LocalStore, source: Path) -> None:
    async def ask(graph: LocalAdapter) -> None:
        with pytest.raises(GraphReplaced):
            await count(graph)

    async with served(store) as (graph, making), anyio.create_task_group() as tasks:
        tasks.start_soon(ask, graph)
        await until(lambda: making.done > 0)
        assert making.process is not None
        os.kill(making.process.pid, signal.SIGSTOP)
        try:
            build_store([source], store.folder, ImportOptions(sparql=False))
        finally:
            os.kill(making.process.pid, signal.SIGCONT)
    assert [path.name for path in store.folder.iterdir() if "oxigraph" in path.name] == []


async def test_few_statements_are_made_ready_by_the_query_itself(tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n", encoding="utf-8")
    small = build_store([tmp_path / "g.nt"], tmp_path / "store", ImportOptions(sparql=False)).folder
    graph = LocalAdapter(open_store(small), prepares=True)
    assert graph.sparql.making is None
    try:
        assert "1" in await count(graph)
    finally:
        await graph.aclose()


def test_the_part_is_closed_once_it_is_noted_what_its_files_are(tmp_path: Path) -> None:
    with sparql_part(tmp_path / "oxigraph") as part:
        part.add([("http://example.org/a", "http://example.org/knows", "http://example.org/b", None, None)])
    # Only one may be open; an open one would still delete files.
    assert len(pyoxigraph.Store(tmp_path / "oxigraph")) == 1
