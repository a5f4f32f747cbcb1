"""Which statements of large files are read, where somebody wants only some relations of them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kg_adapters.chosen_relations import read_relation
from kg_adapters.labels import Vocabulary
from kg_adapters.local.reading.rows import Row, tag_of
from kg_adapters.prefixes import WELL_KNOWN, WIKIDATA, Prefixes
from kg_adapters.terms import Iri


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
        """Say whether a statement is kept."""
        _, relation, _, datatype, language = row
        if relation in self.relations:
            return True
        if datatype is None or Iri(relation) not in self.vocabulary.texts:
            return False
        tag = None if language is None else tag_of(language)
        return self.vocabulary.rank(tag) <= self.vocabulary.rank(None)
