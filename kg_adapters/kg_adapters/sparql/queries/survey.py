"""Queries about a graph as a whole: everything in it, or a sample of bounded size."""

from dataclasses import dataclass
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing

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
            sampled: Look at so many statements; None for all.
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
