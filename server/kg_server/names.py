"""How terms are shown: an id beside its label, always on one line and in one column.

Both forms of an answer, its lines and its data, have the same texts: as `kg_boundary.shown` writes them.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel

from kg_adapters.calls import note_partial, time_left_s
from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from kg_adapters.federated import FederatedGraph
from kg_adapters.models import EdgeDirection, RelationCount
from kg_adapters.prefixes import Position, Prefixes
from kg_adapters.profile import unit_in
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING, BlankNode, Fact, Iri, Literal, Node, Term, Triple
from kg_boundary.shown import is_plain, set_apart, shown, shown_within
from kg_server.answers.expressions import NO_EXPRESSIONS, OWL, read_expressions
from kg_server.answers.values import plain_value, unit_name, unit_of

_Forms: TypeAlias = tuple[str, str, str | None, str]

MAX_LABEL: Final = 120
MAX_VALUE: Final = 400
_AT_ONCE: Final = 2_000
"""For how many terms labels are read before other calls have their turn."""
_WITH_ID: Final = re.compile(r".* \((.+)\)")
_LIKE_ID: Final = re.compile(r"\S*[\d:]\S*")
_LIKE_NUMBER: Final = re.compile(r"[-+]?\d[\d.,]*(?: .*)?|true|false")


@dataclass(frozen=True, slots=True)
class Names:
    """The ids and labels of the terms in one answer.

    Args:
        prefixes: What shortens ids.
        labels: What terms are called.
        max_label: How long a label may be.
        language: The language that texts are expected in, which need not be said.
        notes: What stands in brackets behind the id of an entity that has no label.
        terms: What else is shown, by its id.
        held: What nodes without a name hold that are shown with it, incoming facts before outgoing; types are left out.
        closed: Such nodes of which the graph does not say what they hold.
        origins: The graphs of each fact, where the answer is over several.
    """

    prefixes: Prefixes
    labels: Mapping[Node, str]
    max_label: int = MAX_LABEL
    language: str | None = None
    notes: Mapping[Node, str] = field(default_factory=dict[Node, str])
    terms: Collection[Node] = ()
    held: Mapping[Node, tuple[Fact, ...]] = field(default_factory=dict[Node, tuple[Fact, ...]])
    closed: tuple[Node, ...] = ()
    origins: Mapping[Fact, tuple[str, ...]] = field(default_factory=dict[Fact, tuple[str, ...]])
    _entities: dict[Node, _Forms] = field(default_factory=dict[Node, _Forms], init=False, repr=False, compare=False)
    _relations: dict[Node, _Forms] = field(default_factory=dict[Node, _Forms], init=False, repr=False, compare=False)
    _namesakes: Counter[str] = field(default_factory=Counter[str], init=False, repr=False, compare=False)

    def entity_id(self, node: Node) -> str:
        """Return an entity's short id, as in `Q1490`."""
        return self._forms(node, "entity")[0]

    def relation_id(self, iri: Iri) -> str:
        """Return a relation's short id, as in `P36`."""
        return self._forms(iri, "relation")[0]

    def entity(self, node: Node, marks: str | None = None) -> str:
        """Return an entity as people read it, as in `Tokyo (Q1490)`; `marks` are those of a list (`set_apart`)."""
        return self._apart(node, "entity", marks)

    def relation(self, iri: Iri, marks: str | None = None) -> str:
        """Return a relation as people read it, as in `capital (P36)`; `marks` are those of a list (`set_apart`)."""
        return self._apart(iri, "relation", marks)

    def alone(self, node: Node, marks: str, position: Position = "entity") -> str:
        """Return what a term is called, without its id where no other term, value or list can be meant.

        A term without a label is shown by its id.
        """
        short, _, label, _ = self._forms(node, position)
        if label is None:
            return short
        return label if self.is_clear(label, marks, position) else self._apart(node, position, marks)

    def called(self, iri: Iri, marks: str) -> str:
        """Return what a relation is called where all relations of its name are meant, as a name of them means."""
        short, _, label, _ = self._forms(iri, "relation")
        if label is None:
            return short
        return label if self._is_name(label, marks, "relation") else self._apart(iri, "relation", marks)

    def is_clear(self, label: str, marks: str, position: Position = "entity") -> bool:
        """Say whether a shown label means one term without its id; `marks` are those of a list (`set_apart`)."""
        return self._is_name(label, marks, position) and self._called()[label] < 2

    def _is_name(self, label: str, marks: str, position: Position) -> bool:
        """Say whether a shown label can pass for nothing but a name."""
        if label.startswith("\\") or _LIKE_NUMBER.fullmatch(label) or set_apart(label, marks) != label:
            return False
        with_id = _WITH_ID.fullmatch(label)
        written = with_id[1] if with_id is not None else label if _LIKE_ID.fullmatch(label) is not None else None
        return written is None or not self._is_id(written, position)

    def fact(self, fact: Fact) -> str:
        """Return a fact as one line: a triple, or `Tokyo (Q1490) | inception (P571) | 1457-01-01`."""
        tail = self.term(fact.tail, relation=fact.relation)
        return f"{self.entity(fact.head)} | {self.relation(fact.relation)}{in_graph(self.graph_of(fact))} | {tail}"

    def graph_of(self, fact: Fact) -> str:
        """Return the first graph that has a fact, where the answer is over several; nothing otherwise."""
        return next(iter(self.origins.get(fact, ())), "")

    def row(self, fact: Fact) -> list[str]:
        """Return a fact as programs read it: the ids of its three parts, and its graph where there are several."""
        tail = (
            self.value(fact.tail, relation=fact.relation)
            if isinstance(fact.tail, Literal)
            else self.entity_id(fact.tail)
        )
        graph = self.graph_of(fact)
        return [self.entity_id(fact.head), self.relation_id(fact.relation), tail, *([graph] if graph else ())]

    def value(self, literal: Literal, most: int = MAX_VALUE, *, relation: Iri | None = None) -> str:
        """Return a value plainly: `1997-04-05`, `2,544`, `52.52, 13.405`, `true`, or a text in quotes.

        A text has its language where that is not the one that people expect, and a datatype that is no text's.
        `relation` is that over which the value is stated, where it is known.
        """
        plain = self.plain(literal, relation)
        if plain is not None:
            return plain
        tag = literal.language
        if tag is not None and tag.lower().partition("-")[0] == self.language:
            return shown_quoted(literal.value, most)
        return self.literal(literal, most)

    def plain(self, literal: Literal, relation: Iri | None = None) -> str | None:
        """Return a value as people write it, or None for a text.

        A number is a quantity where the label of its relation names a unit; any other of four digits may be a year.
        """
        quantity = relation is not None and unit_in(self.labels.get(relation)) is not None
        unit = unit_of(literal)
        label = None if unit is None else self.labels.get(unit)
        named = None if label is None else set_apart(shown_label(label, self.max_label), ",;:")
        return plain_value(literal, quantity=quantity, unit=named)

    def term(self, term: Term, most: int = MAX_VALUE, *, relation: Iri | None = None, marks: str | None = None) -> str:
        """Return any term as people read it; of a value, `relation` is that over which it is stated."""
        return self.value(term, most, relation=relation) if isinstance(term, Literal) else self.entity(term, marks)

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

    def held_by(self, nodes: Iterable[Node], shown: Collection[Fact]) -> tuple[Fact, ...]:
        """Return what nodes without a name among some nodes hold, each fact once and none of those that are shown."""
        held = dict.fromkeys(chain.from_iterable(self.held.get(node, ()) for node in nodes)) if self.held else ()
        return tuple(fact for fact in held if fact not in shown)

    def counts(self, counts: Iterable[RelationCount], direction: EdgeDirection) -> dict[str, int]:
        """Return the counts of one direction by the relations' short ids."""
        return {self.relation_id(each.relation): each.count.value for each in counts if each.direction == direction}

    def _apart(self, node: Node, position: Position, marks: str | None) -> str:
        short, whole, _, name = self._forms(node, position)
        return whole if marks is None or not name else with_id(set_apart(name, marks), short)

    def _is_id(self, text: str, position: Position) -> bool:
        try:
            self.prefixes.expand(text, position)
        except InvalidRequest:
            return False
        return True

    def _called(self) -> Counter[str]:
        """Return how many terms are shown by the same text alone."""
        if not self._namesakes:
            self._namesakes.update(shown_label(label, self.max_label) for label in self.labels.values())
            self._namesakes.update(self.entity_id(term) for term in self.terms if term not in self.labels)
        return self._namesakes

    def _forms(self, node: Node, position: Position) -> _Forms:
        """Return a term's short id, the term as people read it, its label, and what stands before the id there.

        An answer asks for them again and again.
        """
        shown = self._entities if position == "entity" else self._relations
        forms = shown.get(node)
        if forms is None:
            short = self.prefixes.shorten(node, position)
            label = shown_label(self.labels[node], self.max_label) if node in self.labels else None
            # A label that is the id itself is shown once.
            name = label if label is not None and label != short else ""
            if label is None and short.startswith("<") and not isinstance(node, BlankNode):
                name = shown_within(node.local_part, self.max_label)
            whole = with_id(name, short) if name else short
            if node in self.notes:
                name, whole = "", f"{short} [{self.notes[node]}]"
            forms = shown[node] = (short, whole, label, name)
        return forms


def in_graph(name: str) -> str:
    """Return the mark of a graph, which stands behind the relation of a fact; nothing without a graph."""
    return f" [{name}]" if name else ""


def with_id(label: str, id: str) -> str:
    """Return a term as people read it, by its label and its id."""
    return f"{label} ({id})"


async def names_of(graph: KGAdapter, terms: Iterable[Node], *, max_tokens: int | None = None) -> Names:
    """Return the names of everything that an answer shows, in one batch; without labels where these are late.

    Args:
        graph: Where the labels come from.
        terms: What is shown.
        max_tokens: The answer's budget, if it has one; a small one shortens labels, so that a fact fits into it.
    """
    wanted = dict.fromkeys(terms)
    most = MAX_LABEL if max_tokens is None else min(MAX_LABEL, max_tokens // 8)
    language = next((tag.partition("-")[0] for tag in graph.vocabulary.languages), None)
    labels: Mapping[Node, str] = {}
    if wanted:
        try:
            with anyio.fail_after(time_left_s(math.inf)):
                labels = await _labels(graph, wanted)
                if isinstance(graph, FederatedGraph):
                    await graph.tell_apart(wanted)
        except (TimeoutError, BackendTimeout):
            note_partial("Labels are missing: they did not come in time.")
    origins = graph.origins if isinstance(graph, FederatedGraph) else {}
    return Names(graph.prefixes, labels, most, language, terms=wanted.keys(), origins=origins)


async def _labels(graph: KGAdapter, terms: Collection[Node]) -> dict[Node, str]:
    """Return the labels of terms; a class expression without a name is written out, on one line."""
    # Lists are read with what other nodes without a name hold (`kg_server.answers.intermediates`).
    has_classes = OWL in graph.prefixes.namespaces.values()
    unnamed = [term for term in terms if has_classes and isinstance(term, BlankNode)]
    expressions = NO_EXPRESSIONS
    try:
        expressions = await read_expressions(graph, unnamed)
    except BackendError:
        note_partial("What classes without a name mean is missing: it could not be read.")
    named = tuple(dict.fromkeys((*terms, *expressions.terms())))
    labels = dict[Node, str]()
    for first in range(0, len(named), _AT_ONCE):
        # Anything but a mapping is an error, and not a graph without labels.
        labels |= {**await graph.labels(named[first : first + _AT_ONCE])}
        await anyio.lowlevel.checkpoint()
    found = expressions.labels([term for term in unnamed if term not in labels], labels)
    return {term: label for term, label in labels.items() if term in terms} | found


def terms_of(facts: Iterable[Fact]) -> Iterable[Node]:
    """Yield the nodes, relations and units of facts, with repeats."""
    for fact in facts:
        yield fact.head
        yield fact.relation
        if isinstance(fact, Triple):
            yield fact.tail
        elif (unit := unit_of(fact.tail)) is not None:
            yield unit


def ends_of(facts: Iterable[Fact]) -> Iterator[Node]:
    """Yield the nodes that facts are about or lead to, with repeats."""
    for fact in facts:
        yield fact.head
        if isinstance(fact, Triple):
            yield fact.tail


def shown_label(text: str, most: int = MAX_LABEL) -> str:
    """Return a label, shortened; none can pass for a literal by a quotation mark, or for a walk backwards by a `-`."""
    label = shown_within(text, most)
    return f"\\{label}" if label.startswith(('"', "-")) else label


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


def plural(noun: str) -> str:
    """Return the plural of an English noun as it is mostly formed; of `city of France` that of the first word."""
    head, mark, rest = _split(noun)
    if head.endswith("person"):
        formed = f"{head[:-6]}people"
    elif head.endswith("s") and not head.endswith(("ss", "us", "is", "as", "os")):
        # The names of tables are mostly plurals.
        formed = head
    elif head.endswith(("s", "x", "ch", "sh")):
        formed = f"{head}es"
    elif head.endswith("y") and head[-2:-1] not in {"", *"aeiou"}:
        formed = f"{head[:-1]}ies"
    else:
        formed = f"{head}s"
    return f"{formed}{mark}{rest}"


def _split(noun: str) -> tuple[str, str, str]:
    for mark in (" of ", " in ", " with ", " for ", " ("):
        head, found, rest = noun.partition(mark)
        if found:
            return head, found, rest
    return noun, "", ""
