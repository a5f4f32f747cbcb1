"""Edges that read alike are one pair of relation and far node, and are compared once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kg_adapters.surroundings import Flags, Longs, Surroundings
from kg_server.observation.wording import edge_text, spoken


@dataclass(frozen=True, slots=True)
class Pairs:
    """The distinct pairs among some edges, sorted by relation, direction and far node; k of them.

    Args:
        relation: Places in `Surroundings.relations`; shape [k].
        inverse: Whether the far node is the head; shape [k].
        far: Places in `Surroundings.far_nodes`; shape [k].
        of: The pair of each edge; shape [edges].
    """

    relation: Longs
    inverse: Flags
    far: Longs
    of: Longs

    def __len__(self) -> int:
        return len(self.relation)

    def texts(self, around: Surroundings) -> list[str]:
        """Return what the pairs say; shape [k]."""
        words = spoken_relations(around)
        relations: list[int] = self.relation.tolist()
        directions: list[bool] = self.inverse.tolist()
        far_nodes: list[int] = self.far.tolist()
        return [
            edge_text(words[relation], _far_text(around, far), inverse=inverse)
            for relation, inverse, far in zip(relations, directions, far_nodes, strict=True)
        ]


def pairs_of(around: Surroundings, edges: Longs) -> Pairs:
    """Return the distinct pairs among some edges, given by their places in `around`."""
    width = max(1, len(around.far_labels))
    kind = 2 * around.relation[edges].astype(np.int64) + around.inverse[edges]
    codes, of = np.unique(kind * width + around.far[edges], return_inverse=True)
    kinds = codes // width
    return Pairs(kinds // 2, kinds % 2 == 1, codes % width, of.astype(np.int64))


@dataclass(frozen=True, slots=True)
class RelationNames:
    """What the relations of some surroundings are called: first the name of each in words, then all other names.

    Args:
        texts: The names; shape [names].
        relations: Whose they are, as places in `Surroundings.relations`; shape [names].
    """

    texts: Sequence[str]
    relations: Longs

    def best(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the best score of the names of each relation; shape [relations]."""
        best = scores[: len(np.unique(self.relations))].copy()
        np.maximum.at(best, self.relations, scores)
        return best


def names_of_relations(around: Surroundings) -> RelationNames:
    """Return what relations are called."""
    spoken = spoken_relations(around)
    others = [(place, name) for place, names in enumerate(around.relation_aliases) for name in names]
    places = np.array([*range(len(spoken)), *(place for place, _ in others)], dtype=np.int64)
    return RelationNames([*spoken, *(name for _, name in others)], places)


def spoken_relations(around: Surroundings) -> list[str]:
    """Return the relations in words; shape [relations]."""
    return [spoken(relation, label) for relation, label in zip(around.relations, around.relation_labels, strict=True)]


def far_texts(around: Surroundings, far: Longs) -> list[str]:
    """Return far nodes, given by their places, in words; shape [far]."""
    places: list[int] = far.tolist()
    return [_far_text(around, place) for place in places]


def _far_text(around: Surroundings, far: int) -> str:
    label = around.far_labels[far]
    return label if label is not None else spoken(around.far_nodes[far], None)
