"""The literals of entities as people read them: with precision, unit and, on demand, qualifiers."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kg_adapters.models import Count, Feature, FeaturePage
from kg_adapters.requests import FeatureRequest
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.rows import named, rows
from kg_adapters.terms import Iri, Literal, Node, Term, literal_key
from kg_adapters.wikidata import values
from kg_adapters.wikidata.queries import MAX_ROWS, ValueQueries
from kg_adapters.wikidata.value_rows import StatedValues

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
        labels: What tells the names of properties and qualifiers' values.
        with_qualifiers: Whether statements with qualifiers are features too.
        with_external_ids: Whether ids in other databases are, when nobody names their relation.
    """

    asker: Asker
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
        kept = {entity: sorted(features, key=_order) for entity, features in said.items()}
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


def _order(feature: Feature) -> tuple[Iri, tuple[str, str, str]]:
    return feature.relation, literal_key(feature.value)
