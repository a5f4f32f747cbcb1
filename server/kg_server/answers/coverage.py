"""What a missing fact means: how completely a graph records a relation, and the inverses that record it instead."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final, TypeAlias

from kg_adapters.models import Count, Degree, Direction, EdgeDirection, NeighborPage, RelationCount
from kg_adapters.profile import ClassProfile, Coverage, GraphProfile, PropertyProfile
from kg_adapters.protocol import KGAdapter, SupportsRevision
from kg_adapters.requests import FeatureRequest, NeighborRequest, past_the_end, read_cursor, write_cursor
from kg_adapters.terms import Fact, Iri, Node, Triple, node_key
from kg_boundary.shown import shown_within
from kg_server.answers.columns import texts_instead
from kg_server.answers.results import Knowledge, Note, Over
from kg_server.concurrency import load
from kg_server.names import MAX_LABEL, Names, plural

if TYPE_CHECKING:
    from kg_adapters.algebra import Step

MAX_COMPARED: Final = 5_000
"""How many facts are looked at to tell which are stored both ways; of more, only those as asked for are shown."""

OPPOSITE: Final[dict[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}

InverseOf: TypeAlias = Callable[[Iri], Iri | None]
"""Gives the relation that says the same backwards: the same one if it is symmetric, None if there is none."""


@dataclass(frozen=True, slots=True)
class BothWays:
    """What is stated around an entity over a relation or its inverse, each fact once and as it is stored.

    Args:
        entity: The entity.
        relations: The relations that were asked for.
        direction: Which way they were asked for.
        inverses: The inverses of those that have one; the same where one is symmetric.
        straight: The facts that are stored as asked for.
        turned: The facts that are stored over the inverse only.
        degree: The neighbours, and how many are stored over which relation, those that are stored both ways in each.
        complete: Whether these are all; otherwise there are more than `MAX_COMPARED`, and nothing is held here.
    """

    entity: Node
    relations: tuple[Iri, ...]
    direction: Direction
    inverses: tuple[Iri, ...]
    straight: tuple[Fact, ...]
    turned: tuple[Fact, ...]
    degree: Degree
    complete: bool

    def said(self, names: Names) -> str:
        """Return half a sentence on what is stored over the inverse only; nothing where there is none."""
        if not self.turned:
            return ""
        subject = f"{len(self.turned):,} of them " if self.straight else ""
        over = sorted({fact.relation for fact in self.turned})
        named = " and ".join(map(names.relation, over))
        how = "in the other direction" if self.relations == tuple(over) else f"the other way, as {named}"
        return f", {subject}stored only {how}"

    async def page(self, limit: int, cursor: str | None, graph: KGAdapter) -> NeighborPage:
        """Return up to `limit` facts from a cursor on, as stored before those over the inverse.

        Raises:
            InvalidRequest: The cursor is damaged, or belongs to another question, graph or revision of the graph.
        """
        now = graph.name + (await graph.revision() if isinstance(graph, SupportsRevision) else "")
        question = node_key(self.entity), *(each.value for each in self.relations), self.direction
        facts = (*self.straight, *self.turned)
        first = 0 if cursor is None else read_cursor(cursor, 1, question, now)[0]
        if cursor is not None and first >= len(facts):
            raise past_the_end()
        end = first + limit
        behind = write_cursor((end,), question, now) if end < len(facts) else None
        return NeighborPage(facts[first:end], Count(len(facts)), first > 0 or behind is not None, behind)


def no_inverse(relation: Iri) -> Iri | None:
    """Return the inverse of a relation in a graph of which nothing is known."""
    del relation
    return None


def one_way(fact: Fact, inverse_of: InverseOf) -> Fact:
    """Return the same fact for both ways in which it may be stored."""
    if not isinstance(fact, Triple) or (inverse := inverse_of(fact.relation)) is None:
        return fact
    turned = Triple(fact.tail, inverse, fact.head)
    return min(fact, turned, key=lambda each: (each.relation.value, node_key(each.head)))


def both_steps(steps: "Iterable[Step]", inverse_of: InverseOf) -> "tuple[Step, ...]":
    """Return steps, and behind them those over the inverse of their relation that lead the same way."""
    straight = tuple(steps)
    pairs = ((step, inverse_of(step.relation)) for step in straight)
    turned = (
        replace(step, relation=inverse, direction="in" if step.direction == "out" else "out")
        for step, inverse in pairs
        if inverse is not None
    )
    return tuple(dict.fromkeys((*straight, *turned)))


async def inverses_in_use(graph: KGAdapter) -> tuple[tuple[Iri, Iri], ...]:
    """Return the pairs of relations that say the same in opposite directions, where facts are stored over both."""
    pairs = (await graph.profile()).inverses
    used = (each for each in pairs if each.both or each.symmetric or (each.only_relation and each.only_inverse))
    return tuple((each.relation, each.inverse) for each in used)


async def both_ways(
    graph: KGAdapter, node: Node, relations: tuple[Iri, ...], direction: Direction, backwards: tuple[Iri, ...] = ()
) -> BothWays | None:
    """Return what is stated around an entity over relations or their inverses, values too, by one request.

    What `backwards` holds says the same backwards as well.

    None where no relation has an inverse, or the graph does not mention the entity.
    """
    profile = await graph.profile()
    inverses = *(inverse for each in relations if (inverse := profile.inverse_of(each)) is not None), *backwards
    if not inverses:
        return None
    wanted = frozenset({*relations, *inverses})
    request = NeighborRequest((node,), "both", relations=wanted, limit=MAX_COMPARED, values=True)
    page = (await graph.neighbors(request)).get(node)
    if page is None:
        return None
    found = BothWays(node, relations, direction, inverses, (), (), Degree(Count(0), ()), complete=not page.truncated)
    if page.truncated:
        return found
    ahead = [fact for fact in page.facts if _leads(fact, node, relations, direction)]
    behind = [fact for fact in page.triples if _leads(fact, node, inverses, OPPOSITE[direction])]
    inverse_of = profile.inverse_of
    seen = dict[Fact, Fact]()
    for fact in ahead:
        seen.setdefault(one_way(fact, inverse_of), fact)
    straight = tuple(seen.values())
    for fact in behind:
        seen.setdefault(one_way(fact, inverse_of), fact)
    turned = tuple(seen.values())[len(straight) :]
    return replace(found, straight=straight, turned=turned, degree=_degree(node, dict.fromkeys((*ahead, *behind))))


async def more_by_inverses(
    graph: KGAdapter, facts: Collection[Fact], opposite: Iterable[RelationCount]
) -> Sequence[tuple[Iri, Iri, Count]]:
    """Return relations of an entity, with their inverse and how many facts are stored over that one only.

    Args:
        graph: The graph.
        facts: All of its facts in one direction.
        opposite: How many it has in the other direction, by relation.
    """
    inverse_of = (await graph.profile()).inverse_of
    counts = {each.relation: each.count for each in opposite}
    turned: dict[tuple[Iri, Iri], set[Fact]] = {}
    for fact in facts:
        inverse = inverse_of(fact.relation) or fact.relation
        if isinstance(fact, Triple) and inverse_of(inverse) and inverse in counts and fact.head != fact.tail:
            turned.setdefault((fact.relation, inverse), set()).add(Triple(fact.tail, inverse, fact.head))
    held = await graph.contains(set[Fact]().union(*turned.values())) if turned else frozenset[Fact]()
    more = [(*pair, counts[pair[1]].value - len(twins & held), counts[pair[1]].exact) for pair, twins in turned.items()]
    return [(relation, inverse, Count(number, exact=exact)) for relation, inverse, number, exact in more if number > 0]


async def without_twins(graph: KGAdapter, node: Node, page: NeighborPage) -> NeighborPage:
    """Return a page without the incoming triples that say what an outgoing one of it says already.

    Twins on different pages of a hub are both shown.
    """
    outgoing = {triple.tail for triple in page.triples if triple.head == node}
    if not any(triple.head != node and triple.head in outgoing for triple in page.triples):
        return page
    inverse_of = (await graph.profile()).inverse_of
    said = {one_way(fact, inverse_of) for fact in page.facts if fact.head == node}
    facts = tuple(fact for fact in page.facts if fact.head == node or one_way(fact, inverse_of) not in said)
    twins = len(page.facts) - len(facts)
    return replace(page, facts=facts, total=replace(page.total, value=page.total.value - twins))


def _leads(fact: Fact, node: Node, relations: Sequence[Iri], direction: Direction) -> bool:
    """Return whether a fact is one of an entity over one of some relations, in a direction."""
    if fact.relation not in relations:
        return False
    return (direction != "in" and fact.head == node) or (direction != "out" and fact.tail == node)


def _degree(node: Node, facts: Iterable[Fact]) -> Degree:
    ends: dict[tuple[EdgeDirection, Iri], set[Node]] = {}
    for direction, relation, end in _edges(node, facts):
        ends.setdefault((direction, relation), set()).add(end)
    # As adapters list them: outgoing before incoming.
    order = sorted(ends, key=lambda group: (group[0] == "in", group[1]))
    counts = tuple(RelationCount(relation, side, Count(len(ends[side, relation]))) for side, relation in order)
    return Degree(Count(len(set[Node]().union(*ends.values()))), counts)


def _edges(node: Node, facts: Iterable[Fact]) -> Iterator[tuple[EdgeDirection, Iri, Node]]:
    for fact in facts:
        if isinstance(fact, Triple):
            yield ("out", fact.relation, fact.tail) if fact.head == node else ("in", fact.relation, fact.head)


MIN_INSTANCES: Final = 10
"""The fewest instances that a class may have for what they have to count; of a smaller one a wider class counts."""

NEARLY_ALL: Final = 0.9
"""Where so many instances of a class have a relation, one without it has none."""

THIN: Final = 0.5
"""Where fewer have it, what was counted is likely to be less than there is."""

_UNCOUNTED: Final = "not all of its neighbours were counted"

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

    def note(self, over: Over | str) -> Note:
        """Return a sentence that names the relation, for answers whose first line does not."""
        if self.knowledge == "stated":
            return (f"{self.clause[0].upper()}{self.clause[1:]}.",)
        return "No ", over, f": {self.clause}."


async def absence(graph: KGAdapter, entity: Node, relations: Sequence[Iri], direction: Direction = "out") -> Absence:
    """Return what it means that an entity has no edge, or no value, over any of some relations."""
    if otherwise := await _otherwise(graph, entity, relations):
        return Absence("unknown" if otherwise == _UNCOUNTED else "stated", otherwise)
    if direction != "out" and (instead := await texts_instead(graph, entity, relations)) is not None:
        return Absence("unknown", instead.clause("this entity"))
    profile = await graph.profile()
    classes = await _folded_over(graph, await classes_of(graph, profile, [entity]), relations)
    return absence_among(profile, classes, relations, direction)


def absence_among(
    profile: GraphProfile, classes: Iterable[ClassProfile], relations: Sequence[Iri], direction: Direction = "out"
) -> Absence:
    """Return what it means that an instance of some classes has neither edges nor values over some relations."""
    found = _most_telling(profile, classes, relations, direction)
    if found is None:
        return Absence("unknown", "how many others have one is not known")
    coverage, known = found
    if coverage.having == 0:
        return Absence("unknown", _none_has_one(coverage))
    counted = counted_clause(coverage, at_least=len(relations) > 1)
    if coverage.share < NEARLY_ALL:
        return Absence("unknown", f"{counted}, so its absence proves nothing")
    if known is not None and known.values is not None and not known.targets:
        # A person without a date of birth was born all the same.
        return Absence("unknown", f"{counted}, so its own is missing")
    return Absence("denied", f"{counted}, so it seems to have none")


async def thinness(graph: KGAdapter, entities: Sequence[Node], relations: Sequence[Iri]) -> str:
    """Return half a sentence on a count of what relations lead to, which few of a class have; else an empty text.

    The share of those that a relation leads to does not show what is missing.
    """
    classes = await _folded_over(graph, await classes_of(graph, await graph.profile(), entities), relations)
    shares = [known.coverage(each, "out") for known in classes for each in relations]
    found = max(filter(None, shares), key=lambda each: (each.share, each.instances), default=None)
    if found is None or found.owner is None or not 0 < found.share < THIN:
        return ""
    return f"{counted_clause(found, at_least=len(relations) > 1)} at all, so there may be more than the graph knows"


async def _folded_over(
    graph: KGAdapter, classes: Sequence[ClassProfile], relations: Sequence[Iri]
) -> Sequence[ClassProfile]:
    """Return what classes are known by, with each of some relations and its inverse counted as one."""
    for relation in relations:
        classes = [await folded(graph, each, relation) for each in classes]
    return classes


async def folded(
    graph: KGAdapter, known: ClassProfile, relation: Iri | None = None, *, off: float = 0.0
) -> ClassProfile:
    """Return what a class is known by, with a relation and its inverse counted as one, as results count them.

    A remote graph is not asked how many have either: there the more frequent one counts.

    Args:
        graph: The graph.
        known: The class.
        relation: The only relation that is counted so; None for all, and then the outgoing ones represent both.
        off: By how much the share of those that have either may be too small.
    """
    inverse_of = (await graph.profile()).inverse_of
    kept = {(each.relation, each.direction): each for each in known.properties}
    for ahead in known.properties:
        inverse = inverse_of(ahead.relation) if ahead.direction == "out" else None
        behind = None if inverse is None else kept.get((inverse, "in"))
        if behind is None or relation not in {None, ahead.relation, behind.relation}:
            continue
        one = await _as_one(graph, known, ahead, behind, off)
        kept[ahead.relation, "out"] = one
        kept[behind.relation, "in"] = replace(one, relation=behind.relation, direction="in")
        if relation is None:
            del kept[behind.relation, "in"]
    every = sorted(kept.values(), key=lambda each: (each.direction == "in", -each.instances, each.relation))
    return replace(known, properties=tuple(every))


async def _as_one(
    graph: KGAdapter, known: ClassProfile, ahead: PropertyProfile, behind: PropertyProfile, off: float
) -> PropertyProfile:
    one = replace(ahead, instances=max(ahead.instances, behind.instances), facts=max(ahead.facts, behind.facts))
    missed = min(ahead.instances, behind.instances)
    if known.iri is not None and not graph.remote and missed >= off * known.counted_over:
        await load("kg_adapters.set_walking")
        from kg_adapters.algebra import Hop, HopPath, Instances, NumberOf, Step
        from kg_adapters.set_requests import Aggregated, SetRequest
        from kg_adapters.set_walking import compute_sets

        both = HopPath((Hop((Step(ahead.relation), Step(behind.relation, "in"))),))
        summed = Aggregated(Instances(known.iri), NumberOf(both), "sum")
        found = await compute_sets(graph, SetRequest(summed, witnesses=0))
        facts = int(found.value) if isinstance(found.value, float) else one.facts
        one = replace(one, instances=found.measured.value, facts=facts)
    targets = Counter(dict(ahead.targets))
    targets.update(dict(behind.targets))
    # What is stored both ways was counted twice.
    once = one.facts / (ahead.facts + behind.facts)
    return replace(one, targets=tuple((end, ceil(number * once)) for end, number in targets.most_common()))


def counted_clause(coverage: Coverage, *, at_least: bool = False) -> str:
    """Return how many of a class have something, or the least that do: `of 4,175 humans 312 have one`."""
    has = "has" if coverage.having == 1 else "have"
    looked = " looked at" if coverage.sampled else ""
    having = f"at least {coverage.having:,}" if at_least else f"{coverage.having:,}"
    return f"of {coverage.instances:,} {_many(coverage)}{looked} {having} {has} one"


def _none_has_one(coverage: Coverage) -> str:
    if coverage.sampled:
        return f"of {coverage.instances:,} {_many(coverage)} looked at none has one"
    return f"no {_one(coverage)} here has one, so the graph does not know this kind of thing"


async def _otherwise(graph: KGAdapter, entity: Node, relations: Sequence[Iri]) -> str:
    """Return a remark where an entity has values over relations of which edges were asked for, or the reverse."""
    if values := await values_beside(graph, entity, relations):
        return values
    degree = (await graph.degrees([entity], direction="out", relations=relations)).get(entity)
    if degree is not None and degree.relations:
        return f"it leads to {degree.neighbors.of('node')}, which GetNeighbor shows"
    return "" if degree is None or degree.is_none else _UNCOUNTED


async def values_beside(graph: KGAdapter, entity: Node, relations: Sequence[Iri]) -> str:
    """Return half a sentence on the values that an entity has over relations of which edges were asked for."""
    pages = await graph.features(FeatureRequest((entity,), frozenset(relations), 1))
    return f"it has {pages[entity].total.of('value')} of it, which Feature shows" if entity in pages else ""


def _most_telling(
    profile: GraphProfile, classes: Iterable[ClassProfile], relations: Sequence[Iri], direction: Direction
) -> tuple[Coverage, PropertyProfile | None] | None:
    """Return how many have one of some relations in the class where most have it; None if nothing is known."""
    asked: list[tuple[Iri, Direction]] = [(each, direction) for each in relations]
    inverses = (profile.inverse_of(each) for each in relations)
    asked.extend((each, OPPOSITE[direction]) for each in inverses if each is not None)
    found = [
        (coverage, known.property(iri, side))
        for known in classes
        for iri, walked in asked
        for side in _SIDES[walked]
        if (coverage := known.coverage(iri, side)) is not None
    ]
    return max(found, key=lambda each: (each[0].share, each[0].instances), default=None)


async def classes_of(graph: KGAdapter, profile: GraphProfile, entities: Sequence[Node]) -> list[ClassProfile]:
    """Return the profiles of the classes that say something of some entities."""
    described = await graph.describe(entities)
    return informative_classes(
        profile, [each for node in entities if node in described for each in described[node].types]
    )


def informative_classes(profile: GraphProfile, types: Iterable[Node]) -> list[ClassProfile]:
    """Return the profiles of the classes that say something of an entity of some types."""
    found = (profile.profile_of(owner) for owner in _owners(profile, dict.fromkeys(types)))
    return [known for known in found if known is not None]


def _owners(profile: GraphProfile, types: Iterable[Node]) -> list[Node | None]:
    """Return the classes that say something: for one with few instances those above it, up to the widest.

    The whole graph only where nothing is known of any: it has classes among its entities, which are of another kind.
    """
    owners: dict[Node | None, None] = {}
    small: dict[Node | None, None] = {}
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
            wider = [each for each in known.broader if each not in seen and profile.profile_of(each) is not None]
            ahead.extend(wider)
            small.update(dict.fromkeys([] if wider else [owner]))
    return list(owners or small) or [None]


def _one(coverage: Coverage) -> str:
    return "entity" if coverage.owner is None else _label(coverage)


def _many(coverage: Coverage) -> str:
    return "entities" if coverage.owner is None else plural(_label(coverage))


def _label(coverage: Coverage) -> str:
    if coverage.label is not None:
        return shown_within(coverage.label, MAX_LABEL)
    owner = coverage.owner
    return "entity" if owner is None else shown_within(owner.local_part, MAX_LABEL)
