"""The one place where queries are built, from validated terms only: plain SPARQL 1.1 but for what `dialects` lists."""

from dataclasses import dataclass
from typing import Self

from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries.descriptions import DescriptionQueries, TextChoice
from kg_adapters.sparql.queries.edges import EdgeQueries
from kg_adapters.sparql.queries.names import NameQueries
from kg_adapters.sparql.queries.profiles import ProfileQueries, SurveyQueries
from kg_adapters.sparql.queries.set_patterns import Walked

__all__ = [
    "DescriptionQueries",
    "EdgeQueries",
    "NameQueries",
    "ProfileQueries",
    "Queries",
    "SurveyQueries",
    "TextChoice",
    "Walked",
]


@dataclass(frozen=True, slots=True)
class Queries:
    """All that writes queries for one graph; an adapter for a graph with ways of its own replaces a part."""

    dialect: Dialect
    vocabulary: Vocabulary
    edges: EdgeQueries
    descriptions: DescriptionQueries
    names: NameQueries
    survey: SurveyQueries
    profiles: ProfileQueries
    sets: Walked

    @classmethod
    def of(cls, dialect: Dialect, vocabulary: Vocabulary, *, edge_namespace: str | None = None) -> Self:
        """Return the writers for an engine and a vocabulary.

        Args:
            dialect: The engine.
            vocabulary: The relations that name, describe and type entities.
            edge_namespace: Only relations whose IRI starts so are edges; None for all.
        """
        texts = TextChoice(vocabulary, dialect)
        survey = SurveyQueries(dialect, vocabulary, edge_namespace)
        return cls(
            dialect,
            vocabulary,
            EdgeQueries(dialect, texts, edge_namespace),
            DescriptionQueries(dialect, texts),
            NameQueries(dialect, vocabulary),
            survey,
            ProfileQueries(survey),
            Walked(dialect, vocabulary, edge_namespace),
        )
