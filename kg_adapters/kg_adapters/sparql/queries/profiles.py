"""Queries about a graph as a whole: all of it, a bounded sample, or the profile of its classes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.inverses import DECLARING, OWL_INVERSE, OWL_SYMMETRIC
from kg_adapters.labels import Vocabulary
from kg_adapters.models import EdgeDirection
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import Iri, Node

_EDGE: Final = "FILTER(!isLiteral(?o))"

_FEATURE: Final = "FILTER(isLiteral(?o))"


@dataclass(frozen=True, slots=True)
class SurveyQueries:
    """Writes queries about the whole graph.

    Args:
        dialect: The engine.
        vocabulary: The relations to classes.
        namespace: Only relations whose IRI starts so are edges; None for all.
    """

    dialect: Dialect
    vocabulary: Vocabulary
    namespace: str | None = None

    def size(self) -> str:
        """Return the query for the number `?n` of statements."""
        return "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"

    def statements(self, limit: int) -> str:
        """Return the query for statements `?s`, `?p`, `?o`, at most `limit`."""
        return f"SELECT ?s ?p ?o {{ ?s ?p ?o }} LIMIT {limit}"

    def classes(self, sampled: int | None, limit: int) -> str:
        """Return the query for classes; rows `?c`, the number `?n` of instances, an example `?x`.

        Args:
            sampled: Read so many statements; None for all.
            limit: The most rows.
        """
        typed = f"{writing.values('a', self.vocabulary.types, self.dialect)} ?s ?a ?c . FILTER(!isLiteral(?c))"
        if sampled is not None:
            typed = f"{{ SELECT ?s ?c {{ {typed} }} LIMIT {sampled} }}"
        number = "(COUNT(DISTINCT ?s) AS ?n) (SAMPLE(?s) AS ?x)"
        return f"SELECT ?c {number} {{ {typed} }} GROUP BY ?c ORDER BY DESC(?n) STR(?c) LIMIT {limit}"

    def relations(self, sampled: int | None, limit: int) -> str:
        """Return the query for relations; rows `?p`, the number `?n` of triples, the ends `?x` and `?y` of one."""
        return self._relations(f"{_EDGE} {self._walked()}", sampled, limit)

    def features(self, sampled: int | None, limit: int) -> str:
        """Return the query for relations to literals; rows `?p`, the number `?n` of statements, a value `?y`."""
        return self._relations(_FEATURE, sampled, limit)

    def entities(self) -> str:
        """Return the query for entities: rows `?n`, to be added up.

        The first counts the ends of edges, the second what only has features and is no relation.
        """
        linked = writing.union((f"?e ?p ?o . {_EDGE}", "?s ?p ?e . FILTER(!isLiteral(?e))"))
        unlinked = "FILTER NOT EXISTS { ?e ?p1 ?o1 FILTER(!isLiteral(?o1)) } FILTER NOT EXISTS { ?s2 ?p2 ?e }"
        alone = f"?e ?p ?o . {_FEATURE} {unlinked} FILTER NOT EXISTS {{ ?s3 ?e ?o3 }}"
        counts = (f"{{ SELECT (COUNT(DISTINCT ?e) AS ?n) {{ {found} }} }}" for found in (linked, alone))
        return f"SELECT ?n {{ {writing.union(counts)} }}"

    def iris(self, sampled: int, limit: int) -> str:
        """Return the query for some IRIs `?i` of the graph: relations, heads and tails."""
        looked_at = f"{{ SELECT ?s ?p ?o {{ ?s ?p ?o }} LIMIT {sampled} }}"
        roles = (
            f"{{ SELECT DISTINCT (?{role} AS ?i) {{ {looked_at} FILTER(isIRI(?{role})) }} LIMIT {limit} }}"
            for role in "pso"
        )
        return f"SELECT DISTINCT ?i {{ {writing.union(roles)} }}"

    def _relations(self, which: str, sampled: int | None, limit: int) -> str:
        pattern = f"?s ?p ?o . {which}" if sampled is None else f"{self._sample(sampled)} {which}"
        number = f"SELECT ?p (COUNT(*) AS ?n) (SAMPLE(?s) AS ?x) {{ {pattern} }} GROUP BY ?p"
        counted = f"{{ {number} ORDER BY DESC(?n) STR(?p) LIMIT {limit} }}"
        return f"SELECT ?p ?n ?x (SAMPLE(?o) AS ?y) {{ {counted} ?x ?p ?o . {which} }} GROUP BY ?p ?n ?x"

    def _sample(self, sampled: int) -> str:
        """Return some statements as they come, and all about some entities that have a type: those are more varied."""
        some = f"SELECT ?s ?p ?o {{ ?s ?p ?o }} LIMIT {sampled}"
        typed = f"{writing.values('a', self.vocabulary.types, self.dialect)} ?s ?a ?c"
        whole = f"SELECT ?s ?p ?o {{ {{ SELECT DISTINCT ?s {{ {typed} }} LIMIT {sampled // 20} }} ?s ?p ?o }}"
        both = writing.union((f"{{ {some} }}", f"{{ {whole} LIMIT {sampled} }}"))
        return f"{{ SELECT DISTINCT ?s ?p ?o {{ {both} }} }}"

    def _walked(self) -> str:
        return "" if self.namespace is None else f"FILTER(STRSTARTS(STR(?p), {writing.text(self.namespace)}))"


MAX_ROWS: Final = 10_000
"""The most rows of an answer; as many mean that there may be more."""

_STEPS: Final[dict[EdgeDirection, str]] = {"out": "?s ?p ?o .", "in": "?o ?p ?s ."}


@dataclass(frozen=True, slots=True)
class ClassMembers:
    """Whose instances are meant: the place of a class in answers, and the class with those below it."""

    place: int
    classes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ProfileQueries:
    """Writes the queries for the profile of a large graph: counts of classes and pairs, and samples of instances.

    Args:
        survey: What writes the queries about the whole graph.
    """

    survey: SurveyQueries

    @property
    def dialect(self) -> Dialect:
        """The engine."""
        return self.survey.dialect

    @property
    def vocabulary(self) -> Vocabulary:
        """The relations to classes and to wider classes."""
        return self.survey.vocabulary

    def classes(self, sampled: int) -> Sequence[tuple[str, bool]]:
        """Return queries for classes `?c` and the number `?n` of their instances, to be asked until one is answered.

        Beside each stands whether it finds all of them.

        Args:
            sampled: How many statements are read where not all are.
        """
        return (self.survey.classes(None, MAX_ROWS), True), (self.survey.classes(sampled, MAX_ROWS), False)

    def unwanted(self, relations: Collection[Iri]) -> str | None:
        """Return the query for those relations `?p` that are left out of the profile; None if none is."""
        del relations
        return None

    def broader(self, classes: Sequence[Node] | None) -> str:
        """Return the query for the wider classes `?d` of classes `?c`; of all for None."""
        some = "" if classes is None else writing.values("c", classes, self.dialect)
        over = writing.values("b", self.vocabulary.subclasses, self.dialect)
        return f"SELECT DISTINCT ?c ?d {{ {some} {over} ?c ?b ?d FILTER(!isLiteral(?d)) }} LIMIT {MAX_ROWS}"

    def sizes(self, owners: Sequence[ClassMembers]) -> str:
        """Return the query for the number `?n` of all instances of classes by their place `?k`."""
        return f"SELECT ?k ?n {{ {writing.union(map(self._size, owners))} }}"

    def sample(self, owners: Sequence[ClassMembers], most: int, direction: EdgeDirection, limit: int) -> str:
        """Return the query for the statements about some instances `?s` of each class, whose place is `?k`.

        Args:
            owners: The classes.
            most: How many instances of each.
            direction: `out` for the relations `?p` to `?o`, `in` for those that lead from there.
            limit: The most rows.
        """
        found = f"{self._drawn(owners, most)} {_STEPS[direction]} {self._counted('p')}"
        return f"SELECT ?k ?s ?p ?o {{ {found} }} LIMIT {limit}"

    def types(
        self, owners: Sequence[ClassMembers], most: int, directions: Collection[EdgeDirection], limit: int
    ) -> str:
        """Return the query for the classes `?t` of what `sample` leads to, `?o`, each with the relation `?a` to it."""
        over = writing.values("a", self.vocabulary.types, self.dialect)
        drawn = self._drawn(owners, most)
        arms = (f"{drawn} {_STEPS[each]} {self._counted('p')} {over} ?o ?a ?t ." for each in directions)
        return f"SELECT DISTINCT ?o ?a ?t {{ {writing.union(arms)} }} LIMIT {limit}"

    def having(self, owner: ClassMembers) -> str:
        """Return the query for the number `?n` of all instances of a class that have each outgoing relation `?p`.

        QLever answers it from what it keeps about each subject, if it is written so: with any more about `?p` or `?o`,
        it reads all statements.
        """
        return f"SELECT ?p (COUNT(DISTINCT ?s) AS ?n) {{ {self._typed(owner.classes)} . ?s ?p ?o }} GROUP BY ?p"

    def declared_links(self) -> str:
        """Return the query for what is declared of relations: `?p` and `?q`, and how they belong together `?r`."""
        over = writing.values("r", DECLARING, self.dialect)
        symmetric = f"?p ?typed {writing.iri(OWL_SYMMETRIC)} BIND(?p AS ?q) BIND({writing.iri(OWL_INVERSE)} AS ?r)"
        return f"SELECT DISTINCT ?p ?r ?q {{ {writing.union((f'{over} ?p ?r ?q', symmetric))} }} LIMIT {MAX_ROWS}"

    def pairs(self, relations: Sequence[Iri], *, back: bool, most: int) -> str:
        """Return the query for how many `?n` of some pairs of a relation `?p` a relation `?q` holds as well.

        Args:
            relations: Those whose pairs are compared.
            back: Whether pairs are compared in the opposite direction.
            most: How many pairs of each are compared.
        """
        blocks = (
            f"SELECT DISTINCT ?s ?e ({iri} AS ?p) {{ ?s {iri} ?e FILTER(!isLiteral(?e) && ?s != ?e) }} LIMIT {most}"
            for iri in map(writing.iri, relations)
        )
        step = "?e ?q ?s" if back else "?s ?q ?e"
        found = f"{{ {writing.union(blocks)} }} {step} . {self._counted('q')}"
        return f"SELECT ?p ?q (COUNT(*) AS ?n) {{ {found} }} GROUP BY ?p ?q LIMIT {MAX_ROWS}"

    def _size(self, owner: ClassMembers) -> str:
        single = len(owner.classes) == len(self.vocabulary.types) == 1 and not self.dialect.merges_graphs
        number = "COUNT(*)" if single else "COUNT(DISTINCT ?s)"
        return f"SELECT ({owner.place} AS ?k) ({number} AS ?n) {{ {self._typed(owner.classes)} }}"

    def _drawn(self, owners: Sequence[ClassMembers], most: int) -> str:
        blocks = (
            f"SELECT DISTINCT ?s ({each.place} AS ?k) {{ {self._typed(each.classes)} }} LIMIT {most}" for each in owners
        )
        return f"{{ {writing.union(blocks)} }}"

    def _typed(self, classes: Sequence[Node]) -> str:
        """Return the block for instances `?s`; where it is one pattern, engines count it without looking."""
        if len(classes) == len(self.vocabulary.types) == 1:
            return f"?s {writing.iri(self.vocabulary.types[0])} {writing.node(classes[0], self.dialect)}"
        over = writing.values("a", self.vocabulary.types, self.dialect)
        return f"{over} {writing.values('c', classes, self.dialect)} ?s ?a ?c"

    def _counted(self, name: str) -> str:
        namespace = self.survey.namespace
        return "" if namespace is None else f"FILTER(STRSTARTS(STR(?{name}), {writing.text(namespace)}))"
