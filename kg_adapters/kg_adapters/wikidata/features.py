"""The values of entities as people read them: with precision, unit and, on request, qualifiers."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final, TypeAlias

from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count, Feature, FeaturePage
from kg_adapters.requests import FeatureRequest
from kg_adapters.set_requests import Cell, Computed, Row, Witness
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.rows import Bindings, named, rows
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Term
from kg_adapters.wikidata import values
from kg_adapters.wikidata.queries import ENTITY, MAX_ROWS, ValueQueries
from kg_adapters.wikidata.values import plain

_NO_UNIT: Final = Iri(ENTITY + "Q199")


@dataclass
class _Stated:
    """The statements about one entity: values by relation, and more exact ones for dates and quantities."""

    plain: set[tuple[Iri, Literal]] = field(default_factory=set[tuple[Iri, Literal]])
    dates: set[tuple[Iri, Literal]] = field(default_factory=set[tuple[Iri, Literal]])
    amounts: set[tuple[Iri, str, Node]] = field(default_factory=set[tuple[Iri, str, Node]])


class StatedValues:
    """Takes in the rows that `ValueQueries` asks for.

    Args:
        vocabulary: Its languages are those in which units are named.

    Attributes:
        rows: How many rows were values as they are; dates and amounts come a second time.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.rows = 0
        self._vocabulary = vocabulary
        self._stated: defaultdict[Node, _Stated] = defaultdict(_Stated)
        self._units: defaultdict[Node, set[Literal]] = defaultdict(set)

    def take(self, entity: Node, row: Bindings) -> None:
        """Take in one row about an entity."""
        about, value, stated = row.iri("p"), row.term("o"), self._stated[entity]
        if about is None or value is None:
            return
        precision, unit = row.number("precision"), row.node("unit")
        if not isinstance(value, Literal):
            self.rows += 1
            stated.plain.add((about, values.link(value)))
        elif precision is not None:
            date = values.date(value.value, precision)
            stated.dates |= {(about, date)} if date is not None else set()
        elif unit is not None:
            stated.amounts.add((about, value.value, unit))
            self._units[unit] |= {name for name in (row.literal("name"),) if name is not None}
        else:
            self.rows += 1
            stated.plain.add((about, values.plain(value)))

    @property
    def is_cut(self) -> bool:
        """Whether there may be more rows than were asked for."""
        return self.rows >= MAX_ROWS

    def said(self) -> Mapping[Node, set[tuple[Iri, Literal]]]:
        """Return the relations and values of each entity that has any."""
        units = {unit: self._unit(unit) for unit in self._units}
        return {entity: found for entity, stated in self._stated.items() if (found := _best(stated, units))}

    def _unit(self, unit: Node) -> str | None:
        if unit == _NO_UNIT:
            return None
        name = self._vocabulary.label({self._vocabulary.labels[0]: self._units[unit]})
        return unit.local_part if name is None else name.value


def _best(stated: _Stated, units: Mapping[Node, str | None]) -> set[tuple[Iri, Literal]]:
    better = {(about, values.quantity(amount, units[unit])) for about, amount, unit in stated.amounts} | stated.dates
    replaced = {about for about, _ in better}
    return {each for each in stated.plain if each[0] not in replaced} | better


TOGETHER: Final = 25
"""Of how many entities one request asks for the literals."""

_MANY: Final = 12

Labels: TypeAlias = Callable[[Collection[Node]], Awaitable[Mapping[Node, str]]]


@dataclass(frozen=True)
class FeatureReader:
    """Reads features.

    Args:
        asker: What asks the query service.
        queries: What writes the queries.
        labels: Reads the names of properties and qualifiers' values.
        with_qualifiers: Whether statements with qualifiers are features too.
        with_external_ids: Whether ids in other databases are, even where their relation is not named.
    """

    asker: QueryAsker
    queries: ValueQueries
    labels: Labels
    with_qualifiers: bool = False
    with_external_ids: bool = False

    async def features(self, request: FeatureRequest) -> dict[Node, FeaturePage]:
        """Return features, as `KGAdapter.features` does; one request for 25 entities, or two with qualifiers."""
        pages: dict[Node, FeaturePage] = {}
        asked = [entity for entity in dict.fromkeys(request.entities) if self.asker.can_name(entity)]
        for first in range(0, len(asked), TOGETHER):
            pages |= await self._pages(asked[first : first + TOGETHER], request)
        return pages

    async def _pages(self, batch: Sequence[Node], request: FeatureRequest) -> dict[Node, FeaturePage]:
        with_ids = self.with_external_ids or request.relations is not None
        answer = await self.asker.ask(self.queries.literals(batch, request.relations, with_ids=with_ids))
        read, entities = StatedValues(self.queries.vocabulary), named(batch, self.asker.dialect)
        for row in rows(answer):
            entity = entities.get(str(row.term("e")))
            if entity is not None:
                read.take(entity, row)
        complete = not (read.is_cut or answer.truncated)
        said = {entity: {Feature(*each) for each in found} for entity, found in read.said().items()}
        if complete and self.with_qualifiers:
            qualified = await self._qualified(batch, request.relations)
            complete = qualified is not None
            for entity, features in (qualified or {}).items():
                said.setdefault(entity, set()).update(features)
        if not complete and len(batch) > 1:
            alone = [await self._pages([entity], request) for entity in batch]
            return {entity: page for pages in alone for entity, page in pages.items()}
        kept = {entity: sorted(features, key=attrgetter("order")) for entity, features in said.items()}
        return {
            entity: FeaturePage(tuple(features[: request.limit]), Count(len(features), exact=complete))
            for entity, features in kept.items()
        }

    async def _qualified(
        self, batch: Sequence[Node], relations: Collection[Iri] | None
    ) -> dict[Node, set[Feature]] | None:
        """Return statements with their qualifiers as texts, or None where there are too many."""
        answer = await self.asker.ask(self.queries.qualifiers(batch, relations))
        if len(answer.rows) >= MAX_ROWS:
            return None
        entities, statements = named(batch, self.asker.dialect), dict[Term, _Statement]()
        for row in rows(answer):
            entity, statement = entities.get(str(row.term("e"))), row.term("statement")
            about, value, qualifier, said = row.iri("p"), row.term("v"), row.iri("q"), row.term("w")
            if entity and statement and about and value and qualifier and said:
                told = statements.setdefault(statement, _Statement(entity, about, value))
                told.qualifiers[qualifier].add(said)
        terms = {term for each in statements.values() for term in each.terms() if not isinstance(term, Literal)}
        labels = await self.labels(terms)
        found: defaultdict[Node, set[Feature]] = defaultdict(set)
        for each in statements.values():
            found[each.entity].add(Feature(each.relation, Literal(each.text(labels))))
        return dict(found)


@dataclass(frozen=True)
class _Statement:
    """A statement and its qualifiers."""

    entity: Node
    relation: Iri
    value: Term
    qualifiers: defaultdict[Iri, set[Term]] = field(default_factory=lambda: defaultdict(set))

    def terms(self) -> set[Term]:
        return {self.value, *self.qualifiers, *(each for said in self.qualifiers.values() for each in said)}

    def text(self, labels: Mapping[Node, str]) -> str:
        told = sorted(
            f"{_shown(name, labels)}: {', '.join(sorted(_shown(each, labels) for each in said)[:_MANY])}"
            for name, said in self.qualifiers.items()
        )
        return f"{_shown(self.value, labels)} ({'; '.join(told)})"


def _shown(term: Term, labels: Mapping[Node, str]) -> str:
    if isinstance(term, Literal):
        return values.plain(term).value
    return labels.get(term) or (term.local_part if isinstance(term, Iri) else "unknown")


def as_people_read(computed: Computed) -> Computed:
    """Return an answer with days without a time, and numbers without a plus.

    Truthy statements do not state how precise a date is: one that is known to the year shows as its first day.
    """
    value = computed.value
    return replace(
        computed,
        members=tuple(map(_read, computed.members)),
        groups=tuple(replace(group, by=_read(group.by)) for group in computed.groups),
        rows=tuple(Row(row.node, tuple(map(_cell, row.cells))) for row in computed.rows),
        shared=tuple(replace(shared, term=_read(shared.term)) for shared in computed.shared),
        value=plain(value) if isinstance(value, Literal) else value,
        witnesses=tuple(Witness(_read(each.result), tuple(map(_fact, each.facts))) for each in computed.witnesses),
    )


def _read(term: Term) -> Term:
    return plain(term) if isinstance(term, Literal) else term


def _cell(cell: Cell) -> Cell:
    return replace(cell, terms=tuple(map(_read, cell.terms)))


def _fact(fact: Fact) -> Fact:
    return replace(fact, tail=plain(fact.tail)) if isinstance(fact, Attribute) else fact
