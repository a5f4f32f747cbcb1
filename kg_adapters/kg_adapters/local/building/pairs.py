"""Which relations of an index hold the same pairs of nodes, and which the same pairs backwards."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.inverses import (
    OWL_INVERSE,
    OWL_SYMMETRIC,
    WIKIDATA_INVERSE,
    PairCounts,
    choose_inverses,
    relation_meant,
)
from kg_adapters.local.building.sums import Sums, first_of_each
from kg_adapters.local.index import GraphIndex, Ints, Longs, stored_node, stored_relation
from kg_adapters.profile import InverseRelations
from kg_adapters.terms import Iri

_MOST_AT_ONCE: Final = 2_000_000


def inverses_of(index: GraphIndex, heads: Ints, relations: Ints) -> tuple[InverseRelations, ...]:
    """Return the relations of an index that are each other's inverse.

    Args:
        index: The graph.
        heads: The head of every edge, in the order of `index.out`.
        relations: The relation of every edge.
    """
    known = [stored_relation(index, number) for number in range(len(index.relations))]
    edges = set(np.flatnonzero(np.bincount(relations)).tolist())
    declared = [pair for pair in _declared(index) if all(index.relations.find(iri.value) in edges for iri in pair)]
    stored, back, along = _shared(heads, relations, index.out.neighbors, len(known))
    count = len(known)
    return choose_inverses(
        PairCounts(
            {known[key]: number for key, number in _items(stored)},
            {(known[key // count], known[key % count]): number for key, number in _items(back)},
            {(known[key // count], known[key % count]): number for key, number in _items(along)},
        ),
        declared,
    )


def _shared(heads: Ints, relations: Ints, tails: Ints, count: int) -> tuple[Sums, Sums, Sums]:
    """Count the pairs of every relation, those of two relations backwards, and those of two in one direction."""
    stored, back, along = Sums(), Sums(), Sums()
    parts = max(1, -(-len(heads) // _MOST_AT_ONCE))
    of_parts = _parts(heads, tails, parts)
    for part in range(parts):
        rows = np.flatnonzero(of_parts == part)
        one, two, over = (column[rows].astype(np.int64) for column in (heads, tails, relations))
        stored.add(over)
        size = int(max(one.max(initial=0), two.max(initial=0))) + 1
        together = np.minimum(one, two) * size + np.maximum(one, two)
        first, second = _meetings(together)
        key = over[first] * count + over[second]
        same = one[first] == one[second]
        back.add(key[~same])
        along.add(key[same & (over[first] != over[second])])
    return stored, back, along


def _parts(heads: Ints, tails: Ints, parts: int) -> npt.NDArray[np.int16]:
    """Return a part for each edge: the same for one pair and for the pair backwards, and -1 where both are one node."""
    found = np.empty(len(heads), dtype=np.int16)
    for first in range(0, len(heads), _MOST_AT_ONCE):
        one, two = heads[first : first + _MOST_AT_ONCE], tails[first : first + _MOST_AT_ONCE]
        found[first : first + _MOST_AT_ONCE] = np.where(one == two, -1, (one ^ two) % parts)
    return found


def _meetings(together: Longs) -> tuple[Longs, Longs]:
    """Return the places of every two edges with the same number, in both orders and each with itself."""
    order = np.argsort(together, kind="stable")
    firsts = first_of_each(together[order])
    sizes = np.diff(np.append(firsts, len(order)))
    firsts, sizes = firsts[sizes > 1], sizes[sizes > 1]
    starts, counts = np.repeat(firsts, sizes), np.repeat(sizes, sizes)
    members = starts + _inside(sizes)
    return order[np.repeat(members, counts)], order[np.repeat(starts, counts) + _inside(counts)]


def _inside(sizes: Longs) -> Longs:
    """Return 0, 1, 2 and so on for each of these sizes."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _declared(index: GraphIndex) -> Iterator[tuple[Iri, Iri]]:
    for relation in (OWL_INVERSE, WIKIDATA_INVERSE):
        number = index.relations.find(relation.value)
        groups = [] if number is None else np.flatnonzero(index.out.relations == number).tolist()
        for group in groups:
            head = stored_node(index, int(np.searchsorted(index.out.groups, group, side="right")) - 1)
            for tail in index.out.neighbors[index.out.starts[group] : index.out.starts[group + 1]].tolist():
                other = stored_node(index, tail)
                if isinstance(head, Iri) and isinstance(other, Iri):
                    yield relation_meant(head), relation_meant(other)
    symmetric = index.nodes.find(OWL_SYMMETRIC.value)
    if symmetric is not None:
        first, last = index.into.groups[symmetric : symmetric + 2].tolist()
        for node in index.into.neighbors[index.into.starts[first] : index.into.starts[last]].tolist():
            said = stored_node(index, node)
            if isinstance(said, Iri):
                yield said, said


def _items(sums: Sums) -> Iterator[tuple[int, int]]:
    keys, numbers = sums.result()
    return zip(keys.tolist(), numbers.tolist(), strict=True)
