"""The relations that name, describe and type entities: the usual ones, and those chosen for one graph."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import SCHEMES, WELL_KNOWN, Prefixes, is_prefix
from kg_adapters.terms import Iri, Literal
from kg_boundary.shown import in_quotes

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
        standard_inverses: Whether relations of well-known vocabularies, such as `skos:broader` and `skos:narrower`, are
            each other's inverse although the graph does not declare it.
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
        Iri("http://www.geneontology.org/formats/oboInOwl#hasExactSynonym"),
    )
    languages: tuple[str, ...] = ("en", "mul")
    types: tuple[Iri, ...] = (RDF_TYPE, WIKIDATA_TYPES[0])
    subclasses: tuple[Iri, ...] = (Iri("http://www.w3.org/2000/01/rdf-schema#subClassOf"), WIKIDATA_TYPES[1])
    standard_inverses: bool = True

    def __post_init__(self) -> None:
        # Tags compare without case.
        object.__setattr__(self, "languages", tuple(language.lower() for language in self.languages))

    def written_with(self, prefixes: Prefixes) -> "Vocabulary":
        """Return it with those relations that type for which there are prefixes; with all where there are none."""
        namespaces = tuple(prefixes.namespaces.values())

        def known(relations: tuple[Iri, ...]) -> tuple[Iri, ...]:
            return tuple(each for each in relations if each.value.startswith(namespaces)) or relations

        return replace(self, types=known(self.types), subclasses=known(self.subclasses))

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


@dataclass(frozen=True, slots=True)
class ChosenRelations:
    """The relations that name, describe and type the entities of one graph, as IRIs or prefixed names.

    Args:
        labels: Relations to names, the preferred first.
        aliases: Relations to other names.
        descriptions: Relations to descriptions, the preferred first.
        types: Relations from an entity to its classes.
        label_keys: Which features name the nodes of a `graph.json`, as `TYPE=FEATURE`.
        standard_inverses: Whether relations of well-known vocabularies are inverse without a declaration.
    """

    labels: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    label_keys: tuple[str, ...] = ()
    standard_inverses: bool = True

    def joined(self, usual: Vocabulary, namespaces: Mapping[str, str]) -> Vocabulary:
        """Return a vocabulary with these relations before the usual ones.

        Args:
            usual: The vocabulary to start from.
            namespaces: What prefixes stand for, beside the well-known ones.

        Raises:
            InvalidRequest: A text is neither an IRI nor a name with a known prefix.
        """
        prefixes = Prefixes({**WELL_KNOWN, **namespaces})
        labels = _read(self.labels, prefixes)
        return replace(
            usual,
            labels=_joined(labels, usual.labels),
            # What is an alias by default may be somebody's label.
            aliases=tuple(each for each in _joined(_read(self.aliases, prefixes), usual.aliases) if each not in labels),
            descriptions=_joined(_read(self.descriptions, prefixes), usual.descriptions),
            types=_joined(_read(self.types, prefixes), usual.types),
            standard_inverses=self.standard_inverses,
        )


def chosen_prefixes(texts: Iterable[str]) -> Mapping[str, str]:
    """Return what prefixes stand for, from texts such as `ex=https://example.org/`.

    Raises:
        InvalidRequest: A text has another form.
    """
    return dict(map(_prefix, texts))


def _prefix(text: str) -> tuple[str, str]:
    prefix, sign, namespace = text.partition("=")
    prefix = prefix.strip().removesuffix(":")
    if not sign or not is_prefix(prefix) or prefix in SCHEMES:
        raise InvalidRequest(f"{in_quotes(text)} is not a prefix with its namespace. Write ex=https://example.org/.")
    return prefix, Iri(namespace.strip().removeprefix("<").removesuffix(">")).value


def read_relation(text: str, prefixes: Prefixes) -> Iri:
    """Return the relation that a text stands for: a bare id where there are such, a prefixed name or an IRI.

    Raises:
        InvalidRequest: It is none of these.
    """
    prefix, colon, _ = text.partition(":")
    known = prefix in prefixes.namespaces or prefix.removeprefix("<") in SCHEMES or "://" in text or "<" in text
    bare = None if colon or prefixes.relations is None else prefixes.relations.expand(text)
    node = prefixes.expand(text, "relation") if colon and known else bare
    if not isinstance(node, Iri):
        raise InvalidRequest(
            f"{in_quotes(text)} is not a relation. Write its IRI, or a name with a prefix that the file declares, that "
            "is well known (schema:name), or that --prefix ex=https://… declares."
        )
    return node


def _read(texts: Sequence[str], prefixes: Prefixes) -> tuple[Iri, ...]:
    return tuple(read_relation(text, prefixes) for text in texts)


def _joined(chosen: tuple[Iri, ...], usual: tuple[Iri, ...]) -> tuple[Iri, ...]:
    return tuple(dict.fromkeys((*chosen, *usual)))
