"""Worker processes: long requests hold up no short ones, no more wait than may, and secrets stay here."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import toy_workers
from kg_adapters.calls import working_for
from kg_adapters.errors import BackendError, BackendUnavailable
from kg_adapters.local.sparql.pool import SparqlLimits
from kg_adapters.worker_pool import WorkerPool, WorkerTimeout
from kg_adapters.worker_process import WorkerEnded
from kg_boundary.machine import child_environment, memory_bytes
from patience import PATIENCE_S

PARENT = """
import sys
from kg_adapters.worker_process import WorkerProcess
worker = WorkerProcess("toy_workers:work")
print(worker.process.pid, flush=True)
worker.ask(__import__("pathlib").Path("never"))
"""


class Floor:
    """A pool, what was asked of it, and what has been answered."""

    def __init__(self, folder: Path, workers: int, *, max_waiting: int = 10, short_s: float = 0) -> None:
        self.folder = folder
        self.pool = WorkerPool("toy_workers:work", reply=str, workers=workers, max_waiting=max_waiting, short_s=short_s)
        self.answered: list[str] = []

    async def ask(self, name: str) -> None:
        self.answered.append(await self.pool.ask(self.folder / name, timeout_s=60))

    def finish(self, *names: str) -> None:
        for name in names:
            (self.folder / name).touch()

    async def until(self, claim: Callable[[], bool]) -> None:
        with anyio.fail_after(PATIENCE_S):
            while not claim():
                await anyio.lowlevel.checkpoint()


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(toy_workers.__file__).parent))


async def test_a_short_request_passes_long_ones_which_are_answered_later(tmp_path: Path) -> None:
    floor = Floor(tmp_path, 2)
    async with aclosing(floor.pool), anyio.create_task_group() as tasks:
        for name in ("a", "b"):
            tasks.start_soon(floor.ask, name)
        await floor.until(lambda: len(floor.pool.busy) == 2)
        floor.finish("short")
        await floor.ask("short")
        assert floor.answered == ["short"]
        floor.finish("a", "b")
    assert sorted(floor.answered) == ["a", "b", "short"]


async def test_of_two_long_requests_one_is_never_stopped(tmp_path: Path) -> None:
    floor = Floor(tmp_path, 2)
    async with aclosing(floor.pool), anyio.create_task_group() as tasks:
        for name in ("a", "b"):
            tasks.start_soon(floor.ask, name)
        await floor.until(lambda: len(floor.pool.busy) == 2)
        before = set(floor.pool.busy)
        for number in range(5):
            floor.finish(f"short {number}")
            await floor.ask(f"short {number}")
        assert len(before & set(floor.pool.busy)) == 1
        floor.finish("a", "b")


@pytest.mark.parametrize(("workers", "asked"), [(2, "ab"), (1, "ab")])
async def test_nothing_is_stopped_where_nobody_waits_or_there_is_one_worker(
    tmp_path: Path, workers: int, asked: str
) -> None:
    floor = Floor(tmp_path, workers)
    async with aclosing(floor.pool), anyio.create_task_group() as tasks:
        for name in asked:
            tasks.start_soon(floor.ask, name)
        await floor.until(lambda: len(floor.pool.busy) == workers)
        before = floor.pool.busy
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert floor.pool.busy == before
        floor.finish(*asked)
    assert sorted(floor.answered) == list(asked)


async def test_no_more_requests_wait_than_may_and_who_goes_away_makes_room(tmp_path: Path) -> None:
    floor = Floor(tmp_path, 1, max_waiting=1)
    async with aclosing(floor.pool), anyio.create_task_group() as tasks:
        tasks.start_soon(floor.ask, "a")
        await floor.until(lambda: len(floor.pool.busy) == 1)
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(floor.ask, "b")
            await floor.until(lambda: floor.pool.waiting == 1)
            with pytest.raises(BackendUnavailable, match="1 queries wait for their turn already"):
                await floor.ask("c")
            waiting.cancel_scope.cancel()
        with pytest.raises(WorkerTimeout) as late:
            await floor.pool.ask(tmp_path / "d", timeout_s=0.01)
        assert late.value.busy
        floor.finish("a")
    assert floor.answered == ["a"]


async def test_callers_take_turns_however_many_requests_of_one_wait_already(tmp_path: Path) -> None:
    floor = Floor(tmp_path, 1)
    greedy = [f"greedy {number}" for number in range(5)]

    async def ask(owner: str, name: str) -> None:
        with working_for(owner):
            await floor.ask(name)

    async with aclosing(floor.pool), anyio.create_task_group() as tasks:
        for name in greedy:
            tasks.start_soon(ask, "greedy", name)
        await floor.until(lambda: floor.pool.waiting == len(greedy) - 1)
        tasks.start_soon(ask, "quiet", "quiet")
        await floor.until(lambda: floor.pool.waiting == len(greedy))
        floor.finish("quiet", *greedy)
    assert floor.answered.index("quiet") <= 2
    assert sorted(floor.answered) == [*greedy, "quiet"]


async def test_a_worker_that_starts_too_late_for_a_request_serves_the_next(tmp_path: Path) -> None:
    floor = Floor(tmp_path, 1)
    floor.finish("a")
    async with aclosing(floor.pool):
        with pytest.raises(WorkerTimeout) as late:
            await floor.pool.ask(tmp_path / "a", timeout_s=0.001)
        assert not late.value.busy
        (started,) = floor.pool.processes
        await floor.ask("a")
        assert list(floor.pool.processes) == [started]


async def test_a_worker_that_ends_instead_of_replying_or_that_cannot_start_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with aclosing(WorkerPool("toy_workers:end", reply=str, workers=1)) as pool:
        with pytest.raises(WorkerEnded):
            await pool.ask(timeout_s=60)
        monkeypatch.setattr(sys, "executable", "/no/such/program")
        with pytest.raises(BackendError, match=r"^No process could be started: .* Free some memory"):
            await pool.ask(timeout_s=60)


async def test_a_worker_inherits_nothing_that_it_does_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KG_SEXTANT_ENDPOINT__PASSWORD", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "correct-horse")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    async with aclosing(WorkerPool("toy_workers:name_environment", reply=str, workers=1)) as pool:
        names = await pool.ask(timeout_s=60)
    assert [name for name in ("KG_SEXTANT", "OPENAI", "AWS") if name in names] == []
    assert {"PATH", "LC_ALL"} <= child_environment().keys()
    assert "LC_ALL" in names


@pytest.mark.skipif(sys.platform != "linux", reason="pidfd is Linux's")
def test_a_busy_worker_ends_with_its_parent_however_that_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([child], [], [], 60)
    os.close(child)
    assert ended == [child]


@pytest.mark.parametrize(
    ("limits", "processors", "gigabytes", "workers", "worker_bytes"),
    [
        (SparqlLimits(), 1, 64, 2, 4 << 30),
        (SparqlLimits(), 3, 64, 3, 4 << 30),
        (SparqlLimits(), 64, 8, 4, 1 << 30),
        (SparqlLimits(), 2, 2, 2, 1 << 29),
        (SparqlLimits(workers=8), 2, 32, 8, 2 << 30),
        (SparqlLimits(workers=1, worker_bytes=10 << 30), 2, 8, 1, 10 << 30),
    ],
)
def test_all_workers_together_stay_below_half_of_the_machine(
    limits: SparqlLimits, processors: int, gigabytes: int, workers: int, worker_bytes: int
) -> None:
    assert limits.on(processors, gigabytes << 30) == (workers, worker_bytes)


@pytest.mark.parametrize(("said", "counts"), [("1048576\n", True), ("max\n", False), ("0", False), ("nonsense", False)])
def test_the_memory_of_a_container_counts_where_it_is_less(tmp_path: Path, said: str, counts: bool) -> None:
    (limit := tmp_path / "memory.max").write_text(said)
    assert (memory_bytes((limit, tmp_path / "missing")) == 1_048_576) is counts
