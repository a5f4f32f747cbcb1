"""The turns of a search from one seed: rank what lies around by the question, and go on from the best."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from kg_adapters.protocol import KGAdapter
from kg_adapters.surroundings import Longs, Surroundings
from kg_adapters.terms import Fact, Iri, Literal, Node
from kg_server.intermediates import may_be_opened
from kg_server.inverses import InverseOf
from kg_server.observation.entries import MOST_ENTRIES, Entry, edges_of, entries_of
from kg_server.observation.groups import MOST_FAR, Doubles, Group, grouping
from kg_server.observation.reach import Observed, Reach, Seed
from kg_server.observation.scoring import Scorer

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
        self.groups: list[Group] = []
        self.labels: dict[Node, str] = {}
        self.unopened: tuple[Node, ...] = ()
        self.entries: dict[Node, Entry] = {}

    async def take_turn(self, around: Surroundings, scorer: Scorer, hop: int) -> None:
        """Keep the best edges around the frontier, and go on from the best of these."""
        edges = self._own_edges(around, hop)
        self._expanded.update(self.frontier)
        scores = await scorer.score(self._seed.asked, around, edges)
        # The edges are in the order of their ids, so that a stable sort leaves equal ones in it. Rounded, the scores do
        # not depend on the order in which a processor adds.
        rounded = np.asarray(np.round(scores.astype(np.float64), 4), dtype=np.float64)
        weighted = self._weighted(around, edges, rounded, hop)
        fresh = self._keep(around, edges, weighted, hop)
        groups = grouping(around, edges, weighted)
        kept = range(len(groups)) if hop == 1 else dict.fromkeys(groups.of[fresh].tolist())
        mentioned = [edges[fresh]]
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
        for edge, score in zip(edges, scores, strict=True):
            if len(best) == self._width:
                break
            far = around.far_term(edge)
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


def _turns(groups: Longs) -> Longs:
    """Return how many edges of its group come before each edge; shape [edges]."""
    order = np.argsort(groups, kind="stable")
    _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    turns = np.empty(len(groups), dtype=np.int64)
    turns[order] = np.arange(len(groups)) - np.repeat(starts, sizes)
    return turns
