"""Which relations of an index hold the same pairs of nodes, and which the same pairs backwards."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.inverses import (
    MIN_PAIRS,
    OWL_INVERSE,
    OWL_SYMMETRIC,
    WIKIDATA_INVERSE,
    PairCounts,
    choose_inverses,
    relation_meant,
)
from kg_adapters.local.building.members import Rows
from kg_adapters.local.building.sums import Sums, first_of_each, portions
from kg_adapters.local.index import GraphIndex, Ints, Longs, stored_node, stored_relation
from kg_adapters.profile import InverseRelations
from kg_adapters.terms import Iri

_MOST_AT_ONCE: Final = 2_000_000


def inverses_of(
    index: GraphIndex, heads: Ints, relations: Ints, most: int
) -> tuple[tuple[InverseRelations, ...], bool]:
    """Return the relations of an index that are each other's inverse, and whether all pairs of nodes were counted.

    Args:
        index: The graph.
        heads: The head of every edge, in the order of `index.out`.
        relations: The relation of every edge.
        most: How often an edge is compared with another between the same nodes; where that does not do, the nodes with
            the most edges between them are left out.
    """
    count = max(1, len(index.relations))
    edged = np.bincount(relations, minlength=count) > 0
    asked = np.zeros(count, dtype=np.bool_)
    declared: list[tuple[Iri, Iri]] = []
    for pair in _declared(index):
        found = (index.relations.find(iri.value) for iri in pair)
        numbers = [number for number in found if number is not None and edged[number]]
        if len(numbers) == len(pair):
            declared.append(pair)
            asked[numbers] = True
    shared = _shared(heads, relations, index.out.neighbors, count, most)
    keys, often = shared.back.result()
    asked[np.concatenate(np.divmod(keys[often >= MIN_PAIRS], count))] = True

    def known(sums: Sums) -> dict[tuple[Iri, Iri], int]:
        # Of thousands of relations between the same nodes most are no candidates.
        keys, numbers = sums.result()
        ones, others = np.divmod(keys, count)
        kept = asked[ones] | asked[others]
        pairs = zip(ones[kept].tolist(), others[kept].tolist(), numbers[kept].tolist(), strict=True)
        return {(names[one], names[other]): number for one, other, number in pairs}

    names = [stored_relation(index, number) for number in range(len(index.relations))]
    keys, often = shared.stored.result()
    pairs = dict(zip(keys.tolist(), often.tolist(), strict=True))
    stored = {name: pairs[number] for number, name in enumerate(names) if number in pairs}
    return choose_inverses(PairCounts(stored, known(shared.back), known(shared.along)), declared), shared.whole


@dataclass(slots=True)
class _Shared:
    """How many pairs of nodes each relation has, two relations backwards, and two in one direction.

    `whole` says whether all pairs were counted.
    """

    stored: Sums = field(default_factory=Sums)
    back: Sums = field(default_factory=Sums)
    along: Sums = field(default_factory=Sums)
    whole: bool = True


def _shared(heads: Ints, relations: Ints, tails: Ints, count: int, most: int) -> _Shared:
    found = _Shared()
    parts = max(1, -(-len(heads) // _MOST_AT_ONCE))
    of_parts = _parts(heads, tails, parts)
    for part in range(parts):
        rows = np.flatnonzero(of_parts == part)
        one, two, over = (column[rows].astype(np.int64) for column in (heads, tails, relations))
        size = int(max(one.max(initial=0), two.max(initial=0))) + 1
        together = np.minimum(one, two) * size + np.maximum(one, two)
        order = np.argsort(together, kind="stable")
        pairs = Rows(np.append(first_of_each(together[order]), len(order)), order)
        sizes = pairs.sizes
        several = np.flatnonzero(sizes > 1)
        several = several[np.argsort(sizes[several], kind="stable")]
        fit = int(np.searchsorted(np.cumsum(sizes[several] ** 2), most // parts, side="right"))
        chosen, left_out = several[:fit], several[fit:]
        found.whole &= not len(left_out)
        found.stored.add(np.delete(over, pairs.expanded(left_out)[0]))
        for portion in portions(sizes[chosen] ** 2):
            first, second = _meetings(pairs, chosen[portion])
            key = over[first] * count + over[second]
            same = one[first] == one[second]
            found.back.add(key[~same])
            found.along.add(key[same & (over[first] != over[second])])
    return found


def _parts(heads: Ints, tails: Ints, parts: int) -> npt.NDArray[np.int16]:
    """Return a part for each edge: the same for one pair and for the pair backwards, and -1 where both are one node."""
    found = np.empty(len(heads), dtype=np.int16)
    for first in range(0, len(heads), _MOST_AT_ONCE):
        one, two = heads[first : first + _MOST_AT_ONCE], tails[first : first + _MOST_AT_ONCE]
        found[first : first + _MOST_AT_ONCE] = np.where(one == two, -1, (one ^ two) % parts)
    return found


def _meetings(pairs: Rows, chosen: Longs) -> tuple[Longs, Longs]:
    """Return the places of every two edges of the same pair of nodes, in both orders and each with itself."""
    first, places = pairs.expanded(chosen)
    second, rows = pairs.expanded(chosen[places])
    return first[rows], second


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
