"""Look-ups in process: neighbours, degrees and names."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from benchmarks.bench import Bench
from benchmarks.figures import Line, Section, Target, line_of
from benchmarks.peers.answers import Degrees, PeerGraph
from benchmarks.timing import differing, race
from benchmarks.workload import Workload
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri

Ask: TypeAlias = Callable[[str], Awaitable[object]]

PAGE: Final = 50
HUB_PAGE: Final = 200
_AGREEING: Final = 10
_LOW_TARGET: Final = (Target("median", 40e-6),)
_HUB_TARGET: Final = (Target("median", 400e-6),)


async def measure_lookups(bench: Bench) -> Section:
    """Look up low-degree entities and hubs, with labels, and count a hub's neighbours by relation."""
    peers, work = bench.peers, bench.work
    plain, named, adapter = bench.fresh_adapter(), bench.fresh_adapter(), bench.fresh_adapter()
    triples: dict[str, Ask] = {"ours": lambda entity: _triples(plain, entity)}
    low: dict[str, Ask] = {"ours": lambda entity: labelled(named, entity, PAGE)}
    hub: dict[str, Ask] = {"ours": lambda entity: labelled(adapter, entity, HUB_PAGE)}
    degrees: dict[str, Ask] = {"ours": lambda entity: _degrees(adapter, entity)}
    for peer in peers:
        low[peer.name], hub[peer.name] = _rows(peer, PAGE), _rows(peer, HUB_PAGE)
        degrees[peer.name] = _peer_degrees(peer)
    notes = [
        *await differing(low, work.low[:_AGREEING]),
        *await differing(hub, work.hubs[:_AGREEING]),
        *await differing(degrees, work.hubs[:1]),
    ]
    lines = (
        line_of("neighbours, low degree", await race(triples, work.low)),
        line_of("neighbours, low degree, with labels", await race(low, work.low), targets=_LOW_TARGET),
        line_of(
            f"neighbours, hub, {HUB_PAGE} rows with labels",
            await race(hub, work.hubs, rounds=10),
            targets=_HUB_TARGET,
        ),
        line_of("degree of a hub, by relation", await race(degrees, work.hubs, rounds=10, budget_s=10)),
    )
    what = (
        f"low degree: 1 to 20 neighbours, each asked once; {len(work.hubs)} hubs, each asked ten times. "
        "The peers hold the graph in memory, ours maps files."
    )
    loading = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in bench.loading.items())
    loaded = (f"To load the graph took {loading}, again at every start.",) if loading else ()
    return Section(
        "lookups", "Look-ups in process", lines, (what, *loaded, *(f"Answers differ: {note}" for note in notes))
    )


async def measure_retrieve(bench: Bench) -> Section:
    """Search entities by their labels, as they are written and with a typo."""
    names = await search_line("by exact label", bench.adapter, bench.work.names)
    lines = [names, *await typo_lines(bench.adapter, bench.work)]
    found = await _found(bench)
    note = f"The right entity, or another of that name, is among the first five for {found:.0%} of the typos."
    title = f"Search among {bench.store.info.counts.entities:,} entities"
    return Section("retrieve", title, tuple(lines), (note,))


async def typo_lines(adapter: LocalAdapter, work: Workload) -> list[Line]:
    """Search for mistyped labels, those of people's own and those that are all alike."""
    lines = [await search_line("with a typo", adapter, work.typos)]
    if work.alike:
        lines.append(await search_line("with a typo, made-up labels that are all alike", adapter, work.alike))
    return lines


async def search_line(how: str, adapter: LocalAdapter, texts: Sequence[str]) -> Line:
    """Search for each text."""

    async def ours(text: str) -> object:
        return await adapter.search(text, limit=5)

    return line_of(f"search {how}", await race({"ours": ours}, texts), targets=(Target("median", 5e-3),))


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


async def _found(bench: Bench) -> float:
    hits = 0
    for name, typo in zip(bench.work.names, bench.work.typos, strict=True):
        hits += any(candidate.matched_text == name for candidate in await bench.adapter.search(typo, limit=5))
    return hits / max(1, len(bench.work.names))


def _rows(peer: PeerGraph, limit: int) -> Ask:
    async def ask(entity: str) -> int:
        return peer.rows(entity, limit)

    return ask


def _peer_degrees(peer: PeerGraph) -> Ask:
    async def ask(entity: str) -> Degrees:
        return peer.degrees(entity)

    return ask
