"""Which of an entity's texts is its label, and which its description."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.terms import Iri, Literal

_LANGUAGE_TAG: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,7}")
RDF_TYPE: Final = Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
WIKIDATA_TYPES: Final = (
    Iri("http://www.wikidata.org/prop/direct/P31"),
    Iri("http://www.wikidata.org/prop/direct/P279"),
)


def language_tag(text: str) -> str:
    """Return a language tag as it is, such as `en`, `pt-BR` or `zh-Hans`.

    Raises:
        ValueError: It does not have the form of BCP 47: letters, then parts of letters and digits behind hyphens.
    """
    if _LANGUAGE_TAG.fullmatch(text) is None:
        raise ValueError("a language tag must be written like en, pt-BR or zh-Hans")
    return text


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The relations that name, describe and type entities, and the languages that people read.

    Labels are taken from the first relation of `labels` that has one, in the first language of `languages` that it is
    in, then without a language, then in any (the alphabetically first, so that the choice never changes).

    Args:
        labels: Relations to names, the preferred first.
        descriptions: Relations to descriptions, the preferred first.
        aliases: Relations to other names, which a search should find.
        languages: Language tags, the preferred first; kept in lower case.
        types: Relations from an entity to its classes; path search that avoids hubs does not walk them.
        subclasses: Relations from a class to the wider ones; path search that avoids hubs does not walk them either.
    """

    labels: tuple[Iri, ...] = (
        Iri("http://www.w3.org/2000/01/rdf-schema#label"),
        Iri("http://www.w3.org/2004/02/skos/core#prefLabel"),
        Iri("http://schema.org/name"),
        Iri("https://schema.org/name"),
        Iri("http://xmlns.com/foaf/0.1/name"),
        Iri("http://purl.org/dc/terms/title"),
        Iri("http://purl.org/dc/elements/1.1/title"),
        Iri("http://www.geonames.org/ontology#name"),
    )
    descriptions: tuple[Iri, ...] = (
        Iri("http://schema.org/description"),
        Iri("https://schema.org/description"),
        Iri("http://purl.org/dc/terms/description"),
        Iri("http://www.w3.org/2000/01/rdf-schema#comment"),
    )
    aliases: tuple[Iri, ...] = (
        Iri("http://www.w3.org/2004/02/skos/core#altLabel"),
        Iri("http://www.w3.org/2004/02/skos/core#hiddenLabel"),
        Iri("http://schema.org/alternateName"),
        Iri("https://schema.org/alternateName"),
        Iri("http://www.geonames.org/ontology#alternateName"),
    )
    languages: tuple[str, ...] = ("en", "mul")
    types: tuple[Iri, ...] = (RDF_TYPE, WIKIDATA_TYPES[0])
    subclasses: tuple[Iri, ...] = (Iri("http://www.w3.org/2000/01/rdf-schema#subClassOf"), WIKIDATA_TYPES[1])

    def __post_init__(self) -> None:
        # Tags compare without case.
        object.__setattr__(self, "languages", tuple(language.lower() for language in self.languages))

    @property
    def unwalked(self) -> frozenset[Iri]:
        """The relations that path search leaves out when it avoids hubs."""
        return frozenset((*self.types, *self.subclasses))

    @property
    def texts(self) -> frozenset[Iri]:
        """The relations that name and describe: what they say is no fact like others."""
        return frozenset((*self.labels, *self.descriptions, *self.aliases))

    def label(self, texts: Mapping[Iri, Iterable[Literal]]) -> Literal | None:
        """Return the label among an entity's texts by relation, or None."""
        return self._first(self.labels, texts)

    def description(self, texts: Mapping[Iri, Iterable[Literal]]) -> Literal | None:
        """Return the description among an entity's texts by relation, or None."""
        return self._first(self.descriptions, texts)

    def rank(self, language: str | None) -> int:
        """Return how preferred a language is, 0 the most; `en-GB` counts as `en`, after it."""
        if language is None:
            return 2 * len(self.languages)
        tag = language.lower()
        if tag in self.languages:
            return 2 * self.languages.index(tag)
        base = tag.partition("-")[0]
        return 2 * self.languages.index(base) + 1 if base in self.languages else 2 * len(self.languages) + 1

    def _first(self, relations: Sequence[Iri], texts: Mapping[Iri, Iterable[Literal]]) -> Literal | None:
        for relation in relations:
            best = min(texts.get(relation, ()), key=self._preference, default=None)
            if best is not None:
                return best
        return None

    def _preference(self, text: Literal) -> tuple[int, str, str]:
        return self.rank(text.language), (text.language or "").lower(), text.value
