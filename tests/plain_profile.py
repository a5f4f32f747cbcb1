"""The profile of a graph as plain counting gives it, statement by statement, to compare others with."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TypeAlias

from kg_adapters.inverses import (
    DECLARING,
    OWL_INVERSE,
    OWL_SYMMETRIC,
    DeclaredLinks,
    PairCounts,
    choose_inverses,
    subproperties,
)
from kg_adapters.labels import Vocabulary
from kg_adapters.models import EdgeDirection
from kg_adapters.profile import (
    MAX_CLASSES,
    MAX_PROPERTIES,
    MAX_RELATIONS,
    MAX_TARGETS,
    VALUE_KINDS,
    ClassProfile,
    GraphProfile,
    InverseRelations,
    PropertyProfile,
    Subproperties,
    ValueCount,
    ValueKind,
    ValueRange,
    compared_by,
    kind_of,
    unit_in,
)
from kg_adapters.terms import Iri, Literal, Node, Term, literal_key, node_key
from kg_adapters.values import order_of, unit_of, value_kind

Statement: TypeAlias = tuple[Node, Iri, Term]
LabelOf: TypeAlias = Callable[[Node], str | None]

_Place: TypeAlias = tuple[float, str, tuple[str, str, str]]


def profile_of(
    statements: Iterable[Statement], vocabulary: Vocabulary, *, entities: Collection[Node], label: LabelOf
) -> GraphProfile:
    """Return the profile of a graph.

    Args:
        statements: Every statement once, in any order.
        vocabulary: Says which relations lead to classes and to wider classes, and which only name and describe.
        entities: The nodes that count as entities; what is said of others is left out.
        label: Returns the label of a class or relation.
    """
    found = _Statements(entities)
    for head, relation, tail in statements:
        found.add(head, relation, tail)
    members = _Members(found, vocabulary)
    properties = _properties(found, members, label)
    sizes = Counter(owner for node in entities for owner in members.owners(node))
    direct = Counter(owner for node in entities for owner in members.direct(node))

    def known(owner: Node | None) -> ClassProfile:
        listed = sorted(properties.get(owner, ()), key=_property_order)
        wider = () if owner is None else tuple(sorted(members.broader(owner), key=node_key))
        name, size = (None, len(entities)) if owner is None else (label(owner), sizes[owner])
        cut = tuple(listed[: MAX_RELATIONS if owner is None else MAX_PROPERTIES])
        stated = 0 if owner is None else direct[owner]
        return ClassProfile(owner, name, size, stated, wider, cut, complete=len(cut) == len(listed))

    order = sorted((owner for owner in sizes if owner is not None), key=lambda owner: (-sizes[owner], node_key(owner)))
    return GraphProfile(
        everything=known(None),
        classes=tuple(known(owner) for owner in order[:MAX_CLASSES]),
        inverses=(inverses := found.inverses()),
        subproperties=found.subproperties(inverses),
        values=found.values(vocabulary),
        complete=len(order) <= MAX_CLASSES,
    )


class _Statements:
    """The statements of a graph by relation: what each head leads to, and what leads to each tail."""

    def __init__(self, entities: Collection[Node]) -> None:
        self._entities = entities
        self.edges: defaultdict[Iri, defaultdict[Node, list[Term]]] = _groups()
        self.literals: defaultdict[Iri, defaultdict[Node, list[Term]]] = _groups()
        self.back: defaultdict[Iri, defaultdict[Node, list[Term]]] = _groups()
        self._pairs: defaultdict[tuple[Node, Node], list[Iri]] = defaultdict(list)

    def add(self, head: Node, relation: Iri, tail: Term) -> None:
        if isinstance(tail, Literal):
            if head in self._entities:
                self.literals[relation][head].append(tail)
            return
        self.edges[relation][head].append(tail)
        self.back[relation][tail].append(head)
        if head != tail:
            self._pairs[head, tail].append(relation)

    def values(self, vocabulary: Vocabulary) -> tuple[ValueCount, ...]:
        """Count the values of each kind, names and descriptions left out."""
        kinds = Counter(
            value_kind(value)
            for relation in self.literals.keys() - vocabulary.texts
            for values in self.literals[relation].values()
            for value in values
            if isinstance(value, Literal)
        )
        return tuple(ValueCount(kind, kinds[kind]) for kind in VALUE_KINDS if kinds[kind])

    def inverses(self) -> tuple[InverseRelations, ...]:
        """Return the pairs of inverse relations."""
        stored, back, along = Counter[Iri](), Counter[tuple[Iri, Iri]](), Counter[tuple[Iri, Iri]]()
        for (head, tail), relations in self._pairs.items():
            stored.update(relations)
            along.update((one, other) for one, other in product(relations, relations) if one != other)
            back.update(product(relations, self._pairs.get((tail, head), ())))
        return choose_inverses(PairCounts(stored, back, along), self.links.inverses)

    def subproperties(self, inverses: Iterable[InverseRelations]) -> Subproperties:
        """Return the relations that hold only where a wider one does."""
        return subproperties(self.links, inverses, used={*self.edges, *self.literals})

    @cached_property
    def links(self) -> DeclaredLinks:
        """What is declared of relations."""
        return DeclaredLinks.of(self._declared())

    def _declared(self) -> Iterator[tuple[Term, Iri, Term]]:
        for relation in DECLARING:
            for head, tails in _of(self.edges, relation).items():
                yield from ((head, relation, tail) for tail in tails)
        for groups in self.edges.values():
            for head, tails in groups.items():
                if OWL_SYMMETRIC in tails:
                    yield head, OWL_INVERSE, head


class _Members:
    """Which classes every node belongs to."""

    def __init__(self, found: _Statements, vocabulary: Vocabulary) -> None:
        self._direct: defaultdict[Node, set[Node]] = defaultdict(set)
        self._broader: defaultdict[Node, set[Node]] = defaultdict(set)
        for relations, into in ((vocabulary.types, self._direct), (vocabulary.subclasses, self._broader)):
            for relation in relations:
                for head, tails in _of(found.edges, relation).items():
                    into[head].update(tail for tail in tails if not isinstance(tail, Literal))
        self._owners: dict[frozenset[Node], tuple[Node | None, ...]] = {}

    def direct(self, node: Node) -> Collection[Node]:
        """Return the classes that a node is said to be of."""
        return self._direct.get(node, ())

    def broader(self, owner: Node) -> Collection[Node]:
        """Return what a class is said to be a subclass of."""
        return self._broader.get(owner, ())

    def owners(self, node: Node) -> tuple[Node | None, ...]:
        """Return all classes that a node is an instance of, and None for the whole graph."""
        direct = frozenset(self.direct(node))
        if direct not in self._owners:
            reached, ahead = set(direct), list(direct)
            while ahead:
                fresh = set(self.broader(ahead.pop())) - reached
                reached |= fresh
                ahead.extend(fresh)
            self._owners[direct] = (None, *reached)
        return self._owners[direct]


@dataclass(slots=True)
class _Tally:
    """What is counted of one class, relation and direction."""

    instances: int = 0
    facts: int = 0
    targets: Counter[Node] = field(default_factory=Counter[Node])
    datatypes: Counter[Iri] = field(default_factory=Counter[Iri])
    ends: dict[ValueKind | Iri, "_Ends"] = field(default_factory=dict[ValueKind | Iri, "_Ends"])

    def add(self, node: Node, others: Sequence[Term], members: _Members) -> None:
        self.instances += 1
        self.facts += len(others)
        for other in others:
            if isinstance(other, Literal):
                self._add_value(node, other)
            else:
                self.targets.update(members.direct(other))

    def property(self, relation: Iri, direction: EdgeDirection, label: str | None) -> PropertyProfile:
        targets = sorted(self.targets.items(), key=lambda item: (-item[1], node_key(item[0])))
        values = self._range(label) if self.datatypes else None
        return PropertyProfile(
            relation, direction, label, self.instances, self.facts, tuple(targets[:MAX_TARGETS]), values
        )

    def _add_value(self, node: Node, value: Literal) -> None:
        self.datatypes[value.datatype] += 1
        order = order_of(value)
        if order is None:
            return
        where = node_key(node), literal_key(value)
        ends = self.ends.setdefault(unit_of(value) or kind_of(value.datatype), _Ends())
        ends.least.append(((order, *where), value))
        ends.greatest.append(((-order, *where), value))
        ends.cut()

    def _range(self, label: str | None) -> ValueRange:
        datatypes = tuple(sorted(self.datatypes, key=lambda iri: (-self.datatypes[iri], iri)))
        kinds = compared_by(datatypes)
        ends = next((self.ends[each] for each in kinds if each in self.ends), None)
        if ends is None:
            return ValueRange(datatypes, unit=unit_in(label))
        return ValueRange(datatypes, ends.least[0][1], ends.greatest[0][1], unit_in(label))


@dataclass(slots=True)
class _Ends:
    """The least and the greatest value so far, each with what orders it; the first by entity of equal ones."""

    least: list[tuple[_Place, Literal]] = field(default_factory=list[tuple[_Place, Literal]])
    greatest: list[tuple[_Place, Literal]] = field(default_factory=list[tuple[_Place, Literal]])

    def cut(self) -> None:
        for side in (self.least, self.greatest):
            side[:] = [min(side, key=lambda item: item[0])]


def _properties(found: _Statements, members: _Members, label: LabelOf) -> Mapping[Node | None, list[PropertyProfile]]:
    properties: defaultdict[Node | None, list[PropertyProfile]] = defaultdict(list)
    sides: tuple[tuple[EdgeDirection, Collection[Iri]], ...] = (
        ("out", found.edges.keys() | found.literals.keys()),
        ("in", found.back.keys()),
    )
    for direction, relations in sides:
        for relation in relations:
            tallies: defaultdict[Node | None, _Tally] = defaultdict(_Tally)
            for node, others in _around(found, relation, direction):
                for owner in members.owners(node):
                    tallies[owner].add(node, others, members)
            for owner, tally in tallies.items():
                properties[owner].append(tally.property(relation, direction, label(relation)))
    return properties


def _around(found: _Statements, relation: Iri, direction: EdgeDirection) -> Iterator[tuple[Node, list[Term]]]:
    if direction == "in":
        yield from found.back[relation].items()
        return
    edges, literals = _of(found.edges, relation), _of(found.literals, relation)
    for node in edges.keys() | literals.keys():
        yield node, [*edges.get(node, ()), *literals.get(node, ())]


def _property_order(known: PropertyProfile) -> tuple[bool, int, Iri]:
    return known.direction == "in", -known.instances, known.relation


def _of(groups: Mapping[Iri, Mapping[Node, list[Term]]], relation: Iri) -> Mapping[Node, list[Term]]:
    return groups.get(relation, {})


def _groups() -> defaultdict[Iri, defaultdict[Node, list[Term]]]:
    return defaultdict(lambda: defaultdict(list))
