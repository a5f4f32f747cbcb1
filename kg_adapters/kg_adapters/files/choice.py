"""Choose which statements of files are read: by their relations, and by the named graphs that they are in."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.errors import InvalidSource
from kg_adapters.files.rows import Row, tag_of
from kg_adapters.labels import Vocabulary, read_relation
from kg_adapters.prefixes import WELL_KNOWN, WIKIDATA, Prefixes
from kg_adapters.terms import Iri

_KEPT_GRAPHS: Final = 1_000


class ChosenGraphs:
    """The named graphs that were chosen, and those that were found."""

    def __init__(self, chosen: Sequence[str]) -> None:
        self._chosen = frozenset(chosen)
        self._met: set[str] = set()

    @property
    def chosen(self) -> bool:
        """Whether any graph was chosen."""
        return bool(self._chosen)

    def wants(self, graph: str | None) -> bool:
        """Return whether statements of a graph are to be read, given its IRI, or None where it has none."""
        if not self._chosen:
            return True
        if graph is None:
            return False
        if graph in self._chosen or len(self._met) < _KEPT_GRAPHS:
            self._met.add(graph)
        return graph in self._chosen

    def check(self) -> None:
        """Make sure that every chosen graph was found.

        Raises:
            InvalidSource: One of them was not.
        """
        for missing in sorted(self._chosen - self._met):
            there = ", ".join(f"<{graph}>" for graph in sorted(self._met)[:10]) or "none"
            raise InvalidSource(f"No statement is in a graph <{missing}>. Named graphs that were read: {there}.")


@dataclass(frozen=True, slots=True)
class ReadFilter:
    """Keeps statements of some relations, and what names and describes entities in some languages.

    Args:
        relations: IRIs of the relations.
        vocabulary: What names and describes; its texts are kept without a language and in its languages.
    """

    relations: frozenset[str]
    vocabulary: Vocabulary

    @classmethod
    def of(cls, texts: Iterable[str], vocabulary: Vocabulary, namespaces: dict[str, str]) -> "ReadFilter | None":
        """Return the filter for relations as people write them, `P31` or `ex:part` or an IRI; None for no relations.

        Raises:
            InvalidRequest: A text is none of these.
        """
        prefixes = Prefixes({**WELL_KNOWN, **WIKIDATA.namespaces, **namespaces}, None, WIKIDATA.relations)
        relations = frozenset(read_relation(text, prefixes).value for text in texts)
        return cls(relations, vocabulary) if relations else None

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """What a line of N-Triples holds that may be kept."""
        iris = sorted({*self.relations, *(text.value for text in self.vocabulary.texts)})
        return re.compile(b"|".join(re.escape(f"<{iri}>".encode()) for iri in iris))

    def keeps(self, row: Row) -> bool:
        """Return whether a statement is kept."""
        _, relation, _, datatype, language = row
        if relation in self.relations:
            return True
        if datatype is None or Iri(relation) not in self.vocabulary.texts:
            return False
        tag = None if language is None else tag_of(language)
        return self.vocabulary.rank(tag) <= self.vocabulary.rank(None)
