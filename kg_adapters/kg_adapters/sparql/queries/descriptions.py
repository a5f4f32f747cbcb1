"""Queries for labels, descriptions, types, roles and features of terms."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import RDF_LANG_STRING, Iri, Literal, Node

_RANK_DIGITS: Final = 2


def holders(values: Iterable[tuple[Iri, Literal]]) -> str:
    """Return the query for the entities `?s` that have one of some values `?v` over its relation `?p`."""
    rows = " ".join(f"({writing.iri(relation)} {writing.literal(value)})" for relation, value in values)
    return f"SELECT ?s ?p ?v WHERE {{ VALUES (?p ?v) {{ {rows} }} ?s ?p ?v }}"


@dataclass(frozen=True)
class TextChoice:
    """Chooses one text of a term and relation, as `Vocabulary` does, by the smallest of made-up keys.

    A key is the rank of the language, the language, a blank, and the text.

    Args:
        vocabulary: The languages and their order.
        dialect: The engine.
        only_preferred: Whether texts in other languages than those of the vocabulary are left unread; for graphs that
            have hundreds of them for each term.
    """

    vocabulary: Vocabulary
    dialect: Dialect
    only_preferred: bool = False

    @cached_property
    def key(self) -> str:
        """The expression over `?l` that sorts the preferred text first."""
        tag = "LCASE(LANG(?l))"
        languages = self.vocabulary.languages
        tests: list[tuple[str, str | None]] = [
            (f"{tag} = {writing.text(language)}", language) for language in languages
        ]
        tests += [(f"STRSTARTS({tag}, {writing.text(language + '-')})", f"{language}-x") for language in languages]
        tests.append((f'{tag} = ""', None))
        expression = writing.text(self._rank("a-language-that-nobody-prefers"))
        for test, example in reversed(tests):
            expression = f"IF({test}, {writing.text(self._rank(example))}, {expression})"
        return f'CONCAT({expression}, LANG(?l), " ", STR(?l))'

    def best(self, name: str) -> str:
        """Return the projection of the best key, for a query that groups by term and relation."""
        return f"(MIN({self.key}) AS ?{name})"

    def pattern(self, term: str, relations: Iterable[Iri]) -> str:
        """Return the pattern for the texts `?l` of the term `?{term}` over the relations `?a`.

        The statement comes first: engines that join in the order of the text then look up the statements of terms that
        are known by then, and not those of all terms.
        """
        kind = "isLiteral(?l)"
        if self.only_preferred:
            languages = ", ".join(writing.text(language) for language in self.vocabulary.languages)
            kind = f"LANG(?l) IN ({languages})"
        return f"?{term} ?a ?l . {writing.values('a', relations, self.dialect)} FILTER({kind})"

    def read(self, key: str) -> Literal:
        """Return the text of a key."""
        language, _, value = key[_RANK_DIGITS:].partition(" ")
        return Literal(value, RDF_LANG_STRING, language) if language else Literal(value)

    def label(self, texts: Mapping[Iri, Literal]) -> str | None:
        """Return the label among one text for each relation."""
        found = self.vocabulary.label({relation: (text,) for relation, text in texts.items()})
        return None if found is None else found.value

    def description(self, texts: Mapping[Iri, Literal]) -> str | None:
        """Return the description among one text for each relation."""
        found = self.vocabulary.description({relation: (text,) for relation, text in texts.items()})
        return None if found is None else found.value

    def _rank(self, language: str | None) -> str:
        return f"{self.vocabulary.rank(language):0{_RANK_DIGITS}}"


APART: Final = 12
"""Of how many entities the first literals are chosen where the graph is."""


@dataclass(frozen=True, slots=True)
class DescriptionQueries:
    """Writes queries about terms.

    Args:
        dialect: The engine.
        texts: How labels are chosen.
        as_head: Whether only terms with statements of their own are entities.
        declares: The relation that leads to whatever serves as a relation, for graphs too large to look for a statement
            with it; None where statements decide.
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
        types = f"{who} ?t ?p ?o . {writing.values('p', vocabulary.types, self.dialect)} FILTER(!isLiteral(?o))"
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
        return f"{writing.values('e', entities, self.dialect)} ?e ?p ?v . {named}FILTER(isLiteral(?v))"

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
