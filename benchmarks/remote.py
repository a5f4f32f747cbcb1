"""`GetNeighbor` over a network: through the adapter, and by the bare requests that it sends."""

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2

from benchmarks.engines.oxigraph import running_oxigraph
from benchmarks.engines.weather import Request, far_away, weathered
from benchmarks.figures import Line, Section, Target, line_of, race
from benchmarks.graphs import Bench, bundled_sample, choose_workload
from kg_adapters.http.options import EndpointOptions
from kg_adapters.local.store import open_store
from kg_adapters.models import Direction
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.opening import open_sparql
from kg_server.answers.neighbors import neighborhood

ROUND_TRIP_S: Final = 0.02
GRAPH: Final = "http://example.org/graph/benchmark"
_BARE: Final = "bare"
_MOST_CASES: Final = 50
_HUBS: Final = 4
_TIMEOUT_S: Final = 30.0
# They are about one connection, and each client sends its own.
_OF_CONNECTIONS: Final = frozenset({"host", "connection", "content-length"})


@dataclass(frozen=True, slots=True)
class Case:
    """A call of GetNeighbor, and the requests that answer it."""

    entity: str
    direction: Direction
    requests: tuple[Request, ...]


async def measure_remote(bench: Bench) -> Section:
    """Ask for neighbours in the sample 20 ms away; no answer is cached from one call to the next."""
    graph = bundled_sample(bench.cache)
    work = choose_workload(open_store(graph.store).index, min(bench.size, _MOST_CASES))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        served = stack.enter_context(running_oxigraph(folder))
        served.load(GRAPH, graph.source.read_bytes())
        told = EndpointOptions(url=served.url, default_graphs=(GRAPH,), timeout_s=_TIMEOUT_S)
        kinds = {
            "GetNeighbor, low degree": await _recorded(told, folder, work.low, "out"),
            "GetNeighbor, hub, incoming": await _recorded(told, folder, work.hubs[:_HUBS], "in"),
        }
        url = urlsplit(served.url)
        port = stack.enter_context(far_away(url.port or 80, round_trip_s=ROUND_TRIP_S))
        told = told.model_copy(update={"url": f"http://127.0.0.1:{port}{url.path}"})
        async with AsyncExitStack() as opened:
            adapter = await opened.enter_async_context(_opened(told, folder))
            client = httpx2.AsyncClient(timeout=_TIMEOUT_S, trust_env=False)
            await opened.enter_async_context(client)

            async def ours(case: Case) -> object:
                return await _get_neighbor(adapter, case.entity, case.direction)

            async def bare(case: Case) -> None:
                for asked in case.requests:
                    kept = {name: value for name, value in asked.headers.items() if name not in _OF_CONNECTIONS}
                    target = httpx2.URL(told.url).join(asked.target)
                    answer = await client.request(asked.method, target, headers=kept, content=asked.body)
                    answer.raise_for_status()

            lines: list[Line] = []
            for what, cases in kinds.items():
                for case in cases:
                    await ours(case)
                rounds = max(1, len(work.low) // len(cases))
                timings = await race({"ours": ours, _BARE: bare}, cases, rounds=rounds, budget_s=5)
                lines.append(line_of(what, timings, Target(1.05, _BARE)))
    requests = ", ".join(f"{max(len(case.requests) for case in cases)} for {what}" for what, cases in kinds.items())
    notes = (
        f"Oxigraph with {graph.name}; {_BARE}: the same requests by a pooled client, which only receives answers.",
        f"Requests a call: at most {requests}.",
    )
    return Section("remote", f"A SPARQL endpoint {ROUND_TRIP_S * 1000:.0f} ms away", lines, notes)


async def _recorded(told: EndpointOptions, folder: Path, entities: Sequence[str], direction: Direction) -> list[Case]:
    """Return a case for each entity, with the requests of a call that follows one like it."""
    cases: list[Case] = []
    with weathered(told.url, keep=True) as proxy:
        async with _opened(told.model_copy(update={"url": proxy.url}), folder) as graph:
            for entity in entities:
                await _get_neighbor(graph, entity, direction)
                proxy.requests.clear()
                await _get_neighbor(graph, entity, direction)
                cases.append(Case(entity, direction, tuple(proxy.requests)))
    return cases


@asynccontextmanager
async def _opened(told: EndpointOptions, folder: Path) -> AsyncGenerator[SparqlAdapter]:
    async with aclosing(await open_sparql(told.url, OpenOptions(folder / "cache"), endpoint=told)) as graph:
        yield graph


async def _get_neighbor(graph: SparqlAdapter, entity: str, direction: Direction) -> object:
    return await neighborhood(
        graph,
        entity=f"<{entity}>",
        relation=None,
        direction=direction,
        limit=50,
        cursor=None,
        max_tokens=2_000,
    )
