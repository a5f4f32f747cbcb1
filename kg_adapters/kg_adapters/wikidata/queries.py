"""Queries for what Wikidata says in ways of its own: values with precision and unit, and qualifiers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import DescriptionQueries, EdgeQueries, NameQueries, Queries, SurveyQueries, writing
from kg_adapters.sparql.queries.naming import TextChoice
from kg_adapters.terms import Iri, Node
from kg_adapters.wikidata.namespaces import DIRECT, ENTITY, INSTANCE_OF, SUBCLASS_OF, WIKIBASE, wikibase

VOCABULARY: Final = Vocabulary(
    labels=(Iri("http://www.w3.org/2000/01/rdf-schema#label"),),
    descriptions=(Iri("http://schema.org/description"),),
    types=(INSTANCE_OF,),
    subclasses=(SUBCLASS_OF,),
)
DIRECT_CLAIM: Final = Iri(WIKIBASE + "directClaim")
_IS_ENTITY: Final = f"isIRI(?o) && STRSTARTS(STR(?o), {writing.text(ENTITY)})"
MAX_ROWS: Final = 5_000
"""The most rows of a query about one entity."""


@dataclass(frozen=True, slots=True)
class ValueQueries:
    """Writes queries about the literals of one entity.

    Args:
        dialect: The engine.
        vocabulary: Its languages are those that texts are shown in.
    """

    dialect: Dialect
    vocabulary: Vocabulary

    def literals(self, entity: Node, relation: Iri | None) -> str:
        """Return the query for the literals of truthy statements.

        Rows are `?p` a relation and `?v` its value, with `?kind` the property's type; then, again, the dates and
        quantities among them with their `?precision` or `?unit`. Web addresses, files and unknown values are nodes.
        """
        who, texts = writing.node(entity, self.dialect), (*self.vocabulary.labels, *self.vocabulary.descriptions)
        named = writing.values("p", [relation], self.dialect) if relation is not None else ""
        languages = ", ".join(writing.text(language) for language in self.vocabulary.languages)
        texts_of = ", ".join(writing.iri(each) for each in (*texts, *self.vocabulary.aliases))
        is_text = f"?p IN ({texts_of}) && LANG(?v) IN ({languages})"
        direct = f"STRSTARTS(STR(?p), {writing.text(DIRECT)})"
        entity_there = f"isIRI(?v) && STRSTARTS(STR(?v), {writing.text(ENTITY)})"
        said = f"{named} {who} ?p ?v . FILTER(({direct} && !({entity_there})) || ({is_text}))"
        kind = f"OPTIONAL {{ ?property {wikibase('directClaim')} ?p ; {wikibase('propertyType')} ?kind }}"
        claims = (
            f"{named} {who} ?claim ?statement . ?property {wikibase('claim')} ?claim ; "
            f"{wikibase('statementValue')} ?path ; {wikibase('directClaim')} ?p . "
            f"?statement a {wikibase('BestRank')} ; ?path ?value ."
        )
        time = f"?value {wikibase('timeValue')} ?v ; {wikibase('timePrecision')} ?precision ."
        quantity = f"?value {wikibase('quantityAmount')} ?v ; {wikibase('quantityUnit')} ?unit ."
        blocks = (
            f"{{ SELECT DISTINCT ?p ?v {{ {said} }} LIMIT {MAX_ROWS} }} {kind}",
            f"{claims} {time}",
            f"{claims} {quantity}",
        )
        return f"SELECT ?p ?v ?kind ?precision ?unit {{ {writing.union(blocks)} }} LIMIT {2 * MAX_ROWS}"

    def qualifiers(self, entity: Node, relation: Iri | None) -> str:
        """Return the query for the qualifiers of best statements.

        Rows are `?statement`, its relation `?p` and value `?v`, and one qualifier: `?q` a property and `?w` its value.
        """
        named = writing.values("p", [relation], self.dialect) if relation is not None else ""
        found = (
            f"{named} {writing.node(entity, self.dialect)} ?claim ?statement . ?property {wikibase('claim')} ?claim ; "
            f"{wikibase('statementProperty')} ?path ; {wikibase('directClaim')} ?p . "
            f"?statement a {wikibase('BestRank')} ; ?path ?v ; ?qualifies ?w . ?q {wikibase('qualifier')} ?qualifies ."
        )
        return f"SELECT ?statement ?p ?v ?q ?w {{ {found} }} LIMIT {MAX_ROWS}"

    def instances(self, entities: Sequence[Node], kind: Node) -> str:
        """Return the query for those `?s` among entities that are instances of a class or of one right below it."""
        who = writing.values("s", entities, self.dialect)
        path = f"{writing.iri(INSTANCE_OF)}/{writing.iri(SUBCLASS_OF)}?"
        return f"SELECT DISTINCT ?s {{ {who} ?s {path} {writing.node(kind, self.dialect)} }}"


class DirectSurvey(SurveyQueries):
    """Writes queries about the whole graph as far as it is truthy statements: edges to entities, and all other values.

    What else there is, such as the nodes of statements and values, is neither relation nor feature.
    """

    def relations(self, sampled: int | None, limit: int) -> str:
        """See `SurveyQueries`."""
        return self._relations(f"FILTER({_IS_ENTITY}) {self._walked()}", sampled, limit)

    def features(self, sampled: int | None, limit: int) -> str:
        """See `SurveyQueries`."""
        return self._relations(f"FILTER(!({_IS_ENTITY})) {self._walked()}", sampled, limit)


def queries_for(dialect: Dialect, languages: tuple[str, ...], most_counted: int) -> Queries:
    """Return the writers of queries for Wikidata.

    Args:
        dialect: The engine.
        languages: The languages of labels, the preferred first.
        most_counted: How many edges of one direction are looked at to count those of a batch of entities.
    """
    vocabulary = Vocabulary(
        VOCABULARY.labels,
        VOCABULARY.descriptions,
        VOCABULARY.aliases,
        languages,
        VOCABULARY.types,
        VOCABULARY.subclasses,
    )
    texts = TextChoice(vocabulary, dialect, only_preferred=True)
    return Queries(
        dialect,
        vocabulary,
        EdgeQueries(dialect, texts, DIRECT, most_counted, as_head=True, entities=ENTITY),
        DescriptionQueries(dialect, texts, as_head=True, declares=DIRECT_CLAIM),
        NameQueries(dialect, vocabulary),
        DirectSurvey(dialect, vocabulary, DIRECT),
    )
