"""An extraction that was stopped goes on where it was, and gives what it would have given."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from extractions import WatchedGraph, content_of, extracted, order_for
from kg_adapters.errors import BackendUnavailable, InvalidRequest, InvalidSource
from kg_adapters.extraction.extract import Order
from kg_adapters.extraction.journal import Bounds, Journal
from kg_adapters.importing.build import build_store
from kg_adapters.labels import Vocabulary
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import LocalStore, open_store
from kg_adapters.open_options import ExtractionProgress, Progress
from kg_adapters.terms import Node
from kg_adapters.testing import TANGLE, TOWNS, iri, ntriples
from small_graphs import store_of

BOUNDS = Bounds(hops=3, batch=2, max_degree=12)
ROOT = Path(__file__).parents[1]

KILLED_EXTRACTION = """
import os, signal, sys
from pathlib import Path
import anyio
from extractions import WatchedGraph, extracted
from kg_adapters.local.store import open_store
from test_extraction_resume import ORDER

class Deadly(WatchedGraph):
    def fail(self):
        os.kill(os.getpid(), signal.SIGKILL)

def die(progress):
    if sys.argv[4] == progress.stage:
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(extracted, Deadly(open_store(Path(sys.argv[1])), int(sys.argv[3])), ORDER, Path(sys.argv[2]), die)
"""


class FailingGraph(WatchedGraph):
    """Answers so many calls, and is gone then."""

    def fail(self) -> None:
        raise BackendUnavailable("The graph is gone.")


def order(bounds: Bounds = BOUNDS) -> Order:
    return order_for(f"<{iri('n0')}>", f"<{iri('tokyo')}>", f"<{iri('nobody')}>", bounds=bounds)


ORDER = order()


@pytest.fixture
def source(tmp_path: Path) -> LocalStore:
    (tmp_path / "source").mkdir()
    return store_of(tmp_path / "source", ntriples((*TANGLE, *TOWNS, 'n3 label "three"@en', "n3 type Number")))


@pytest.fixture
async def whole(source: LocalStore, tmp_path: Path) -> Path:
    """Extract without an interruption."""
    return (await extracted(WatchedGraph(source), order(), tmp_path / "whole")).folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def die(source: LocalStore, target: Path, *, answers: int = 99_999, stage: str = "") -> int:
    """Extract in a process that is killed after so many answers or in a stage, and return how it ended."""
    return subprocess.run(
        [sys.executable, "-c", KILLED_EXTRACTION, source.folder, target, str(answers), stage],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'kg_adapters'}"},
        check=False,
    ).returncode


async def calls_of_a_whole_run(source: LocalStore, target: Path) -> list[tuple[str, tuple[Node, ...]]]:
    graph = WatchedGraph(source)
    await extracted(graph, order(), target)
    return graph.asked


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("answers", [1, 9])
async def test_killed_after_any_answer_the_next_run_gives_the_same_store(
    source: LocalStore, whole: Path, tmp_path: Path, answers: int
) -> None:
    target, graph = tmp_path / "store", WatchedGraph(source)
    assert (die(source, target, answers=answers), target.exists()) == (-signal.SIGKILL, False)
    report = await extracted(graph, order(), target)
    assert content_of(target) == content_of(whole)
    assert [each.line for each in report.unknown] == [3]
    assert names(tmp_path) == {"source", "whole", "store"}
    # Of a batch that was not answered in full, everything is asked again.
    everything = await calls_of_a_whole_run(source, tmp_path / "again")
    assert len(everything) <= len(graph.asked) + answers <= len(everything) + BOUNDS.batch


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("stage", ["reading", "saving"])
async def test_killed_while_it_writes_the_next_run_asks_nothing(
    source: LocalStore, whole: Path, tmp_path: Path, stage: str
) -> None:
    target, graph = tmp_path / "store", WatchedGraph(source)
    assert (die(source, target, stage=stage), target.exists()) == (-signal.SIGKILL, False)
    await extracted(graph, order(), target)
    assert content_of(target) == content_of(whole)
    assert graph.asked == []
    assert names(tmp_path) == {"source", "whole", "store"}


async def test_a_graph_that_fails_in_the_middle_leaves_the_old_store(source: LocalStore, tmp_path: Path) -> None:
    target = tmp_path / "store"
    await extracted(WatchedGraph(source), order(Bounds(hops=1)), target)
    before = content_of(target)
    with pytest.raises(BackendUnavailable, match="is gone"):
        await extracted(FailingGraph(source, answers=4), order(), target)
    assert content_of(target) == before
    assert "store.unfinished" in names(tmp_path)


async def test_another_choice_of_literals_goes_on_with_the_same_walk(source: LocalStore, tmp_path: Path) -> None:
    everything = await calls_of_a_whole_run(source, tmp_path / "again")
    walked = [kind for kind, _ in everything].index("features")
    with pytest.raises(BackendUnavailable):
        await extracted(FailingGraph(source, answers=walked + 1), order(), tmp_path / "store")
    graph = WatchedGraph(source)
    now = order()
    await extracted(graph, Order(now.request, now.content, "none"), tmp_path / "store")
    assert {kind for kind, _ in graph.asked} == {"describe"}


@pytest.mark.parametrize(
    ("lines", "bounds", "difference"),
    [
        ((f"<{iri('n0')}>",), BOUNDS, "of other entities"),
        ((), Bounds(hops=2, batch=2, max_degree=10), r"of other bounds, --hops 3 --max-degree 12\."),
    ],
)
async def test_an_unfinished_extraction_of_something_else_is_not_thrown_away(
    source: LocalStore, tmp_path: Path, lines: tuple[str, ...], bounds: Bounds, difference: str
) -> None:
    with pytest.raises(BackendUnavailable):
        await extracted(FailingGraph(source, answers=4), order(), tmp_path / "store")
    other = order_for(*lines, bounds=bounds) if lines else order(bounds)
    with pytest.raises(InvalidRequest, match=difference):
        await extracted(WatchedGraph(source), other, tmp_path / "store")
    Journal.beside(tmp_path / "store").clear()
    assert (await extracted(WatchedGraph(source), other, tmp_path / "store")).seeds >= 1


async def test_the_graph_and_the_fields_are_part_of_what_was_begun(source: LocalStore, tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable):
        await extracted(FailingGraph(source, answers=4), order(), tmp_path / "store")
    begun = order()
    for change, difference in (({"graph": "other"}, "the graph 'small'"), ({"fields": ("x",)}, "fields, entity, ent")):
        now = Order(begun.request.model_copy(update=change), begun.content)
        with pytest.raises(InvalidRequest, match=difference):
            await extracted(WatchedGraph(source), now, tmp_path / "store")


@pytest.mark.parametrize("damage", [b"", b'{"asked": ["x"], "rows": []}'])
async def test_an_answer_that_was_damaged_is_asked_for_again(
    source: LocalStore, whole: Path, tmp_path: Path, damage: bytes
) -> None:
    with pytest.raises(BackendUnavailable):
        await extracted(FailingGraph(source, answers=9), order(), tmp_path / "store")
    (tmp_path / "store.unfinished" / "hop-1-000000.json").write_bytes(damage)
    await extracted(WatchedGraph(source), order(), tmp_path / "store")
    assert content_of(tmp_path / "store") == content_of(whole)


def test_an_answer_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"hop-1-000000\.json is gone"):
        Journal(tmp_path).write_statements(["hop-1-000000"])


async def test_a_place_that_cannot_be_written_is_an_error(source: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "store.unfinished").touch()
    with pytest.raises(InvalidSource, match="cannot be written"):
        await extracted(WatchedGraph(source), order(), tmp_path / "store")


async def test_a_store_that_cannot_be_written_is_an_error_after_which_nothing_is_asked_again(
    source: LocalStore, whole: Path, tmp_path: Path
) -> None:
    def lose(progress: Progress | ExtractionProgress) -> None:
        if progress.stage == "saving":
            for building in tmp_path.glob(".store.building-*"):
                shutil.rmtree(building)

    with pytest.raises(InvalidSource, match=r"store cannot be written: No such file .* run the same command again"):
        await extracted(WatchedGraph(source), order(), tmp_path / "store", lose)
    graph = WatchedGraph(source)
    await extracted(graph, order(), tmp_path / "store")
    assert (content_of(tmp_path / "store"), graph.asked) == (content_of(whole), [])


def test_a_journal_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store.unfinished").symlink_to("elsewhere")
    with pytest.raises(InvalidSource, match=r"store\.unfinished cannot be removed"):
        Journal.beside(tmp_path / "store").clear()


async def test_a_graph_without_type_relations_is_not_asked_for_types(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    file = tmp_path / "source" / "graph.nt"
    file.write_text(ntriples(["a near b"]), encoding="utf-8")
    build_store([file], tmp_path / "plain", ImportOptions(vocabulary=Vocabulary(types=())))
    graph = WatchedGraph(open_store(tmp_path / "plain"))
    await extracted(graph, order_for(f"<{iri('a')}>", bounds=Bounds(hops=1)), tmp_path / "store")
    assert {kind for kind, _ in graph.asked} == {"describe", "neighbors", "features"}
