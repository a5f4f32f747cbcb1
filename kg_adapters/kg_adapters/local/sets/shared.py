"""What sets of nodes have in common: the same node or value over the same step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from kg_adapters.algebra import Step
from kg_adapters.labels import Vocabulary
from kg_adapters.local.index import EdgeTable, Longs
from kg_adapters.local.sets.members import SetMembers
from kg_adapters.local.sets.spreading import distinct, spread, within
from kg_adapters.models import EdgeDirection
from kg_adapters.set_requests import SharedBy, SharedTerm

_DIRECTIONS: Final[tuple[EdgeDirection, ...]] = ("out", "in")


@dataclass(frozen=True, slots=True)
class Shared:
    """Terms that are shared, each by a number that tells its direction, relation and term, in this order.

    Args:
        sets: What worked out the sets.
        codes: The numbers, sorted.
        rows: Rows of values, in their order; their numbers come behind those of all nodes.
    """

    sets: SetMembers
    codes: Longs
    rows: Longs

    def __len__(self) -> int:
        return len(self.codes)

    def terms(self, limit: int) -> Iterator[SharedTerm]:
        """Yield the first of them."""
        index, dictionary = self.sets.walks.index, self.sets.dictionary
        nodes, relations = len(index.nodes), len(index.relations)
        codes: list[int] = self.codes[:limit].tolist()
        for code in codes:
            step, end = divmod(code, nodes + len(self.rows))
            direction, relation = divmod(step, relations)
            term = dictionary.node(end) if end < nodes else self.sets.values.literal(int(self.rows[end - nodes]))
            yield SharedTerm(Step(dictionary.relation(relation), _DIRECTIONS[direction]), term)


def shared_terms(sets: SetMembers, asked: SharedBy, vocabulary: Vocabulary) -> Shared:
    """Return what the members of each of some sets are linked to over the same step."""
    index = sets.walks.index
    members = [_known(sets.nodes(each), len(index.nodes)) for each in asked.sets]
    turned = _turned(sets, asked)
    rows_of = [spread(index.features.starts[nodes], index.features.starts[nodes + 1])[0] for nodes in members]
    ranked = sets.values.ranked(np.concatenate(rows_of))
    width = len(index.nodes) + len(ranked.rows)
    ranks = np.split(ranked.ranks, np.cumsum([len(rows) for rows in rows_of])[:-1])
    found: list[Longs] = []
    for nodes, rows, of_rows in zip(members, rows_of, ranks, strict=True):
        relation, tails = _edges(index.out, nodes)
        backwards, heads = _edges(index.into, nodes)
        values = index.features.relations[rows].astype(np.int64) * width + len(index.nodes) + of_rows
        incoming = turned[backwards] * width + heads
        found.append(distinct(np.concatenate((relation * width + tails, incoming, values))))
    codes = found[0]
    for each in found[1:]:
        codes = codes[within(codes, each)]
    texts = [number for iri in vocabulary.texts if (number := sets.walks.relation_id(iri)) is not None]
    told = ~np.isin(codes // width % max(len(index.relations), 1), texts)
    return Shared(sets, codes[told], ranked.rows)


def _turned(sets: SetMembers, asked: SharedBy) -> Longs:
    """Return the step that each relation is backwards: one over its inverse, or one behind all outgoing ones."""
    relations = len(sets.walks.index.relations)
    turned = np.arange(relations, 2 * relations)
    for relation, inverse in asked.opposites.items():
        mine, other = sets.walks.relation_id(relation), sets.walks.relation_id(inverse)
        if mine is not None and other is not None:
            turned[mine] = other
    return turned


def _known(nodes: Longs, size: int) -> Longs:
    return nodes[nodes < size]


def _edges(table: EdgeTable, nodes: Longs) -> tuple[Longs, Longs]:
    """Return the relation and the other end of every edge of some nodes."""
    groups, _ = spread(table.groups[nodes], table.groups[nodes + 1])
    positions, group_of = spread(table.starts[groups], table.starts[groups + 1])
    return table.relations[groups][group_of].astype(np.int64), table.neighbors[positions].astype(np.int64)
