"""Tool calls over stdio, one after the other, and the start of the server."""

import tempfile
from collections.abc import Mapping
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.bench import Bench
from benchmarks.figures import Section, Target, line_of
from benchmarks.servers import FLOOR, Call, get_neighbor, ours, over_stdio, ping
from benchmarks.timing import Timings, race

_LOW_TARGET: Final = (Target("ratio", 1.25),)
_HUB_TARGET: Final = (Target("ratio", 2),)


async def measure_calls(bench: Bench) -> Section:
    """Call `GetNeighbor` over stdio, in turns with the trivial tool."""
    low, hubs = bench.work.low, bench.work.hubs
    lengths: list[int] = []
    async with over_stdio(FLOOR) as floor, over_stdio(ours(str(bench.graph.store))) as served:

        async def call_floor(turn: int) -> object:
            return await ping(floor, low[turn % len(low)])

        async def call_low(turn: int) -> object:
            return await get_neighbor(served, low[turn % len(low)])

        async def call_hub(turn: int) -> None:
            lengths.append(await get_neighbor(served, hubs[turn % len(hubs)]))

        timings = await race({"floor": call_floor, "low degree": call_low, "hub": call_hub}, range(bench.size))
    lines = (
        line_of(
            "GetNeighbor, low degree",
            _only(timings, "low degree", "floor"),
            ours="low degree",
            base="floor",
            targets=_LOW_TARGET,
        ),
        line_of(
            "GetNeighbor, hub, limit 50",
            _only(timings, "hub", "low degree"),
            ours="hub",
            base="low degree",
            targets=_HUB_TARGET,
        ),
    )
    length = f"A hub's answer has {median(lengths):,.0f} characters of text, at most {max(lengths):,}."
    return Section(
        "calls", "Tool calls over stdio, one at a time", lines, ("floor: a trivial structured tool.", length)
    )


async def measure_start(bench: Bench) -> Section:
    """Start the server and wait for its first tool answer."""
    taken: dict[str, list[float]] = {"start": [], "empty": [], "floor": []}
    await _until_answer(ours("sample"), get_neighbor)
    for _ in range(bench.repeats):
        taken["floor"].append(await _until_answer(FLOOR, ping))
        taken["start"].append(await _until_answer(ours("sample"), get_neighbor))
        with tempfile.TemporaryDirectory(dir=bench.cache) as empty:
            environ = {"KG_SEXTANT_CACHE_FOLDER": empty}
            taken["empty"].append(await _until_answer(ours("sample"), get_neighbor, environ))
    timings = {name: Timings(tuple(seconds)) for name, seconds in taken.items()}
    lines = tuple(
        line_of(what, _only(timings, name, "floor"), ours=name, base="floor", targets=(Target("median", 1.0),))
        for name, what in (
            ("start", "process start to first tool answer"),
            ("empty", "the same with an empty cache, so that the sample is unpacked"),
        )
    )
    return Section("start", "Start of the server on the sample, over stdio", lines)


async def _until_answer(words: tuple[str, ...], call: Call, environ: Mapping[str, str] | None = None) -> float:
    started = perf_counter()
    async with over_stdio(words, environ) as client:
        await call(client, "Q1490")
        return perf_counter() - started


def _only(timings: Mapping[str, Timings], *names: str) -> dict[str, Timings]:
    return {name: timings[name] for name in names}
