"""Tool calls over stdio and HTTP, many clients at once, and the start of the server, beside a trivial server."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from threading import Thread
from time import perf_counter
from typing import Final, TypeAlias

import anyio
from mcp import Client, StdioServerParameters

from benchmarks import floor_server
from benchmarks.figures import Figure, Line, Section, Target, Timings, beside, line_of, race
from benchmarks.graphs import Bench

Call: TypeAlias = Callable[[Client, str], Awaitable[int]]

FLOOR: Final = ("-m", "benchmarks.floor_server")
CLIENTS: Final = 32
_CALLS: Final = 10
_ENDING_S: Final = 20.0
_URL: Final = re.compile(r"http://\S+")


def ours(graph: str) -> tuple[str, ...]:
    """Return the words after `python` that serve a graph."""
    return ("-m", "kg_server", "serve", graph)


def over_stdio(words: Sequence[str], environ: Mapping[str, str] | None = None) -> Client:
    """Return a client that starts a server over stdio when it is entered."""
    return Client(StdioServerParameters(command=sys.executable, args=[*words], env=dict(environ or {})))


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens: its URL, its process, and the lines that it has logged since."""

    url: str
    process: int
    logged: list[str]


@contextmanager
def running(*words: str, environ: Mapping[str, str] | None = None) -> Generator[Running]:
    """Start a server that listens on a free port.

    Raises:
        RuntimeError: It ended before it logged where it listens.
    """
    env = {**os.environ, **(environ or {})}
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True, env=env) as process:  # noqa: S603 - ours
        logged: list[str] = []
        assert process.stderr is not None
        # Whoever writes to a pipe that nobody reads waits when it is full.
        reader = Thread(target=logged.extend, args=(process.stderr,))
        try:
            found = next((match for line in process.stderr if (match := _URL.search(line))), None)
            if found is None:
                raise RuntimeError(f"{' '.join(words)} did not start")
            reader.start()
            yield Running(found.group(), process.pid, logged)
        finally:
            end_process(process, _ENDING_S)
            if reader.is_alive():
                reader.join()


def end_process(process: "subprocess.Popen[str]", patience_s: float) -> None:
    """End a process, and kill it if it does not end in time."""
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()


async def measure_calls(bench: Bench) -> Section:
    """Call `GetNeighbor` over stdio, in turns with the trivial tool."""
    low, hubs, lengths = bench.work.low, bench.work.hubs, list[int]()
    async with over_stdio(FLOOR) as floor, over_stdio(ours(str(bench.graph.store))) as served:

        async def call_floor(turn: int) -> object:
            return await _ping(floor, low[turn % len(low)])

        async def call_low(turn: int) -> object:
            return await _get_neighbor(served, low[turn % len(low)])

        async def call_hub(turn: int) -> None:
            lengths.append(await _get_neighbor(served, hubs[turn % len(hubs)]))

        timings = await race({"floor": call_floor, "low degree": call_low, "hub": call_hub}, range(bench.size))
    ours_low, ours_hub = timings["low degree"], timings["hub"]
    to_floor = {"low degree": ours_low, "floor": timings["floor"]}
    lines = (
        line_of("GetNeighbor, low degree", to_floor, Target(1.1, "floor")),
        line_of("GetNeighbor, hub, limit 50", {"hub": ours_hub, "low degree": ours_low}, Target(1.5, "low degree")),
    )
    length = f"A hub's answer has {median(lengths):,.0f} characters of text, at most {max(lengths):,}."
    return Section(
        "calls", "Tool calls over stdio, one at a time", lines, ("floor: a trivial structured tool.", length)
    )


async def measure_start(bench: Bench) -> Section:
    """Start the server, and wait for the list of its tools and for its first answer."""
    floor, served, empty = (list[tuple[float, float]]() for _ in range(3))
    await _start(ours("sample"), _get_neighbor)
    for _ in range(bench.repeats):
        floor.append(await _start(FLOOR, _ping))
        served.append(await _start(ours("sample"), _get_neighbor))
        with tempfile.TemporaryDirectory(dir=bench.cache) as folder:
            empty.append(await _start(ours("sample"), _get_neighbor, {"KG_SEXTANT_CACHE_FOLDER": folder}))

    def line(what: str, own: Sequence[tuple[float, float]], step: int, target: Target | None = None) -> Line:
        both = {"ours": own, "floor": floor}
        return line_of(
            what, {name: Timings(tuple(each[step] for each in starts)) for name, starts in both.items()}, target
        )

    lines = (
        line("process start to the list of tools", served, 0, Target(1.2, "floor")),
        line("process start to the first answer", served, 1, Target(1.3, "floor")),
        line("the same with an empty cache, so that the sample is unpacked", empty, 1),
    )
    return Section("start", "Start of the server on the sample, over stdio", lines)


async def measure_clients(bench: Bench) -> Section:
    """Let 32 callers ask at once, over one stdio session and as 32 HTTP clients, in turns with the trivial tool."""
    store = str(bench.graph.store)
    async with over_stdio(FLOOR) as floor, over_stdio(ours(store)) as served:
        lines = await _in_turns(bench, "one stdio session", [floor] * CLIENTS, [served] * CLIENTS)
    with running(*FLOOR, "--http") as trivial, running(*ours(store), "--http", "127.0.0.1:0") as own:
        async with AsyncExitStack() as stack:
            floors = [await stack.enter_async_context(Client(trivial.url)) for _ in range(CLIENTS)]
            clients = [await stack.enter_async_context(Client(own.url)) for _ in range(CLIENTS)]
            lines += await _in_turns(bench, "HTTP", floors, clients)
    note = "GetNeighbor of low-degree entities. All clients share one process, which limits the calls per second."
    return Section("clients", f"{CLIENTS} clients at once", lines, (note,))


async def _start(words: Sequence[str], call: Call, environ: Mapping[str, str] | None = None) -> tuple[float, float]:
    """Start a server, and return the seconds until its tools were listed, and until its first answer."""
    started = perf_counter()
    async with over_stdio(words, environ) as client:
        await client.list_tools()
        listed = perf_counter() - started
        await call(client, "Q1490")
        return listed, perf_counter() - started


async def _in_turns(bench: Bench, how: str, floors: Sequence[Client], served: Sequence[Client]) -> list[Line]:
    asked = {"ours": partial(_burst, served, _get_neighbor), "floor": partial(_burst, floors, _ping)}
    rates, p95s = ({name: list[float]() for name in asked} for _ in range(2))
    for turn in range(bench.repeats + 1):
        for name, burst in asked.items():
            rate, p95 = await burst(bench.work.low)
            # The first turn warms up.
            if turn:
                rates[name].append(rate)
                p95s[name].append(p95)
    own_rate, floor_rate = (Figure(median(rates[name]), "calls/s") for name in asked)
    own_p95, floor_p95 = (Figure(median(p95s[name])) for name in asked)
    return [
        Line(f"{how}, calls", own_rate, Target(0.9, "floor", least=True), beside(own_rate, {"floor": floor_rate})),
        Line(f"{how}, p95 of a call", own_p95, None, beside(own_p95, {"floor": floor_p95})),
    ]


async def _burst(clients: Sequence[Client], call: Call, entities: Sequence[str]) -> tuple[float, float]:
    """Let every client make its calls one after the other, all at once; return calls per second and p95 in seconds."""
    latencies: list[float] = []

    async def ask(number: int, client: Client) -> None:
        for turn in range(_CALLS):
            began = perf_counter()
            await call(client, entities[(number * _CALLS + turn) % len(entities)])
            latencies.append(perf_counter() - began)

    started = perf_counter()
    async with anyio.create_task_group() as group:
        for number, client in enumerate(clients):
            group.start_soon(ask, number, client)
    return len(latencies) / (perf_counter() - started), Timings(tuple(latencies)).p95


async def _call(client: Client, tool: str, **arguments: object) -> int:
    """Call a tool that must succeed, and return how many characters of text it answers."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return sum(len(block.text) for block in result.content if block.type == "text")


async def _ping(client: Client, entity: str) -> int:
    return await _call(client, floor_server.TOOL, entity=entity)


async def _get_neighbor(client: Client, entity: str) -> int:
    return await _call(client, "GetNeighbor", entity=entity, direction="both", limit=50)
