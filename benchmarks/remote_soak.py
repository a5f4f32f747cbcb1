"""Many clients ask an endpoint in bad weather for minutes: `python -m benchmarks.remote_soak`.

Every answer must be the one that the same graph gives at hand, or an error that names its cause and the next step, and
nothing may leak. It prints figures, and ends with status 1 when anything is wrong.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, sleep
from typing import Final

import anyio
import anyio.to_thread
import platformdirs
from mcp import Client
from mcp.server import MCPServer

from benchmarks.engines.virtuoso import MISSING, is_installed, running_virtuoso
from benchmarks.engines.weather import FAIR, ROUGH, Proxy, weathered
from benchmarks.graphs import bundled_sample
from benchmarks.soak_report import BAD, Held, Said, SoakReport, Tally
from benchmarks.workload import Workload, choose_workload
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore, open_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.opening import open_sparql
from kg_adapters.sparql.options import DialectName, EndpointOptions
from kg_server.app import build_server
from kg_server.settings import Settings

GRAPH_IRI: Final = "http://example.org/graph/soak"
TIMEOUT_S: Final = 5.0
SETTLING_S: Final = 20.0
_LABEL: Final = "http://www.w3.org/2000/01/rdf-schema#label"
_NOBODY: Final = "<http://www.wikidata.org/entity/Q99999999>"
_QUESTION: Final = "What is it part of?"
# Far beyond any deadline: a call that takes longer hangs.
_HANGS_S: Final = 120.0
_PATIENT_S: Final = 60.0
_SERVER_SHARE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, and what it answers where the graph is at hand."""

    tool: str
    arguments: Mapping[str, object]
    expected: Said


@dataclass(frozen=True, slots=True)
class Soak:
    """What is asked of whom, and for how long.

    Args:
        url: The engine's endpoint.
        graph: The IRI of the graph there.
        dialect: The engine.
        calls: What is asked, again and again.
        folder: Where things may be kept for a while.
        clients: How many ask at once.
        seconds: For how long, in all.
        phases: In how many parts; after each it is looked what is held.
        timeout_s: How many seconds a call may take.
        seed: Where the dice start.
    """

    url: str
    graph: str
    dialect: DialectName
    calls: Sequence[Call]
    folder: Path
    clients: int = 16
    seconds: float = 180.0
    phases: int = 6
    timeout_s: float = TIMEOUT_S
    seed: int = 0

    def options(self, url: str) -> EndpointOptions:
        """Return how the endpoint is reached: as by default, but with less patience."""
        return EndpointOptions(
            url=url,
            default_graphs=(self.graph,),
            dialect=self.dialect,
            timeout_s=self.timeout_s * _SERVER_SHARE,
            pause_s=1.0,
        )


def soaked(soak: Soak) -> SoakReport:
    """Ask in bad weather, and say what came of it."""
    tally = Tally()
    with weathered(soak.url, seed=soak.seed) as proxy:
        # What is made once and kept, such as compiled patterns and caches of the libraries, is no leak.
        asyncio.run(_asked_once(soak, proxy))
        before = Held.now(_settled(proxy, 0), in_loop=False)
        proxy.happened.clear()
        phases, recovered = asyncio.run(_in_phases(soak, proxy, tally))
        after = _held_in_the_end(proxy, before)
        weather = dict(proxy.happened)
    return SoakReport(
        tally=tally,
        weather={str(kind): number for kind, number in weather.items()},
        phases=phases,
        before=before,
        after=after,
        most_connections=soak.options(soak.url).max_concurrency,
        most_threads=int(anyio.run(_threads_that_may_wait)),
        recovered=recovered,
    )


async def chosen_calls(store: LocalStore, folder: Path, *, size: int, timeout_s: float) -> list[Call]:
    """Choose calls about so many entities and two hubs, each to be answered in time, and answer them from the store."""
    asked = _questions(choose_workload(store.index, size), timeout_s)
    async with (
        aclosing(LocalAdapter(store)) as local,
        Client(_served(local, folder, timeout_s=_PATIENT_S)) as client,
    ):
        return [
            Call(tool, arguments, Said.by(await client.call_tool(tool, _patient(arguments))))
            for tool, arguments in asked
        ]


def _patient(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return a call with time enough, so that its answer is the right one on a busy machine too."""
    return {**arguments, **({"timeout_s": _PATIENT_S} if "timeout_s" in arguments else {})}


def _questions(work: Workload, timeout_s: float) -> list[tuple[str, Mapping[str, object]]]:
    entities = [f"<{entity}>" for entity in work.low]
    asked: list[tuple[str, Mapping[str, object]]] = []
    for entity, other in zip(entities, [*entities[1:], entities[0]], strict=True):
        asked += [
            ("GetNeighbor", {"entity": entity, "direction": "both"}),
            ("Degree", {"entity": entity}),
            ("Feature", {"entity": entity}),
            ("GetPath", {"source": entity, "target": other, "max_hops": 2}),
            ("observe", {"question": _QUESTION, "entities": [entity], "hops": 1}),
            ("Compose", {"expression": f"Count[Neighbor[{entity}]], Degree[{entity}]"}),
            ("Sparql", {"query": f"SELECT ?l {{ {entity} <{_LABEL}> ?l }} ORDER BY ?l", "timeout_s": timeout_s}),
        ]
    for hub in work.hubs[:2]:
        asked += [
            ("GetNeighbor", {"entity": f"<{hub}>", "direction": "in", "limit": 20}),
            ("Degree", {"entity": f"<{hub}>"}),
        ]
    return [*asked, ("GetNeighbor", {"entity": _NOBODY})]


async def _threads_that_may_wait() -> float:
    return anyio.to_thread.current_default_thread_limiter().total_tokens


def _served(graph: KGAdapter, folder: Path, *, timeout_s: float) -> MCPServer[None]:
    told = {"cache_folder": folder, "data_folder": folder, "embedder": "lexical", "timeout_s": timeout_s}
    return build_server(graph, Settings.model_validate(told))


@asynccontextmanager
async def _clients(soak: Soak, proxy: Proxy) -> AsyncGenerator[list[Client]]:
    async with AsyncExitStack() as stack:
        options = OpenOptions(soak.folder / "opened")
        graph = await open_sparql(proxy.url, options, endpoint=soak.options(proxy.url))
        await stack.enter_async_context(aclosing(graph))
        server = _served(graph, soak.folder, timeout_s=soak.timeout_s)
        yield [await stack.enter_async_context(Client(server)) for _ in range(soak.clients)]


async def _asked_once(soak: Soak, proxy: Proxy) -> None:
    proxy.weather = FAIR
    async with _clients(soak, proxy) as clients:
        await _ask_all(clients, soak.calls, Tally())


async def _in_phases(soak: Soak, proxy: Proxy, tally: Tally) -> tuple[list[Held], bool]:
    """Return what was held after each phase, and whether everything was right again in the end."""
    phases: list[Held] = []
    async with _clients(soak, proxy) as clients:
        for phase in range(soak.phases):
            proxy.weather = ROUGH
            async with anyio.create_task_group() as tasks:
                for number, client in enumerate(clients):
                    dice = random.Random(f"{soak.seed} {phase} {number}")  # noqa: S311 - dice, not secrets
                    tasks.start_soon(_ask_for, client, soak, dice, tally)
            proxy.weather = FAIR
            connections = await anyio.to_thread.run_sync(_settled, proxy, soak.options(proxy.url).max_concurrency)
            phases.append(Held.now(connections, in_loop=True))
        return phases, await _is_recovered(soak, clients, tally)


async def _ask_for(client: Client, soak: Soak, dice: random.Random, tally: Tally) -> None:
    """Ask whatever the dice say until the phase is over."""
    end = perf_counter() + soak.seconds / soak.phases
    while perf_counter() < end:
        await _ask(client, [dice.choice(soak.calls)], tally)


async def _ask(client: Client, calls: Sequence[Call], tally: Tally) -> list[Call]:
    """Return the calls that had no right answer."""
    failed: list[Call] = []
    for call in calls:
        began = perf_counter()
        with anyio.fail_after(_HANGS_S):
            said = Said.by(await client.call_tool(call.tool, dict(call.arguments)))
        if tally.add(f"{call.tool} {dict(call.arguments)}", said, call.expected, perf_counter() - began) != "right":
            failed.append(call)
    return failed


async def _ask_all(clients: Sequence[Client], calls: Sequence[Call], tally: Tally) -> list[Call]:
    """Return the calls that had no right answer."""
    failed: list[Call] = []

    async def ask(number: int, client: Client) -> None:
        failed.extend(await _ask(client, calls[number :: len(clients)], tally))

    async with anyio.create_task_group() as tasks:
        for number, client in enumerate(clients):
            tasks.start_soon(ask, number, client)
    return failed


async def _is_recovered(soak: Soak, clients: Sequence[Client], tally: Tally) -> bool:
    """Ask everything until each call was right, which may take the pause that the last failures have brought."""
    failing: Sequence[Call] = soak.calls
    with anyio.move_on_after(SETTLING_S):
        while failing:
            last = Tally()
            failing = await _ask_all(clients, failing, last)
            tally.bad += last.bad
            tally.verdicts.update({verdict: last.verdicts[verdict] for verdict in BAD})
            if failing:
                await anyio.sleep(0.2)
    return not failing


def _settled(proxy: Proxy, connections: int) -> int:
    """Wait until the proxy has no more than so many connections open, and return how many it has."""
    end = perf_counter() + SETTLING_S
    while proxy.open_connections > connections and perf_counter() < end:
        sleep(0.02)
    return proxy.open_connections


def _held_in_the_end(proxy: Proxy, before: Held) -> Held:
    """Return what is held when the other ends of closed connections have been closed too."""
    end = perf_counter() + SETTLING_S
    while True:
        held = Held.now(_settled(proxy, 0), in_loop=False)
        if (held.files <= before.files and held.threads <= before.threads) or perf_counter() > end:
            return held
        sleep(0.02)


def main(words: Sequence[str] | None = None) -> int:
    """Soak Virtuoso, print the figures, and return 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote_soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0, help="how long (180)")
    parser.add_argument("--clients", type=int, default=16, help="how many at once (16)")
    parser.add_argument("--seed", type=int, default=0, help="where the dice start (0)")
    given = parser.parse_args(words)
    if not is_installed():
        print(MISSING, file=sys.stderr)
        return 1
    cache = platformdirs.user_cache_path("kg-sextant", appauthor=False) / "benchmarks"
    cache.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sample = bundled_sample(cache)
        calls = asyncio.run(chosen_calls(open_store(sample.store), folder, size=60, timeout_s=TIMEOUT_S))
        (folder / "virtuoso").mkdir()
        virtuoso = stack.enter_context(running_virtuoso(folder / "virtuoso"))
        virtuoso.load(GRAPH_IRI, sample.source.read_bytes())
        asked = Soak(virtuoso.url, GRAPH_IRI, "virtuoso", calls, folder)
        report = soaked(replace(asked, clients=given.clients, seconds=given.seconds, seed=given.seed))
    print(f"{given.clients} clients, {given.seconds:g} s, seed {given.seed}")
    print("\n".join(report.lines()))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
