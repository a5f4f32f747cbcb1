"""How terms are shown: an id beside its label, always on one line and in one column.

Both forms of an answer, its lines and its data, have the same texts: as `kg_boundary.shown` writes them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kg_adapters.models import RelationCount
from kg_adapters.prefixes import Position, Prefixes
from kg_adapters.profile import unit_in
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING, BlankNode, Fact, Iri, Literal, Node, Term, Triple
from kg_boundary.shown import is_plain, shown, shown_within
from kg_server.plain_values import plain_value, unit_name, unit_of

_Forms: TypeAlias = tuple[str, str, str | None]

MAX_LABEL: Final = 120
MAX_VALUE: Final = 400


@dataclass(frozen=True, slots=True)
class Names:
    """The ids and labels of the terms in one answer.

    Args:
        prefixes: What shortens ids.
        labels: What terms are called.
        max_label: How long a label may be.
        language: The language that texts are expected in, which need not be said.
        notes: What stands in brackets behind the id of an entity that has no label.
    """

    prefixes: Prefixes
    labels: Mapping[Node, str]
    max_label: int = MAX_LABEL
    language: str | None = None
    notes: Mapping[Node, str] = field(default_factory=dict[Node, str])
    _entities: dict[Node, _Forms] = field(default_factory=dict[Node, _Forms], init=False, repr=False, compare=False)
    _relations: dict[Node, _Forms] = field(default_factory=dict[Node, _Forms], init=False, repr=False, compare=False)

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

    def shown_label(self, node: Node) -> str:
        """Return what a term is called without its id, or the id where it has no label."""
        short, _, label = self._forms(node, "relation")
        return short if label is None else label

    def triple(self, triple: Triple) -> str:
        """Return a triple as one line, `Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)`."""
        return f"{self.entity(triple.head)} | {self.relation(triple.relation)} | {self.entity(triple.tail)}"

    def fact(self, fact: Fact) -> str:
        """Return a fact as one line: a triple, or `Tokyo (Q1490) | inception (P571) | 1457-01-01`."""
        tail = self.term(fact.tail, relation=fact.relation)
        return f"{self.entity(fact.head)} | {self.relation(fact.relation)} | {tail}"

    def row(self, fact: Fact) -> list[str]:
        """Return a fact as programs read it: head, relation and tail, by ids."""
        tail = (
            self.value(fact.tail, relation=fact.relation)
            if isinstance(fact.tail, Literal)
            else self.entity_id(fact.tail)
        )
        return [self.entity_id(fact.head), self.relation_id(fact.relation), tail]

    def value(self, literal: Literal, most: int = MAX_VALUE, *, relation: Iri | None = None) -> str:
        """Return a value plainly: `1997-04-05`, `2,544`, `52.52, 13.405`, `true`, or a text in quotes.

        The language of a text is said where it is not the one that people expect. `relation` is that over which the
        value is stated, where it is known.
        """
        plain = self.plain(literal, relation)
        if plain is not None:
            return plain
        text, tag = shown_quoted(literal.value, most), literal.language
        return text if tag is None or tag.lower().partition("-")[0] == self.language else f"{text}@{shown(tag)}"

    def plain(self, literal: Literal, relation: Iri | None = None) -> str | None:
        """Return a value as people write it, or None for a text.

        A number is a quantity where the label of its relation names a unit; any other of four digits may be a year.
        """
        quantity = relation is not None and unit_in(self.labels.get(relation)) is not None
        unit = unit_of(literal)
        label = None if unit is None else self.labels.get(unit)
        named = None if label is None else shown_label(label, self.max_label)
        return plain_value(literal, quantity=quantity, unit=named)

    def term(self, term: Term, most: int = MAX_VALUE, *, relation: Iri | None = None) -> str:
        """Return any term as people read it; of a value, `relation` is that over which it is stated."""
        return self.value(term, most, relation=relation) if isinstance(term, Literal) else self.entity(term)

    def unit(self, unit: Iri) -> str:
        """Return what a unit is called: by its label, its usual name or its id."""
        label = self.labels.get(unit)
        return unit_name(unit) or shown_datatype(unit, self.prefixes) if label is None else shown_label(label)

    def literal(self, literal: Literal, most: int = MAX_VALUE) -> str:
        """Return a literal in quotes, shortened, with its language or datatype."""
        return shown_literal(literal, self.prefixes, most)

    def entity_labels(self, nodes: Iterable[Node]) -> dict[str, str]:
        """Return the labels of entities by short id; those without a label are left out."""
        return {forms[0]: forms[2] for node in nodes if (forms := self._forms(node, "entity"))[2] is not None}

    def relation_labels(self, iris: Iterable[Iri]) -> dict[str, str]:
        """Return the labels of relations by short id; those without a label are left out."""
        return {forms[0]: forms[2] for iri in iris if (forms := self._forms(iri, "relation"))[2] is not None}

    def counts(self, counts: Iterable[RelationCount]) -> dict[str, int]:
        """Return counts by the relations' short ids."""
        return {self.relation_id(each.relation): each.count.value for each in counts}

    def _forms(self, node: Node, position: Position) -> _Forms:
        """Return a term's short id, the id with its label, and its label; an answer asks for them again and again."""
        shown = self._entities if position == "entity" else self._relations
        forms = shown.get(node)
        if forms is None:
            short = self.prefixes.shorten(node, position)
            label = shown_label(self.labels[node], self.max_label) if node in self.labels else None
            named = f"{short} [{self.notes[node]}]" if node in self.notes else self._named(node, short, label)
            forms = shown[node] = (short, named, label)
        return forms

    def _named(self, node: Node, short: str, label: str | None) -> str:
        if label is not None:
            return f"{label} ({short})"
        if isinstance(node, BlankNode) or not short.startswith("<"):
            return short
        return f"{shown_within(node.local_part, self.max_label)} ({short})"


async def names_of(graph: KGAdapter, terms: Iterable[Node], *, max_tokens: int | None = None) -> Names:
    """Return the names of everything that an answer shows, in one batch.

    Args:
        graph: Where the labels come from.
        terms: What is shown.
        max_tokens: The answer's budget, if it has one; a small one shortens labels, so that a fact fits into it.
    """
    wanted = dict.fromkeys(terms)
    most = MAX_LABEL if max_tokens is None else min(MAX_LABEL, max_tokens // 8)
    language = next((tag.partition("-")[0] for tag in graph.vocabulary.languages), None)
    return Names(graph.prefixes, await graph.labels(wanted) if wanted else {}, most, language)


def terms_of(facts: Iterable[Fact]) -> Iterable[Node]:
    """Yield the nodes, relations and units of facts, with repeats."""
    for fact in facts:
        yield fact.head
        yield fact.relation
        if isinstance(fact, Triple):
            yield fact.tail
        elif (unit := unit_of(fact.tail)) is not None:
            yield unit


def shown_label(text: str, most: int = MAX_LABEL) -> str:
    """Return a label, shortened; one that begins with a quotation mark cannot pass for a literal."""
    label = shown_within(text, most)
    return f"\\{label}" if label.startswith('"') else label


def shown_literal(literal: Literal, prefixes: Prefixes, most: int = MAX_VALUE) -> str:
    """Return a literal in quotes on one line, shortened, with its language or datatype."""
    text = shown_quoted(literal.value, most)
    if literal.language is not None:
        return f"{text}@{shown(literal.language)}"
    if literal.datatype in {XSD_STRING, RDF_LANG_STRING}:
        return text
    return f"{text}^^{shown_datatype(literal.datatype, prefixes)}"


def shown_quoted(text: str, most: int = MAX_VALUE) -> str:
    """Return a text in quotes on one line, shortened."""
    value = shown_within(text, most).replace('"', '\\"')
    return f'"{value}"'


def shown_datatype(datatype: Iri, prefixes: Prefixes) -> str:
    """Return a datatype's short id; those of XML Schema are `xsd:…` in every graph."""
    if datatype.value.startswith(XSD) and is_plain(datatype.value):
        return f"xsd:{datatype.value.removeprefix(XSD)}"
    return prefixes.shorten(datatype)
