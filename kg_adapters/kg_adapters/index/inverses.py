"""How the relations of an index belong together, by what it declares and by the pairs of nodes that they share."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.index.columns import Sums, first_of_each, portions
from kg_adapters.index.graph_index import GraphIndex, Ints, Longs, stored_node, stored_relation
from kg_adapters.index.kinds import Rows
from kg_adapters.inverses import (
    DECLARING,
    MIN_PAIRS,
    OWL_INVERSE,
    OWL_SYMMETRIC,
    DeclaredLinks,
    PairCounts,
    choose_inverses,
    standard_inverses,
    subproperties,
)
from kg_adapters.profile import InverseRelations, Subproperties
from kg_adapters.terms import Iri, Node

_MOST_AT_ONCE: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class LinkedRelations:
    """How the relations of an index belong together.

    Args:
        inverses: Those that are each other's inverse.
        subproperties: Those that hold only where a wider one does.
        whole: Whether all pairs of nodes were counted.
    """

    inverses: tuple[InverseRelations, ...]
    subproperties: Subproperties
    whole: bool


def linked_relations(
    index: GraphIndex, heads: Ints, relations: Ints, most: int, *, standard: bool = True
) -> LinkedRelations:
    """Return how the relations of an index belong together.

    Args:
        index: The graph.
        heads: The head of every edge, in the order of `index.out`.
        relations: The relation of every edge.
        most: How often an edge is compared with another between the same nodes; where that does not do, the nodes with
            the most edges between them are left out.
        standard: Whether relations of well-known vocabularies are inverse although the graph does not declare it.
    """
    count = max(1, len(index.relations))
    names = [stored_relation(index, number) for number in range(len(index.relations))]
    declared = DeclaredLinks.of(_declared(index))
    stated = {*chain.from_iterable(declared.inverses)}
    if standard:
        stated.update(chain.from_iterable(standard_inverses(names)))
    asked = np.fromiter((name in stated for name in names), dtype=np.bool_, count=len(names))
    asked = np.append(asked, False)[:count]
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

    keys, often = shared.stored.result()
    pairs = dict(zip(keys.tolist(), often.tolist(), strict=True))
    stored = {name: pairs[number] for number, name in enumerate(names) if number in pairs}
    counts = PairCounts(stored, known(shared.back), known(shared.along))
    inverses = choose_inverses(counts, declared.inverses, standard=standard)
    narrower = subproperties(declared, inverses, standard=standard, used=names)
    return LinkedRelations(inverses, narrower, shared.whole)


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


def _declared(index: GraphIndex) -> Iterator[tuple[Node, Iri, Node]]:
    for relation in DECLARING:
        number = index.relations.find(relation.value)
        groups = [] if number is None else np.flatnonzero(index.out.relations == number).tolist()
        for group in groups:
            head = stored_node(index, int(np.searchsorted(index.out.groups, group, side="right")) - 1)
            for tail in index.out.neighbors[index.out.starts[group] : index.out.starts[group + 1]].tolist():
                yield head, relation, stored_node(index, tail)
    symmetric = index.nodes.find(OWL_SYMMETRIC.value)
    if symmetric is not None:
        first, last = index.into.groups[symmetric : symmetric + 2].tolist()
        for node in index.into.neighbors[index.into.starts[first] : index.into.starts[last]].tolist():
            said = stored_node(index, node)
            yield said, OWL_INVERSE, said
