"""The facts around an entity in groups: one relation in one direction at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.surroundings import Longs, Surroundings
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Term, Triple

Doubles: TypeAlias = npt.NDArray[np.float64]
Key: TypeAlias = tuple[Node, Iri, bool]

MOST_FAR: Final = 10
"""How many far ends of a group are named at most; `count` says how many there are."""


@dataclass(frozen=True, slots=True)
class Group:
    """The facts of one entity over one relation in one direction.

    Args:
        near: The entity.
        relation: The relation.
        inverse: Whether the far ends are the heads.
        far: The far ends most like the question, best first.
        count: How many far ends were seen.
        whole: Whether these are all there are.
        score: How like the question the best of them and what led there are.
        hop: At which hop from a seed the far ends are.
    """

    near: Node
    relation: Iri
    inverse: bool
    far: tuple[Term, ...]
    count: int
    whole: bool
    score: float
    hop: int

    @property
    def key(self) -> Key:
        """What no other group shares."""
        return self.near, self.relation, self.inverse

    def facts(self) -> Iterator[Fact]:
        """Yield the facts that are named, in their real direction."""
        for far in self.far:
            if isinstance(far, Literal):
                yield Attribute(self.near, self.relation, far)
            else:
                yield Triple(far, self.relation, self.near) if self.inverse else Triple(self.near, self.relation, far)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Some edges, sorted into groups; k of them, m groups.

    Args:
        edges: Places in the surroundings, group after group, within one the best first; shape [k].
        starts: Where each group begins in `edges`, and the end of the last one; shape [m + 1].
        of: The group of each edge in the order in which they were given; shape [k].
        scores: The best score of each group; shape [m].
    """

    edges: Longs
    starts: Longs
    of: Longs
    scores: Doubles

    def __len__(self) -> int:
        return len(self.scores)

    def shown(self, number: int, most: int = MOST_FAR) -> list[int]:
        """Return the best edges of a group, at most so many."""
        first, end = int(self.starts[number]), int(self.starts[number + 1])
        best: list[int] = self.edges[first : min(end, first + most)].tolist()
        return best

    def group(self, around: Surroundings, number: int, hop: int, most: int = MOST_FAR) -> Group:
        """Return a group by its number, found at a hop, with so many far ends at most."""
        shown = self.shown(number, most)
        near = around.entities[int(around.near[shown[0]])]
        count = int(self.starts[number + 1] - self.starts[number])
        return Group(
            near=near,
            relation=around.relations[int(around.relation[shown[0]])],
            inverse=bool(around.inverse[shown[0]]),
            far=tuple(around.far_term(edge) for edge in shown),
            count=count,
            whole=near not in around.sampled,
            score=float(self.scores[number]),
            hop=hop,
        )


def grouping(around: Surroundings, edges: Longs, scores: Doubles) -> Grouping:
    """Sort edges into groups, in the order of the edges.

    Args:
        around: Where the edges are.
        edges: Places in `around`; shape [k].
        scores: Theirs; shape [k].
    """
    width = max(1, len(around.relations))
    kind = 2 * around.near[edges].astype(np.int64) + around.inverse[edges]
    codes, of = np.unique(kind * width + around.relation[edges], return_inverse=True)
    order = np.lexsort((-scores, of))
    starts = np.searchsorted(of[order], np.arange(len(codes) + 1))
    best = scores[order][starts[:-1]]
    return Grouping(edges[order], starts.astype(np.int64), of.astype(np.int64), best)


def merged(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Return each group once, with its best score and its first hop, the best first; equal ones by their ids."""
    best: dict[Key, Group] = {}
    for group in groups:
        other = best.setdefault(group.key, group)
        if other is not group:
            better, hop = max(other, group, key=lambda each: each.score), min(other.hop, group.hop)
            far = tuple(dict.fromkeys((*better.far, *other.far, *group.far)))
            best[group.key] = replace(better, hop=hop, far=far)
    return tuple(sorted(best.values(), key=_rank))


def _rank(group: Group) -> tuple[float, int, str, str, bool]:
    return -group.score, group.hop, str(group.near), group.relation.value, group.inverse
