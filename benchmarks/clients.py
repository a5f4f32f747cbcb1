"""Thirty-two clients at once."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from statistics import median
from time import perf_counter
from typing import Final

import anyio
from mcp import Client

from benchmarks.bench import Bench
from benchmarks.figures import Base, Figure, Line, Section, Target
from benchmarks.servers import FLOOR, Call, get_neighbor, ours, over_http, over_stdio, ping
from benchmarks.timing import Timings

CLIENTS: Final = 32
_CALLS: Final = 10
_RATE_TARGET: Final = (Target("ratio", 0.9, least=True),)


async def measure_clients(bench: Bench) -> Section:
    """Let 32 callers ask at once, over one stdio session and as 32 HTTP clients, in turns with the trivial tool."""
    store = str(bench.graph.store)
    async with over_stdio(FLOOR) as floor, over_stdio(ours(store)) as served:
        stdio = await _in_turns(bench, [floor] * CLIENTS, [served] * CLIENTS)
    with over_http(*FLOOR, "--http") as floor_url, over_http(*ours(store), "--http", "127.0.0.1:0") as our_url:
        async with AsyncExitStack() as stack:
            floors = [await stack.enter_async_context(Client(floor_url)) for _ in range(CLIENTS)]
            served_by = [await stack.enter_async_context(Client(our_url)) for _ in range(CLIENTS)]
            http = await _in_turns(bench, floors, served_by)
    lines = (*_lines("one stdio session", *stdio, _RATE_TARGET), *_lines("HTTP", *http))
    notes = ("GetNeighbor of low-degree entities. All clients share one process, which limits the calls per second.",)
    return Section("clients", f"{CLIENTS} clients at once", lines, notes)


async def _in_turns(bench: Bench, floors: Sequence[Client], served: Sequence[Client]) -> tuple["_Bursts", "_Bursts"]:
    theirs, own = _Bursts(), _Bursts()
    await _Bursts().add(floors, ping, bench.work.low)
    await _Bursts().add(served, get_neighbor, bench.work.low)
    for _ in range(bench.repeats):
        await theirs.add(floors, ping, bench.work.low)
        await own.add(served, get_neighbor, bench.work.low)
    return theirs, own


class _Bursts:
    """Bursts of calls: how long each call took, in seconds, and the calls per second of each burst."""

    def __init__(self) -> None:
        self._latencies: list[float] = []
        self._rates: list[float] = []

    async def add(self, clients: Sequence[Client], call: Call, entities: Sequence[str]) -> None:
        """Let every client make its calls one after the other, all clients at once."""

        async def ask(number: int, client: Client) -> None:
            for turn in range(_CALLS):
                began = perf_counter()
                await call(client, entities[(number * _CALLS + turn) % len(entities)])
                self._latencies.append(perf_counter() - began)

        started = perf_counter()
        async with anyio.create_task_group() as group:
            for number, client in enumerate(clients):
                group.start_soon(ask, number, client)
        self._rates.append(len(clients) * _CALLS / (perf_counter() - started))

    @property
    def timings(self) -> Timings:
        """How long the calls took."""
        return Timings(tuple(self._latencies))

    @property
    def rate(self) -> Figure:
        """The median of the calls per second."""
        return Figure(median(self._rates), "calls/s")


def _lines(how: str, floor: _Bursts, own: _Bursts, targets: tuple[Target, ...] = ()) -> tuple[Line, Line]:
    rates = Base("floor", floor.rate, own.rate.median / floor.rate.median)
    p95 = Figure(floor.timings.p95)
    return (
        Line(f"{how}, calls", own.rate, targets, base=rates),
        Line(f"{how}, p95 of a call", Figure(own.timings.p95), base=Base("floor", p95, own.timings.p95 / p95.median)),
    )
