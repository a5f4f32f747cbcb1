"""What tells namesakes apart: one fact about each, over a relation in which they differ."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from kg_adapters.profile import kind_of
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Literal, Node, Term, Triple

MAX_NAMESAKES: Final = 20
"""How many namesakes are looked at, in one batch."""

_PER_RELATION: Final = 2
_PER_ENTITY: Final = 60
_LONGEST_VALUE: Final = 60

_Facts: TypeAlias = Mapping[Iri, Mapping[Node, tuple[Term, ...]]]


@dataclass(frozen=True, slots=True)
class Telling:
    """One fact of an entity that its namesakes do not share."""

    relation: Iri
    value: Term

    @property
    def terms(self) -> tuple[Node, ...]:
        """What is shown with its label."""
        return (self.relation,) if isinstance(self.value, Literal) else (self.relation, self.value)


async def telling_facts(graph: KGAdapter, groups: Collection[Sequence[Node]]) -> dict[Node, Telling]:
    """Return for groups of namesakes a fact of each that tells it from the others, where there is one.

    Of all relations the one counts in which most namesakes have something of their own.
    """
    wanted = list(dict.fromkeys(node for group in groups if len(group) > 1 for node in group))[:MAX_NAMESAKES]
    if not wanted:
        return {}
    facts = await _facts(graph, wanted)
    found: dict[Node, Telling] = {}
    for group in groups:
        best = max(facts, key=lambda relation: _difference(facts[relation], group), default=None)
        if len(group) > 1 and best is not None and _difference(facts[best], group)[0] > 1:
            found.update({node: Telling(best, facts[best][node][0]) for node in group if node in facts[best]})
    return found


async def _facts(graph: KGAdapter, nodes: Sequence[Node]) -> _Facts:
    """Return some of what entities have over each relation, and of their values; not names, descriptions and types."""
    skipped = graph.vocabulary.unwalked
    found: defaultdict[Iri, defaultdict[Node, list[Term]]] = defaultdict(lambda: defaultdict(list))
    around = NeighborRequest(
        tuple(nodes), direction="out", limit=_PER_ENTITY, limit_per_relation=_PER_RELATION, values=True
    )
    for page in (await graph.neighbors(around)).values():
        for fact in page.facts:
            if isinstance(fact, Triple) or len(fact.tail.value) <= _LONGEST_VALUE:
                found[fact.relation][fact.head].append(fact.tail)
    return {
        relation: {node: tuple(terms) for node, terms in of.items()}
        for relation, of in found.items()
        if relation not in skipped
    }


def _difference(facts: Mapping[Node, tuple[Term, ...]], group: Sequence[Node]) -> tuple[int, int, bool, int]:
    """Return how well a relation tells namesakes apart.

    By distinct facts, how many have one, whether it is a date, as that of a birth, and how few they have.
    """
    have = [facts[node] for node in group if node in facts]
    dated = all(isinstance(each, Literal) and kind_of(each.datatype) == "date" for each in chain.from_iterable(have))
    # Having something where others have nothing is a difference as well.
    return len(set(have)) + (len(have) < len(group)), len(have), dated, -sum(map(len, have))
