"""Queries about what the graph says of terms: labels, descriptions, types, roles and features."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.naming import TextChoice
from kg_adapters.terms import Iri, Node

APART: Final = 12
"""Of how many entities the first literals are chosen where the graph is."""


@dataclass(frozen=True, slots=True)
class DescriptionQueries:
    """Writes queries about terms.

    Args:
        dialect: The engine.
        texts: How labels are chosen.
        as_head: Whether only terms that the graph says something about are entities.
        declares: The relation that leads to whatever serves as a relation, for graphs too large to look for a statement
            with it; None where statements tell.
    """

    dialect: Dialect
    texts: TextChoice
    as_head: bool = False
    declares: Iri | None = None

    def labels(self, terms: Sequence[Node]) -> str:
        """Return the query for labels; rows `?t` term, `?a` label relation, `?label` key."""
        return self._texts(terms, self.texts.vocabulary.labels)

    def describe(self, terms: Sequence[Node], max_types: int) -> str:
        """Return the query for everything about terms.

        Rows are `?t` a term and `?k` what it is about it: `text` over `?a` with the key `?label`, `type` `?o`, and
        `entity` or `relation` where the term serves as one. At most `max_types` rows are types.
        """
        vocabulary = self.texts.vocabulary
        who = writing.values("t", terms, self.dialect)
        types = f"{who} {writing.values('p', vocabulary.types, self.dialect)} ?t ?p ?o . FILTER(!isLiteral(?o))"
        blocks = (
            f'{{ {self._texts(terms, (*vocabulary.labels, *vocabulary.descriptions))} }} BIND("text" AS ?k)',
            f'{{ SELECT DISTINCT ?t ?o {{ {types} }} LIMIT {max_types} }} BIND("type" AS ?k)',
            f'{who} FILTER({writing.mentioned("t", as_head=self.as_head)}) BIND("entity" AS ?k)',
            f'{who} FILTER({self._serves()}) BIND("relation" AS ?k)',
        )
        return f"SELECT ?t ?k ?a ?label ?o {{ {writing.union(blocks)} }}"

    def features(self, entities: Sequence[Node], relations: Collection[Iri] | None, limit: int, rows: int) -> str:
        """Return the query for literals of entities; rows `?e`, `?p` and `?v`, and `?e` with their number `?n`.

        Of a few entities come the first `limit` literals each; of many, at most `rows` literals of those that have no
        more than `limit`.
        """
        said = self._said(entities, relations)
        number = f"SELECT ?e (COUNT(*) AS ?n) {{ SELECT DISTINCT ?e ?p ?v {{ {said} }} }} GROUP BY ?e"
        if len(entities) <= APART:
            chosen = [self._first(entity, relations, limit) for entity in entities]
        else:
            few = f"SELECT ?e {{ SELECT DISTINCT ?e ?p ?v {{ {said} }} }} GROUP BY ?e HAVING (COUNT(*) <= {limit})"
            chosen = [f"{{ SELECT ?e ?p ?v {{ {{ {few} }} {said} }} LIMIT {rows} }}"]
        return f"SELECT ?e ?p ?v ?n {{ {writing.union((f'{{ {number} }}', *chosen))} }}"

    def _first(self, entity: Node, relations: Collection[Iri] | None, limit: int) -> str:
        order = "ORDER BY STR(?p) STR(?v) LANG(?v) STR(DATATYPE(?v))"
        return f"{{ SELECT DISTINCT ?e ?p ?v {{ {self._said([entity], relations)} }} {order} LIMIT {limit} }}"

    def _said(self, entities: Sequence[Node], relations: Collection[Iri] | None) -> str:
        named = "" if relations is None else f"{writing.values('p', sorted(relations), self.dialect)} "
        return f"{writing.values('e', entities, self.dialect)} {named}?e ?p ?v . FILTER(isLiteral(?v))"

    def _serves(self) -> str:
        if self.declares is None:
            return "EXISTS { ?s3 ?t ?o3 }"
        vocabulary = self.texts.vocabulary
        texts = (*vocabulary.labels, *vocabulary.descriptions, *vocabulary.aliases)
        return f"EXISTS {{ ?s3 {writing.iri(self.declares)} ?t }} || ?t IN ({', '.join(map(writing.iri, texts))})"

    def _texts(self, terms: Sequence[Node], relations: Sequence[Iri]) -> str:
        who = writing.values("t", terms, self.dialect)
        found = self.texts.pattern("t", relations)
        return f"SELECT ?t ?a {self.texts.best('label')} {{ {who} {found} }} GROUP BY ?t ?a"
