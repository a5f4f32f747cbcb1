"""Import, open, look up, search and find paths, in process or in fresh processes, beside other libraries."""

import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

from benchmarks.child import Usage, run_job
from benchmarks.figures import Figure, Line, Section, Target, beside, differing, line_of, race
from benchmarks.graphs import Bench, Pair
from benchmarks.peers import MOST_PATHS, Degrees, PeerGraph
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import PathRequest
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri

Ask: TypeAlias = Callable[[str], Awaitable[object]]
AskPair: TypeAlias = Callable[[Pair], Awaitable[object]]

PAGE: Final = 50
HUB_PAGE: Final = 200
HOPS: Final = 3
_AGREEING: Final = 10
_OXIGRAPH: Final = "Oxigraph"


async def measure_import(bench: Bench) -> Section:
    """Import the graph's file once, each library in a process of its own; an import made just now is not repeated."""
    source = bench.graph.source
    with tempfile.TemporaryDirectory(dir=bench.cache) as scratch:
        ours = bench.graph.built or run_job("import", source, Path(scratch, "ours"))
        theirs = [run_job("import-oxigraph", source, Path(scratch, "oxigraph"))] if bench.with_peers else []
    lines = (
        _usage_line("import, all indexes and SPARQL", [ours], theirs, "seconds", Target(1.3, _OXIGRAPH)),
        _usage_line("import, peak memory", [ours], theirs, "peak_mb", Target(1_000)),
    )
    title = f"Import of {bench.graph.name}, fresh processes"
    return Section("import", title, lines, ("Oxigraph: bulk load on disk.",))


async def measure_open(bench: Bench) -> Section:
    """Open the store and look up one entity, in fresh processes."""
    entity, store = bench.work.low[0], bench.graph.store
    ours, theirs = list[Usage](), list[Usage]()
    for _ in range(bench.repeats):
        ours.append(run_job("open", store, entity))
        if bench.with_peers:
            theirs.append(run_job("open-oxigraph", store / "oxigraph", entity))
    lines = (
        _usage_line("open a store and answer one look-up", ours, theirs, "seconds", Target(0.1)),
        _usage_line("memory of the whole process then", ours, theirs, "held_mb", Target(100)),
    )
    title = "Opening an imported store, fresh processes"
    return Section("open", title, lines, ("Oxigraph: on disk, opened read-only.",))


def _usage_line(what: str, ours: Sequence[Usage], theirs: Sequence[Usage], field: str, target: Target) -> Line:
    def figure(usages: Sequence[Usage]) -> Figure:
        return Figure(median(getattr(usage, field) for usage in usages), "s" if field == "seconds" else "MB")

    own = figure(ours)
    return Line(what, own, target, beside(own, {_OXIGRAPH: figure(theirs)} if theirs else {}))


async def measure_lookups(bench: Bench) -> Section:
    """Look up low-degree entities and hubs, with labels, and count a hub's neighbours by relation."""
    work, peers = bench.work, bench.peers
    plain, named, adapter = bench.fresh_adapter(), bench.fresh_adapter(), bench.fresh_adapter()
    low: dict[str, Ask] = {"ours": partial(labelled, named, limit=PAGE)}
    hub: dict[str, Ask] = {"ours": partial(labelled, adapter, limit=HUB_PAGE)}
    degrees: dict[str, Ask] = {"ours": partial(_degrees, adapter)}
    for peer in peers:
        low[peer.name], hub[peer.name] = partial(_rows, peer, PAGE), partial(_rows, peer, HUB_PAGE)
        degrees[peer.name] = partial(_peer_degrees, peer)
    differences = [
        *await differing(low, work.low[:_AGREEING]),
        *await differing(hub, work.hubs[:_AGREEING]),
        *await differing(degrees, work.hubs[:1]),
    ]
    triples: dict[str, Ask] = {"ours": partial(_triples, plain)}
    lines = (
        line_of("neighbours, low degree", await race(triples, work.low)),
        line_of("neighbours, low degree, with labels", await race(low, work.low), Target(1.0, _OXIGRAPH)),
        line_of(
            f"neighbours, hub, {HUB_PAGE} rows with labels",
            await race(hub, work.hubs, rounds=10),
            Target(0.5, _OXIGRAPH),
        ),
        line_of("degree of a hub, by relation", await race(degrees, work.hubs, rounds=10, budget_s=10)),
    )
    what = (
        f"low degree: 1 to 20 neighbours, each asked once; {len(work.hubs)} hubs, each asked ten times. "
        "The peers hold the graph in memory, ours maps files."
    )
    loading = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in bench.loading.items())
    loaded = (f"To load the graph took {loading}, again at every start.",) if loading else ()
    return Section("lookups", "Look-ups in process", lines, (what, *loaded, *differences))


async def measure_retrieve(bench: Bench) -> Section:
    """Search entities by their labels, as they are written and with a typo."""

    async def search(text: str) -> object:
        return await bench.adapter.search(text, limit=5)

    work, target, found = bench.work, Target(5e-3), 0
    lines = (
        line_of("search by exact label", await race({"ours": search}, work.names), target),
        line_of("search with a typo", await race({"ours": search}, work.typos), target),
    )
    for name, typo in zip(work.names, work.typos, strict=True):
        found += any(candidate.matched_text == name for candidate in await bench.adapter.search(typo, limit=5))
    share = found / max(1, len(work.names))
    note = f"The right entity, or another of that name, is among the first five for {share:.0%} of the typos."
    return Section("retrieve", f"Search among {bench.store.info.counts.entities:,} entities", lines, (note,))


async def measure_paths(bench: Bench) -> Section:
    """Find all simple paths as the tool does, then through hubs too, which is what the peers do."""
    work = bench.work
    around: AskPair = partial(_paths, bench.adapter, avoid_hubs=True)
    through: AskPair = partial(_paths, bench.adapter, avoid_hubs=False)
    kinds = {
        "random pairs": (work.random_pairs, True),
        "hub-adjacent pairs": (work.hub_adjacent, True),
        "hub to hub": (work.hub_pairs, False),
    }
    lines: list[Line] = []
    notes = [f"Ours counts and ranks all paths and gives the best 10; the peers stop at {MOST_PATHS} paths."]
    for kind, (pairs, usual) in kinds.items():
        bench.tell(f"Searching paths, {kind} …")
        contestants: dict[str, AskPair] = {
            "ours": through,
            **{peer.name: partial(_peer_paths, peer) for peer in bench.peers},
        }
        targets = (Target(1e-3), Target(2e-3)) if usual else (None, None)
        lines.append(line_of(f"{kind}, around hubs", await race({"ours": around}, pairs), targets[0]))
        lines.append(line_of(f"{kind}, through hubs", await race(contestants, pairs, budget_s=4), targets[1]))
        notes += await differing(contestants, pairs[:3])
    return Section("paths", f"Paths of at most {HOPS} hops, in process", lines, notes)


async def labelled(adapter: LocalAdapter, entity: str, limit: int) -> int:
    """List triples around an entity with the labels of all terms, and return how many."""
    node = Iri(entity)
    triples = (await adapter.neighbors(NeighborRequest((node,), limit=limit)))[node].triples
    await adapter.labels({term for triple in triples for term in (triple.head, triple.relation, triple.tail)})
    return len(triples)


async def _triples(adapter: LocalAdapter, entity: str) -> object:
    return await adapter.neighbors(NeighborRequest((Iri(entity),), limit=PAGE))


async def _degrees(adapter: LocalAdapter, entity: str) -> Degrees:
    node = Iri(entity)
    found = (await adapter.degrees([node]))[node].relations
    return Counter({(count.relation.value, count.direction): count.count.value for count in found})


async def _paths(adapter: LocalAdapter, pair: Pair, *, avoid_hubs: bool) -> int:
    request = PathRequest(Iri(pair[0]), Iri(pair[1]), max_hops=HOPS, avoid_hubs=avoid_hubs)
    return min(MOST_PATHS, (await adapter.paths(request)).total.value)


async def _rows(peer: PeerGraph, limit: int, entity: str) -> int:
    return peer.rows(entity, limit)


async def _peer_degrees(peer: PeerGraph, entity: str) -> Degrees:
    return peer.degrees(entity)


async def _peer_paths(peer: PeerGraph, pair: Pair) -> int:
    return peer.paths(*pair, HOPS)
