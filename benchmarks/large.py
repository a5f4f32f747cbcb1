"""What each tool takes over a large graph: in Virtuoso, by requests and time, and in a store of ours."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final, TypeAlias

from mcp import Client

from benchmarks.child import run_job
from benchmarks.engines.virtuoso import running_virtuoso
from benchmarks.engines.weather import weathered
from benchmarks.figures import TIMES, Figure, Line, Section, beside
from benchmarks.graphs import Bench, Workload, copies
from benchmarks.peers import opened
from kg_adapters.caching import CachingAdapter
from kg_adapters.http.options import EndpointOptions
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.opening import open_sparql
from kg_server.app import build_server
from kg_server.settings import Settings

Calls: TypeAlias = Sequence[Mapping[str, object]]

GRAPH: Final = "http://example.org/graph/benchmark"
LARGE_COPIES: Final = 40
_MANY: Final = 8
# Pages of 8 KB: two gigabytes.
_BUFFERS: Final = 250_000
_LOADING_S: Final = 7_200.0
_LINES: Final = 1_000_000
_IS: Final = "http://www.wikidata.org/prop/direct/P31"


async def measure_large(bench: Bench) -> Section:
    """Call each tool over many joined copies of the benchmark graph, whose first copy keeps its ids and names."""
    source = copies(bench.graph, LARGE_COPIES, bench.cache)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=bench.cache)))
        bench.tell(f"Importing and loading {LARGE_COPIES} {TIMES} the graph …")
        run_job("import", source, folder / "store")
        (folder / "virtuoso").mkdir()
        served = stack.enter_context(running_virtuoso(folder / "virtuoso", buffers=_BUFFERS, patience_s=_LOADING_S))
        with opened(source) as lines:
            while some := b"".join(islice(lines, _LINES)):
                served.load(GRAPH, some)
        served.index_texts()
        return await compared(served.url, folder / "store", folder / "cache", bench.work)


async def compared(url: str, store: Path, cache: Path, work: Workload) -> Section:
    """Return what calls take at an endpoint and in a store of the same graph.

    No call repeats another, so that none is answered from a cache; what does not come in time is counted.

    Args:
        url: The endpoint.
        store: The store.
        cache: Where a server may keep what it learns.
        work: What is asked about.
    """
    settings = Settings.model_validate(
        {"cache_folder": cache, "data_folder": cache, "embedding": {"embedder": "lexical"}}
    )
    lines: list[Line] = []
    notes: list[str] = []
    async with AsyncExitStack() as stack:
        proxy = stack.enter_context(weathered(url))
        told = EndpointOptions(url=proxy.url, default_graphs=(GRAPH,))
        remote = await stack.enter_async_context(
            aclosing(await open_sparql(proxy.url, OpenOptions(cache), endpoint=told))
        )
        local = await stack.enter_async_context(aclosing(LocalAdapter(open_store(store))))
        here = await stack.enter_async_context(Client(build_server(local, settings)))
        there = await stack.enter_async_context(Client(build_server(CachingAdapter(remote), settings)))
        counts = open_store(store).info.counts
        for kind, (tool, calls) in _kinds(work).items():
            ours, theirs, requests = list[float](), list[float](), list[int]()
            unanswered = 0
            for arguments in calls:
                ours.append((await _timed(here, tool, arguments))[0])
                before = proxy.happened["fair"]
                seconds, answered = await _timed(there, tool, arguments)
                theirs.append(seconds)
                unanswered += not answered
                requests.append(proxy.happened["fair"] - before)
            own = Figure(median(ours))
            lines.append(Line(kind, own, None, beside(own, {"Virtuoso": Figure(median(theirs))})))
            late = f", {unanswered} of {len(calls)} without a whole answer" if unanswered else ""
            notes.append(f"{kind}: {min(requests)} to {max(requests)} requests of Virtuoso{late}.")
    size = f"{(counts.triples + counts.features) / 1e6:.0f} M statements"
    return Section("large", f"Calls over {size}, in the local store and in Virtuoso", lines, notes)


async def _timed(client: Client, tool: str, arguments: Mapping[str, object]) -> tuple[float, bool]:
    """Return how many seconds a call takes, and whether its answer is whole as far as time goes."""
    started = perf_counter()
    answer = await client.call_tool(tool, dict(arguments))
    seconds = perf_counter() - started
    return seconds, not answer.is_error and '"timeout"' not in json.dumps(answer.structured_content)


def _kinds(work: Workload) -> Mapping[str, tuple[str, Calls]]:
    """Return calls of each tool by what they are: `_MANY` of each about different entities."""
    low = [f"<{entity}>" for entity in work.low]
    apart = iter([low[first : first + _MANY] for first in range(0, len(low), _MANY)])
    hubs = [f"<{entity}>" for entity in work.hubs[:_MANY]]
    pairs, hub_pairs = work.random_pairs[:_MANY], work.hub_pairs[:_MANY]
    question = "What is it, and where does it come from?"
    return {
        "Retrieve": ("Retrieve", [{"text": name} for name in work.names[:_MANY]]),
        "Retrieve, misspelled": ("Retrieve", [{"text": name} for name in work.typos[_MANY : 2 * _MANY]]),
        "GetNeighbor": ("GetNeighbor", [{"entity": entity} for entity in next(apart)]),
        "GetNeighbor, a hub": ("GetNeighbor", [{"entity": entity, "direction": "in"} for entity in hubs]),
        "Feature": ("Feature", [{"entity": entity} for entity in next(apart)]),
        "Degree": ("Degree", [{"entity": entity} for entity in next(apart)]),
        "Degree, a hub": ("Degree", [{"entity": entity} for entity in hubs]),
        "GetPath, 2 hops": ("GetPath", [{**_ends(pair), "max_hops": 2} for pair in pairs]),
        "GetPath, 3 hops": ("GetPath", [{**_ends(pair), "max_hops": 3} for pair in pairs]),
        "GetPath, 2 hops between hubs": ("GetPath", [{**_ends(pair), "max_hops": 2} for pair in hub_pairs]),
        "GetPath, 3 hops between hubs": ("GetPath", [{**_ends(pair), "max_hops": 3} for pair in hub_pairs]),
        "observe, 1 hop": (
            "observe",
            [{"question": question, "entities": [entity], "hops": 1} for entity in next(apart)],
        ),
        "observe, 3 hops": (
            "observe",
            [{"question": question, "entities": [entity], "hops": 3} for entity in next(apart)],
        ),
        "Compose": ("Compose", [{"expression": f"Count[Neighbor[{entity}, <{_IS}>]]"} for entity in next(apart)]),
        "Sparql": ("Sparql", [{"query": f"SELECT ?x {{ {entity} <{_IS}> ?x }}"} for entity in next(apart)]),
    }


def _ends(pair: tuple[str, str]) -> dict[str, object]:
    return {"source": f"<{pair[0]}>", "target": f"<{pair[1]}>"}
