"""Names in what a model writes as triples: read where they are exactly the name of one thing, and never guessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Self

from kg_adapters.errors import InvalidRequest, KGError, UnknownEntity
from kg_adapters.prefixes import Position
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import BlankNode, Iri, Node
from kg_boundary.shown import in_quotes, read_back
from kg_server.concurrency import together
from kg_server.entity_arguments import SHOWN, naming_refusal
from kg_server.identity import AT_ONCE, identify
from kg_server.memory.reading import Mention, Parts, Reading, Value, mentions, parts_of, read_tail, read_triple
from kg_server.names import MAX_LABEL, names_of
from kg_server.relation_resolution import NoSuchRelation, relations_named

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
    shown = ", ".join(names.relation(each.relation) for each in found[:SHOWN])
    raise InvalidRequest(f"{in_quotes(text, MAX_LABEL)} may mean {shown}. Give the id of the one that is meant.")
