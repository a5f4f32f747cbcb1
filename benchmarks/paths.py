"""Path searches in process, up to three hops."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from benchmarks.bench import Bench
from benchmarks.figures import Line, Section, Target, line_of
from benchmarks.peers.answers import MOST_PATHS, PeerGraph
from benchmarks.timing import differing, race
from benchmarks.workload import Pair
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import PathRequest
from kg_adapters.terms import Iri

Ask: TypeAlias = Callable[[Pair], Awaitable[object]]

HOPS: Final = 3
_TARGETS: Final = (Target("median", 2e-3), Target("p95", 20e-3))
_AGREEING: Final = 3


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of pairs, and who can be asked about them in reasonable time."""

    name: str
    pairs: Sequence[Pair]
    targets: tuple[Target, ...]
    too_slow: frozenset[str] = frozenset()


async def measure_paths(bench: Bench) -> Section:
    """Find all simple paths as the tool does, then through hubs too, which is what the peers do."""
    work = bench.work
    kinds = (
        _Kind("random pairs", work.random_pairs, _TARGETS),
        _Kind("hub-adjacent pairs", work.hub_adjacent, _TARGETS),
        _Kind("hub to hub", work.hub_pairs, (), frozenset({"rdflib"})),
    )
    lines: list[Line] = []
    notes: list[str] = []
    for kind in kinds:
        bench.tell(f"Searching paths, {kind.name} …")
        lines.append(
            line_of(
                f"{kind.name}, around hubs",
                await race({"ours": _around(bench.adapter)}, kind.pairs),
                targets=kind.targets,
            )
        )
        peers = [peer for peer in bench.peers if peer.name not in kind.too_slow]
        contestants = {"ours": _through(bench.adapter), **{peer.name: _theirs(peer) for peer in peers}}
        lines.append(line_of(f"{kind.name}, through hubs", await race(contestants, kind.pairs, budget_s=4)))
        notes += await differing(contestants, kind.pairs[:_AGREEING])
    rules = f"Ours counts and ranks all paths and gives the best 10; the peers stop at {MOST_PATHS} paths."
    return Section(
        "paths",
        f"Paths of at most {HOPS} hops, in process",
        tuple(lines),
        (rules, *(f"Answers differ: {note}" for note in notes)),
    )


def _around(adapter: LocalAdapter) -> Ask:
    async def ask(pair: Pair) -> object:
        return await adapter.paths(PathRequest(Iri(pair[0]), Iri(pair[1]), max_hops=HOPS))

    return ask


def _through(adapter: LocalAdapter) -> Ask:
    async def ask(pair: Pair) -> int:
        request = PathRequest(Iri(pair[0]), Iri(pair[1]), max_hops=HOPS, avoid_hubs=False)
        return min(MOST_PATHS, (await adapter.paths(request)).total.value)

    return ask


def _theirs(peer: PeerGraph) -> Ask:
    async def ask(pair: Pair) -> int:
        return peer.paths(*pair, HOPS)

    return ask
