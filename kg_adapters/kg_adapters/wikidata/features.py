"""The literals of an entity as people read them: with precision, unit and, on demand, qualifiers."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kg_adapters.models import Count, Feature, FeaturePage
from kg_adapters.requests import FeatureRequest
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.rows import Row, rows
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_adapters.wikidata import values
from kg_adapters.wikidata.namespaces import ENTITY, WIKIBASE
from kg_adapters.wikidata.queries import MAX_ROWS, ValueQueries

EXTERNAL_ID: Final = Iri(WIKIBASE + "ExternalId")
_NO_UNIT: Final = Iri(ENTITY + "Q199")
_MANY: Final = 12

Labels: TypeAlias = Callable[[Collection[Node]], Awaitable[Mapping[Node, str]]]


@dataclass(frozen=True)
class FeatureReader:
    """Reads features.

    Args:
        asker: What asks the query service.
        queries: What writes the queries.
        labels: What tells the names of units, properties and qualifiers' values.
        with_qualifiers: Whether statements with qualifiers are features too.
        with_external_ids: Whether ids in other databases are, when nobody names their relation.
    """

    asker: Asker
    queries: ValueQueries
    labels: Labels
    with_qualifiers: bool = False
    with_external_ids: bool = False

    async def features(self, request: FeatureRequest) -> dict[Node, FeaturePage]:
        """Return features, as `KGAdapter.features` does."""
        pages: dict[Node, FeaturePage] = {}
        for entity in dict.fromkeys(request.entities):
            if self.asker.can_name(entity):
                found = await self._every(entity, request)
                if found.features:
                    pages[entity] = found
        return pages

    async def _every(self, entity: Node, request: FeatureRequest) -> FeaturePage:
        if request.relations is None:
            return await self._features(entity, None, request.limit)
        pages = [await self._features(entity, relation, request.limit) for relation in sorted(request.relations)]
        features = tuple(feature for page in pages for feature in page.features)
        exact = all(page.total.exact for page in pages)
        return FeaturePage(features[: request.limit], Count(sum(page.total.value for page in pages), exact))

    async def _features(self, entity: Node, relation: Iri | None, limit: int) -> FeaturePage:
        answer = await self.asker.ask(self.queries.literals(entity, relation))
        read = _Read(keep_ids=self.with_external_ids or relation is not None)
        for row in rows(answer):
            read.take(row)
        found = read.features(await self.labels(read.units))
        complete = read.plain_rows < MAX_ROWS and not answer.truncated
        if self.with_qualifiers:
            qualified = await self._qualified(entity, relation)
            complete = complete and qualified is not None
            found |= qualified or set()
        kept = sorted(found, key=_order)
        return FeaturePage(tuple(kept[:limit]), Count(len(kept), exact=complete))

    async def _qualified(self, entity: Node, relation: Iri | None) -> set[Feature] | None:
        """Return statements with their qualifiers as texts, or None where there are too many."""
        answer = await self.asker.ask(self.queries.qualifiers(entity, relation))
        if len(answer.rows) >= MAX_ROWS:
            return None
        statements: dict[Term, _Statement] = {}
        for row in rows(answer):
            statement, about, value = row.term("statement"), row.iri("p"), row.term("v")
            qualifier, said = row.iri("q"), row.term("w")
            if statement and about and value and qualifier and said:
                told = statements.setdefault(statement, _Statement(about, value))
                told.qualifiers[qualifier].add(said)
        terms = {term for each in statements.values() for term in each.terms() if not isinstance(term, Literal)}
        labels = await self.labels(terms)
        return {Feature(each.relation, Literal(each.text(labels))) for each in statements.values()}


@dataclass
class _Read:
    """What the rows about literals say: values by relation, and better ones for dates and quantities."""

    keep_ids: bool
    plain_rows: int = 0
    said: set[tuple[Iri, Literal]] = field(default_factory=set[tuple[Iri, Literal]])
    dates: set[tuple[Iri, Literal]] = field(default_factory=set[tuple[Iri, Literal]])
    amounts: set[tuple[Iri, str, Node]] = field(default_factory=set[tuple[Iri, str, Node]])

    def take(self, row: Row) -> None:
        about, value = row.iri("p"), row.term("v")
        if about is None or value is None:
            return
        if not isinstance(value, Literal):
            self.plain_rows += 1
            self.said.add((about, values.link(value)))
            return
        precision, unit = row.number("precision"), row.node("unit")
        if precision is not None:
            date = values.date(value.value, precision)
            self.dates |= {(about, date)} if date is not None else set()
        elif unit is not None:
            self.amounts.add((about, value.value, unit))
        else:
            self.plain_rows += 1
            if self.keep_ids or row.node("kind") != EXTERNAL_ID:
                self.said.add((about, values.plain(value)))

    @property
    def units(self) -> set[Node]:
        return {unit for _, _, unit in self.amounts if unit != _NO_UNIT}

    def features(self, labels: Mapping[Node, str]) -> set[Feature]:
        named = {unit: labels.get(unit, unit.local_part) for unit in self.units}
        better = {(about, values.quantity(amount, named.get(unit))) for about, amount, unit in self.amounts}
        better |= self.dates
        replaced = {about for about, _ in better}
        kept = {each for each in self.said if each[0] not in replaced}
        return {Feature(about, value) for about, value in kept | better}


@dataclass(frozen=True)
class _Statement:
    """A statement and its qualifiers."""

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


def _order(feature: Feature) -> tuple[Iri, str, str, Iri]:
    return feature.relation, feature.value.value, feature.value.language or "", feature.value.datatype
