"""The profile of a large graph behind an endpoint: classes and pairs are counted, their instances sampled."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import anyio
import anyio.to_thread

from kg_adapters.errors import BackendUnavailable, KGError
from kg_adapters.inverses import DeclaredLinks, PairCounts, choose_inverses, subproperties
from kg_adapters.models import EdgeDirection
from kg_adapters.profile import (
    ClassProfile,
    GraphProfile,
    InverseRelations,
    PropertyProfile,
    Subproperties,
    unit_in,
    unknown_profile,
)
from kg_adapters.profiling import Statement, profile_of
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.queries.profiles import MAX_ROWS, ClassMembers, ProfileQueries
from kg_adapters.sparql.rows import Bindings, rows
from kg_adapters.sparql.schema import LabelReader
from kg_adapters.terms import BlankNode, Iri, Literal, Node, node_key

_REFUSED: Final = 3
"""After how many queries in a row without an answer nothing more is asked."""
_FEWER: Final = 20
"""By which factor fewer instances are sampled where the statements about all are too many."""


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """How much is asked for the profile of a graph.

    Args:
        read: Graphs of up to so many statements are read instead, all of them.
        classes: How many classes are profiled, the largest ones.
        instances: How many instances of one class are sampled.
        together: How many instances one query samples.
        rows: How many statements about them an answer may have; where there are more, fewer instances are sampled.
        relations: How many relations are compared to find inverses.
        compared: How many relations one query compares.
        pairs: How many pairs of entities of one relation.
        sampled: How many statements are read to find classes where counting them all takes too long.
        queries: How many queries are sent.
        timeout_s: How many seconds one may take.
        total_s: How many all together; what is not answered by then is not known.
        pause_s: How many seconds pass between two queries, so that others are served as well.
        whole: Whether the graph is small enough for what is asked about all of it: its hierarchy of classes, and the
            edges that lead to instances.
    """

    read: int = 100_000
    classes: int = 60
    instances: int = 200
    together: int = 400
    rows: int = MAX_ROWS
    relations: int = 100
    compared: int = 10
    pairs: int = 500
    sampled: int = 100_000
    queries: int = 150
    timeout_s: float = 30.0
    total_s: float = 300.0
    pause_s: float = 0.05
    whole: bool = True


class Enough(Exception):
    """Nothing more is to be asked."""


@dataclass(frozen=True, slots=True)
class BoundedAnswer:
    """The rows of an answer; `whole` unless there may be more."""

    rows: tuple[Bindings, ...] = ()
    whole: bool = False


class BoundedAsker:
    """Asks one query after the other, until it has asked enough.

    Args:
        asker: What asks the endpoint.
        limits: How much is enough.
    """

    def __init__(self, asker: QueryAsker, limits: ProfileLimits) -> None:
        self.limits = limits
        self.can_name = asker.can_name
        self.keeps_blank_nodes = asker.dialect.blank_nodes is not None
        self._asker = asker
        self._asked = self._refused = 0

    @property
    def refused(self) -> bool:
        """Whether so many queries in a row had no answer that nothing more is asked."""
        return self._refused >= _REFUSED

    async def ask(self, query: str, limit: int = MAX_ROWS) -> BoundedAnswer | None:
        """Return what was found; None without an answer.

        Args:
            query: What is asked.
            limit: The most rows that it asks for.

        Raises:
            BackendUnavailable: The endpoint cannot be reached.
            Enough: So many queries were sent as may be, or too many in a row had no answer.
        """
        if self._asked >= self.limits.queries or self.refused:
            raise Enough
        if self._asked:
            await anyio.sleep(self.limits.pause_s)
        self._asked += 1
        try:
            answer = await self._asker.ask_whole(query, timeout_s=self.limits.timeout_s)
        except BackendUnavailable:
            raise
        except KGError:
            self._refused += 1
            return None
        self._refused = 0
        return BoundedAnswer(tuple(rows(answer)), not answer.truncated and len(answer.rows) < limit)


@dataclass(slots=True)
class _Sample:
    """Some instances of a class and the statements about them; `whole` if these are all statements."""

    instances: dict[Node, None] = field(default_factory=dict[Node, None])
    statements: list[Statement] = field(default_factory=list[Statement])
    whole: bool = True
    every: bool = False


class ProfileSurvey:
    """Surveys one graph, once.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        labels: Reads the labels of classes and relations.
        limits: How much is asked for.
    """

    def __init__(self, asker: QueryAsker, queries: ProfileQueries, labels: LabelReader, limits: ProfileLimits) -> None:
        self._asker = BoundedAsker(asker, limits)
        self._limits = limits
        self._queries = queries
        self._labels = labels
        self._classes: list[ClassProfile] = []
        self._all_classes = False
        self._samples: dict[int, _Sample] = {}
        self._unwanted: frozenset[Iri] = frozenset()
        self._inverses: tuple[InverseRelations, ...] = ()
        self._subproperties = Subproperties()
        self._having: dict[int, Mapping[Iri, int]] = {}

    @property
    def refused(self) -> bool:
        """Whether it ended since the endpoint answered nothing more."""
        return self._asker.refused

    async def profile(self) -> GraphProfile:
        """Return what could be found.

        Raises:
            BackendUnavailable: The endpoint cannot be reached.
        """
        with anyio.move_on_after(self._limits.total_s), suppress(Enough):
            owners = await self._survey_classes()
            for first in range(0, len(owners), self._together):
                await self._sample(owners[first : first + self._together])
            relations = self._relations()
            if (query := self._queries.unwanted(relations)) and (found := await self._asker.ask(query)) is not None:
                self._unwanted = frozenset(iri for row in found.rows if (iri := row.iri("p")) is not None)
            # Pairs of an instance and its class cost engines much, and no relation leads back from classes.
            left_out = self._unwanted | self._queries.vocabulary.unwalked
            self._inverses = await self._survey_inverses([each for each in relations if each not in left_out])
            if self._queries.dialect.counts_relations:
                await self._count_relations(owners)
        if not self._classes:
            return unknown_profile()
        labels = await self._labels([*(each.iri for each in self._classes if each.iri), *self._relations()])
        return await anyio.to_thread.run_sync(self._profile, labels)

    @property
    def _together(self) -> int:
        return max(1, self._limits.together // self._limits.instances)

    async def _survey_classes(self) -> list[ClassMembers]:
        """Find the largest classes, each with the instances of its subclasses as far as these are known."""
        direct, every = await self._stated_classes()
        largest = sorted(direct, key=lambda node: (-direct[node], node_key(node)))
        broader = await self._asker.ask(self._queries.broader(None)) if self._limits.whole else None
        known = broader is not None and broader.whole
        if not known and largest:
            broader = await self._asker.ask(self._queries.broader(largest[: self._limits.classes]))
        above = _above(() if broader is None else broader.rows)
        below = _below(direct, above if known else {})
        most = {owner: sum(direct[each] for each in under) for owner, under in below.items()}
        chosen = sorted(most, key=lambda node: (-most[node], node_key(node)))[: self._limits.classes]
        owners = [ClassMembers(place, below[owner]) for place, owner in enumerate(chosen)]
        sizes = await self._sizes(owners, direct if every else {})
        self._classes = [
            ClassProfile(
                iri=owner,
                label=None,
                instances=sizes.get(place, max(direct[each] for each in below[owner])),
                direct=direct.get(owner, 0),
                broader=above.get(owner, ()),
                properties=(),
                at_least=not known or place not in sizes,
            )
            for place, owner in enumerate(chosen)
        ]
        self._all_classes = every and known and len(chosen) == len(most)
        return owners

    async def _stated_classes(self) -> tuple[dict[Node, int], bool]:
        """Return how many instances classes are stated to have, and whether all of both are here."""
        for query, every in self._queries.classes(self._limits.sampled):
            found = await self._asker.ask(query) or BoundedAnswer()
            sizes = {row.node("c"): row.number("n") or 0 for row in found.rows}
            direct = {node: number for node, number in sizes.items() if node is not None and self._asker.can_name(node)}
            if direct:
                return direct, every and found.whole and len(direct) == len(sizes)
        return {}, False

    async def _sizes(self, owners: Sequence[ClassMembers], direct: Mapping[Node, int]) -> dict[int, int]:
        """Return the sizes of classes by place, asking for those that do not follow from what is known."""
        sizes = {
            each.place: direct[each.classes[0]]
            for each in owners
            if len(each.classes) == 1 and each.classes[0] in direct
        }
        missing = [each for each in owners if each.place not in sizes]
        found = await self._asker.ask(self._queries.sizes(missing)) if missing else None
        return sizes | {row.number("k") or 0: row.number("n") or 0 for row in (() if found is None else found.rows)}

    async def _sample(self, owners: Sequence[ClassMembers]) -> None:
        """Read the statements about some instances of classes; about fewer where these are too many."""
        most, limit = self._limits.instances, self._limits.rows
        directions: tuple[EdgeDirection, ...] = ("out", "in") if self._limits.whole else ("out",)
        while most:
            found = await self._asker.ask(self._queries.sample(owners, most, "out", limit), limit)
            if found is not None and found.whole:
                break
            most //= _FEWER
        else:
            return
        samples = {each.place: _Sample(whole=self._limits.whole) for each in owners}
        for place, head, relation, tail in statements_in(found.rows):
            if place in samples:
                samples[place].instances[head] = None
                samples[place].statements.append((head, relation, tail))
        if self._limits.whole:
            into = await self._asker.ask(self._queries.sample(owners, most, "in", limit), limit)
            for place, tail, relation, far in statements_in(() if into is None or not into.whole else into.rows):
                if place in samples and not isinstance(far, Literal):
                    samples[place].statements.append((far, relation, tail))
            for sample in samples.values():
                # A blank node has another name in each answer.
                blank = not self._asker.keeps_blank_nodes and any(isinstance(n, BlankNode) for n in sample.instances)
                sample.whole = into is not None and into.whole and not blank
        types = await self._asker.ask(self._queries.types(owners, most, directions, limit), limit) or BoundedAnswer()
        typed = [
            (node, over, kind)
            for row in types.rows
            if (node := row.node("o")) and (over := row.iri("a")) and (kind := row.term("t"))
        ]
        for sample in samples.values():
            sample.statements += typed
            sample.every = len(sample.instances) < most
        self._samples |= samples

    async def _count_relations(self, owners: Sequence[ClassMembers]) -> None:
        """Count over all instances which relations they have, up to the first class where that takes too long."""
        for owner in owners:
            found = await self._asker.ask(self._queries.having(owner))
            if found is None:
                return
            counts = ((row.iri("p"), row.number("n")) for row in found.rows)
            self._having[owner.place] = {iri: number for iri, number in counts if iri is not None and number}

    def _relations(self) -> list[Iri]:
        """Return the relations that were met, those of most edges first."""
        edges = Counter[Iri]()
        for sample in self._samples.values():
            for _, relation, tail in sample.statements:
                edges[relation] += not isinstance(tail, Literal)
        return sorted(edges, key=lambda relation: (-edges[relation], relation))

    async def _survey_inverses(self, relations: Sequence[Iri]) -> tuple[InverseRelations, ...]:
        """Return the inverse relations: those that are declared, and those of which pairs are stored both ways."""
        limits, queries = self._limits, self._queries
        answer = await self._asker.ask(queries.declared_links()) or BoundedAnswer()
        links = DeclaredLinks.of(
            (head, over, tail)
            for row in answer.rows
            if (head := row.term("p")) and (over := row.iri("r")) and (tail := row.term("q"))
        )
        back, same = dict[tuple[Iri, Iri], int](), dict[tuple[Iri, Iri], int]()
        with suppress(Enough):
            for first in range(0, min(len(relations), limits.relations), limits.compared):
                part = relations[first : min(first + limits.compared, limits.relations)]
                for counts, backwards in ((back, True), (same, False)):
                    found = await self._asker.ask(queries.pairs(part, back=backwards, most=limits.pairs))
                    counts.update(_by_relations(() if found is None else found.rows))
        stored = {one: number for (one, other), number in same.items() if one == other}
        along = {pair: number for pair, number in same.items() if pair[0] != pair[1]}
        standard = queries.vocabulary.standard_inverses
        inverses = choose_inverses(PairCounts(stored, back, along), links.inverses, standard=standard)
        self._subproperties = subproperties(links, inverses, standard=standard)
        return inverses

    def _profile(self, labels: Mapping[Node, str]) -> GraphProfile:
        vocabulary, everything = self._queries.vocabulary, list[Statement]()
        instances = dict[Node, None]()
        classes: list[ClassProfile] = []
        for place, known in enumerate(self._classes):
            label = None if known.iri is None else labels.get(known.iri)
            sample = self._samples.get(place)
            if sample is None:
                classes.append(replace(known, label=label, complete=False, looked_at=0))
                continue
            statements = [each for each in sample.statements if each[1] not in self._unwanted]
            found = profile_of(statements, vocabulary, sample.instances).everything
            looked_at = None if sample.every and not known.at_least else len(sample.instances)
            classes.append(
                replace(
                    known,
                    label=label,
                    properties=tuple(
                        _labelled(_counted(each, known, self._having.get(place, {})), labels.get(each.relation))
                        for each in found.properties
                    ),
                    complete=sample.whole and found.complete,
                    looked_at=looked_at,
                )
            )
            everything += statements
            instances |= sample.instances
        values = profile_of(everything, vocabulary, instances).values
        return GraphProfile(
            unknown_profile().everything,
            tuple(classes),
            self._inverses,
            values,
            complete=self._all_classes,
            sampled=True,
            subproperties=self._subproperties,
        )


def _counted(sampled: PropertyProfile, owner: ClassProfile, having: Mapping[Iri, int]) -> PropertyProfile:
    """Return what is known of a property, with the number of all instances that have it where that was counted."""
    number = having.get(sampled.relation)
    if number is None or sampled.direction == "in" or not sampled.instances:
        return sampled
    times = number / sampled.instances
    return replace(
        sampled,
        instances=number,
        facts=round(sampled.facts * times),
        targets=tuple((target, max(1, round(edges * times))) for target, edges in sampled.targets),
        of=max(number, owner.instances),
    )


def _labelled(known: PropertyProfile, label: str | None) -> PropertyProfile:
    values = None if known.values is None else replace(known.values, unit=unit_in(label))
    return replace(known, label=label, values=values)


def statements_in(found: Iterable[Bindings]) -> Iterator[tuple[int, Node, Iri, Node | Literal]]:
    """Yield the statements `?s`, `?p`, `?o` of rows, each behind its number `?k`, which is 0 where there is none."""
    for row in found:
        head, relation, tail = row.node("s"), row.iri("p"), row.term("o")
        if head is not None and relation is not None and tail is not None:
            yield row.number("k") or 0, head, relation, tail


def _above(found: Iterable[Bindings]) -> dict[Node, tuple[Node, ...]]:
    above: defaultdict[Node, set[Node]] = defaultdict(set)
    for row in found:
        narrow, wide = row.node("c"), row.node("d")
        if narrow is not None and wide is not None:
            above[narrow].add(wide)
    return {narrow: tuple(sorted(wide, key=node_key)) for narrow, wide in above.items()}


def _below(direct: Mapping[Node, int], above: Mapping[Node, Sequence[Node]]) -> dict[Node, tuple[Node, ...]]:
    """Return for each class the stated classes of what belongs to it."""
    below: defaultdict[Node, list[Node]] = defaultdict(list)
    for node in direct:
        reached, ahead = {node}, [node]
        while ahead:
            current = ahead.pop()
            below[current].append(node)
            fresh = set(above.get(current, ())) - reached
            reached |= fresh
            ahead.extend(fresh)
    return {owner: tuple(under) for owner, under in below.items()}


def _by_relations(found: Iterable[Bindings]) -> Iterator[tuple[tuple[Iri, Iri], int]]:
    for row in found:
        one, other = row.iri("p"), row.iri("q")
        if one is not None and other is not None:
            yield (one, other), row.number("n") or 0
