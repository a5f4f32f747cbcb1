"""How terms are shown: an id beside its label, always on one line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kg_adapters.models import RelationCount
from kg_adapters.prefixes import Position, Prefixes
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING, BlankNode, Iri, Literal, Node, Term, Triple

MAX_LABEL: Final = 120
MAX_VALUE: Final = 400


@dataclass(frozen=True, slots=True)
class Names:
    """The ids and labels of the terms in one answer."""

    prefixes: Prefixes
    labels: Mapping[Node, str]
    _shown: dict[tuple[Node, Position], tuple[str, str]] = field(
        default_factory=dict[tuple[Node, Position], tuple[str, str]], repr=False, compare=False
    )

    def entity_id(self, node: Node) -> str:
        """Return an entity's short id, as in `Q1490`."""
        return self._forms(node, "entity")[0]

    def relation_id(self, iri: Iri) -> str:
        """Return a relation's short id, as in `P36`."""
        return self._forms(iri, "relation")[0]

    def entity(self, node: Node) -> str:
        """Return an entity as people read it, as in `Tokyo (Q1490)`."""
        return self._forms(node, "entity")[1]

    def relation(self, iri: Iri) -> str:
        """Return a relation as people read it, as in `capital (P36)`."""
        return self._forms(iri, "relation")[1]

    def triple(self, triple: Triple) -> str:
        """Return a triple as one line, `Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)`."""
        return f"{self.entity(triple.head)} | {self.relation(triple.relation)} | {self.entity(triple.tail)}"

    def term(self, term: Term) -> str:
        """Return any term as people read it."""
        return self.literal(term) if isinstance(term, Literal) else self.entity(term)

    def literal(self, literal: Literal) -> str:
        """Return a literal in quotes, shortened, with its language or datatype."""
        return shown_literal(literal, self.prefixes)

    def entity_labels(self, nodes: Iterable[Node]) -> dict[str, str]:
        """Return the labels of entities by short id; those without a label are left out."""
        return {self.entity_id(node): one_line(self.labels[node]) for node in nodes if node in self.labels}

    def relation_labels(self, iris: Iterable[Iri]) -> dict[str, str]:
        """Return the labels of relations by short id; those without a label are left out."""
        return {self.relation_id(iri): one_line(self.labels[iri]) for iri in iris if iri in self.labels}

    def counts(self, counts: Iterable[RelationCount]) -> dict[str, int]:
        """Return counts by the relations' short ids."""
        return {self.relation_id(each.relation): each.count.value for each in counts}

    def _forms(self, node: Node, position: Position) -> tuple[str, str]:
        """Return a term's short id, and the id with its label; an answer asks for both again and again."""
        forms = self._shown.get((node, position))
        if forms is None:
            short = self.prefixes.shorten(node, position)
            forms = self._shown[node, position] = (short, self._named(node, short))
        return forms

    def _named(self, node: Node, short: str) -> str:
        label = self.labels.get(node)
        if label is not None:
            return f"{one_line(label)} ({short})"
        if isinstance(node, BlankNode) or not short.startswith("<"):
            return short
        return f"{node.local_part} ({short})"


async def names_of(graph: KGAdapter, terms: Iterable[Node]) -> Names:
    """Return the names of everything that an answer shows, in one batch."""
    wanted = dict.fromkeys(terms)
    return Names(graph.prefixes, await graph.labels(wanted) if wanted else {})


def terms_of(triples: Iterable[Triple]) -> Iterable[Node]:
    """Yield the terms of triples, with repeats."""
    for triple in triples:
        yield triple.head
        yield triple.relation
        yield triple.tail


def one_line(text: str, most: int = MAX_LABEL) -> str:
    """Return a graph's own text as one printable line of at most `most` characters."""
    if len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    return " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())


def shown_literal(literal: Literal, prefixes: Prefixes) -> str:
    """Return a literal in quotes on one line, shortened, with its language or datatype."""
    text = f'"{one_line(literal.value, MAX_VALUE)}"'
    if literal.language is not None:
        return f"{text}@{literal.language}"
    if literal.datatype in {XSD_STRING, RDF_LANG_STRING}:
        return text
    return f"{text}^^{shown_datatype(literal.datatype, prefixes)}"


def shown_datatype(datatype: Iri, prefixes: Prefixes) -> str:
    """Return a datatype's short id; those of XML Schema are `xsd:…` in every graph."""
    if datatype.value.startswith(XSD):
        return f"xsd:{datatype.value.removeprefix(XSD)}"
    return prefixes.shorten(datatype)
