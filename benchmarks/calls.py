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

_LOW_TARGET: Final = (Target("ratio", 1.2),)
_HUB_TARGET: Final = (Target("ratio", 1.7),)
_LIST_TARGET: Final = (Target("ratio", 1.15),)
_ANSWER_TARGET: Final = (Target("ratio", 1.3),)


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
    """Start the server, and wait for the list of its tools and for its first answer."""
    floor, served, empty = _Starts(), _Starts(), _Starts()
    await _Starts().add(ours("sample"), get_neighbor)
    for _ in range(bench.repeats):
        await floor.add(FLOOR, ping)
        await served.add(ours("sample"), get_neighbor)
        with tempfile.TemporaryDirectory(dir=bench.cache) as folder:
            await empty.add(ours("sample"), get_neighbor, {"KG_SEXTANT_CACHE_FOLDER": folder})
    lists = {"ours": served.listed, "floor": floor.listed}
    answers = {"ours": served.answered, "floor": floor.answered}
    unpacked = {"ours": empty.answered, "floor": floor.answered}
    lines = (
        line_of("process start to the list of tools", lists, base="floor", targets=_LIST_TARGET),
        line_of("process start to the first answer", answers, base="floor", targets=_ANSWER_TARGET),
        line_of("the same with an empty cache, so that the sample is unpacked", unpacked, base="floor"),
    )
    return Section("start", "Start of the server on the sample, over stdio", lines)


class _Starts:
    """How long starts of one server took."""

    def __init__(self) -> None:
        self._listed: list[float] = []
        self._answered: list[float] = []

    async def add(self, words: tuple[str, ...], call: Call, environ: Mapping[str, str] | None = None) -> None:
        """Start it once, list its tools, and call one."""
        started = perf_counter()
        async with over_stdio(words, environ) as client:
            await client.list_tools()
            self._listed.append(perf_counter() - started)
            await call(client, "Q1490")
            self._answered.append(perf_counter() - started)

    @property
    def listed(self) -> Timings:
        """Until the tools were listed."""
        return Timings(tuple(self._listed))

    @property
    def answered(self) -> Timings:
        """Until the first answer."""
        return Timings(tuple(self._answered))


def _only(timings: Mapping[str, Timings], *names: str) -> dict[str, Timings]:
    return {name: timings[name] for name in names}
