"""The profile of a large graph behind an endpoint, surveyed by queries that look at a bounded part of it each."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from kg_adapters.models import EdgeDirection
from kg_adapters.profile import (
    ClassProfile,
    GraphProfile,
    InverseRelations,
    PairCounts,
    choose_inverses,
    relation_meant,
    unknown_profile,
)
from kg_adapters.sparql.asking import Asker, BoundedAsker, Enough, ProfileLimits
from kg_adapters.sparql.profile_rows import Place, ProfileRows
from kg_adapters.sparql.queries.profiles import Looked, Looks, ProfileQueries
from kg_adapters.sparql.rows import Bindings
from kg_adapters.sparql.schema import Labels
from kg_adapters.terms import Iri, Node, node_key


@dataclass(frozen=True, slots=True)
class SurveyedClass:
    """A class.

    Args:
        iri: Its IRI.
        below: The classes at or below it that are stated types of instances.
        direct: How many are stated to be of this class itself.
        instances: How many instances it has.
        at_least: Whether it may have more.
        broader: The classes that are stated as its superclasses.
    """

    iri: Node
    below: tuple[Node, ...]
    direct: int
    instances: int
    at_least: bool
    broader: tuple[Node, ...]

    def looked_at(self, place: int, most: int) -> Looked:
        """Return that at most so many of its instances are looked at."""
        return Looked(place, self.below, most if self.at_least or self.instances > most else None)


@dataclass(frozen=True, slots=True)
class SurveyedClasses:
    """Classes, the largest first; `complete` if the graph has no others with instances."""

    classes: tuple[SurveyedClass, ...] = ()
    complete: bool = False


async def survey_classes(asker: BoundedAsker, queries: ProfileQueries) -> SurveyedClasses:
    """Return the largest classes, each with the instances of its subclasses as far as these are known.

    Raises:
        BackendUnavailable: The endpoint cannot be reached.
        Enough: It answers nothing.
    """
    limits = asker.limits
    direct, every = await _direct(asker, queries)
    broader = await asker.ask(queries.broader(None)) if limits.whole else None
    known = broader is not None and broader.whole
    largest = sorted(direct, key=lambda node: (-direct[node], node_key(node)))
    if not known and largest:
        broader = await asker.ask(queries.broader(largest[: limits.classes]))
    above = _above(() if broader is None else broader.rows)
    below = _below(direct, above if known else {})
    most = {owner: sum(direct[each] for each in under) for owner, under in below.items()}
    owners = sorted(most, key=lambda node: (-most[node], node_key(node)))
    chosen = [Looked(place, below[owner]) for place, owner in enumerate(owners[: limits.classes])]
    sizes = await _sizes(asker, queries, chosen, direct if every else {})
    return SurveyedClasses(
        tuple(
            SurveyedClass(
                owner,
                looked.classes,
                direct.get(owner, 0),
                sizes.get(looked.place, max(direct[each] for each in looked.classes)),
                at_least=not known or looked.place not in sizes,
                broader=above.get(owner, ()),
            )
            for looked, owner in zip(chosen, owners, strict=False)
        ),
        complete=every and known and len(chosen) == len(owners),
    )


async def _direct(asker: BoundedAsker, queries: ProfileQueries) -> tuple[dict[Node, int], bool]:
    """Return how many instances classes are stated to have, and whether all of both are here."""
    for query, every in queries.classes(asker.limits.sampled):
        found = await asker.ask(query)
        sizes = {row.node("c"): row.number("n") or 0 for row in (() if found is None else found.rows)}
        direct = {node: number for node, number in sizes.items() if node is not None and asker.can_name(node)}
        if found is not None and direct:
            return direct, every and found.whole and len(direct) == len(sizes)
    return {}, False


async def _sizes(
    asker: BoundedAsker, queries: ProfileQueries, looked: Sequence[Looked], direct: Mapping[Node, int]
) -> dict[int, int]:
    """Return the sizes of classes by place, asking for those that do not follow from what is known."""
    sizes = {
        each.place: direct[each.classes[0]] for each in looked if len(each.classes) == 1 and each.classes[0] in direct
    }
    missing = [each for each in looked if each.place not in sizes]
    found = await asker.ask(queries.sizes(missing)) if missing else None
    return sizes | {row.number("k") or 0: row.number("n") or 0 for row in (() if found is None else found.rows)}


def _above(found: Iterable[Bindings]) -> dict[Node, tuple[Node, ...]]:
    above: defaultdict[Node, set[Node]] = defaultdict(set)
    for row in found:
        narrow, wide = row.node("c"), row.node("d")
        if narrow is not None and wide is not None:
            above[narrow].add(wide)
    return {narrow: tuple(sorted(wide, key=node_key)) for narrow, wide in above.items()}


def _below(direct: Mapping[Node, int], above: Mapping[Node, Sequence[Node]]) -> dict[Node, tuple[Node, ...]]:
    below: defaultdict[Node, list[Node]] = defaultdict(list)
    for node in direct:
        for owner in _reached(node, above):
            below[owner].append(node)
    return {owner: tuple(under) for owner, under in below.items()}


def _reached(node: Node, above: Mapping[Node, Sequence[Node]]) -> Iterator[Node]:
    reached, ahead = {node}, [node]
    while ahead:
        current = ahead.pop()
        yield current
        fresh = set(above.get(current, ())) - reached
        reached |= fresh
        ahead.extend(fresh)


@dataclass(frozen=True, slots=True)
class SurveyedInverses:
    """Pairs of inverse relations; `complete` if they were counted over all that the graph has."""

    pairs: tuple[InverseRelations, ...] = ()
    complete: bool = False


async def survey_inverses(asker: BoundedAsker, queries: ProfileQueries, edges: Mapping[Iri, int]) -> SurveyedInverses:
    """Return the inverse relations: those that are declared, and those of which pairs are stored both ways.

    Args:
        asker: What asks.
        queries: What writes the queries.
        edges: How many edges relations have, at least; those with most come first.

    Raises:
        BackendUnavailable: The endpoint cannot be reached.
        Enough: Too much was asked before.
    """
    limits = asker.limits
    declared = await asker.ask(queries.declared_inverses())
    relations, counted = list(edges)[: limits.relations], _Counted()
    whole = len(relations) == len(edges) and declared is not None and declared.whole
    try:
        for part, most in _parts(relations, edges, limits):
            back = await asker.ask(queries.pairs(part, back=True, most=most))
            along = await asker.ask(queries.pairs(part, back=False, most=most))
            if back is None or along is None:
                whole = False
                continue
            whole = whole and most is None and back.whole and along.whole
            counted.take(back.rows, along.rows)
    except Enough:
        whole = False
    said = [] if declared is None else [pair for pair in _declared(declared.rows) if counted.stored.keys() >= set(pair)]
    return SurveyedInverses(choose_inverses(PairCounts(counted.stored, counted.back, counted.along), said), whole)


@dataclass(frozen=True, slots=True)
class _Counted:
    stored: dict[Iri, int] = field(default_factory=dict[Iri, int])
    back: dict[tuple[Iri, Iri], int] = field(default_factory=dict[tuple[Iri, Iri], int])
    along: dict[tuple[Iri, Iri], int] = field(default_factory=dict[tuple[Iri, Iri], int])

    def take(self, back: Iterable[Bindings], along: Iterable[Bindings]) -> None:
        self.back.update(_by_relations(back))
        for (one, other), number in _by_relations(along):
            if one == other:
                self.stored[one] = number
            else:
                self.along[one, other] = number


def _by_relations(found: Iterable[Bindings]) -> Iterator[tuple[tuple[Iri, Iri], int]]:
    for row in found:
        one, other = row.iri("p"), row.iri("q")
        if one is not None and other is not None:
            yield (one, other), row.number("n") or 0


def _declared(found: Iterable[Bindings]) -> Iterator[tuple[Iri, Iri]]:
    for row in found:
        one, other = row.node("p"), row.node("q")
        if isinstance(one, Iri) and isinstance(other, Iri):
            yield relation_meant(one), relation_meant(other)


def _parts(
    relations: Sequence[Iri], edges: Mapping[Iri, int], limits: ProfileLimits
) -> Iterator[tuple[list[Iri], int | None]]:
    """Yield relations in groups that are looked at by one query, and how many pairs of each; None for all."""
    large = [each for each in relations if edges[each] > limits.pairs or not limits.whole]
    for start in range(0, len(large), together := max(1, limits.together // limits.pairs)):
        yield large[start : start + together], limits.pairs
    part, size = list[Iri](), 0
    for relation in (each for each in relations if each not in large):
        if part and size + edges[relation] > limits.together:
            yield part, None
            part, size = [], 0
        part.append(relation)
        size += edges[relation]
    if part:
        yield part, None


_SMALLER: Final = 20
"""How many times fewer instances are looked at where all are too many."""


class ProfileSurvey:
    """Surveys one graph, once.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        labels: What tells the labels of classes and relations.
        limits: How much is asked for.
    """

    def __init__(self, asker: Asker, queries: ProfileQueries, labels: Labels, limits: ProfileLimits) -> None:
        self._asker = BoundedAsker(asker, limits)
        self._queries = queries
        self._labels = labels
        self._found = ProfileRows()
        self._classes = SurveyedClasses()
        self._inverses = SurveyedInverses()
        self._entities: int | None = None
        self._looked: dict[Place, int | None] = {}
        self._cut: set[Place] = set()

    @property
    def refused(self) -> bool:
        """Whether it ended since the endpoint answered nothing more."""
        return self._asker.refused

    async def profile(self) -> GraphProfile:
        """Return what could be learned.

        Raises:
            BackendUnavailable: The endpoint cannot be reached.
        """
        with anyio.move_on_after(self._asker.limits.total_s), suppress(Enough):
            await self._survey()
        if not self._classes.classes and self._entities is None:
            return unknown_profile()
        named = [*(each.iri for each in self._classes.classes), *self._found.relations()]
        return self._profile(await self._labels(named))

    async def _survey(self) -> None:
        queries, limits = self._queries, self._asker.limits
        self._classes = await survey_classes(self._asker, queries)
        for batch in _batches(self._classes.classes, limits):
            await self._look_at(batch)
        if limits.whole:
            await self._look_at_everything()
        unwanted = queries.unwanted(list(self._found.relations()))
        if unwanted and (found := await self._asker.ask(unwanted)) is not None:
            self._found.drop(iri for row in found.rows if (iri := row.iri("p")) is not None)
        self._inverses = await survey_inverses(self._asker, queries, self._found.edges())

    async def _look_at(self, batch: Sequence[Looked]) -> None:
        """Count what the instances of some classes have; where these are too many, over some of them."""
        fewer = [replace(each, most=max(1, self._asker.limits.instances // _SMALLER)) for each in batch]
        for looked in (batch, fewer):
            if await self._count(self._queries.instances(looked), [each.place for each in looked]):
                self._looked.update((each.place, each.most) for each in looked)
                return

    async def _look_at_everything(self) -> None:
        relations = list(self._found.relations())
        among = await self._asker.ask(self._queries.entities_among(relations))
        counted = await self._asker.ask(self._queries.survey.entities())
        if among is None or counted is None:
            return
        joined = {row.iri("r") for row in among.rows}
        everyone = self._queries.everyone([each for each in relations if each not in joined])
        if await self._count(everyone, [None]):
            self._entities = sum(row.number("n") or 0 for row in counted.rows)

    async def _count(self, looks: Looks, places: Collection[Place]) -> bool:
        """Count over some entities, and say whether all was answered that is said of them."""
        found, whole = ProfileRows(), self._asker.limits.whole
        if not await self._count_edges(found, looks, "out"):
            return False
        values = await self._asker.ask(self._queries.values(looks))
        if values is None:
            return False
        found.take_values(values.rows)
        whole = whole and await self._count_edges(found, looks, "in") and found.whole and values.whole
        self._found.take(found)
        self._cut.update(() if whole else places)
        return True

    async def _count_edges(self, found: ProfileRows, looks: Looks, direction: EdgeDirection) -> bool:
        facts = await self._asker.ask(self._queries.facts(looks, direction))
        targets = None if facts is None else await self._asker.ask(self._queries.targets(looks, direction))
        if facts is None or targets is None:
            return False
        found.whole = found.whole and facts.whole and targets.whole
        found.take_facts(facts.rows, direction)
        found.take_targets(targets.rows, direction)
        return True

    def _profile(self, labels: Mapping[Node, str]) -> GraphProfile:
        everything, entities = unknown_profile().everything, self._entities
        if entities is not None:
            told = self._found.properties(None, labels)
            everything = ClassProfile(None, None, entities, 0, (), told, complete=None not in self._cut)
        classes = [self._class(place, each, labels) for place, each in enumerate(self._classes.classes)]
        return GraphProfile(
            everything,
            tuple(classes),
            self._inverses.pairs,
            self._found.values(self._queries.vocabulary.texts),
            complete=self._classes.complete,
            sampled=entities is None or not self._inverses.complete,
        )

    def _class(self, place: int, known: SurveyedClass, labels: Mapping[Node, str]) -> ClassProfile:
        most = self._looked.get(place, 0)
        part = None if most is None or (most > known.instances and not known.at_least) else min(most, known.instances)
        return ClassProfile(
            known.iri,
            labels.get(known.iri),
            known.instances,
            known.direct,
            known.broader,
            self._found.properties(place, labels),
            complete=place in self._looked and place not in self._cut,
            looked_at=part,
            at_least=known.at_least,
        )


def _batches(classes: Sequence[SurveyedClass], limits: ProfileLimits) -> Iterator[list[Looked]]:
    """Yield what one query after the other looks at."""
    batch, size = list[Looked](), 0
    for place, each in enumerate(classes):
        expected = min(each.instances, limits.instances)
        if batch and size + expected > limits.together:
            yield batch
            batch, size = [], 0
        batch.append(each.looked_at(place, limits.instances))
        size += expected
    if batch:
        yield batch
