"""One library with one graph in a process of its own: `python -m benchmarks.sized_child LIBRARY GRAPH QUESTIONS`.

Prints one line of JSON: what opening or loading took, how long questions took, and the memory at the end.
"""
# ruff: noqa: PLC0415 - a library is loaded alone, since the memory of its process is measured

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter

from benchmarks.child import memory
from benchmarks.lookups import HUB_PAGE, PAGE, labelled
from benchmarks.peers.answers import PeerGraph
from benchmarks.timing import race
from kg_adapters.models import PathRequest
from kg_adapters.terms import Iri

HOPS: Final = 3
_BUDGET_S: Final = 20.0

Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Questions:
    """What every library is asked about one graph; entities are IRIs.

    Args:
        low: Entities with few neighbours.
        hubs: Entities with many.
        pairs: Pairs of any entities.
        hub_adjacent: Pairs of neighbours of a hub.
        names: Labels of entities.
        typos: The same with a typo.
        observed: Questions, each with the entity that it is about.
    """

    low: tuple[str, ...]
    hubs: tuple[str, ...]
    pairs: tuple[Pair, ...]
    hub_adjacent: tuple[Pair, ...]
    names: tuple[str, ...]
    typos: tuple[str, ...]
    observed: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """What it took: seconds, and megabytes (10^6 bytes); `own_mb` leaves out what is only mapped from files."""

    load_s: float
    processor_s: float
    peak_mb: float
    own_mb: float
    medians: Mapping[str, float] = field(default_factory=dict[str, float])


QUESTIONS: Final = TypeAdapter(Questions)
ANSWERED: Final = TypeAdapter(Answered)


async def _timed(asks: Mapping[str, tuple[Callable[[Pair], Awaitable[object]], Sequence[Pair]]]) -> dict[str, float]:
    return {
        name: (await race({name: ask}, cases, budget_s=_BUDGET_S))[name].median
        for name, (ask, cases) in asks.items()
        if cases
    }


def _alone(texts: Sequence[str]) -> list[Pair]:
    return [(text, "") for text in texts]


async def _ours(store: Path, asked: Questions) -> tuple[float, dict[str, float]]:
    from kg_adapters.local.adapter import LocalAdapter
    from kg_adapters.local.store import open_store
    from kg_server.observation.answer import observation
    from kg_server.observation.reach import Reach
    from kg_server.observation.scoring import SpellingScorer

    started = perf_counter()
    graph = LocalAdapter(open_store(store))
    await labelled(graph, asked.low[0], PAGE)
    load_s = perf_counter() - started
    graph.store.check.run()

    async def low(case: Pair) -> object:
        return await labelled(graph, case[0], PAGE)

    async def hub(case: Pair) -> object:
        return await labelled(graph, case[0], HUB_PAGE)

    async def paths(case: Pair) -> object:
        return await graph.paths(PathRequest(Iri(case[0]), Iri(case[1]), max_hops=HOPS))

    async def search(case: Pair) -> object:
        return await graph.search(case[0], limit=5)

    async def not_told(hop: int) -> None:
        pass

    async def observe(case: Pair) -> object:
        question, entity = case
        scorer, reach = SpellingScorer(), Reach(hops=HOPS, timeout_s=60)
        return await observation(
            graph,
            scorer,
            question=question,
            entities=[f"<{entity}>"],
            reach=reach,
            max_tokens=2_000,
            on_hop=not_told,
        )

    asks = {
        "look-up": (low, _alone(asked.low)),
        "hub page": (hub, _alone(asked.hubs)),
        "paths": (paths, asked.pairs),
        "paths, hub-adjacent": (paths, asked.hub_adjacent),
        "Retrieve": (search, _alone(asked.names)),
        "Retrieve, typo": (search, _alone(asked.typos)),
        "observe by letters": (observe, asked.observed),
    }
    return load_s, await _timed(asks)


async def _theirs(load: Callable[[Path], PeerGraph], source: Path, asked: Questions) -> tuple[float, dict[str, float]]:
    started = perf_counter()
    peer = load(source)
    load_s = perf_counter() - started

    async def low(case: Pair) -> object:
        return peer.rows(case[0], PAGE)

    async def hub(case: Pair) -> object:
        return peer.rows(case[0], HUB_PAGE)

    async def paths(case: Pair) -> object:
        return peer.paths(*case, HOPS)

    asks = {
        "look-up": (low, _alone(asked.low)),
        "hub page": (hub, _alone(asked.hubs)),
        "paths": (paths, asked.pairs),
    }
    return load_s, await _timed(asks)


async def _kglite(source: Path) -> tuple[float, dict[str, float]]:
    library: Any = import_module("kglite")
    started = perf_counter()
    kept = library.KnowledgeGraph()
    kept.load_ntriples(str(source))
    return perf_counter() - started, {}


def _peer(library: str) -> Callable[[Path], PeerGraph]:
    if library == "networkx":
        from benchmarks.peers.networkx_graph import NetworkxPeer

        return NetworkxPeer
    if library == "rdflib":
        from benchmarks.peers.rdflib_graph import RdflibPeer

        return RdflibPeer
    from benchmarks.peers.oxigraph import OxigraphPeer

    return OxigraphPeer


def main(library: str, graph: str, questions: str) -> None:
    """Ask one library, and print what it took."""
    asked, source = QUESTIONS.validate_json(Path(questions).read_bytes()), Path(graph)
    started = process_time()
    if library == "ours":
        load_s, medians = asyncio.run(_ours(source, asked))
    elif library == "KGLite":
        load_s, medians = asyncio.run(_kglite(source))
    else:
        load_s, medians = asyncio.run(_theirs(_peer(library), source, asked))
    took = process_time() - started
    print(json.dumps(asdict(Answered(load_s, took, memory("VmHWM"), memory("RssAnon"), medians))))


if __name__ == "__main__":
    main(*sys.argv[1:])
