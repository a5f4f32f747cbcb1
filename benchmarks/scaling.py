"""The same questions to a graph many times as large."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from benchmarks.bench import Bench
from benchmarks.figures import TIMES, Line, Section, Target, line_of
from benchmarks.graphs import multiplied, read_through
from benchmarks.lookups import HUB_PAGE, PAGE, labelled, typo_lines
from benchmarks.timing import Contestant, race
from benchmarks.workload import Pair
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_adapters.models import PathRequest
from kg_adapters.terms import Iri

T = TypeVar("T")

_ONCE: Final = "one copy"
_TARGET: Final = (Target("ratio", 1.3),)


async def measure_scaling(bench: Bench, times: int) -> Section:
    """Put the same look-ups and path searches to the graph and to many joined copies of it, in turns."""
    bench.tell(f"Building {times} joined copies, which takes long the first time …")
    graph = multiplied(bench.graph, times, bench.cache)
    read_through(bench.graph.store)
    read_through(graph.store)
    store = open_store(graph.store)
    large, small = LocalAdapter(store), bench.fresh_adapter()
    work = bench.work

    async def line(
        what: str, ask: Callable[[LocalAdapter, T], Awaitable[object]], cases: Sequence[T], rounds: int = 1
    ) -> Line:
        contestants: dict[str, Contestant[T]] = {
            "ours": lambda case: ask(large, case),
            _ONCE: lambda case: ask(small, case),
        }
        return line_of(what, await race(contestants, cases, rounds=rounds), base=_ONCE, targets=_TARGET)

    lines = (
        await line("neighbours, low degree, with labels", _low, work.low),
        await line(f"neighbours, hub, {HUB_PAGE} rows with labels", _hub, work.hubs, 10),
        await line("degree of a hub, by relation", _degrees, work.hubs, 10),
        await line("paths, random pairs", _paths, work.random_pairs),
        await line("paths, hub-adjacent pairs", _paths, work.hub_adjacent),
        *await typo_lines(large, work),
    )
    counts = store.info.counts
    size = f"{counts.triples:,} triples and {counts.features:,} features of {counts.entities:,} entities."
    notes = (size, "Both indexes were read once before, so that nobody waits for the disk.")
    return Section("scale", f"{times} {TIMES} the triples", lines, notes)


async def _low(adapter: LocalAdapter, entity: str) -> object:
    return await labelled(adapter, entity, PAGE)


async def _hub(adapter: LocalAdapter, entity: str) -> object:
    return await labelled(adapter, entity, HUB_PAGE)


async def _degrees(adapter: LocalAdapter, entity: str) -> object:
    return await adapter.degrees([Iri(entity)])


async def _paths(adapter: LocalAdapter, pair: Pair) -> object:
    return await adapter.paths(PathRequest(Iri(pair[0]), Iri(pair[1])))
