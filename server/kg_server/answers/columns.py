"""What columns of tables hold: texts where links were looked for, and rows of several tables in one relation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from kg_adapters.models import Count, EdgeDirection
from kg_adapters.profile import ClassProfile, GraphProfile, PropertyProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Literal, Node
from kg_adapters.values import value_kind
from kg_boundary.shown import in_quotes, listed, shown_within
from kg_server.answers.results import Note, Over
from kg_server.concurrency import load
from kg_server.names import MAX_LABEL, plural

if TYPE_CHECKING:
    from kg_adapters.algebra import SetExpression

_NONE: Final = Count(0)
_MOST_TEXTS: Final = 20
_MOST_CLASSES: Final = 20
_LONGEST_TEXT: Final = 100
_MOST_HOLDERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class TextsInstead:
    """What relations hold where links to an entity were looked for: texts, of which one may stand for the entity.

    Args:
        example: One of the texts.
        text: An id or value of the entity that is among them, if any is.
        having: How many have that one.
    """

    example: str
    text: str = ""
    having: Count = _NONE

    def clause(self, entity: str) -> str:
        """Return half a sentence about the relations, which names the entity as given."""
        held = f"it holds texts such as {in_quotes(self.example, MAX_LABEL)}, not links"
        if not self.text:
            return held
        have = "has" if self.having == Count(1) else "have"
        return f"{held}; {self.having} {have} {in_quotes(self.text, MAX_LABEL)}, the id or a value of {entity}"


async def texts_instead(
    graph: KGAdapter, entity: Node, relations: Sequence[Iri], among: "SetExpression | None" = None
) -> TextsInstead | None:
    """Return what relations that hold nothing but texts hold in place of links to an entity; None for other ones.

    A remote graph is not asked for it.

    Args:
        graph: The graph.
        entity: The entity.
        relations: The relations.
        among: Whose texts count; None for those of all classes.
    """
    if graph.remote or not graph.vocabulary.texts.isdisjoint(relations):
        return None
    profile = await graph.profile()
    if not all(_holds_texts(profile.everything.property(each, "out")) for each in relations):
        return None
    await load("kg_adapters.set_walking")
    from kg_adapters.algebra import Compares, Has, Hop, HopPath, Instances, Kept, Members, Step, Union, Values
    from kg_adapters.set_requests import Computed, Listed, SetRequest
    from kg_adapters.set_walking import compute_sets

    every = True
    if among is None:
        owners = [each for each in _having_any(profile, relations) if each is not None]
        if not owners:
            return None
        among, every = Union(tuple(map(Instances, owners[:_MOST_CLASSES]))), len(owners) <= _MOST_CLASSES
    path = HopPath((Hop(tuple(map(Step, relations))),))

    async def listed_of(of: "SetExpression", limit: int = 0) -> Computed:
        return await compute_sets(graph, SetRequest(Listed(of), limit=limit, witnesses=0))

    def nodes_of(found: Computed) -> Members:
        return Members(tuple(each for each in found.members if not isinstance(each, Literal)))

    first = nodes_of(await listed_of(Kept(among, Has(path)), limit=1))
    held = (await listed_of(Values(first, path), limit=1)).members
    if not held or not isinstance(held[0], Literal):
        return None
    conditions = {text: Compares(path, "=", Literal(text)) for text in await _texts_of(graph, entity)}
    of_any = await listed_of(Union(tuple(Kept(among, each) for each in conditions.values())), _MOST_HOLDERS)
    holders = nodes_of(of_any) if of_any.count.value <= _MOST_HOLDERS else among
    for text, condition in conditions.items() if of_any.count.value else ():
        count = (await listed_of(Kept(holders, condition))).count
        if count.value:
            return TextsInstead(held[0].value, text, replace(count, exact=count.exact and of_any.count.exact and every))
    return TextsInstead(held[0].value)


def _holds_texts(known: PropertyProfile | None) -> bool:
    return known is not None and not known.targets and known.values is not None and known.values.kinds == ("text",)


def _having_any(profile: GraphProfile, relations: Sequence[Iri]) -> dict[Node | None, ClassProfile]:
    """Return the classes, by their ids, whose instances have any of some relations."""
    return {known.iri: known for relation in relations for known in profile.classes_with(relation)}


async def _texts_of(graph: KGAdapter, entity: Node) -> Sequence[str]:
    """Return what may stand for an entity in a column of texts: its id, its names and its short texts."""
    page = (await graph.features(FeatureRequest((entity,), limit=_MOST_TEXTS))).get(entity)
    values = [] if page is None else [each.value for each in page.features]
    texts = [each.value for each in values if value_kind(each) == "text" and len(each.value) <= _LONGEST_TEXT]
    return list(dict.fromkeys((unquote(entity.local_part), *texts)))


_MOST_OWNERS: Final = 4
_NEAR: Final = 4
_LEAST_LIKE: Final = 75


async def not_of_class(graph: KGAdapter, owner: Node, relations: Sequence[Iri], direction: EdgeDirection) -> Note:
    """Return that no instance of a class has any of some relations, which classes have it, and what it has instead.

    Of classes that have it, superclasses of others are not named.

    Empty where one has, or where that is not known.
    """
    profile = await graph.profile()
    known = profile.profile_of(owner)
    if not relations or known is None or not profile.complete or known.looked_at is not None:
        return ()
    inverses = {inverse for each in relations if (inverse := profile.inverse_of(each)) is not None}
    back: EdgeDirection = "in" if direction == "out" else "out"
    coverages = [known.coverage(each, direction) for each in relations]
    coverages += [known.coverage(each, back) for each in inverses]
    if any(each is None or each.having for each in coverages):
        return ()
    having = _having_any(profile, relations)
    wider = {iri for each in having.values() for iri in each.broader}
    others = [_many(each) for iri, each in having.items() if iri not in wider]
    of_others = f": it is of {listed(others, ', ', _NEAR)}" if direction == "out" and others else ""
    own = await _nearest(graph, known, relations[0])
    has = f" They have {', '.join(own)}." if own else ""
    return (f"No {_many(known)} have ", Over(relations[0], direction == "in"), f"{of_others}.{has}")


def _many(known: ClassProfile) -> str:
    return plural(shown_within(known.label or ("" if known.iri is None else known.iri.local_part), MAX_LABEL))


async def _nearest(graph: KGAdapter, known: ClassProfile, relation: Iri) -> Sequence[str]:
    """Return the relations and features of a class that are called most like one, or else the most frequent."""
    from rapidfuzz import fuzz

    silent = graph.vocabulary.texts | graph.vocabulary.unwalked
    own = [each for each in known.properties if each.direction == "out" and each.relation not in silent]
    called = list(dict.fromkeys(each.label or each.relation.local_part for each in own))
    wanted = (await graph.labels([relation])).get(relation, relation.local_part).lower()
    likeness = {each: fuzz.WRatio(wanted, each.lower()) for each in called}
    like = sorted((each for each in called if likeness[each] >= _LEAST_LIKE), key=lambda each: -likeness[each])
    return [shown_within(each, MAX_LABEL) for each in (like or called)[:_NEAR]]


def owners_of(profile: GraphProfile, relation: Iri) -> Sequence[ClassProfile]:
    """Return the classes whose instances have a relation, the largest first.

    Empty where it is a single one, where they are more than a few, or where one is a subclass of another.
    """
    found = profile.classes_with(relation) if profile.complete else ()
    wider = {iri for each in found for iri in each.broader}
    several = 1 < len(found) <= _MOST_OWNERS
    return found if several and wider.isdisjoint(each.iri for each in found) else ()


async def by_owner(graph: KGAdapter, relation: Iri, among: "SetExpression") -> Note:
    """Return of which classes the members of a set are that a relation leads from: `49 flights, 42 weather`.

    Empty where it leads from those of one class only; a remote graph is not asked for it.
    """
    owners = () if graph.remote else owners_of(await graph.profile(), relation)
    if not owners:
        return ()
    await load("kg_adapters.set_walking")
    from kg_adapters.algebra import Instances, Intersect, Union
    from kg_adapters.set_requests import Listed, SetRequest
    from kg_adapters.set_walking import compute_sets

    sets = {each.iri: Instances(each.iri) for each in owners if each.iri is not None}

    async def number(of: "SetExpression") -> Count:
        return (await compute_sets(graph, SetRequest(Listed(Intersect((among, of))), limit=0, witnesses=0))).count

    counts = {iri: count for iri, of in sets.items() if (count := await number(of)).value}
    if len(counts) < 2:
        return ()
    every = (await number(Union(tuple(sets.values())))).value
    return by_class(counts, overlap=sum(count.value for count in counts.values()) > every)


async def heads_by_owner(graph: KGAdapter, entity: Node, relations: Sequence[Iri]) -> Note:
    """Return the same of what leads to an entity over one relation; empty for several.

    Empty as well for one with an inverse, which is counted together with it.
    """
    if len(relations) != 1 or graph.remote:
        return ()
    profile = await graph.profile()
    if profile.inverse_of(relations[0]) is not None or not owners_of(profile, relations[0]):
        return ()
    await load("kg_adapters.set_walking")
    from kg_adapters.algebra import Hop, HopPath, Members, Reached, Step

    return await by_owner(
        graph, relations[0], Reached(Members((entity,)), HopPath((Hop((Step(relations[0], "in"),)),)))
    )


def by_class(counts: Mapping[Node, Count], *, overlap: bool) -> Note:
    """Return how many there are of each class, and whether some are of several: `49 of flights and 42 of weather`."""
    marks = ("", *[", "] * (len(counts) - 2), *[" and "] * (len(counts) > 1))
    pieces = [(f"{mark}{count} of ", iri) for mark, (iri, count) in zip(marks, counts.items(), strict=True)]
    return *chain.from_iterable(pieces), *([", some of several of these"] if overlap else ())
