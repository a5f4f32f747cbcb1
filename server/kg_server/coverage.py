"""How much a graph knows of a kind of fact: what it means that something is not there, or that it was counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.models import Direction, EdgeDirection
from kg_adapters.profile import ClassProfile, Coverage, GraphProfile, PropertyProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import shown_within
from kg_server.inverses import OPPOSITE
from kg_server.names import MAX_LABEL
from kg_server.results import Knowledge

MIN_INSTANCES: Final = 10
"""The fewest instances that a class may have to tell anything; of a smaller one the wider classes are looked at."""
NEARLY_ALL: Final = 0.9
"""Where so many instances of a class have a relation, one without it has none."""
THIN: Final = 0.5
"""Where fewer have it, what was counted is likely to be less than there is."""

_SIDES: Final[dict[Direction, tuple[EdgeDirection, ...]]] = {"out": ("out",), "in": ("in",), "both": ("out", "in")}


@dataclass(frozen=True, slots=True)
class Absence:
    """What it means that an entity lacks something.

    Args:
        knowledge: `denied` where nearly all of its class have it; otherwise `unknown`.
        clause: Half a sentence on how many have it, to be put behind a semicolon.
    """

    knowledge: Knowledge
    clause: str


async def absence(graph: KGAdapter, entity: Node, relation: Iri, direction: Direction = "out") -> Absence:
    """Return what it means that an entity has no edge, or no value, over a relation."""
    if otherwise := await _otherwise(graph, entity, relation):
        return Absence("stated", otherwise)
    profile = await graph.profile()
    return absence_among(profile, await told_by(graph, profile, [entity]), relation, direction)


def absence_among(
    profile: GraphProfile, classes: Iterable[ClassProfile], relation: Iri, direction: Direction = "out"
) -> Absence:
    """Return what it means that an instance of some classes has neither an edge nor a value over a relation."""
    found = _most_telling(profile, classes, relation, direction)
    if found is None:
        return Absence("unknown", "how many others have one is not known")
    coverage, known = found
    if coverage.having == 0:
        return Absence("unknown", _none_has_one(coverage))
    counted = counted_clause(coverage)
    if coverage.share < NEARLY_ALL:
        return Absence("unknown", f"{counted}, so that says little")
    if known is not None and known.values is not None and not known.targets:
        # A person without a date of birth was born all the same.
        return Absence("unknown", f"{counted}, so its own is missing")
    return Absence("denied", f"{counted}, so it seems to have none")


async def thinness(graph: KGAdapter, entities: Sequence[Node], relation: Iri) -> str:
    """Return a sentence on a count of what a relation leads to, which few of a class have at all; nothing otherwise.

    A share of those that a relation leads to says nothing of what is missing, nor does that of its inverse.
    """
    profile = await graph.profile()
    shares = [known.coverage(relation, "out") for known in await told_by(graph, profile, entities)]
    found = max(filter(None, shares), key=lambda each: (each.share, each.instances), default=None)
    if found is None or found.owner is None or not 0 < found.share < THIN:
        return ""
    clause = counted_clause(found)
    return f" {clause[0].upper()}{clause[1:]} at all, so there may be more than the graph knows."


def counted_clause(coverage: Coverage) -> str:
    """Return how many of a class have something: `of 4,175 humans 312 have one`."""
    has = "has" if coverage.having == 1 else "have"
    looked = " looked at" if coverage.sampled else ""
    return f"of {coverage.instances:,} {_many(coverage)}{looked} {coverage.having:,} {has} one"


def _none_has_one(coverage: Coverage) -> str:
    if coverage.sampled:
        return f"of {coverage.instances:,} {_many(coverage)} looked at none has one"
    return f"no {_one(coverage)} here has one, so the graph does not know this kind of thing"


def plural(noun: str) -> str:
    """Return the plural of an English noun as it is mostly formed; of `city of France` that of the first word."""
    head, mark, rest = _split(noun)
    if head.endswith("person"):
        formed = f"{head[:-6]}people"
    elif head.endswith(("s", "x", "ch", "sh")):
        formed = f"{head}es" if not head.endswith(("series", "species")) else head
    elif head.endswith("y") and head[-2:-1] not in {"", *"aeiou"}:
        formed = f"{head[:-1]}ies"
    else:
        formed = f"{head}s"
    return f"{formed}{mark}{rest}"


def _split(noun: str) -> tuple[str, str, str]:
    for mark in (" of ", " in ", " with ", " for ", " ("):
        head, found, rest = noun.partition(mark)
        if found:
            return head, found, rest
    return noun, "", ""


async def _otherwise(graph: KGAdapter, entity: Node, relation: Iri) -> str:
    """Return what to say where an entity has values over a relation of which edges were asked for, or the reverse."""
    pages = await graph.features(FeatureRequest((entity,), frozenset({relation}), 1))
    if entity in pages:
        values = pages[entity].total
        return f"it has {values} value{'' if values.value == 1 else 's'} of it, which Feature shows"
    degree = (await graph.degrees([entity], direction="out", relations=[relation])).get(entity)
    if degree is not None and degree.relations:
        return f"it leads to {degree.relations[0].count} by it, which GetNeighbor shows"
    return ""


def _most_telling(
    profile: GraphProfile, classes: Iterable[ClassProfile], relation: Iri, direction: Direction
) -> tuple[Coverage, PropertyProfile | None] | None:
    """Return how many have a relation in that of some classes where most have it; None if nothing is known."""
    asked: list[tuple[Iri, Direction]] = [(relation, direction)]
    if (inverse := profile.inverse_of(relation)) is not None:
        asked.append((inverse, OPPOSITE[direction]))
    found = [
        (coverage, known.property(iri, side))
        for known in classes
        for iri, walked in asked
        for side in _SIDES[walked]
        if (coverage := known.coverage(iri, side)) is not None
    ]
    return max(found, key=lambda each: (each[0].share, each[0].instances), default=None)


async def told_by(graph: KGAdapter, profile: GraphProfile, entities: Sequence[Node]) -> list[ClassProfile]:
    """Return the profiles of the classes that say something of some entities."""
    described = await graph.describe(entities)
    return telling_classes(profile, [each for node in entities if node in described for each in described[node].types])


def telling_classes(profile: GraphProfile, types: Iterable[Node]) -> list[ClassProfile]:
    """Return the profiles of the classes that say something of an entity of some types."""
    found = (profile.profile_of(owner) for owner in _owners(profile, dict.fromkeys(types)))
    return [known for known in found if known is not None]


def _owners(profile: GraphProfile, types: Iterable[Node]) -> list[Node | None]:
    """Return the classes that say something: for one with few instances those above it, or else the whole graph."""
    owners: dict[Node | None, None] = {}
    ahead, seen = list(types), set[Node]()
    while ahead:
        owner = ahead.pop(0)
        known = profile.profile_of(owner)
        if owner in seen:
            continue
        seen.add(owner)
        if known is not None and known.instances >= MIN_INSTANCES:
            owners[owner] = None
        elif known is not None:
            ahead.extend(known.broader)
    return list(owners) or [None]


def _one(coverage: Coverage) -> str:
    return "entity" if coverage.owner is None else _label(coverage)


def _many(coverage: Coverage) -> str:
    return "entities" if coverage.owner is None else plural(_label(coverage))


def _label(coverage: Coverage) -> str:
    if coverage.label is not None:
        return shown_within(coverage.label, MAX_LABEL)
    owner = coverage.owner
    return "entity" if owner is None else shown_within(owner.local_part, MAX_LABEL)
