"""The label of an entity, chosen where the graph is: one row for each label relation instead of one per language."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import RDF_LANG_STRING, Iri, Literal

_RANK_DIGITS: Final = 2


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
        """Return the pattern for the texts `?l` of the term `?{term}` over the relations `?a`."""
        kind = "isLiteral(?l)"
        if self.only_preferred:
            languages = ", ".join(writing.text(language) for language in self.vocabulary.languages)
            kind = f"LANG(?l) IN ({languages})"
        return f"{writing.values('a', relations, self.dialect)} ?{term} ?a ?l . FILTER({kind})"

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
