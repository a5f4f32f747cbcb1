"""Queries for what Wikidata states in its own form: values with precision and unit, and qualifiers."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_adapters.prefixes import WELL_KNOWN, WIKIDATA, Prefixes
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import (
    DescriptionQueries,
    EdgeQueries,
    NameQueries,
    ProfileQueries,
    Queries,
    SurveyQueries,
    Walked,
    writing,
)
from kg_adapters.sparql.queries.descriptions import TextChoice
from kg_adapters.sparql.queries.edges import Fill, Scope
from kg_adapters.sparql.queries.profiles import MAX_ROWS as MAX_PROFILE_ROWS
from kg_adapters.terms import Iri, Node

ENTITY: Final = WIKIDATA.namespaces["wd"]

DIRECT: Final = WIKIDATA.namespaces["wdt"]

WIKIBASE: Final = WIKIDATA.namespaces["wikibase"]

PREFIXES: Final = Prefixes(
    {**WELL_KNOWN, **WIKIDATA.namespaces, "psv": "http://www.wikidata.org/prop/statement/value/"},
    WIKIDATA.entities,
    WIKIDATA.relations,
    blank_nodes=False,
)

INSTANCE_OF: Final = Iri(DIRECT + "P31")

SUBCLASS_OF: Final = Iri(DIRECT + "P279")


def wikibase(name: str) -> str:
    """Return a term of the Wikibase ontology as SPARQL has it."""
    return f"<{WIKIBASE}{name}>"


def id_of(node: Node) -> str | None:
    """Return the id by which the web API knows an entity or a property, or None where it knows none."""
    if not isinstance(node, Iri):
        return None
    for namespace in (ENTITY, DIRECT):
        if node.value.startswith(namespace):
            return node.value[len(namespace) :]
    return None


def entity(text: str) -> Iri:
    """Return the entity with an id."""
    return Iri(ENTITY + text)


VOCABULARY: Final = Vocabulary(
    labels=(Iri("http://www.w3.org/2000/01/rdf-schema#label"),),
    descriptions=(Iri("http://schema.org/description"),),
    types=(INSTANCE_OF,),
    subclasses=(SUBCLASS_OF,),
)

DIRECT_CLAIM: Final = Iri(WIKIBASE + "directClaim")

_SEED: Final = 1

_DRAWN: Final = 2_000

_ITEMS: Final = 130_000_000
"""About how many numbers of items are taken; the newest are left out."""

_IS_ENTITY: Final = f"isIRI(?o) && STRSTARTS(STR(?o), {writing.text(ENTITY)})"

MAX_ROWS: Final = 5_000
"""The most values, and the most qualifiers, of one query."""

VALUE_COLUMNS: Final = "?precision ?unit ?name"
"""What the rows about values hold beside entity, relation and value."""


@dataclass(frozen=True, slots=True)
class ValueQueries:
    """Writes queries about the literals of entities.

    Args:
        dialect: The engine.
        vocabulary: Its languages are those that texts are shown in.
    """

    dialect: Dialect
    vocabulary: Vocabulary

    def literals(self, entities: Sequence[Node], relations: Collection[Iri] | None, *, with_ids: bool) -> str:
        """Return the query for the literals of truthy statements, labels and descriptions; see `blocks`."""
        texts = (*self.vocabulary.labels, *self.vocabulary.descriptions, *self.vocabulary.aliases)
        blocks = self.blocks(entities, relations, texts, with_ids=with_ids)
        return f"SELECT ?e ?p ?o {VALUE_COLUMNS} {{ {writing.union(blocks)} }} LIMIT {2 * MAX_ROWS}"

    def blocks(
        self, entities: Sequence[Node], relations: Collection[Iri] | None, texts: Collection[Iri], *, with_ids: bool
    ) -> tuple[str, ...]:
        """Return the blocks for the literals of truthy statements, and for texts over some relations.

        Rows are `?e` an entity, `?p` a relation and `?o` its value; then, again, the dates and quantities among them
        with their `?precision`, or `?unit` and its `?name`. Web addresses, files and unknown values are nodes.
        """
        who = writing.values("e", entities, self.dialect)
        named = writing.values("p", sorted(relations), self.dialect) if relations is not None else ""
        direct = f"STRSTARTS(STR(?p), {writing.text(DIRECT)})"
        is_said = f"({direct} && !({_IS_ENTITY}))"
        if texts:
            is_said += f" || (?p IN ({', '.join(map(writing.iri, texts))}) && LANG(?o) IN ({self._languages()}))"
        no_ids = "" if with_ids else f"FILTER NOT EXISTS {{ ?external {_external_id()} }}"
        claims = (
            f"{who} {named} ?e ?claim ?statement . ?property {wikibase('claim')} ?claim ; "
            f"{wikibase('statementValue')} ?path ; {wikibase('directClaim')} ?p . "
            f"?statement a {wikibase('BestRank')} ; ?path ?value ."
        )
        said = f"SELECT DISTINCT ?e ?p ?o {{ {who} {named} ?e ?p ?o . FILTER({is_said}) {no_ids} }} LIMIT {MAX_ROWS}"
        time = f"?value {wikibase('timeValue')} ?o ; {wikibase('timePrecision')} ?precision ."
        quantity = f"?value {wikibase('quantityAmount')} ?o ; {wikibase('quantityUnit')} ?unit ."
        unit_name = f"?unit {writing.iri(self.vocabulary.labels[0])} ?name FILTER(LANG(?name) IN ({self._languages()}))"
        return f"{{ {said} }}", f"{claims} {time}", f"{claims} {quantity} OPTIONAL {{ {unit_name} }}"

    def qualifiers(self, entities: Sequence[Node], relations: Collection[Iri] | None) -> str:
        """Return the query for the qualifiers of best statements.

        Rows are `?e` an entity, `?statement`, its relation `?p` and value `?v`, and one qualifier: `?q` a property and
        `?w` its value.
        """
        named = writing.values("p", sorted(relations), self.dialect) if relations is not None else ""
        found = (
            f"{writing.values('e', entities, self.dialect)} {named} ?e ?claim ?statement . "
            f"?property {wikibase('claim')} ?claim ; "
            f"{wikibase('statementProperty')} ?path ; {wikibase('directClaim')} ?p . "
            f"?statement a {wikibase('BestRank')} ; ?path ?v ; ?qualifies ?w . ?q {wikibase('qualifier')} ?qualifies ."
        )
        return f"SELECT ?e ?statement ?p ?v ?q ?w {{ {found} }} LIMIT {MAX_ROWS}"

    def _languages(self) -> str:
        return ", ".join(writing.text(language) for language in self.vocabulary.languages)

    def instances(self, entities: Sequence[Node], kind: Node) -> str:
        """Return the query for those `?s` among entities that are instances of a class or of one right below it."""
        who = writing.values("s", entities, self.dialect)
        path = f"{writing.iri(INSTANCE_OF)}/{writing.iri(SUBCLASS_OF)}?"
        return f"SELECT DISTINCT ?s {{ {who} ?s {path} {writing.node(kind, self.dialect)} }}"


@dataclass(frozen=True, slots=True)
class DirectEdges(EdgeQueries):
    """Writes queries about the facts around entities; their values come whole, each as people read it.

    Args:
        values: What writes the blocks for values.
    """

    values: ValueQueries | None = None

    @property
    def whole_values(self) -> bool:
        """See `EdgeQueries`."""
        return True

    @property
    def value_columns(self) -> str:
        """See `EdgeQueries`."""
        return VALUE_COLUMNS

    def _values(self, entities: Sequence[Node], scope: Scope, fill: Fill) -> Iterator[str]:
        del fill  # All values come.
        if self.values is None or "value" not in scope.sides:
            return
        named, texts = scope.relations, scope.relations or frozenset()
        texts &= self.texts.vocabulary.texts
        for block in self.values.blocks(entities, named, sorted(texts), with_ids=named is not None):
            yield f'{block} BIND("value" AS ?d)'


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


@dataclass(frozen=True, slots=True)
class ItemProfileQueries(ProfileQueries):
    """Writes the queries for the profile: classes are found among items drawn by chance, since none can count all."""

    def classes(self, sampled: int) -> Sequence[tuple[str, bool]]:
        """See `ProfileQueries`; a mirror of a few items may have none of those that are drawn."""
        numbers = random.Random(_SEED).sample(range(1, _ITEMS), _DRAWN)  # noqa: S311 - no secret
        drawn = writing.values("s", [Iri(f"{ENTITY}Q{number}") for number in numbers], self.dialect)
        query = f"SELECT ?c (COUNT(*) AS ?n) {{ {drawn} ?s {writing.iri(INSTANCE_OF)} ?c }} GROUP BY ?c"
        return (query, False), (self.survey.classes(sampled, MAX_PROFILE_ROWS), False)

    def unwanted(self, relations: Collection[Iri]) -> str | None:
        """Return the query for ids in other databases."""
        if not relations:
            return None
        return f"SELECT ?p {{ {writing.values('p', relations, self.dialect)} ?property {_external_id()} }}"


def _external_id() -> str:
    """Return what states that the property of `?p` holds ids of another database."""
    return f"{wikibase('directClaim')} ?p ; {wikibase('propertyType')} {wikibase('ExternalId')}"


def queries_for(dialect: Dialect, languages: tuple[str, ...], most_counted: int) -> Queries:
    """Return the writers of queries for Wikidata.

    Args:
        dialect: The engine.
        languages: The languages of labels, the preferred first.
        most_counted: How many edges of one direction are read to count those of a batch of entities.
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
    survey = DirectSurvey(dialect, vocabulary, DIRECT)
    return Queries(
        dialect,
        vocabulary,
        DirectEdges(
            dialect,
            texts,
            DIRECT,
            most_counted,
            as_head=True,
            entities=ENTITY,
            values=ValueQueries(dialect, vocabulary),
        ),
        DescriptionQueries(dialect, texts, as_head=True, declares=DIRECT_CLAIM),
        NameQueries(dialect, vocabulary),
        survey,
        ItemProfileQueries(survey),
        Walked(dialect, vocabulary, DIRECT, ENTITY),
    )
