"""Surroundings straight from the adjacency index, without a triple in between."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from kg_adapters.local.dictionary import Dictionary
from kg_adapters.local.index import EdgeTable, GraphIndex, Ints, Longs
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import Flags, Lazy, StoreIds, Surroundings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges by ids, and their rank in the group of one entity, relation and direction; shape [c] each."""

    near: Ints
    relation: Ints
    far: Ints
    rank: Longs

    def where(self, kept: Flags | Longs) -> "_Edges":
        """Return some of the edges."""
        return _Edges(self.near[kept], self.relation[kept], self.far[kept], self.rank[kept])


class Telling(Protocol):
    """What makes a look-up by place tell of damage as the readers of `Surroundings` understand it."""

    def __call__(self, make: Callable[[int], T], /) -> Callable[[int], T]:
        """Return the look-up with that added."""
        ...


def surroundings_in_index(
    index: GraphIndex, dictionary: Dictionary, request: SurroundingsRequest, telling: Telling
) -> Surroundings:
    """Return the edges around entities, as `gather_surroundings` does.

    Args:
        index: The graph.
        dictionary: Its terms.
        request: What to look around.
        telling: For what is only looked up when somebody reads it.
    """
    around = tuple(dict.fromkeys(request.entities))
    found = [(place, dictionary.node_id(entity)) for place, entity in enumerate(around)]
    places = np.array([place for place, number in found if number is not None], dtype=np.int32)
    numbers = np.array([number for _, number in found if number is not None], dtype=np.int64)
    out, cut_out = _table_edges(index.out, places, numbers, request.per_relation)
    into, cut_into = _table_edges(index.into, places, numbers, request.per_relation, loops=False)
    edges, inverse, cut = _taken(out, into, request.per_entity)
    relation_ids, relation = np.unique(edges.relation, return_inverse=True)
    far_ids, far = np.unique(edges.far, return_inverse=True)
    nodes, relations = far_ids.tolist(), relation_ids.tolist()
    said: list[int] = index.relation_nodes[relation_ids].tolist()
    sampled: list[int] = np.unique(np.concatenate((cut_out, cut_into, cut))).tolist()
    return Surroundings(
        entities=around,
        near=edges.near,
        inverse=inverse,
        relation=relation.astype(np.int32),
        far=far.astype(np.int32),
        relations=[dictionary.relation(number) for number in relations],
        far_nodes=Lazy(len(nodes), telling(lambda place: dictionary.node(nodes[place]))),
        relation_labels=[None if number < 0 else dictionary.label(number) for number in said],
        far_labels=Lazy(len(nodes), telling(lambda place: dictionary.label(nodes[place]))),
        sampled=tuple(around[place] for place in sampled),
        ids=StoreIds(relation_ids, far_ids),
    )


def _table_edges(
    table: EdgeTable, places: Ints, numbers: Longs, per_relation: int, *, loops: bool = True
) -> tuple[_Edges, Ints]:
    """Return the edges of one direction, and the places of the entities whose groups were cut."""
    groups, owner = _ranges(table.groups[numbers], table.groups[numbers + 1])
    first, sizes = table.starts[groups], table.starts[groups + 1] - table.starts[groups]
    # One more, in case an edge from an entity to itself is among them and does not count.
    spots, group = _ranges(first, first + np.minimum(sizes, per_relation + (not loops)))
    far, rank = table.neighbors[spots], spots - first[group]
    edges = _Edges(places[owner[group]], table.relations[groups[group]], far, rank)
    if not loops:
        looped = far == numbers[owner[group]]
        # Whoever stands behind the loop of a group moves up; a loop out of sight leaves the group too long anyway.
        loop_rank = np.full(len(groups), np.iinfo(np.int64).max)
        loop_rank[group[looped]] = rank[looped]
        rank = rank - (rank > loop_rank[group])
        edges = _Edges(edges.near, edges.relation, far, rank).where(~looped & (rank < per_relation))
        sizes = sizes - (loop_rank <= per_relation)
    return edges, places[owner[sizes > per_relation]]


def _taken(out: _Edges, into: _Edges, per_entity: int) -> tuple[_Edges, Flags, Ints]:
    """Return the edges of both directions by entity, which of them are incoming, and whose edges were cut."""
    edges = _Edges(
        np.concatenate((out.near, into.near)),
        np.concatenate((out.relation, into.relation)),
        np.concatenate((out.far, into.far)),
        np.concatenate((out.rank, into.rank)),
    )
    inverse = np.arange(len(edges.near)) >= len(out.near)
    order = np.argsort(edges.near, kind="stable")
    edges, inverse = edges.where(order), inverse[order]
    counts = np.bincount(edges.near) if len(edges.near) else np.zeros(0, dtype=np.int64)
    cut = np.flatnonzero(counts > per_entity).astype(np.int32)
    if len(cut):
        kept = _in_turns(edges, counts, per_entity)
        edges, inverse = edges.where(kept), inverse[kept]
    return edges, inverse, cut


def _in_turns(edges: _Edges, counts: Longs, per_entity: int) -> Longs:
    """Return which edges stay when each entity keeps the first of every group, then the second, and so on."""
    order = np.lexsort((edges.rank, edges.near))
    turn = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[turn < per_entity])


def _ranges(starts: Longs, ends: Longs) -> tuple[Longs, Longs]:
    """Return every number from each start to its end, and for each number which range it is of."""
    lengths = ends - starts
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return np.arange(len(owner)) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths), owner
