"""Long queries hold up neither short ones nor other callers: in which order they have their turn."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx2
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, ToolAnnotations

from kg_adapters.calls import calling_as, current_caller
from kg_adapters.errors import BackendUnavailable
from kg_adapters.local.sparql.pool import SparqlLimits, SparqlPool
from kg_adapters.prefixes import Prefixes
from kg_adapters.worker_pool import TooManyWait, Turns
from kg_boundary.machine import memory_bytes
from kg_server.mcp_server import SextantServer

SHORT_S = 1_000.0
"""Played by hand: nothing here waits for it."""
PATTERNS = " . ".join(f"?a{number} ?b{number} ?c{number}" for number in range(9))
BOMB = f"SELECT (COUNT(*) AS ?n) {{ {PATTERNS} }}"


@dataclass
class Floor:
    """Where work is done: it begins, and ends when a test says so; what happened is on record."""

    places: int
    max_waiting: int = 100
    now: float = 0.0
    events: list[str] = field(default_factory=list[str])
    ends: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])
    turns: Turns = field(init=False)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self.turns = Turns(self.places, max_waiting=self.max_waiting, short_s=SHORT_S, clock=lambda: self.now)

    async def work(self, name: str, caller: str = "") -> None:
        end = self.ends.setdefault(name, anyio.Event())

        async def begin() -> None:
            self._note(f"{name} begins")
            try:
                await end.wait()
            except anyio.get_cancelled_exc_class():
                self._note(f"{name} is stopped")
                raise

        try:
            await self.turns.run(self.turns.turn(caller), begin)
        except TooManyWait as refusal:
            self._note(f"{name} is refused behind {refusal.waiting}")
        else:
            self._note(f"{name} ends")

    def end(self, *names: str) -> None:
        for name in names:
            self.ends[name].set()

    async def until(self, *events: str) -> None:
        with anyio.fail_after(30):
            while not set(events) <= set(self.events):
                await self._changed.wait()

    async def settle(self) -> None:
        """Let everything happen that can happen without another word."""
        for _ in range(20):
            await anyio.lowlevel.checkpoint()

    def _note(self, event: str) -> None:
        self.events.append(event)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


async def test_short_work_passes_long_work_which_begins_again_when_a_place_is_free() -> None:
    floor = Floor(2)
    async with anyio.create_task_group() as tasks:
        for name in ("long", "longer"):
            tasks.start_soon(floor.work, name)
            await floor.until(f"{name} begins")
        floor.now = SHORT_S
        tasks.start_soon(floor.work, "short")
        await floor.until("short begins")
        await floor.settle()
        floor.end("short")
        await floor.until("short ends")
        await floor.settle()
        # Nobody waits for the place that was kept but work that has had its chance.
        assert floor.events[-1] == "short ends"
        tasks.start_soon(floor.work, "another")
        await floor.until("another begins")
        floor.end("another", "long")
        await floor.until("long ends")
        floor.end("longer")
    assert floor.events == [
        "long begins",
        "longer begins",
        "longer is stopped",
        "short begins",
        "short ends",
        "another begins",
        *(event for event in floor.events[6:8] if event in {"another ends", "long ends"}),
        "longer begins",
        "longer ends",
    ]


async def test_work_in_the_kept_place_has_its_time_before_it_gives_way() -> None:
    floor = Floor(2)
    async with anyio.create_task_group() as tasks:
        for name in ("long", "quick"):
            tasks.start_soon(floor.work, name)
            await floor.until(f"{name} begins")
        floor.now = SHORT_S - 1
        tasks.start_soon(floor.work, "short")
        await floor.settle()
        floor.end("quick")
        await floor.until("short begins")
        floor.end("long", "short")
    assert "quick is stopped" not in floor.events


async def test_where_nobody_waits_all_places_are_used_to_the_end() -> None:
    floor = Floor(3)
    async with anyio.create_task_group() as tasks:
        for name in ("a", "b", "c"):
            tasks.start_soon(floor.work, name)
            await floor.until(f"{name} begins")
        floor.now = 100 * SHORT_S
        await floor.settle()
        floor.end("a", "b", "c")
    assert [event for event in floor.events if "stopped" in event] == []


async def test_long_work_does_not_give_way_to_long_work() -> None:
    floor = Floor(2)
    async with anyio.create_task_group() as tasks:
        for name in ("a", "b"):
            tasks.start_soon(floor.work, name)
            await floor.until(f"{name} begins")
        floor.now = SHORT_S
        tasks.start_soon(floor.work, "c")
        await floor.until("b is stopped", "c begins")
        floor.now = 2 * SHORT_S
        await floor.settle()
        assert floor.events[-1] == "c begins"
        floor.end("a", "b", "c")
    assert "c is stopped" not in floor.events


async def test_who_has_the_kept_place_keeps_what_becomes_free_and_the_next_has_the_kept_one() -> None:
    floor = Floor(2)
    async with anyio.create_task_group() as tasks:
        for name in ("a", "b"):
            tasks.start_soon(floor.work, name)
            await floor.until(f"{name} begins")
        floor.now = SHORT_S
        floor.end("a")
        await floor.until("a ends")
        tasks.start_soon(floor.work, "c")
        await floor.until("c begins")
        floor.now = 2 * SHORT_S
        tasks.start_soon(floor.work, "d")
        await floor.until("d begins")
        floor.end("b", "c", "d")
    assert [event for event in floor.events if "stopped" in event] == ["c is stopped"]


async def test_a_single_place_is_nobodys_but_the_first() -> None:
    floor = Floor(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(floor.work, "a")
        await floor.until("a begins")
        floor.now = SHORT_S
        tasks.start_soon(floor.work, "b")
        await floor.settle()
        floor.end("a", "b")
    assert floor.events == ["a begins", "a ends", "b begins", "b ends"]


async def test_callers_take_turns_however_much_one_of_them_asks() -> None:
    floor = Floor(1)
    names = [f"flood {number}" for number in range(5)]
    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(floor.work, name, "flooding")
            await floor.settle()
        for name in ("one", "two"):
            tasks.start_soon(floor.work, name, "modest")
            await floor.settle()
        floor.end(*names, "one", "two")
    begun = [event.removesuffix(" begins") for event in floor.events if event.endswith("begins")]
    assert begun == ["flood 0", "flood 1", "one", "flood 2", "two", "flood 3", "flood 4"]


async def test_when_no_more_may_wait_the_longest_line_loses_its_last() -> None:
    floor = Floor(1, max_waiting=3)
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(floor.work, f"flood {number}", "flooding")
            await floor.settle()
        tasks.start_soon(floor.work, "one", "modest")
        await floor.settle()
        floor.end(*floor.ends)
    assert [event for event in floor.events if "refused" in event] == [
        "flood 4 is refused behind 3",
        "flood 3 is refused behind 3",
    ]
    assert "one ends" in floor.events


@pytest.mark.parametrize("waiting", [True, False])
async def test_who_goes_away_leaves_its_place_to_others(waiting: bool) -> None:
    floor = Floor(1)
    async with anyio.create_task_group() as tasks:
        leaving = anyio.CancelScope()

        async def leave() -> None:
            with leaving:
                await floor.work("leaving")

        stay = partial(floor.work, "staying")
        first, second = (stay, leave) if waiting else (leave, stay)
        tasks.start_soon(first)
        await floor.settle()
        tasks.start_soon(second)
        await floor.settle()
        leaving.cancel()
        await floor.settle()
        assert floor.turns.waiting == 0
        floor.end("staying")
        await floor.until("staying ends")
        tasks.start_soon(floor.work, "next")
        await floor.until("next begins")
        floor.end("next")
    assert floor.events[-1] == "next ends"


@given(
    st.integers(min_value=1, max_value=4),
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc"), st.booleans()), min_size=1, max_size=25),
)
def test_whatever_is_asked_no_more_work_at_once_than_may_and_all_of_it_is_done(
    places: int, asked: list[tuple[int, str, bool]]
) -> None:
    clock = [0.0]
    at_work: list[int] = []
    most = [0]
    done: list[int] = []

    async def play() -> None:
        turns = Turns(places, short_s=3.0, clock=lambda: clock[0])

        async def work(number: int) -> None:
            at_work.append(number)
            most[0] = max(most[0], len(at_work))
            try:
                for _ in range(asked[number][0]):
                    clock[0] += 1
                    await anyio.lowlevel.checkpoint()
            finally:
                at_work.remove(number)

        async def call(number: int) -> None:
            with anyio.CancelScope() as scope:
                if asked[number][2]:
                    scope.deadline = anyio.current_time()
                await turns.run(turns.turn(asked[number][1]), lambda: work(number))
            done.append(number)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(len(asked)):
                    tasks.start_soon(call, number)
        assert turns.waiting == 0

    anyio.run(play)
    assert (sorted(done), at_work, most[0] <= places) == (list(range(len(asked))), [], True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    lines = "".join(f"<http://x/s{number}> <http://x/r> <http://x/o{number}> .\n" for number in range(300))
    pyoxigraph.Store(store / "oxigraph").bulk_load(lines, pyoxigraph.RdfFormat.N_TRIPLES)
    return store


async def test_a_light_query_is_answered_while_two_long_ones_have_all_the_workers(folder: Path) -> None:
    pool = SparqlPool(folder, Prefixes(), SparqlLimits(workers=2))
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(lambda: pool.select(BOMB, timeout_s=600, max_rows=10))
        with anyio.fail_after(60):
            while len(pool.workers.busy) < 2:
                await anyio.lowlevel.checkpoint()
        answer = await pool.select("ASK { ?s ?p ?o }", timeout_s=60, max_rows=1)
        assert (answer.truth, len(pool.workers.busy)) == (True, 1)
        tasks.cancel_scope.cancel()
    await pool.aclose()


async def test_a_full_house_is_told_in_a_sentence(folder: Path) -> None:
    pool = SparqlPool(folder, Prefixes(), SparqlLimits(workers=1, max_waiting=2))
    refusals: list[str] = []
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(lambda: pool.select(BOMB, timeout_s=600, max_rows=10))
        with anyio.fail_after(60):
            while not pool.workers.busy:
                await anyio.lowlevel.checkpoint()
        with pytest.raises(BackendUnavailable) as caught:
            await pool.select("ASK { ?s ?p ?o }", timeout_s=60, max_rows=1)
        refusals.append(str(caught.value))
        tasks.cancel_scope.cancel()
    await pool.aclose()
    assert refusals == ["The server is busy: 2 queries wait for their turn already. Ask again in a moment."]


@pytest.mark.parametrize(
    ("limits", "processors", "gigabytes", "workers", "worker_bytes"),
    [
        (SparqlLimits(), 1, 64, 2, 4 << 30),
        (SparqlLimits(), 3, 64, 3, 4 << 30),
        (SparqlLimits(), 64, 64, 4, 4 << 30),
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


async def test_over_http_each_connection_is_a_caller() -> None:
    server = SextantServer("callers", version="1", instructions="", timeout_s=10)

    async def whose() -> str:
        """Say who calls."""
        return current_caller()

    server.provide(whose, "Whose", ToolAnnotations())
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    asked: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "Whose"}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    said: list[object] = []
    async with app.router.lifespan_context(app):
        for port in (1_001, 1_002):
            transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", port))
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                answer = await client.post("/mcp", json=asked, headers=headers)
                said.append(CallToolResult.model_validate(answer.json()["result"]).content[0].model_dump()["text"])
    assert said == ["127.0.0.1 1001", "127.0.0.1 1002"]


def test_a_caller_is_one_only_inside_its_call() -> None:
    with calling_as("one"):
        assert current_caller() == "one"
    assert current_caller() == ""
