"""Relations and prefixes that somebody chose for a graph, as they were written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kg_adapters.errors import InvalidRequest
from kg_adapters.labels import Vocabulary
from kg_adapters.prefixes import SCHEMES, WELL_KNOWN, Prefixes, is_prefix
from kg_adapters.terms import Iri
from kg_boundary.shown import in_quotes


@dataclass(frozen=True, slots=True)
class ChosenRelations:
    """The relations that name, describe and type the entities of one graph, as IRIs or prefixed names.

    Args:
        labels: Relations to names, the preferred first.
        aliases: Relations to other names.
        descriptions: Relations to descriptions, the preferred first.
        types: Relations from an entity to its classes.
        label_keys: Which features name the nodes of a `graph.json`, as `TYPE=FEATURE`.
    """

    labels: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    label_keys: tuple[str, ...] = ()

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
