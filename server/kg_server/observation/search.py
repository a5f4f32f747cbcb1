"""The search of ODA (section 2.1, Algorithm 1): look around, rank by the question, go on from the best."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel

from kg_adapters.errors import BackendTimeout
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import Surroundings, surroundings
from kg_adapters.terms import BlankNode, Fact, Node, node_key
from kg_server.inverses import InverseOf, no_inverse
from kg_server.observation.entries import with_entries
from kg_server.observation.groups import merged
from kg_server.observation.reach import Observation, Observed, Reach, Seed
from kg_server.observation.scoring import Scorer
from kg_server.observation.seed_search import BEFORE, SeedSearch

OnHop: TypeAlias = Callable[[int], Awaitable[None]]

PER_RELATION: Final = 200
PER_ENTITY: Final = 2_000
MAX_EDGES: Final = 20_000
"""How many edges one hop looks at, about; every entity shows at least `FEWEST_EDGES`."""
FEWEST_EDGES: Final = 50


async def search(
    graph: KGAdapter,
    scorer: Scorer,
    seeds: Sequence[Seed],
    reach: Reach,
    on_hop: OnHop,
    inverse_of: InverseOf = no_inverse,
) -> Observation:
    """Observe a graph: every seed has a search of its own, all take their turns together.

    A triple takes one place only: found again, by another turn or another seed, it keeps its best score and its
    first hop. A turn keeps the best that are new to its seed.

    Args:
        graph: The graph; each turn asks it once for everybody.
        scorer: What ranks.
        seeds: Where to start, each entity once.
        reach: How far and how wide to look.
        on_hop: Told the number of each finished turn.
        inverse_of: Gives the relation that says the same backwards, or None.
    """
    searches = [SeedSearch(graph, seed, reach, seeds, inverse_of) for seed in seeds]
    sampled: dict[Node, None] = {}
    edges = hops = 0
    stopped = True
    with anyio.move_on_after(reach.timeout_s):
        try:
            for hop in range(1, reach.hops + 1):
                if not any(each.frontier for each in searches):
                    break
                await anyio.lowlevel.checkpoint()
                around = await _look_around(
                    graph, (node for each in searches for node in (*each.frontier, *each.unopened))
                )
                edges += len(around)
                sampled.update(dict.fromkeys(around.sampled))
                for each in searches:
                    await each.open_entries(around, scorer, near_seed=hop == 2)
                    await each.take_turn(around, scorer, hop)
                hops = hop
                await on_hop(hop)
            # What the last turn led to takes a look of its own, which is not worth a request.
            nodes = [node for each in searches for node in each.unopened if _is_at_hand(graph, node)]
            if nodes:
                around = await _look_around(graph, nodes)
                for each in searches:
                    await each.open_entries(around, scorer, near_seed=hops == 1)
            stopped = False
        except BackendTimeout:
            pass
    labels = {node: label for each in searches for node, label in each.labels.items()}
    groups = merged(group for each in searches for group in with_entries(each.groups, each.entries, BEFORE))
    held = {node: entry.facts for each in searches for node, entry in each.entries.items()}
    return Observation(_merged(searches), groups, labels, held, tuple(sampled), edges, hops, stopped)


def _is_at_hand(graph: KGAdapter, node: Node) -> bool:
    """Say whether no request is needed, or would help, to learn what a node holds."""
    return not graph.remote or (isinstance(node, BlankNode) and not graph.prefixes.blank_nodes)


async def _look_around(graph: KGAdapter, nodes: Iterable[Node]) -> Surroundings:
    frontier = sorted(set(nodes), key=node_key)
    per_entity = max(FEWEST_EDGES, min(PER_ENTITY, MAX_EDGES // len(frontier)))
    per_relation = min(PER_RELATION, per_entity)
    request = SurroundingsRequest(tuple(frontier), per_relation=per_relation, per_entity=per_entity, values=True)
    return await surroundings(graph, request)


def _merged(searches: Sequence[SeedSearch]) -> tuple[Observed, ...]:
    best: dict[Fact, Observed] = {}
    for found in (each for search in searches for each in search.found.values()):
        other = best.setdefault(found.fact, found)
        if other is not found:
            best[found.fact] = Observed(found.fact, max(found.score, other.score), min(found.hop, other.hop))
    return tuple(sorted(best.values(), key=_rank))


def _rank(found: Observed) -> tuple[float, str, str, str]:
    fact = found.fact
    return -found.score, str(fact.head), fact.relation.value, str(fact.tail)
