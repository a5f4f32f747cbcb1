"""Nodes without a name that only hold facts together: they are opened as a part of the fact that leads to them."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kg_adapters.profile import kind_of
from kg_adapters.surroundings import Longs, Surroundings
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node
from kg_server.observation.groups import Doubles, Group

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


def with_entries(groups: Sequence[Group], entries: Mapping[Node, Entry], before: float) -> list[Group]:
    """Return groups in whose order and score counts what their far ends hold, the most alike first.

    Args:
        groups: The groups.
        entries: What far ends hold.
        before: What part of a score what leads to a far end makes up.
    """

    def scored(group: Group) -> Group:
        held = {far: entries[far].score for far in group.far if not isinstance(far, Literal) and far in entries}
        if not held:
            return group
        far = sorted(group.far, key=lambda term: -held[term] if not isinstance(term, Literal) and term in held else 1)
        best = round((1 - before) * max(held.values()) + before * group.score, 4)
        return replace(group, far=tuple(far), score=max(group.score, best))

    return [scored(group) for group in groups]
