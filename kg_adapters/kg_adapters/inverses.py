"""Which relations say the same in opposite directions, and which say it of a wider one."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final, TypeAlias

from kg_adapters.prefixes import WELL_KNOWN
from kg_adapters.profile import MAX_RELATIONS, InverseRelations, Subproperties
from kg_adapters.terms import Iri, Term

_Pair: TypeAlias = tuple[Iri, Iri]
_Way: TypeAlias = tuple[Iri, bool]
"""A relation, and whether it is walked ahead."""

OWL_INVERSE: Final = Iri("http://www.w3.org/2002/07/owl#inverseOf")
OWL_SYMMETRIC: Final = Iri("http://www.w3.org/2002/07/owl#SymmetricProperty")
WIKIDATA_INVERSE: Final = Iri("http://www.wikidata.org/prop/direct/P1696")
_WIDER: Final = (
    Iri("http://www.w3.org/2000/01/rdf-schema#subPropertyOf"),
    Iri("http://www.wikidata.org/prop/direct/P1647"),
)
_SAME: Final = Iri("http://www.w3.org/2002/07/owl#equivalentProperty")
DECLARING: Final = (OWL_INVERSE, WIKIDATA_INVERSE, *_WIDER, _SAME)
"""The relations between relations that are read; a symmetric relation counts as the inverse of itself."""
_WIKIDATA_ITEM: Final = "http://www.wikidata.org/entity/P"
_WIKIDATA_RELATION: Final = "http://www.wikidata.org/prop/direct/P"

# As the vocabularies themselves declare them, PROV's in prov-o-inverses; `name` alone is symmetric.
_STANDARD: Final[Mapping[str, str]] = {
    WELL_KNOWN["skos"]: """
        broader narrower, broaderTransitive narrowerTransitive, broadMatch narrowMatch, hasTopConcept topConceptOf,
        related, relatedMatch, closeMatch, exactMatch""",
    WELL_KNOWN["dcterms"]: """
        hasPart isPartOf, hasVersion isVersionOf, hasFormat isFormatOf, references isReferencedBy,
        replaces isReplacedBy, requires isRequiredBy""",
    WELL_KNOWN["foaf"]: "made maker, depicts depiction, page topic, primaryTopic isPrimaryTopicOf",
    WELL_KNOWN["schema"]: """
        about subjectOf, albumRelease releaseOf, alumni alumniOf, archiveHeld holdingArchive, cause causeOf,
        childTaxon parentTaxon, containedInPlace containsPlace, dataset includedInDataCatalog,
        encodesBioChemEntity isEncodedByBioChemEntity, encodesCreativeWork encoding, exampleOfWork workExample,
        fundedItem funding, game gameServer, hasBioChemEntityPart isPartOfBioChemEntity,
        hasBroadcastChannel providesBroadcastService, hasPart isPartOf, hasTiers isTierOf, hasVariant isVariantOf,
        itemOffered offers, mainEntity mainEntityOfPage, makesOffer offeredBy, member memberOf, owner owns,
        parentOrganization subOrganization, partOfTrip subTrip, recordedAs recordingOf, recordedAt recordedIn,
        subEvent superEvent, translationOfWork workTranslation""",
    "http://www.w3.org/ns/prov#": """
        actedOnBehalfOf hadDelegate, activity activityOfInfluence, agent agentOfInfluence, alternateOf,
        atLocation locationOf, entity entityOfInfluence, generated wasGeneratedBy, hadActivity wasActivityOfInfluence,
        hadGeneration generatedAsDerivation, hadMember wasMemberOf, hadPlan wasPlanOf,
        hadPrimarySource wasPrimarySourceOf, hadRole wasRoleIn, hadUsage wasUsedInDerivation,
        influenced wasInfluencedBy, influencer hadInfluence, invalidated wasInvalidatedBy,
        qualifiedAssociation qualifiedAssociationOf, qualifiedAttribution qualifiedAttributionOf,
        qualifiedCommunication qualifiedCommunicationOf, qualifiedDelegation qualifiedDelegationOf,
        qualifiedDerivation qualifiedDerivationOf, qualifiedEnd qualifiedEndOf,
        qualifiedGeneration qualifiedGenerationOf, qualifiedInfluence qualifiedInfluenceOf,
        qualifiedInvalidation qualifiedInvalidationOf, qualifiedPrimarySource qualifiedSourceOf,
        qualifiedQuotation qualifiedQuotationOf, qualifiedRevision revisedEntity, qualifiedStart qualifiedStartOf,
        qualifiedUsage qualifiedUsingActivity, specializationOf generalizationOf, used wasUsedBy,
        wasAssociatedWith wasAssociateFor, wasAttributedTo contributed, wasDerivedFrom hadDerivation,
        wasEndedBy ended, wasInformedBy informed, wasQuotedFrom quotedAs, wasRevisionOf hadRevision,
        wasStartedBy started""",
}
_SCHEMA_HTTPS: Final = "https://schema.org/"
# CIDOC CRM and its extensions number their relations, and mark the inverse by an i: P14_carried_out_by, P14i_performed.
_CIDOC: Final = re.compile(r"(https?://(?:www\.)?(?:cidoc-crm|erlangen-crm)\.org/.*?[A-Z]{1,4}\d+)(i?)(?:_.*)?")
_CIDOC_SYMMETRIC: Final = frozenset({"P121", "P122", "P132", "P133"})


@cache
def _of_vocabularies() -> Mapping[Iri, Iri]:
    """Return the inverse of each relation that has one by its vocabulary; of a symmetric one itself."""
    found = dict[Iri, Iri]()
    for namespace, pairs in (*_STANDARD.items(), (_SCHEMA_HTTPS, _STANDARD[WELL_KNOWN["schema"]])):
        for names in (pair.split() for pair in pairs.split(",")):
            one, other = Iri(namespace + names[0]), Iri(namespace + names[-1])
            found |= {one: other, other: one}
    return found


def standard_inverses(relations: Collection[Iri]) -> Iterator[tuple[Iri, Iri]]:
    """Yield the pairs of inverse relations, by well-known vocabularies, that some relations belong to."""
    listed, numbered = _of_vocabularies(), defaultdict[str, dict[str, Iri]](dict)
    for relation in relations:
        if relation in listed:
            yield relation, listed[relation]
        elif (number := _CIDOC.fullmatch(relation.value)) is not None:
            if re.split(r"[/#]", number[1])[-1] in _CIDOC_SYMMETRIC:
                yield relation, relation
            numbered[number[1]][number[2]] = relation
    yield from ((pair[""], pair["i"]) for pair in numbered.values() if len(pair) > 1)


@dataclass(frozen=True, slots=True)
class DeclaredLinks:
    """What a graph declares of its relations.

    Args:
        inverses: Pairs that say the same in opposite directions; a symmetric one is paired with itself.
        wider: Pairs of a relation and one that holds wherever it does; of two equivalent ones each is wider.
    """

    inverses: tuple[tuple[Iri, Iri], ...]
    wider: tuple[tuple[Iri, Iri], ...]

    @classmethod
    def of(cls, statements: Iterable[tuple[Term, Iri, Term]]) -> "DeclaredLinks":
        """Return what statements over `DECLARING` declare."""
        found = [
            (relation_meant(head), over, relation_meant(tail))
            for head, over, tail in statements
            if isinstance(head, Iri) and isinstance(tail, Iri)
        ]
        same = [pair for head, over, tail in found if over == _SAME for pair in ((head, tail), (tail, head))]
        return cls(
            tuple((head, tail) for head, over, tail in found if over in {OWL_INVERSE, WIKIDATA_INVERSE}),
            (*((head, tail) for head, over, tail in found if over in _WIDER), *same),
        )


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


def choose_inverses(
    counts: PairCounts, declared: Iterable[tuple[Iri, Iri]], *, standard: bool = True
) -> tuple[InverseRelations, ...]:
    """Return the pairs of inverse relations of which at least one has edges.

    Those that the graph declares come before those of well-known vocabularies, and these before those that pairs of
    entities show; those that both have edges come first. A relation has one inverse at most: where several are
    declared, as for a child (father and mother), none is.

    Args:
        counts: How many pairs of entities relations have.
        declared: The pairs that the graph declares.
        standard: Whether the pairs of well-known vocabularies count as well.
    """
    stated = {(min(pair), max(pair)) for pair in declared}
    known = {(min(pair), max(pair)) for pair in standard_inverses(counts.stored)} if standard else set[_Pair]()
    chosen, taken = dict[_Pair, bool](), set[Iri]()
    for pairs in (stated, known):
        free = {pair for pair in pairs if not taken.intersection(pair) and any(map(counts.stored.get, pair))}
        whole = {pair for pair in free if all(map(counts.stored.get, pair))}
        met = set(chain.from_iterable(whole))
        found = _unambiguous(whole) | _unambiguous(pair for pair in free if not met.intersection(pair))
        chosen |= dict.fromkeys(found, True)
        taken.update(chain.from_iterable(found))
    for one, other in _found(counts):
        if one not in taken and other not in taken:
            chosen[one, other] = False
            taken |= {one, other}
    return tuple(_inverse(counts, *pair, declared=chosen[pair]) for pair in sorted(chosen))


def subproperties(
    links: DeclaredLinks,
    inverses: Iterable[InverseRelations],
    *,
    standard: bool = True,
    used: Collection[Iri] | None = None,
) -> Subproperties:
    """Return which relations hold only where a wider one does.

    Args:
        links: What the graph declares.
        inverses: The relations that are each other's inverse.
        standard: Whether the pairs of well-known vocabularies are inverse as well.
        used: The relations that have facts; others are left out unless their inverse has some. None where they are not
            known.
    """
    pairs = {each.relation: each.inverse for each in inverses} | {each.inverse: each.relation for each in inverses}
    known = None if used is None else frozenset(used)
    held = None if known is None else {*known, *pairs}
    wide = set(chain.from_iterable(links.wider))
    for one, other in chain(links.inverses, standard_inverses(wide) if standard else ()):
        if one not in pairs and other not in pairs:
            pairs |= {one: other, other: one}
    below = defaultdict[_Way, list[_Way]](list)
    for narrow, wider in links.wider:
        for ahead in (True, False):
            below[wider, ahead].append((narrow, ahead))
    for one, other in pairs.items():
        for ahead in (True, False):
            below[one, ahead].append((other, not ahead))
    along, behind = set[_Pair](), set[_Pair]()
    for relation in {*wide, *(pairs[each] for each in wide if each in pairs)}:
        ways = _reached((relation, True), below)
        under = {narrow for narrow, ahead in ways if ahead and narrow != relation}
        turned = {narrow for narrow, ahead in ways if not ahead} - {pairs.get(each) for each in (relation, *under)}
        along.update((each, relation) for each in under if held is None or each in held)
        behind.update((each, relation) for each in turned if known is None or each in known)
    return Subproperties(tuple(sorted(along))[:MAX_RELATIONS], tuple(sorted(behind))[:MAX_RELATIONS])


def _reached(start: _Way, below: Mapping[_Way, Sequence[_Way]]) -> set[_Way]:
    reached, ahead = {start}, [start]
    while ahead:
        fresh = [each for each in below.get(ahead.pop(), ()) if each not in reached]
        reached.update(fresh)
        ahead += fresh
    return reached


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
