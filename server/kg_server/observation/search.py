"""Search the facts around the entities of a question."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel
import numpy as np

from kg_adapters.errors import BackendTimeout
from kg_adapters.profile import kind_of
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import Longs, Surroundings, surroundings
from kg_adapters.terms import Attribute, BlankNode, Fact, Iri, Literal, Node, node_key
from kg_server.answers.coverage import InverseOf, no_inverse
from kg_server.answers.intermediates import may_be_opened
from kg_server.concurrency import off_loop
from kg_server.observation.groups import MOST_FAR, Doubles, Grouping, RelationGroup, grouping, merged
from kg_server.observation.scoring import Inquiry, Scorer

MAX_EXPANDED: Final = 400
"""How many entities one hop expands at most, all seeds together."""

WHOLE_ENTITIES: Final = 200
"""Up to how many entities a graph may have to be looked at whole."""

WHOLE_FACTS: Final = 5_000
"""How many of its facts one hop keeps at most."""


@dataclass(frozen=True, slots=True)
class Seed:
    """An entity to start from, what is asked about it, and whether it has a label."""

    entity: Node
    asked: Inquiry
    labelled: bool = False


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

    def over(self, entities: int) -> "Reach":
        """Return how far and wide to look in a graph of so many entities: a small one is looked at whole.

        A width that is asked for stays.
        """
        usual = replace(Reach(), hops=self.hops, timeout_s=self.timeout_s)
        if self != usual or not 0 < entities <= WHOLE_ENTITIES:
            return self
        return replace(self, top_n=WHOLE_FACTS, top_percent=100.0)

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
        held: What nodes hold that have no name and only hold facts together.
        sampled: The entities of which not every edge was looked at.
        edges: How many edges were looked at.
        hops: How many turns were finished.
        stopped: Whether time ran out.
        narrowed: Whether some facts within reach were not kept, or not followed.
    """

    found: tuple[Observed, ...]
    groups: tuple[RelationGroup, ...]
    labels: Mapping[Node, str]
    held: Mapping[Node, tuple[Fact, ...]]
    sampled: tuple[Node, ...]
    edges: int
    hops: int
    stopped: bool
    narrowed: bool = False

    @property
    def stated(self) -> frozenset[Iri]:
        """The relations of what is stated around the seeds, in either direction."""
        return frozenset(group.relation for group in self.groups if group.hop == 1)


MOST_ENTRIES: Final = 60
"""How many such nodes are opened in a turn at most."""

FITTING: Final = 0.4
"""What is added to the score of one that a year of the question falls into, or that leads to another seed."""

_MOST_HELD: Final = 12

_YEAR: Final = re.compile(r"\b[12]\d{3}\b")


@dataclass(frozen=True, slots=True)
class Entry:
    """What such a node holds, without its types, and how like the question the best of it is."""

    facts: tuple[Fact, ...]
    score: float


def edges_of(around: Surroundings, nodes: Iterable[Node]) -> Longs:
    """Return the places of the facts around some of the entities."""
    wanted = frozenset(nodes)
    mine = np.fromiter((node in wanted for node in around.entities), np.bool_, len(around.entities))
    return np.flatnonzero(mine[around.near])


def entries_of(
    around: Surroundings,
    edges: Longs,
    scores: Doubles,
    *,
    unwalked: Collection[Iri],
    question: str,
    seeds: Collection[Node],
) -> dict[Node, Entry]:
    """Return the nodes that turned out to hold little else than facts together, with what they hold.

    Args:
        around: What lies around them.
        edges: The places of the facts around them; shape [k].
        scores: How like the question each is; shape [k].
        unwalked: The relations to types, which say nothing about a single node.
        question: What is asked; the years that it names count.
        seeds: The other entities that it is about.
    """
    years = [int(year) for year in _YEAR.findall(question)]
    held: dict[Node, list[tuple[float, bool, Fact]]] = {}
    for edge, score in zip(edges.tolist(), scores.tolist(), strict=True):
        if around.relations[int(around.relation[edge])] not in unwalked:
            rows = held.setdefault(around.entities[int(around.near[edge])], [])
            rows.append((score, bool(around.inverse[edge]), around.fact(edge)))
    found: dict[Node, Entry] = {}
    for node, rows in held.items():
        if len(rows) <= _MOST_HELD and sum(inverse for _, inverse, _ in rows) <= 1 < len(rows):
            facts = tuple(fact for *_, fact in sorted(rows, key=lambda row: not row[1]))
            fits = _covers(facts, years) or any(end in seeds for fact in facts for end in (fact.head, fact.tail))
            found[node] = Entry(facts, max(score for score, *_ in rows) + FITTING * fits)
    return found


def _covers(facts: Iterable[Fact], years: Iterable[int]) -> bool:
    """Say whether the time between the first and the last date of some facts, or since the only one, has a year."""
    dates = [fact.tail for fact in facts if isinstance(fact, Attribute) and kind_of(fact.tail.datatype) == "date"]
    held = [int(date.value[:4]) for date in dates if _YEAR.match(date.value)]
    return bool(held) and any(min(held) <= year <= (max(held) if len(held) > 1 else year) for year in years)


def with_entries(groups: Sequence[RelationGroup], entries: Mapping[Node, Entry], before: float) -> list[RelationGroup]:
    """Return groups in whose order and score counts what their far ends hold, the most alike first.

    Args:
        groups: The groups.
        entries: What far ends hold.
        before: What part of a score what leads to a far end makes up.
    """

    def scored(group: RelationGroup) -> RelationGroup:
        held = {far: entries[far].score for far in group.far if not isinstance(far, Literal) and far in entries}
        if not held:
            return group
        far = sorted(group.far, key=lambda term: -held[term] if not isinstance(term, Literal) and term in held else 1)
        best = round((1 - before) * max(held.values()) + before * group.score, 4)
        return replace(group, far=tuple(far), score=max(group.score, best))

    return [scored(group) for group in groups]


BEFORE: Final = 0.4
"""What part of a path's score what led there makes up; the last step makes up the rest."""

RETURNING: Final = 0.4
"""What a score keeps where an edge goes back over the relation that led there: from a book's publisher to its books."""

HUB: Final = 200
"""From how many incoming edges on a far end is a hub, whose incoming edges say nothing about the question."""


class SeedSearch:
    """The search from one seed: its frontier, what was expanded, and what was kept."""

    def __init__(
        self, graph: KGAdapter, seed: Seed, reach: Reach, seeds: Sequence[Seed], inverse_of: InverseOf
    ) -> None:
        self._others = frozenset(each.entity for each in seeds) - {seed.entity}
        self._graph = graph
        self._seed = seed
        self._inverse_of = inverse_of
        self._top_n = reach.top_n
        self._width = reach.width(len(seeds))
        self._to_the_letter = reach.to_the_letter
        self._expanded: set[Node] = set()
        self.frontier: tuple[Node, ...] = (seed.entity,)
        self._led: dict[Node, tuple[float, Iri, bool]] = {}
        self.found: dict[Fact, Observed] = {}
        self.groups: list[RelationGroup] = []
        self.labels: dict[Node, str] = {}
        self.unopened: tuple[Node, ...] = ()
        self.narrowed = self._left_behind = False
        self.entries: dict[Node, Entry] = {}

    async def take_turn(self, around: Surroundings, scorer: Scorer, hop: int) -> None:
        """Keep the best edges around the frontier, and go on from the best of these."""
        self.narrowed |= self._left_behind
        edges = self._own_edges(around, hop)
        self._expanded.update(self.frontier)
        scores = await scorer.score(self._seed.asked, around, edges)
        # The edges are in the order of their ids, so that a stable sort leaves equal ones in it. Rounded, the scores do
        # not depend on the order in which a processor adds.
        rounded = np.asarray(np.round(scores.astype(np.float64), 4), dtype=np.float64)
        weighted = self._weighted(around, edges, rounded, hop)
        fresh = self._keep(around, edges, weighted, hop)
        groups = grouping(around, edges, weighted)
        kept: Iterable[int] = range(len(groups)) if hop == 1 else dict.fromkeys(groups.of[fresh].tolist())
        mentioned = [edges[fresh]]
        if self._to_the_letter:
            self.groups += _kept_alone(around, edges, fresh, groups, hop)
            kept = ()
        for number in kept:
            shown = groups.shown(number, MOST_ENTRIES)
            entries = [around.far_term(edge) for edge in shown if self._may_be_entry(around, edge)]
            self.unopened = (*self.unopened, *(each for each in entries if not isinstance(each, Literal)))
            self.groups.append(groups.group(around, number, hop, MOST_ENTRIES if entries else MOST_FAR))
            mentioned.append(np.asarray(shown[:MOST_FAR], dtype=np.int64))
        self._learn(around, np.concatenate(mentioned))
        self.unopened = self.unopened[:MOST_ENTRIES]
        best = (
            fresh[: self._width] if self._to_the_letter else fresh[np.argsort(_turns(groups.of[fresh]), kind="stable")]
        )
        self._go_on(around, edges[best].tolist(), weighted[best].tolist())

    async def open_entries(self, around: Surroundings, scorer: Scorer, *, near_seed: bool) -> None:
        """Learn what the nodes hold that the turn before took for such as only hold facts together."""
        edges = edges_of(around, self.unopened)
        if len(edges):
            scores = np.asarray(np.round(await scorer.score(self._seed.asked, around, edges), 4), dtype=np.float64)
            found = entries_of(
                around,
                edges,
                scores,
                unwalked=self._graph.vocabulary.unwalked,
                # What is further away may fit by chance.
                question=self._seed.asked.text if near_seed else "",
                seeds=self._others if near_seed else (),
            )
            self.entries.update(found)
            near = [around.entities[place] in found for place in around.near[edges].tolist()]
            self._learn(around, edges[near])
        self.unopened = ()

    def _may_be_entry(self, around: Surroundings, edge: int) -> bool:
        """Say whether an edge may lead to a node that only holds facts together."""
        # Most far ends have a label.
        if self._to_the_letter or around.far_labels[int(around.far[edge])] is not None:
            return False
        graph, near, far = self._graph, around.entities[int(around.near[edge])], around.far_term(edge)
        if around.relations[int(around.relation[edge])] in graph.vocabulary.unwalked:
            return False
        labelled = near in self.labels or (near == self._seed.entity and self._seed.labelled)
        return not isinstance(far, Literal) and may_be_opened(far, labelled=labelled)

    def _weighted(self, around: Surroundings, edges: Longs, scores: Doubles, hop: int) -> Doubles:
        """Return scores together with those of what led to their near ends; in the paper, each as it is."""
        if hop == 1 or self._to_the_letter:
            return scores
        led = [self._led.get(node) for node in around.entities]
        before = np.array([0.0 if each is None else each[0] for each in led])
        places = {relation: place for place, relation in enumerate(around.relations)}
        back = np.array([-1 if each is None else 2 * places.get(each[1], -1) + (not each[2]) for each in led])
        over = [None if each is None else self._inverse_of(each[1]) for each in led]
        turned = np.array(
            [
                -1 if each is None or inverse is None else 2 * places.get(inverse, -1) + each[2]
                for each, inverse in zip(led, over, strict=True)
            ]
        )
        near, walked = around.near[edges], 2 * around.relation[edges] + around.inverse[edges]
        returning = (walked == back[near]) | (walked == turned[near])
        return np.round((1 - BEFORE) * np.where(returning, RETURNING * scores, scores) + BEFORE * before[near], 4)

    def _go_on(self, around: Surroundings, edges: Sequence[int], scores: Sequence[float]) -> None:
        """Set the next frontier to the far ends of edges, the best first, and keep what led there."""
        best: dict[Node, tuple[float, Iri, bool]] = {}
        self._left_behind = False
        for edge, score in zip(edges, scores, strict=True):
            far = around.far_term(edge)
            if isinstance(far, Literal) or far in self._expanded or far in best:
                continue
            if len(best) == self._width:
                self._left_behind = True
                break
            best.setdefault(far, (score, around.relations[int(around.relation[edge])], bool(around.inverse[edge])))
        self._led, self.frontier = best, tuple(best)

    def _own_edges(self, around: Surroundings, hop: int) -> Longs:
        edges = edges_of(around, self.frontier)
        if hop == 1 or self._to_the_letter:
            return edges
        incoming = np.bincount(around.near[around.inverse], minlength=len(around.entities))
        return edges[~(around.inverse & (incoming >= HUB)[around.near])[edges]]

    def _keep(self, around: Surroundings, edges: Longs, scores: Doubles, hop: int) -> Longs:
        """Keep the best `top_n` triples that are new, and return their places in `edges`, the best first."""
        fresh: list[int] = []
        order: list[int] = np.argsort(-scores, kind="stable").tolist()
        for place in order:
            if len(fresh) == self._top_n:
                self.narrowed = True
                break
            fact, score = around.fact(int(edges[place])), float(scores[place])
            before = self.found.get(fact)
            if before is None:
                self.found[fact] = Observed(fact, score, hop)
                fresh.append(place)
            elif before.score < score:
                self.found[fact] = replace(before, score=score)
        return np.array(fresh, dtype=np.int64)

    def _learn(self, around: Surroundings, edges: Longs) -> None:
        """Remember the labels of edges; those of their near ends are known since the turn before."""
        relations: list[int] = around.relation[edges].tolist()
        far: list[int] = around.far[edges].tolist()
        for relation in set(relations):
            if (label := around.relation_labels[relation]) is not None:
                self.labels[around.relations[relation]] = label
        for node in set(far):
            if node < len(around.far_nodes) and (label := around.far_labels[node]) is not None:
                self.labels[around.far_nodes[node]] = label


def _kept_alone(
    around: Surroundings, edges: Longs, fresh: Longs, groups: Grouping, hop: int
) -> Iterator[RelationGroup]:
    """Yield the groups of the edges that were kept, with all of these and no others."""
    kept: dict[int, list[int]] = {}
    for place in fresh.tolist():
        kept.setdefault(int(groups.of[place]), []).append(int(edges[place]))
    for number, shown in kept.items():
        yield replace(groups.group(around, number, hop), far=tuple(map(around.far_term, shown)))


def _turns(groups: Longs) -> Longs:
    """Return how many edges of its group come before each edge; shape [edges]."""
    order = np.argsort(groups, kind="stable")
    _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    turns = np.empty(len(groups), dtype=np.int64)
    turns[order] = np.arange(len(groups)) - np.repeat(starts, sizes)
    return turns


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
                    await anyio.lowlevel.checkpoint()
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

    def seen() -> Observation:
        labels = {node: label for each in searches for node, label in each.labels.items()}
        groups = merged(group for each in searches for group in with_entries(each.groups, each.entries, BEFORE))
        narrowed = any(each.narrowed for each in searches)
        held = {node: entry.facts for each in searches for node, entry in each.entries.items()}
        return Observation(_merged(searches), groups, labels, held, tuple(sampled), edges, hops, stopped, narrowed)

    return await off_loop(seen, sum(len(each.found) for each in searches))


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
