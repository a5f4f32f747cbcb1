"""Which relations say the same in opposite directions: declared by the graph, or found by what it stores both ways."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kg_adapters.profile import InverseRelations
from kg_adapters.terms import Iri

OWL_INVERSE: Final = Iri("http://www.w3.org/2002/07/owl#inverseOf")
OWL_SYMMETRIC: Final = Iri("http://www.w3.org/2002/07/owl#SymmetricProperty")
WIKIDATA_INVERSE: Final = Iri("http://www.wikidata.org/prop/direct/P1696")
_WIKIDATA_ITEM: Final = "http://www.wikidata.org/entity/P"
_WIKIDATA_RELATION: Final = "http://www.wikidata.org/prop/direct/P"

# Measured on three graphs: with both limits every pair that is found is one by its meaning (follows and followed by,
# owned by and owner of, spouse with itself); below them come father and child (0.45), part of and has part (0.41),
# language used and indigenous to (0.22), winner and award received (0.19).
MIN_SHARE: Final = 0.5
"""The part of the pairs of either relation that must be stored the other way as well."""
MIN_PAIRS: Final = 20
"""How many pairs must be stored both ways, so that it is no chance."""
# A child is somebody's father or somebody's mother: where two relations share the pairs of a third among them, it is
# the inverse of neither.
_SPLIT: Final = 0.1
_APART: Final = 0.05


@dataclass(frozen=True, slots=True)
class PairCounts:
    """How many pairs of entities relations have, and share; an entity with itself is no pair.

    Args:
        stored: The pairs (head, tail) of every relation.
        back: For two relations, the pairs (a, b) of the first for which the second holds (b, a); in both orders.
        along: For two different relations, the pairs (a, b) that both hold; in both orders.
    """

    stored: Mapping[Iri, int]
    back: Mapping[tuple[Iri, Iri], int]
    along: Mapping[tuple[Iri, Iri], int]

    def share(self, one: Iri, other: Iri) -> float:
        """Return the part of the pairs of `one` that `other` holds backwards."""
        pairs = self.stored.get(one, 0)
        return self.back.get((one, other), 0) / pairs if pairs else 0.0


def choose_inverses(counts: PairCounts, declared: Iterable[tuple[Iri, Iri]]) -> tuple[InverseRelations, ...]:
    """Return the pairs of inverse relations, those that the graph declares before those that its pairs show.

    A relation has one inverse at most: where several are declared, as for a child (father and mother), none is.
    """
    chosen = dict.fromkeys(_unambiguous(declared), True)
    taken = {iri for pair in chosen for iri in pair}
    for one, other in _found(counts):
        if one not in taken and other not in taken:
            chosen[one, other] = False
            taken |= {one, other}
    return tuple(_inverse(counts, *pair, declared=chosen[pair]) for pair in sorted(chosen))


def relation_meant(iri: Iri) -> Iri:
    """Return the relation that a statement is about: Wikidata's statements name a relation's page in place of it."""
    if iri.value.startswith(_WIKIDATA_ITEM):
        return Iri(_WIKIDATA_RELATION + iri.value.removeprefix(_WIKIDATA_ITEM))
    return iri


def _unambiguous(declared: Iterable[tuple[Iri, Iri]]) -> set[tuple[Iri, Iri]]:
    pairs = {(min(pair), max(pair)) for pair in declared}
    return {pair for pair in pairs if all(not set(pair) & set(other) for other in pairs - {pair})}


def _found(counts: PairCounts) -> list[tuple[Iri, Iri]]:
    """Return the pairs that are stored both ways often enough, the most certain first."""
    rivals = defaultdict[Iri, list[Iri]](list)
    for one, other in counts.back:
        rivals[one].append(other)
    certain = [
        (-min(counts.share(one, other), counts.share(other, one)), one, other)
        for (one, other), both in counts.back.items()
        if one <= other
        and both >= MIN_PAIRS
        and min(counts.share(one, other), counts.share(other, one)) >= MIN_SHARE
        and not _splits(counts, one, other, rivals[other])
        and not _splits(counts, other, one, rivals[one])
    ]
    return [(one, other) for _, one, other in sorted(certain)]


def _splits(counts: PairCounts, one: Iri, other: Iri, rivals: Iterable[Iri]) -> bool:
    """Say whether a third relation covers another part of what `other` says, so that it is wider than `one`."""
    return one != other and any(
        rival not in (one, other)
        and counts.share(rival, other) >= MIN_SHARE
        and counts.share(other, rival) >= _SPLIT
        and counts.along.get((one, rival), 0) <= _APART * counts.stored[rival]
        for rival in rivals
    )


def _inverse(counts: PairCounts, one: Iri, other: Iri, *, declared: bool) -> InverseRelations:
    both, stored = counts.back.get((one, other), 0), counts.stored.get(one, 0)
    if one == other:
        return InverseRelations(one, other, declared, both // 2, stored - both, 0)
    # Of a sample not as many pairs of the one are stored the other way as of the other.
    only_other = counts.stored.get(other, 0) - counts.back.get((other, one), 0)
    return InverseRelations(one, other, declared, both, stored - both, only_other)
