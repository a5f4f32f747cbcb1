"""Sets in process: counts of intersections, superlatives and groups over thousands of nodes, beside other libraries."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from benchmarks.figures import Line, Section, Target, differing, line_of, race
from benchmarks.graphs import Bench
from benchmarks.peers import OxigraphPeer
from kg_adapters.algebra import Best, Hop, HopPath, Intersect, Members, NumberOf, Reached, SetExpression, Step
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.set_requests import Grouped, Listed, SetQuestion, SetRequest, Tabled
from kg_adapters.terms import Iri

Ask: TypeAlias = Callable[["Case"], Awaitable[object]]

MOST_CROWDS: Final = 4
ROUNDS: Final = 5
RESULTS: Final = 10
_SMALL, _LARGE = 10_000, 20_000
_OF_SMALL_GRAPHS: Final = 20
"""What part of its largest group a small graph's sets have at least."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The nodes that a relation leads from to any of some tails."""

    relation: str
    tails: tuple[str, ...]
    size: int

    @property
    def expression(self) -> SetExpression:
        """The set."""
        return Reached(Members(tuple(map(Iri, self.tails))), HopPath((Hop((Step(Iri(self.relation), "in"),)),)))

    def pattern(self, number: int) -> str:
        """Return the set as SPARQL, as somebody would write it by hand."""
        tails = " ".join(f"<{tail}>" for tail in self.tails)
        return f"VALUES ?t{number} {{ {tails} }} ?x <{self.relation}> ?t{number} ."


@dataclass(frozen=True, slots=True)
class Case:
    """A question about sets, and the query for the same numbers.

    Args:
        question: The question.
        query: The query.
        crowds: The sets that intersect, or the one that is looked at.
        relation: What is counted at its members; empty where sets intersect.
        groups: Whether members are counted by what the relation leads to; otherwise what it leads to, by member.
    """

    question: SetQuestion
    query: str
    crowds: tuple[Crowd, ...]
    relation: str = ""
    groups: bool = False


async def measure_sets(bench: Bench) -> Section:
    """Ask for the number of an intersection, the top ten and all groups."""
    index = bench.store.index
    small, large = crowds(index, _SMALL), crowds(index, _LARGE)
    over = _commonest(index)
    kinds = {
        "count of an intersection": ([*_counts(small)], Target(20e-3)),
        "top ten by neighbours": ([*_ranked(large, over, groups=False)], Target(100e-3)),
        "groups": ([*_ranked(large, over, groups=True)], Target(100e-3)),
    }
    contestants: dict[str, Ask] = {"ours": partial(_ours, bench.adapter)}
    for peer in bench.peers:
        if isinstance(peer, OxigraphPeer):
            contestants[f"{peer.name} SPARQL"] = partial(_by_query, peer)
    lines: list[Line] = []
    notes = [f"Sets of {_sizes(small)} nodes intersect; the best and the groups are of {_sizes(large)} nodes."]
    for name, (cases, target) in kinds.items():
        bench.tell(f"Working out sets, {name} …")
        if cases:
            lines.append(line_of(name, await race(contestants, cases, rounds=ROUNDS, budget_s=10), target))
            notes += await differing(contestants, cases[:2])
        else:
            notes.append(f"The graph is too small for this: {name}.")
    return Section("sets", "Sets of thousands of nodes, in process", lines, notes)


def crowds(index: GraphIndex, least: int) -> list[Crowd]:
    """Return sets of at least so many nodes (of fewer where the graph is small), each over another relation."""
    table = index.into
    sizes = np.diff(table.starts)
    least = min(least, max(1, int(sizes.max()) * 2 // _OF_SMALL_GRAPHS)) if sizes.max() < least else least
    found: dict[int, list[tuple[int, int]]] = {}
    order: list[int] = np.argsort(-sizes, kind="stable").tolist()
    done: list[Crowd] = []
    for group in order:
        relation = int(table.relations[group])
        groups = found.setdefault(relation, [])
        if sum(size for _, size in groups) >= least:
            continue
        tail = int(np.searchsorted(table.groups, group, side="right")) - 1
        groups.append((tail, int(sizes[group])))
        total = sum(size for _, size in groups)
        if total >= least:
            tails = tuple(index.nodes[node] for node, _ in groups)
            done.append(Crowd(index.relations[relation], tails, total))
        if len(done) == MOST_CROWDS:
            break
    return done


def _commonest(index: GraphIndex) -> list[str]:
    """Return the relations that most nodes have."""
    numbers, counts = np.unique(index.out.relations, return_counts=True)
    order: list[int] = numbers[np.argsort(-counts, kind="stable")][:MOST_CROWDS].tolist()
    return [index.relations[number] for number in order]


def _counts(found: Sequence[Crowd]) -> Iterator[Case]:
    for one, other in combinations(found, 2):
        query = f"SELECT (COUNT(DISTINCT ?x) AS ?n) {{ {one.pattern(1)} {other.pattern(2)} }}"
        yield Case(Listed(Intersect((one.expression, other.expression))), query, (one, other))


def _ranked(found: Sequence[Crowd], over: Sequence[str], *, groups: bool) -> Iterator[Case]:
    """Yield the questions for the members with most neighbours over a relation, or for the largest groups by it."""
    counted, by = ("?x", "?y") if groups else ("?y", "?x")
    for crowd in found:
        for relation in over:
            path = HopPath((Hop((Step(Iri(relation)),)),))
            number = NumberOf(path)
            query = (
                f"SELECT (COUNT(DISTINCT {counted}) AS ?n) {{ {crowd.pattern(1)} ?x <{relation}> ?y "
                f"FILTER(!isLiteral(?y)) }} GROUP BY {by} ORDER BY DESC(?n) LIMIT {RESULTS}"
            )
            best = Tabled(Best(crowd.expression, number, RESULTS), (number,))
            yield Case(Grouped(crowd.expression, path) if groups else best, query, (crowd,), relation, groups)


async def _ours(adapter: LocalAdapter, case: Case) -> list[int]:
    found = await adapter.compute(SetRequest(case.question, limit=RESULTS if case.relation else 0, witnesses=0))
    if not case.relation:
        return [found.count.value]
    return [row.cells[0].count.value for row in found.rows] or [group.size.value for group in found.groups]


async def _by_query(peer: OxigraphPeer, case: Case) -> list[int]:
    return peer.numbers(case.query)


def _sizes(found: Sequence[Crowd]) -> str:
    sizes = [crowd.size for crowd in found] or [0]
    return f"{min(sizes):,} to {max(sizes):,}"
