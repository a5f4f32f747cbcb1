"""Explain why a triple was not kept."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Self, TypeAlias

from kg_adapters.errors import InvalidRequest, KGError, UnknownEntity
from kg_adapters.models import Degree, Description, Role
from kg_adapters.prefixes import Position
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Attribute, BlankNode, Fact, Iri, Literal, Node, Term, Triple
from kg_boundary.shown import in_quotes, read_back
from kg_server.concurrency import together
from kg_server.memory.reading import Mention, Parts, Reading, Value, mentions, parts_of, read_tail, read_triple
from kg_server.names import MAX_LABEL, Names, names_of
from kg_server.naming.entities import AT_ONCE, SHOWN, identify, naming_refusal
from kg_server.naming.refusals import unknown_entity
from kg_server.naming.relations import NoSuchRelation, relation_of, relations_named

MAX_NAME: Final = 1_000
"""How many characters a name may have."""


@dataclass(frozen=True)
class Readings:
    """What triples may mean, by their number.

    Args:
        read: Those that can be read.
        refused: Why the others cannot.
        names: What names in them were read as.
    """

    read: dict[int, Reading] = field(default_factory=dict[int, Reading])
    refused: dict[int, str] = field(default_factory=dict[int, str])
    names: dict[str, tuple[Position, Node]] = field(default_factory=dict[str, tuple[Position, Node]])


async def readings_of(graph: KGAdapter, written: Sequence[Sequence[str] | str]) -> Readings:
    """Read triples; what is no id may be a name, and a tail that is a word a name or a value."""
    found, unread = Readings(), dict[int, Parts]()
    for number, each in enumerate(written):
        try:
            found.read[number] = read_triple(each, graph.prefixes)
        except InvalidRequest as error:
            found.refused[number] = str(error)
        parts = parts_of(each)
        if parts is not None and _may_be_read(parts) and (number in found.refused or _is_word(parts[2], graph)):
            unread[number] = parts
    names = await _Names.of(graph, list(unread.values()))
    for number, parts in unread.items():
        try:
            found.read[number] = names.read(parts)
        except KGError as error:
            if _informs(error):
                found.refused[number] = str(error)
            continue
        found.refused.pop(number, None)
        found.names.update(names.taken(parts))
    return found


def _may_be_read(parts: Parts) -> bool:
    head, relation, _ = parts
    literal = head.startswith('"') or relation.startswith('"')
    return not literal and all(len(part) <= MAX_NAME and part.isprintable() for part in parts)


def _is_word(tail: str, graph: KGAdapter) -> bool:
    try:
        read, _ = read_tail(tail, graph.prefixes)
    except InvalidRequest:
        return False
    return isinstance(read, Value) and read.is_word


def _informs(error: KGError) -> bool:
    """Say whether an error names what may have been meant."""
    return not isinstance(error, NoSuchRelation) and not (isinstance(error, UnknownEntity) and not error.suggestions)


@dataclass(frozen=True)
class _Names:
    """What the parts of triples that are no ids name: one thing, or nothing, and why."""

    graph: KGAdapter
    entities: Mapping[str, Node | KGError]
    relations: Mapping[str, Node | KGError]

    @classmethod
    async def of(cls, graph: KGAdapter, triples: Sequence[Parts]) -> Self:
        heads = {head for head, _, _ in triples if not mentions(head, graph.prefixes, "entity")}
        entities = sorted(heads | {tail for _, _, tail in triples if _is_word(tail, graph)})
        relations = sorted({each for _, each, _ in triples if not mentions(each, graph.prefixes, "relation")})
        named = await together([partial(_entity, graph, each) for each in entities], at_once=AT_ONCE)
        walked = await together([partial(_relation, graph, each) for each in relations], at_once=AT_ONCE)
        return cls(graph, dict(zip(entities, named, strict=True)), dict(zip(relations, walked, strict=True)))

    def read(self, parts: Parts) -> Reading:
        """Return what a triple with names means.

        Raises:
            KGError: Its head or relation is neither an id nor exactly the name of one thing.
        """
        head, relation, text = parts
        first = mentions(head, self.graph.prefixes, "entity") or [_only(self.entities[head])]
        second = mentions(relation, self.graph.prefixes, "relation") or [_only(self.relations[relation])]
        tail, plain = read_tail(text, self.graph.prefixes)
        named = self.entities.get(text) if isinstance(tail, Value) and tail.is_word else None
        if named is None or isinstance(tail, Sequence):
            return Reading(first, second, tail, plain)
        if not isinstance(named, KGError):
            return Reading(first, second, [Mention(named)], tail, either=True)
        return Reading(first, second, replace(tail, refusal=str(named)) if _informs(named) else tail)

    def taken(self, parts: Parts) -> dict[str, tuple[Position, Node]]:
        """Return what the names of a triple that was read stand for."""
        head, relation, tail = parts
        found: tuple[tuple[str, Position, Node | KGError | None], ...] = (
            (head, "entity", self.entities.get(head)),
            (relation, "relation", self.relations.get(relation)),
            (tail, "entity", self.entities.get(tail)),
        )
        return {part: (place, node) for part, place, node in found if isinstance(node, Iri | BlankNode)}


def _only(found: Node | KGError) -> Mention:
    if isinstance(found, KGError):
        raise found
    return Mention(found)


async def _entity(graph: KGAdapter, text: str) -> Node:
    (identity,) = await identify(graph, [read_back(text)])
    if identity.match == "exact" and len(identity.named) == 1:
        return identity.named[0].entity
    raise await naming_refusal(graph, identity)


async def _relation(graph: KGAdapter, text: str) -> Iri:
    match, found = await relations_named(graph, read_back(text))
    if match == "exact" and len(found) == 1:
        return found[0].relation
    names = await names_of(graph, [each.relation for each in found])
    shown = ", ".join(names.relation(each.relation, ",") for each in found[:SHOWN])
    raise InvalidRequest(f"{in_quotes(text, MAX_LABEL)} may mean {shown}. Give the id of the one that is meant.")


SHOWN_TAILS: Final = 3
SHOWN_RELATIONS: Final = 5

_Edge: TypeAlias = tuple[Node, Iri]


@dataclass(frozen=True, slots=True)
class Stated:
    """A triple as it was written, with one reading chosen for each part.

    Args:
        head: What it is about.
        relation: What it says of it.
        tail: An entity or a value.
        plain: The value that the tail may be too, where the graph does not know the entity.
    """

    head: Mention
    relation: Mention
    tail: Mention | Value
    plain: Value | None = None

    @property
    def relation_iri(self) -> Iri:
        """The relation."""
        assert isinstance(self.relation.node, Iri)  # noqa: S101 - nothing else is read in relation position
        return self.relation.node

    @property
    def value(self) -> Value | None:
        """The value that the tail is, or may be."""
        return self.tail if isinstance(self.tail, Value) else self.plain

    @property
    def own_tail(self) -> Term:
        """The tail as it was written."""
        return self.tail.literal if isinstance(self.tail, Value) else self.tail.node

    @property
    def triple(self) -> Triple | None:
        """The triple, or None where the tail is a literal."""
        return None if isinstance(self.tail, Value) else Triple(self.head.node, self.relation_iri, self.tail.node)

    @property
    def fact(self) -> Fact:
        """What it says to the letter."""
        tail = self.own_tail
        if isinstance(tail, Literal):
            return Attribute(self.head.node, self.relation_iri, tail)
        return Triple(self.head.node, self.relation_iri, tail)

    @property
    def no_value(self) -> str:
        """Why the tail is neither an id nor by its form a value; empty where it is one of them."""
        return self.tail.refusal if isinstance(self.tail, Value) and self.tail.is_word else ""


@dataclass(frozen=True, slots=True)
class _Instead:
    """What the graph holds around triples that it does not hold."""

    reversed: frozenset[Fact]
    tails: Mapping[_Edge, Sequence[Term]]
    relations: Mapping[Node, Sequence[Iri]]


async def reasons_for(
    graph: KGAdapter, missing: Sequence[Stated], described: Mapping[Node, Description]
) -> Sequence[str]:
    """Return for each triple that was not found why it was not, a full sentence that names what there is."""
    if not missing:
        return ()
    reasons = [await _unknown(graph, each, described) for each in missing]
    known = [each for each, reason in zip(missing, reasons, strict=True) if reason is None]
    instead = await _around(graph, known)
    names = await names_of(graph, _terms(known, instead))
    return [
        _reason(each, instead, names) if reason is None else reason
        for each, reason in zip(missing, reasons, strict=True)
    ]


async def _unknown(graph: KGAdapter, stated: Stated, described: Mapping[Node, Description]) -> str | None:
    """Return which part of a triple the graph does not know, or None if it knows them all."""
    for mention in (stated.head, stated.tail):
        if isinstance(mention, Mention) and not _serves_as(mention.node, "entity", described):
            return str(await unknown_entity(graph, mention.node, graph.prefixes.shorten(mention.node)))
    if _serves_as(stated.relation.node, "relation", described):
        return None
    try:
        await relation_of(graph, graph.prefixes.shorten(stated.relation.node, "relation"), around=[stated.head.node])
    except KGError as error:
        return str(error)
    return None


def _serves_as(node: Node, role: Role, described: Mapping[Node, Description]) -> bool:
    return node in described and role in described[node].roles


async def _around(graph: KGAdapter, known: Sequence[Stated]) -> _Instead:
    triples = [each.triple for each in known if each.triple is not None]
    reversed_ones = await graph.contains(frozenset(_turned(triple) for triple in triples))
    tails = await _tails(graph, known)
    bare = list(dict.fromkeys(each.head.node for each in known if not tails[each.head.node, each.relation_iri]))
    degrees: Mapping[Node, Degree] = await graph.degrees(bare, direction="out") if bare else {}
    relations = {
        node: [each.relation for each in sorted(degree.relations, key=lambda each: (-each.count.value, each.relation))]
        for node, degree in degrees.items()
    }
    return _Instead(reversed_ones, tails, relations)


async def _tails(graph: KGAdapter, known: Sequence[Stated]) -> Mapping[_Edge, Sequence[Term]]:
    """Return some of what each head has over its relation: entities, or else values."""
    nodes = tuple(dict.fromkeys(each.head.node for each in known))
    relations = frozenset(each.relation_iri for each in known)
    if not nodes:
        return {}
    most = SHOWN_TAILS + 1
    request = NeighborRequest(
        nodes, "out", relations, limit=2 * most * len(relations), limit_per_relation=most, values=True
    )
    entities: defaultdict[_Edge, list[Term]] = defaultdict(list)
    values: defaultdict[_Edge, list[Term]] = defaultdict(list)
    for page in (await graph.neighbors(request)).values():
        for fact in page.facts:
            (values if isinstance(fact, Attribute) else entities)[fact.head, fact.relation].append(fact.tail)
    edges = [(each.head.node, each.relation_iri) for each in known]
    return {edge: entities[edge] or values[edge] for edge in edges}


def _terms(known: Sequence[Stated], instead: _Instead) -> Sequence[Node]:
    terms: list[Node] = []
    for each in known:
        terms.extend((each.head.node, each.relation_iri))
        if isinstance(each.tail, Mention):
            terms.append(each.tail.node)
        terms.extend(tail for tail in instead.tails[each.head.node, each.relation_iri] if not isinstance(tail, Literal))
        terms.extend(instead.relations.get(each.head.node, ())[:SHOWN_RELATIONS])
    return terms


def _reason(stated: Stated, instead: _Instead, names: Names) -> str:
    head, relation = names.entity(stated.head.node), names.relation(stated.relation_iri)
    turned = None if stated.triple is None else _turned(stated.triple)
    if turned in instead.reversed:
        return f"the graph has it only the other way round, {names.triple(turned)}. Swap head and tail."
    tails = instead.tails[stated.head.node, stated.relation_iri]
    if tails:
        shown = ", ".join(names.term(tail, marks=",") for tail in tails[:SHOWN_TAILS])
        others = " and others" if len(tails) > SHOWN_TAILS else ""
        return f"the graph does not have it. There, {head} has {relation} {shown}{others}."
    relations = instead.relations.get(stated.head.node, ())
    has = ", ".join(names.relation(each, ",") for each in relations[:SHOWN_RELATIONS])
    more = len(relations) - SHOWN_RELATIONS
    others = f" and {more} more" if more > 0 else ""
    rest = f"It has {has}{others}" if has else "It is the head of no triple"
    return f"the graph does not have it. There, {head} has no {relation}. {rest}; Feature lists its values."


def _turned(triple: Triple) -> Triple:
    return Triple(triple.tail, triple.relation, triple.head)
