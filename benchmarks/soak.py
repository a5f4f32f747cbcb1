"""Many clients ask one server everything at once for minutes: `python -m benchmarks.soak`.

Every answer must be the one that the same call gave when nobody else asked, no fact that was kept may be lost, and
nothing may leak. It prints figures for each tool, and ends with status 1 when anything is wrong or a target is missed.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

import anyio
import anyio.to_thread
from mcp import Client

from benchmarks.footprint import Footprint, children_of
from benchmarks.load_report import LoadReport
from benchmarks.servers import ours, over_stdio, running
from benchmarks.soak_callers import Caller, Mix
from benchmarks.soak_mix import Known, hub_pages, lasting_questions
from benchmarks.soak_report import Tally
from benchmarks.workload import Workload, choose_workload
from kg_adapters.local.building.written_lists import read_lists
from kg_adapters.local.cache import open_sample
from kg_adapters.local.sparql.store import ensure_sparql_store

SIZE: Final = 60
_SETTLING_S: Final = 20.0
_IDLE_S: Final = 0.5
_LEAST_WORK: Final = 0.05
_HUBS: Final = 6


@dataclass(frozen=True, slots=True)
class Soak:
    """What is asked, and for how long.

    Args:
        folder: Where the servers keep their files.
        work: What the questions are about.
        clients: How many ask at once over HTTP.
        in_flight: How many calls are under way at once over stdio.
        seconds: For how long, over each of the two.
        seed: Where the dice start.
    """

    folder: Path
    work: Workload
    clients: int = 64
    in_flight: int = 32
    seconds: float = 180.0
    seed: int = 0

    @property
    def environ(self) -> dict[str, str]:
        """What keeps a server's files in the folder."""
        return {f"KG_SEXTANT_{name}_FOLDER": str(self.folder / name.lower()) for name in ("CACHE", "DATA")}


async def _make_ready(soak: Soak) -> None:
    """Make what SPARQL needs, about which a server would say at first that it is still being made."""
    store = open_sample(soak.folder / "cache")
    await ensure_sparql_store(store.folder, store.index, lists=partial(read_lists, store))


async def soaked_over_http(soak: Soak) -> LoadReport:
    """Ask with a client for each caller."""
    await _make_ready(soak)
    with running(*ours("sample"), "--http", "127.0.0.1:0", environ=soak.environ) as server:
        async with Client(server.url) as alone:
            known = await answered_alone(alone, soak.work)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(Client(server.url)) for _ in range(soak.clients)]
            name = f"{soak.clients} clients over HTTP"
            # Connections end with their clients, but the facts are counted through them.
            load = await _loaded(name, clients, Mix.of(known, soak.work.low), soak, server.process)
        return load.report(await _rested(server.process), server.logged)


async def soaked_over_stdio(soak: Soak) -> LoadReport:
    """Ask with all callers in one session."""
    await _make_ready(soak)
    others = children_of(os.getpid())
    async with over_stdio(ours("sample"), soak.environ) as client:
        (process,) = (number for number in children_of(os.getpid()) if number not in others)
        known = await answered_alone(client, soak.work)
        name, clients = f"{soak.in_flight} in flight over stdio", [client] * soak.in_flight
        load = await _loaded(name, clients, Mix.of(known, soak.work.low), soak, process)
        return load.report(await _rested(process), ())


async def answered_alone(client: Client, work: Workload) -> list[Known]:
    """Ask everything that has one answer for ever, one after the other."""
    known = [Known(question, await question.ask(client)) for question in lasting_questions(work)]
    failed = [f"{each.question}: {each.expected.text}" for each in known if each.expected.is_error]
    assert not failed, failed
    return [*known, *await hub_pages(client, work.hubs[:_HUBS])]


@dataclass(frozen=True)
class _Load:
    """What came of a load, but for what the server holds afterwards."""

    name: str
    seconds: float
    tallies: dict[str, Tally]
    acknowledged: int
    lost: int
    before: Footprint
    most_threads: int

    def report(self, after: Footprint, logged: Sequence[str]) -> LoadReport:
        return LoadReport(
            name=self.name,
            seconds=self.seconds,
            tallies=self.tallies,
            acknowledged=self.acknowledged,
            lost=self.lost,
            before=self.before,
            after=after,
            most_threads=self.most_threads,
            logged=logged,
        )


async def _loaded(name: str, clients: Sequence[Client], mix: Mix, soak: Soak, process: int) -> _Load:
    before = await _rested(process)
    tallies: dict[str, Tally] = defaultdict(Tally)
    dice = [random.Random(f"{soak.seed} {name} {number}") for number in range(len(clients))]  # noqa: S311 - dice, not secrets
    callers = [Caller(client, mix, own, tallies) for client, own in zip(clients, dice, strict=True)]
    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for caller in callers:
            tasks.start_soon(caller.ask_until, began + soak.seconds)
    return _Load(
        name=name,
        seconds=perf_counter() - began,
        tallies=tallies,
        acknowledged=sum(caller.acknowledged for caller in callers),
        lost=sum([await caller.lost() for caller in callers]),
        before=before,
        most_threads=int(anyio.to_thread.current_default_thread_limiter().total_tokens),
    )


async def _rested(process: int) -> Footprint:
    """Return what a server holds once it does nothing any more."""
    end = perf_counter() + _SETTLING_S
    held = Footprint.of(process)
    while perf_counter() < end:
        await anyio.sleep(_IDLE_S)
        last, held = held, Footprint.of(process)
        if held.cpu_s - last.cpu_s < _LEAST_WORK and held.files <= last.files:
            break
    return held


def main(words: Sequence[str] | None = None) -> int:
    """Soak the sample over both transports, print the figures, and return 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0, help="how long over each transport (180)")
    parser.add_argument("--clients", type=int, default=64, help="how many at once over HTTP (64)")
    parser.add_argument("--in-flight", type=int, default=32, help="how many calls at once over stdio (32)")
    parser.add_argument("--size", type=int, default=SIZE, help=f"how many questions of a kind ({SIZE})")
    parser.add_argument("--seed", type=int, default=0, help="where the dice start (0)")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        work = choose_workload(open_sample(folder / "cache").index, given.size)
        soak = Soak(folder, work, given.clients, given.in_flight, given.seconds, given.seed)
        reports = [asyncio.run(soaked(soak)) for soaked in (soaked_over_http, soaked_over_stdio)]
    for report in reports:
        print("\n".join(report.lines()))
    return 1 if any(report.problems or report.misses for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
