"""Surroundings straight from the adjacency index, without a triple in between."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np

from kg_adapters.index.columns import spread
from kg_adapters.index.graph_index import Dictionary, EdgeTable, FeatureTable, GraphIndex, Ints, Longs
from kg_adapters.labels import Vocabulary
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import Flags, Lazy, StoreIds, Surroundings, spoken_aliases
from kg_adapters.terms import Literal

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges by ids, and their rank in the group of one entity, relation and direction; shape [c] each.

    The far end of a literal is its row in the feature table.
    """

    near: Ints
    relation: Ints
    far: Ints | Longs
    rank: Longs

    def where(self, kept: Flags | Longs) -> "_Edges":
        """Return some of the edges."""
        return _Edges(self.near[kept], self.relation[kept], self.far[kept], self.rank[kept])


@dataclass(frozen=True, slots=True)
class _Taken:
    """The edges that are answered, which are incoming, which lead to literals, and whose edges were cut."""

    edges: _Edges
    inverse: Flags
    of_values: Flags
    cut: Ints


_NOBODY: Final[Ints] = np.zeros(0, dtype=np.int32)
_NO_EDGES: Final = _Edges(_NOBODY, _NOBODY, _NOBODY, np.zeros(0, dtype=np.int64))


class LateReads(Protocol):
    """Makes a read by place report damage as the readers of `Surroundings` understand it."""

    def __call__(self, read: Callable[[int], T], /) -> Callable[[int], T]:
        """Return the read with that added."""
        ...


class RelationAliases:
    """The other names of a store's relations, each looked up once.

    Args:
        index: The graph.
        dictionary: Its terms.
        vocabulary: Which relations lead to aliases, and the languages that people read.
    """

    def __init__(self, index: GraphIndex, dictionary: Dictionary, vocabulary: Vocabulary) -> None:
        self._index = index
        self._dictionary = dictionary
        self._vocabulary = vocabulary
        self._known: dict[int, tuple[str, ...]] = {}

    def of(self, relation: int) -> tuple[str, ...]:
        """Return the other names of a relation, given by its id."""
        known = self._known.get(relation)
        if known is None:
            known = self._known[relation] = spoken_aliases(self._vocabulary, self._literals(relation))
        return known

    def _literals(self, relation: int) -> Iterator[Literal]:
        node, table = int(self._index.relation_nodes[relation]), self._index.features
        if node >= 0:
            features = map(self._dictionary.feature, range(int(table.starts[node]), int(table.starts[node + 1])))
            yield from (each.value for each in features if each.relation in self._vocabulary.aliases)


def surroundings_in_index(
    index: GraphIndex,
    dictionary: Dictionary,
    request: SurroundingsRequest,
    texts: Collection[int],
    aliases: RelationAliases,
    late_reads: LateReads,
) -> Surroundings:
    """Return the facts around entities, as `gather_surroundings` does.

    Args:
        index: The graph.
        dictionary: Its terms.
        request: What to look around.
        texts: Relation ids whose literals name and describe; they do not count.
        aliases: The other names of relations.
        late_reads: For what is only read when somebody asks for it.
    """
    around = tuple(dict.fromkeys(request.entities))
    found = [(place, dictionary.node_id(entity)) for place, entity in enumerate(around)]
    places = np.array([place for place, number in found if number is not None], dtype=np.int32)
    numbers = np.array([number for _, number in found if number is not None], dtype=np.int64)
    out, cut_out = _table_edges(index.out, places, numbers, request.per_relation)
    into, cut_into = _table_edges(index.into, places, numbers, request.per_relation, loops=False)
    stated, cut_stated = _NO_EDGES, _NOBODY
    if request.values:
        stated, cut_stated = _value_edges(index.features, places, numbers, request.per_relation, texts)
    taken = _taken(out, stated, into, request.per_entity)
    edges = taken.edges
    relation_ids, relation = np.unique(edges.relation, return_inverse=True)
    far_ids, far = np.unique(edges.far[~taken.of_values].astype(np.int32), return_inverse=True)
    nodes, relations = far_ids.tolist(), relation_ids.tolist()
    rows: list[int] = edges.far[taken.of_values].tolist()
    ends = np.empty(len(edges.far), dtype=np.int32)
    ends[~taken.of_values] = far
    ends[taken.of_values] = len(nodes) + np.arange(len(rows))
    said: list[int] = index.relation_nodes[relation_ids].tolist()
    sampled: list[int] = np.unique(np.concatenate((cut_out, cut_stated, cut_into, taken.cut))).tolist()
    labels = late_reads(lambda place: dictionary.label(nodes[place]))
    values = late_reads(lambda place: dictionary.text(rows[place - len(nodes)]))
    return Surroundings(
        entities=around,
        near=edges.near,
        inverse=taken.inverse,
        relation=relation.astype(np.int32),
        far=ends,
        relations=[dictionary.relation(number) for number in relations],
        far_nodes=Lazy(len(nodes), late_reads(lambda place: dictionary.node(nodes[place]))),
        relation_labels=[None if number < 0 else dictionary.label(number) for number in said],
        far_literals=Lazy(len(rows), late_reads(lambda place: dictionary.literal(rows[place]))),
        far_labels=Lazy(len(nodes) + len(rows), lambda place: labels(place) if place < len(nodes) else values(place)),
        sampled=tuple(around[place] for place in sampled),
        ids=StoreIds(relation_ids, far_ids),
        relation_aliases=list(map(aliases.of, relations)),
    )


def _table_edges(
    table: EdgeTable, places: Ints, numbers: Longs, per_relation: int, *, loops: bool = True
) -> tuple[_Edges, Ints]:
    """Return the edges of one direction, and the places of the entities whose groups were cut."""
    groups, owner = spread(table.groups[numbers], table.groups[numbers + 1])
    first, sizes = table.starts[groups], table.starts[groups + 1] - table.starts[groups]
    # One more, in case an edge from an entity to itself is among them and does not count.
    spots, group = spread(first, first + np.minimum(sizes, per_relation + (not loops)))
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


def _value_edges(
    table: FeatureTable, places: Ints, numbers: Longs, per_relation: int, texts: Collection[int]
) -> tuple[_Edges, Ints]:
    """Return the literals as edges to rows of their table, and the places of the entities whose groups were cut."""
    rows, owner = spread(table.starts[numbers], table.starts[numbers + 1])
    counting = ~np.isin(table.relations[rows], list(texts))
    rows, owner = rows[counting], owner[counting]
    relation = table.relations[rows]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (relation[1:] != relation[:-1]) | (owner[1:] != owner[:-1])
    starts = np.flatnonzero(fresh)
    rank = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    edges = _Edges(places[owner], relation, rows, rank)
    return edges.where(rank < per_relation), edges.near[rank >= per_relation]


def _taken(out: _Edges, stated: _Edges, into: _Edges, per_entity: int) -> _Taken:
    """Return the edges of all kinds by entity, direction and relation, within the limit of each entity."""
    edges = _joined(out, stated, into)
    place = np.arange(len(edges.near))
    inverse, of_values = place >= len(out.near) + len(stated.near), place >= len(out.near)
    of_values &= ~inverse
    if len(stated.near):
        order = np.lexsort((of_values, edges.relation, inverse, edges.near))
    else:
        order = np.argsort(edges.near, kind="stable")
    edges, inverse, of_values = edges.where(order), inverse[order], of_values[order]
    counts = np.bincount(edges.near) if len(edges.near) else np.zeros(0, dtype=np.int64)
    cut = np.flatnonzero(counts > per_entity).astype(np.int32)
    if len(cut):
        kept = _in_turns(edges, counts, per_entity)
        edges, inverse, of_values = edges.where(kept), inverse[kept], of_values[kept]
    return _Taken(edges, inverse, of_values, cut)


def _joined(*parts: _Edges) -> _Edges:
    return _Edges(
        np.concatenate([part.near for part in parts]),
        np.concatenate([part.relation for part in parts]),
        np.concatenate([part.far.astype(np.int64, copy=False) for part in parts]),
        np.concatenate([part.rank for part in parts]),
    )


def _in_turns(edges: _Edges, counts: Longs, per_entity: int) -> Longs:
    """Return which edges stay when each entity keeps the first of every group, then the second, and so on."""
    order = np.lexsort((edges.rank, edges.near))
    turn = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[turn < per_entity])
