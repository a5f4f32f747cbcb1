"""The search of ODA (section 2.1, Algorithm 1): look around, rank by the question, go on from the best."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel
import numpy as np

from kg_adapters.errors import BackendTimeout
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import Longs, Surroundings, surroundings
from kg_adapters.terms import Fact, Iri, Literal, Node, node_key
from kg_server.observation.groups import Doubles, Group, far_of, grouping, merged
from kg_server.observation.scoring import Scorer
from kg_server.observation.wording import Inquiry

OnHop: TypeAlias = Callable[[int], Awaitable[None]]

PER_RELATION: Final = 200
PER_ENTITY: Final = 2_000
MAX_EDGES: Final = 20_000
"""How many edges one hop looks at, about; every entity shows at least `FEWEST_EDGES`."""
FEWEST_EDGES: Final = 50
BEFORE: Final = 0.4
"""What part of a path's score what led there makes up; the last step makes up the rest."""
RETURNING: Final = 0.4
"""What a score keeps where an edge goes back over the relation that led there: from a book's publisher to its books."""
HUB: Final = PER_RELATION
"""From how many incoming edges on a far end is a hub, whose incoming edges say nothing about the question."""
MAX_EXPANDED: Final = 400
"""How many entities one hop expands at most, all seeds together."""


@dataclass(frozen=True, slots=True)
class Seed:
    """An entity to start from, and what is asked about it."""

    entity: Node
    asked: Inquiry


@dataclass(frozen=True, slots=True)
class Reach:
    """How far and how wide to look.

    Args:
        hops: How many turns to take; D in the paper.
        top_n: How many triples of each turn and seed to keep; N in the paper.
        top_percent: From what share of these the next turn goes on; P in the paper.
        to_the_letter: Whether to search as the paper does: on from the best triples, whatever led there, and through
            hubs.
        timeout_s: After how many seconds to stop with what was found.
    """

    hops: int = 3
    top_n: int = 50
    top_percent: float = 10.0
    to_the_letter: bool = False
    timeout_s: float = 10.0

    def width(self, seeds: int) -> int:
        """Return from how many triples of one seed the next turn goes on."""
        return max(1, min(int(self.top_n * self.top_percent / 100), MAX_EXPANDED // seeds))


@dataclass(frozen=True, slots=True)
class Observed:
    """A triple, how like the question it and what led there are, and at which hop from a seed it was found."""

    fact: Fact
    score: float
    hop: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What a search found.

    Args:
        found: The triples, best first; equal ones by their ids.
        groups: The groups that these are of, and every group of a seed, the best first.
        labels: The labels of what the triples mention, but those of the seeds.
        sampled: The entities of which not every edge was looked at.
        edges: How many edges were looked at.
        hops: How many turns were finished.
        stopped: Whether time ran out.
    """

    found: tuple[Observed, ...]
    groups: tuple[Group, ...]
    labels: Mapping[Node, str]
    sampled: tuple[Node, ...]
    edges: int
    hops: int
    stopped: bool


async def search(graph: KGAdapter, scorer: Scorer, seeds: Sequence[Seed], reach: Reach, on_hop: OnHop) -> Observation:
    """Observe a graph: every seed has a search of its own, all take their turns together.

    A triple takes one place only: found again, by another turn or another seed, it keeps its best score and its
    first hop. A turn keeps the best that are new to its seed.

    Args:
        graph: The graph; each turn asks it once for everybody.
        scorer: What ranks.
        seeds: Where to start, each entity once.
        reach: How far and how wide to look.
        on_hop: Told the number of each finished turn.
    """
    searches = [_SeedSearch(seed, reach, len(seeds)) for seed in seeds]
    sampled: dict[Node, None] = {}
    edges = hops = 0
    stopped = True
    with anyio.move_on_after(reach.timeout_s):
        try:
            for hop in range(1, reach.hops + 1):
                frontier = sorted({node for each in searches for node in each.frontier}, key=node_key)
                if not frontier:
                    break
                await anyio.lowlevel.checkpoint()
                around = await _look_around(graph, frontier)
                edges += len(around)
                sampled.update(dict.fromkeys(around.sampled))
                for each in searches:
                    await each.take_turn(around, scorer, hop)
                hops = hop
                await on_hop(hop)
            stopped = False
        except BackendTimeout:
            pass
    labels = {node: label for each in searches for node, label in each.labels.items()}
    groups = merged(group for each in searches for group in each.groups)
    return Observation(_merged(searches), groups, labels, tuple(sampled), edges, hops, stopped)


async def _look_around(graph: KGAdapter, frontier: Sequence[Node]) -> Surroundings:
    per_entity = max(FEWEST_EDGES, min(PER_ENTITY, MAX_EDGES // len(frontier)))
    per_relation = min(PER_RELATION, per_entity)
    request = SurroundingsRequest(tuple(frontier), per_relation=per_relation, per_entity=per_entity, values=True)
    return await surroundings(graph, request)


class _SeedSearch:
    """The search from one seed: its frontier, what was expanded, and what was kept."""

    def __init__(self, seed: Seed, reach: Reach, seeds: int) -> None:
        self._asked = seed.asked
        self._top_n = reach.top_n
        self._width = reach.width(seeds)
        self._to_the_letter = reach.to_the_letter
        self._expanded: set[Node] = set()
        self.frontier: tuple[Node, ...] = (seed.entity,)
        self._led: dict[Node, tuple[float, Iri, bool]] = {}
        self.found: dict[Fact, Observed] = {}
        self.groups: list[Group] = []
        self.labels: dict[Node, str] = {}

    async def take_turn(self, around: Surroundings, scorer: Scorer, hop: int) -> None:
        """Keep the best edges around the frontier, and go on from the best of these."""
        edges = self._own_edges(around, hop)
        self._expanded.update(self.frontier)
        scores = await scorer.score(self._asked, around, edges)
        # The edges are in the order of their ids, so that a stable sort leaves equal ones in it. Rounded, the scores do
        # not depend on the order in which a processor adds.
        rounded = np.asarray(np.round(scores.astype(np.float64), 4), dtype=np.float64)
        weighted = self._weighted(around, edges, rounded, hop)
        fresh = self._keep(around, edges, weighted, hop)
        groups = grouping(around, edges, weighted)
        kept = range(len(groups)) if hop == 1 else dict.fromkeys(groups.of[fresh].tolist())
        for number in kept:
            self.groups.append(groups.group(around, number, hop))
            self._learn(around, groups.shown(number))
        best = (
            fresh[: self._width] if self._to_the_letter else fresh[np.argsort(_turns(groups.of[fresh]), kind="stable")]
        )
        self._go_on(around, edges[best].tolist(), weighted[best].tolist())

    def _weighted(self, around: Surroundings, edges: Longs, scores: Doubles, hop: int) -> Doubles:
        """Return scores together with those of what led to their near ends; in the paper, each as it is."""
        if hop == 1 or self._to_the_letter:
            return scores
        led = [self._led.get(node) for node in around.entities]
        before = np.array([0.0 if each is None else each[0] for each in led])
        places = {relation: place for place, relation in enumerate(around.relations)}
        back = np.array([-1 if each is None else 2 * places.get(each[1], -1) + (not each[2]) for each in led])
        near = around.near[edges]
        returning = 2 * around.relation[edges] + around.inverse[edges] == back[near]
        return np.round((1 - BEFORE) * np.where(returning, RETURNING * scores, scores) + BEFORE * before[near], 4)

    def _go_on(self, around: Surroundings, edges: Sequence[int], scores: Sequence[float]) -> None:
        """Set the next frontier to the far ends of edges, the best first, and keep what led there."""
        best: dict[Node, tuple[float, Iri, bool]] = {}
        for edge, score in zip(edges, scores, strict=True):
            if len(best) == self._width:
                break
            far = far_of(around, edge)
            if not isinstance(far, Literal) and far not in self._expanded:
                best.setdefault(far, (score, around.relations[int(around.relation[edge])], bool(around.inverse[edge])))
        self._led, self.frontier = best, tuple(best)

    def _own_edges(self, around: Surroundings, hop: int) -> Longs:
        frontier = set(self.frontier)
        mine = np.fromiter((node in frontier for node in around.entities), np.bool_, len(around.entities))
        if hop > 1 and not self._to_the_letter:
            incoming = np.bincount(around.near[around.inverse], minlength=len(around.entities))
            return np.flatnonzero(mine[around.near] & ~(around.inverse & (incoming >= HUB)[around.near]))
        return np.flatnonzero(mine[around.near])

    def _keep(self, around: Surroundings, edges: Longs, scores: Doubles, hop: int) -> Longs:
        """Keep the best `top_n` triples that are new, and return their places in `edges`, the best first."""
        fresh: list[int] = []
        order: list[int] = np.argsort(-scores, kind="stable").tolist()
        for place in order:
            if len(fresh) == self._top_n:
                break
            fact, score = around.fact(int(edges[place])), float(scores[place])
            before = self.found.get(fact)
            if before is None:
                self.found[fact] = Observed(fact, score, hop)
                self._learn(around, [int(edges[place])])
                fresh.append(place)
            elif before.score < score:
                self.found[fact] = replace(before, score=score)
        return np.array(fresh, dtype=np.int64)

    def _learn(self, around: Surroundings, edges: Sequence[int]) -> None:
        """Remember the labels of edges; those of their near ends are known since the turn before."""
        for edge in edges:
            relation, far = int(around.relation[edge]), far_of(around, edge)
            label, far_label = around.relation_labels[relation], around.far_labels[int(around.far[edge])]
            if label is not None:
                self.labels[around.relations[relation]] = label
            if far_label is not None and not isinstance(far, Literal):
                self.labels[far] = far_label


def _turns(groups: Longs) -> Longs:
    """Return how many edges of its group come before each edge; shape [edges]."""
    order = np.argsort(groups, kind="stable")
    _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    turns = np.empty(len(groups), dtype=np.int64)
    turns[order] = np.arange(len(groups)) - np.repeat(starts, sizes)
    return turns


def _merged(searches: Sequence[_SeedSearch]) -> tuple[Observed, ...]:
    best: dict[Fact, Observed] = {}
    for found in (each for search in searches for each in search.found.values()):
        other = best.setdefault(found.fact, found)
        if other is not found:
            best[found.fact] = Observed(found.fact, max(found.score, other.score), min(found.hop, other.hop))
    return tuple(sorted(best.values(), key=_rank))


def _rank(found: Observed) -> tuple[float, str, str, str]:
    fact = found.fact
    return -found.score, str(fact.head), fact.relation.value, str(fact.tail)
