"""`GetNeighbor` over a network: through the adapter, by the bare requests that it sends, and by plain SPARQLWrapper."""

import os
import ssl
import tempfile
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import anyio.to_thread
import httpx2
from SPARQLWrapper import JSON, SPARQLWrapper

from benchmarks.bench import Bench
from benchmarks.engines.distance import far_away
from benchmarks.engines.oxigraph import running_oxigraph
from benchmarks.engines.virtuoso import MISSING, is_installed, running_virtuoso
from benchmarks.engines.weather import Request, weathered
from benchmarks.figures import Line, Section, Target, line_of
from benchmarks.graphs import Graph, bundled_sample
from benchmarks.timing import race
from benchmarks.workload import choose_workload
from kg_adapters.local.store import open_store
from kg_adapters.models import Direction
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.opening import open_sparql
from kg_adapters.sparql.options import DialectName, EndpointOptions
from kg_server.neighborhood import neighborhood

ROUND_TRIP_S: Final = 0.02
PAGE: Final = 50
GRAPH: Final = "http://example.org/graph/benchmark"
_BARE: Final = "bare"
_TARGET: Final = (Target("ratio", 1.1),)
_MOST_CASES: Final = 50
_HUBS: Final = 4
_TIMEOUT_S: Final = 30.0
_MAX_TOKENS: Final = 2_000
# They are about one connection, and each client says them for itself.
_OF_CONNECTIONS: Final = frozenset({"host", "connection", "content-length"})


@dataclass(frozen=True, slots=True)
class Served:
    """A running engine that holds the graph."""

    url: str
    dialect: DialectName
    name: str


@dataclass(frozen=True, slots=True)
class Case:
    """A call of GetNeighbor, and the requests that answer it."""

    entity: str
    direction: Direction
    requests: tuple[Request, ...]


async def measure_remote(bench: Bench) -> Section:
    """Ask for neighbours in the sample over TLS, 20 ms away; no answer is remembered from one call to the next."""
    return await measure_distant(bench, bundled_sample(bench.cache))


async def measure_distant(bench: Bench, graph: Graph) -> Section:
    """Ask for neighbours in any graph, as `measure_remote` does."""
    work = choose_workload(open_store(graph.store).index, min(bench.size, _MOST_CASES))
    hubs = work.hubs[:_HUBS]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        served = stack.enter_context(_served(folder, graph.source.read_bytes(), bench))
        low_cases = await _recorded(served, folder, work.low, "out")
        hub_cases = await _recorded(served, folder, hubs, "in")
        port, certificate = stack.enter_context(
            far_away(urlsplit(served.url).port or 80, round_trip_s=ROUND_TRIP_S, folder=folder)
        )
        far = f"https://127.0.0.1:{port}{urlsplit(served.url).path}"
        stack.enter_context(_trusted(certificate))
        async with _contestants(served, far, certificate, folder) as asked:
            lines = (
                await _raced(asked, "GetNeighbor, low degree", low_cases, rounds=1),
                await _raced(asked, "GetNeighbor, hub, incoming", hub_cases, rounds=max(1, len(low_cases) // _HUBS)),
            )
    notes = (
        f"{served.name} with {graph.name}; {_BARE}: the same requests by a pooled client, which only receives answers.",
        f"Requests a call: low degree {_most(low_cases)}, hub {_most(hub_cases)}.",
    )
    return Section("remote", f"A SPARQL endpoint {ROUND_TRIP_S * 1000:.0f} ms away, over TLS", lines, notes)


@contextmanager
def _served(folder: Path, triples: bytes, bench: Bench) -> Generator[Served]:
    if is_installed():
        with running_virtuoso(_new(folder / "virtuoso")) as virtuoso:
            virtuoso.load(GRAPH, triples)
            yield Served(virtuoso.url, "virtuoso", "Virtuoso")
    else:
        bench.tell(f"{MISSING}; measuring Oxigraph instead.")
        with running_oxigraph(_new(folder / "oxigraph")) as oxigraph:
            oxigraph.load(GRAPH, triples)
            yield Served(oxigraph.url, "standard", "Oxigraph")


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


@asynccontextmanager
async def _opened(
    served: Served, url: str, folder: Path, certificate: Path | None = None
) -> AsyncGenerator[SparqlAdapter]:
    told = EndpointOptions(
        url=url, default_graphs=(GRAPH,), dialect=served.dialect, timeout_s=_TIMEOUT_S, ca_file=certificate
    )
    async with aclosing(await open_sparql(url, OpenOptions(folder / "cache"), endpoint=told)) as graph:
        yield graph


async def _recorded(served: Served, folder: Path, entities: Sequence[str], direction: Direction) -> list[Case]:
    """Return a case for each entity, with the requests of a call that follows one like it."""
    cases: list[Case] = []
    with weathered(served.url, keep=True) as proxy:
        async with _opened(served, proxy.url, folder) as graph:
            for entity in entities:
                await _get_neighbor(graph, entity, direction)
                proxy.requests.clear()
                await _get_neighbor(graph, entity, direction)
                cases.append(Case(entity, direction, tuple(proxy.requests)))
    return cases


@dataclass(frozen=True, slots=True)
class _Contestants:
    """Three ways to the same rows."""

    graph: SparqlAdapter
    client: httpx2.AsyncClient
    url: str

    async def ours(self, case: Case) -> object:
        return await _get_neighbor(self.graph, case.entity, case.direction)

    async def bare(self, case: Case) -> None:
        for asked in case.requests:
            kept = {name: value for name, value in asked.headers.items() if name not in _OF_CONNECTIONS}
            url = httpx2.URL(self.url).join(asked.target)
            answer = await self.client.request(asked.method, url, headers=kept, content=asked.body)
            answer.raise_for_status()

    async def wrapper(self, case: Case) -> None:
        for asked in case.requests:
            await anyio.to_thread.run_sync(partial(_by_wrapper, self.url, asked))


@asynccontextmanager
async def _contestants(served: Served, url: str, certificate: Path, folder: Path) -> AsyncGenerator[_Contestants]:
    trusted = ssl.create_default_context(cafile=certificate)
    async with (
        _opened(served, url, folder, certificate) as graph,
        httpx2.AsyncClient(verify=trusted, timeout=_TIMEOUT_S, trust_env=False) as client,
    ):
        yield _Contestants(graph, client, url)


async def _raced(asked: _Contestants, what: str, cases: Sequence[Case], *, rounds: int) -> Line:
    for case in cases:
        await asked.ours(case)
    contestants = {"ours": asked.ours, _BARE: asked.bare, "SPARQLWrapper": asked.wrapper}
    timings = await race(contestants, cases, rounds=rounds, budget_s=5)
    return line_of(what, timings, base=_BARE, targets=_TARGET)


async def _get_neighbor(graph: SparqlAdapter, entity: str, direction: Direction) -> object:
    return await neighborhood(
        graph,
        entity=f"<{entity}>",
        relation=None,
        direction=direction,
        limit=PAGE,
        cursor=None,
        max_tokens=_MAX_TOKENS,
    )


def _by_wrapper(url: str, asked: Request) -> object:
    fields = parse_qs(asked.body.decode() if asked.body else urlsplit(asked.target).query)
    wrapper = SPARQLWrapper(url)
    wrapper.setReturnFormat(JSON)
    wrapper.setOnlyConneg(True)
    for name, values in fields.items():
        for value in values:
            if name != "query":
                wrapper.addParameter(name, value)
    wrapper.setQuery(fields["query"][0])
    wrapper.setMethod(asked.method)
    return wrapper.queryAndConvert()


def _most(cases: Sequence[Case]) -> int:
    return max(len(case.requests) for case in cases)


@contextmanager
def _trusted(certificate: Path) -> Generator[None]:
    """Let the standard library trust a certificate: SPARQLWrapper has no setting for that."""
    before = os.environ.get("SSL_CERT_FILE")
    os.environ["SSL_CERT_FILE"] = str(certificate)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SSL_CERT_FILE"]
        else:
            os.environ["SSL_CERT_FILE"] = before
