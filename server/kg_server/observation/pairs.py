"""Edges that read alike are one pair of relation and far node, and are compared once."""

from dataclasses import dataclass

import numpy as np

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

    def texts(self, around: Surroundings, chosen: Longs) -> list[str]:
        """Return what the chosen pairs say; shape [chosen]."""
        words = spoken_relations(around)
        relations: list[int] = self.relation[chosen].tolist()
        directions: list[bool] = self.inverse[chosen].tolist()
        far_nodes: list[int] = self.far[chosen].tolist()
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
