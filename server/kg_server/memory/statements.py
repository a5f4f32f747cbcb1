"""From triples as they were written to the terms that they stand for.

A head or relation is an id, alone or behind its label, `Tokyo (Q1490)`, or the name of exactly one thing. A tail may
also be a literal as results show it: `"1832-03-22"^^xsd:date`, `"Tokyo"@en`, or just the text in quotes, or what people
write: `1832-03-22`, `2,544`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from kg_adapters.errors import BackendError, InvalidRequest, KGError
from kg_adapters.models import Description
from kg_adapters.prefixes import SCHEMES, JoinedPrefixes, Position, Prefixes
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING, Attribute, Fact, Iri, Literal, Node, Triple
from kg_boundary.shown import counted, in_quotes, read_back
from kg_server.answers.values import value_of
from kg_server.concurrency import together
from kg_server.memory.lines import MAX_LINE, Written, columns_of
from kg_server.memory.namesakes import of_triple
from kg_server.names import MAX_LABEL, names_of
from kg_server.naming.entities import AT_ONCE, SHOWN, Identity, identify, naming_refusal
from kg_server.naming.labelled import is_shown_as, with_ids
from kg_server.naming.relations import relations_named
from kg_server.naming.subproperties import subproperties

MAX_PART: Final = 3_000
"""How many characters a head, relation or tail may have."""

MAX_NAME: Final = 1_000
"""How many characters a name may have."""

_NAMED: Final = re.compile(r'"((?:\\.|[^"\\])*)" \(.+\)', re.DOTALL)
"""A label that stands in quotation marks, and its id: lists write it so where it holds a comma."""
_LITERAL: Final = re.compile(r'"(.*)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^(\S+))?', re.DOTALL)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class NodeMention:
    """A node, and the label that was written before its id, if any.

    Args:
        node: The node.
        label: The label; empty where only quotation marks or brackets stand around the id.
        id: What was read as an IRI although it has the look of a prefixed name of another graph; "" for anything else.
    """

    node: Node
    label: str | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A literal as it was written: without datatype and language, any literal with this text is meant.

    Without quotes it is a value as people write it, which only the graph can tell from other words.

    Args:
        text: Its text.
        datatype: Its datatype, where one was written.
        language: Its language, where one was written.
        written: The text as it was written, before its escapes were read.
        quoted: Whether it stood in quotes.
    """

    text: str
    datatype: Iri | None = None
    language: str | None = None
    written: str = field(default="", compare=False)
    quoted: bool = True

    @property
    def is_word(self) -> bool:
        """Whether it is no value by its form, so that it may be a name."""
        return not self.quoted and value_of(self.text) is None

    @property
    def is_key(self) -> bool:
        """Whether it may be the id of a row, which is a number as others are."""
        return not self.quoted and self.text.isdecimal() and not self.is_word

    @property
    def literal(self) -> Literal:
        """The literal that this is when no graph says better."""
        if self.language is not None:
            return Literal(self.text, RDF_LANG_STRING, self.language)
        by_form = None if self.quoted else value_of(self.text)
        return by_form or Literal(self.text, self.datatype or XSD_STRING)


@dataclass(frozen=True, slots=True)
class Stated:
    """A triple with one reading chosen for each part.

    Args:
        head: What it is about.
        relation: What it says of it.
        tail: The entity that the tail is, or None where it is a value.
        value: The value that the tail is, or may be where the graph does not have the triple.
        refusal: Why the tail is no entity, where it is a word that no value looks like.
        turned: The relation that it was written with, where the graph has it only the other way, over the inverse.
    """

    head: NodeMention
    relation: NodeMention
    tail: NodeMention | None
    value: Value | None
    refusal: str = ""
    turned: NodeMention | None = None

    @property
    def relation_iri(self) -> Iri:
        """The relation."""
        assert isinstance(self.relation.node, Iri)  # noqa: S101 - nothing else is read in relation position
        return self.relation.node

    @property
    def mentions(self) -> Sequence[NodeMention]:
        """All that it names, in the order in which it was written."""
        if self.turned is not None and self.tail is not None:
            return (self.tail, self.turned, self.head)
        return (self.head, self.relation, *(() if self.tail is None else (self.tail,)))

    def turned_over(self, *relations: Iri | None) -> Iterator["Stated"]:
        """Yield the triple over relations that say the same backwards."""
        for each in relations:
            if each is not None and self.tail is not None:
                yield Stated(self.tail, NodeMention(each), self.head, None, turned=self.relation)

    @property
    def fact(self) -> Fact:
        """What it says to the letter."""
        if self.tail is not None:
            return Triple(self.head.node, self.relation_iri, self.tail.node)
        assert self.value is not None  # noqa: S101 - a tail is one of the two
        return Attribute(self.head.node, self.relation_iri, self.value.literal)


@dataclass(frozen=True, slots=True)
class StatedTriples:
    """What triples state, by their number.

    Args:
        stated: Those that can be read.
        refused: Why the others cannot.
        names: What names in them were read as, and whether as a relation.
        described: What the graph knows of all nodes in them.
    """

    stated: Mapping[int, Stated]
    refused: Mapping[int, str]
    names: Mapping[str, tuple[Position, Node]]
    described: Mapping[Node, Description]


async def read_statements(graph: KGAdapter, written: Sequence[Written]) -> StatedTriples:
    """Return what triples state; a part that is neither an id nor exactly the name of one thing is refused."""
    triples, refused = dict[int, _Triple](), dict[int, str]()
    for number, line in enumerate(written):
        try:
            triples[number] = _triple(line, graph.prefixes)
        except InvalidRequest as error:
            refused[number] = str(error)
    parts = [part for each in triples.values() for part in each.parts]
    described = dict(await graph.describe([mention.node for part in parts for mention in part.mentions]))
    named, identities = await _named(
        graph, [part for part in parts if not part.mentions or part.is_misnamed(described)]
    )
    nodes = [node for found in named.values() if not isinstance(found, KGError) for node in found]
    nodes += [node for each in identities.values() for node in each.rivals]
    described |= await graph.describe(nodes) if nodes else {}
    stated = dict[int, Stated]()
    for number, each in triples.items():
        try:
            stated[number] = each.stated(named, described, await _by_relation(graph, each, named, identities))
        except KGError as error:
            refused[number] = str(error)
    for number, chosen in (await _as_held(graph, stated, triples, named, described)).items():
        if isinstance(chosen, Stated):
            stated[number] = chosen
        else:
            refused[number] = str(chosen)
            del stated[number]
    return StatedTriples(stated, refused, _names(stated, triples), described)


def _names(stated: Mapping[int, Stated], triples: Mapping[int, "_Triple"]) -> Mapping[str, tuple[Position, Node]]:
    """Return what names were read as; without those that mean different things in different triples."""
    read: dict[str, set[tuple[Position, Node]]] = {}
    for number, each in stated.items():
        for part, mention in zip(triples[number].parts, each.mentions, strict=False):
            if not part.mentions:
                read.setdefault(part.text, set()).add((part.position, mention.node))
    return {text: next(iter(meant)) for text, meant in read.items() if len(meant) == 1}


async def _as_held(
    graph: KGAdapter,
    stated: Mapping[int, Stated],
    triples: Mapping[int, "_Triple"],
    named: "_Named",
    described: Mapping[Node, Description],
) -> Mapping[int, Stated | KGError]:
    """Return the triples that may be read in several ways, each in the first that the graph holds, or why it has none.

    There are several where a name is one of several relations, and where a relation has an inverse.
    """
    if not stated:
        return {}
    profile = await graph.profile()
    readings: dict[int, list[Stated]] = {}
    over: dict[int, Sequence[Stated]] = {}
    for number, each in stated.items():
        part = triples[number].relation
        found = () if part.mentions else named[part]
        several: Sequence[Node] = () if isinstance(found, KGError) or len(found) < 2 else found
        over[number] = [replace(each, relation=NodeMention(one)) for one in several] or [each]
        readings[number] = [
            way for one in over[number] for way in (one, *one.turned_over(profile.inverse_of(one.relation_iri)))
        ]
        if not part.mentions:
            _, behind = subproperties(profile, [one.relation_iri for one in over[number]])
            readings[number] += each.turned_over(*behind)
    asked = [way.fact for ways in readings.values() for way in ways if len(ways) > 1]
    held = await graph.contains(asked) if asked else ()
    chosen: dict[int, Stated | KGError] = {}
    for number, ways in readings.items():
        first = next((way for way in ways if way.fact in held), None)
        if first is not None or len(over[number]) < 2:
            chosen[number] = first or stated[number]
            continue
        text, relations = triples[number].relation.text, [each.relation_iri for each in over[number]]
        below, _ = subproperties(profile, relations[:1])
        own = [each for each in relations if each not in below]
        used = (one for one in over[number] if (of := described.get(one.relation_iri)) and "relation" in of.roles)
        chosen[number] = await _ambiguous(graph, text, own) if len(own) > 1 else next(used, stated[number])
    return chosen


@dataclass(frozen=True, slots=True)
class _Part:
    """A text, and what the id in it may stand for, the likeliest first; without any it may be a name.

    There are several only where an id may itself look like a label with an id.
    """

    text: str
    position: Position
    mentions: Sequence[NodeMention] = field(compare=False)

    def meant(self, named: "_Named", described: Mapping[Node, Description]) -> NodeMention:
        """Return the one reading that counts.

        Raises:
            KGError: It is neither an id nor exactly the name of one thing.
        """
        found = named.get(self)
        if found is None:
            return self._first(described)
        if isinstance(found, KGError):
            raise found
        return NodeMention(found[0])

    def is_misnamed(self, described: Mapping[Node, Description]) -> bool:
        """Return whether the text is not how the graph shows the entity of the id, so that all of it may be a name."""
        if self.position == "relation" or not self.mentions:
            return False
        first = self._first(described)
        real = described[first.node].label if first.node in described else None
        if first.label is None or real is None:
            return False
        return not first.label or not is_shown_as(first.label, real)

    def _first(self, described: Mapping[Node, Description]) -> NodeMention:
        """Return the first reading that the graph has: all of the text as an id before an id behind a label."""
        known = [each for each in self.mentions if each.node in described]
        return min(known, key=lambda each: each.label is not None, default=self.mentions[0])


_Ends: TypeAlias = tuple[Node | None, Node | None]
"""The head and the tail of a triple, where its relation decides on what they are."""

_Named: TypeAlias = Mapping[_Part, Sequence[Node] | KGError]
"""What names mean: one thing, or all relations of a name."""


@dataclass(frozen=True, slots=True)
class _Triple:
    """A triple as it was written; a tail may be an entity, a value, or either."""

    head: _Part
    relation: _Part
    tail: _Part | None
    value: Value | None

    @property
    def parts(self) -> Sequence[_Part]:
        """All that is no value for sure."""
        return (self.head, self.relation, *(() if self.tail is None else (self.tail,)))

    @property
    def is_keyed(self) -> bool:
        """Whether the tail is a number, which is a row only where the relation leads to a row of this id."""
        return self.value is not None and self.value.is_key and self.tail is not None and not self.tail.mentions

    def stated(self, named: _Named, described: Mapping[Node, Description], ends: _Ends = (None, None)) -> Stated:
        """Return the triple with one reading chosen for each part.

        Raises:
            KGError: A part cannot be read.
        """
        first, last = ends
        head = self.head.meant(named, described) if first is None else NodeMention(first)
        relation = self.relation.meant(named, described)
        if self.tail is None or (self.is_keyed and last is None):
            return Stated(head, relation, None, self.value)
        try:
            tail = self.tail.meant(named, described) if last is None else NodeMention(last)
        except KGError as error:
            refusal = f'{error} Put a literal tail in quotes, "like this".'
            if self.value is None:
                raise InvalidRequest(refusal) from error
            return Stated(head, relation, None, self.value, refusal)
        # An id that the graph knows is no value; a name may be one as well.
        known = self.tail.mentions and tail.node in described
        return Stated(head, relation, tail, None if known else self.value)


def _triple(written: Written, prefixes: Prefixes) -> _Triple:
    _require_short(written if isinstance(written, str) else "", MAX_LINE)
    columns = columns_of(written) if isinstance(written, str) else [part.strip() for part in written]
    if len(columns) != 3:
        raise InvalidRequest(
            f"it is not a triple: it has {counted(len(columns), 'part')}. Expected [head, relation, tail], or the line "
            "head | relation | tail, in which a bar inside a name is written \\|."
        )
    for part in columns:
        _require_short(part, MAX_PART)
    head, relation, tail = columns
    for part, place in ((head, "head"), (relation, "relation")):
        if _is_quoted(part):
            raise InvalidRequest(f"its {place} is a literal. Only a tail may be one; entities and relations are ids.")
    value = _value(tail, prefixes)
    end = _part(tail, prefixes, "entity")
    may_be_entity = end.mentions or value is None or value.is_word or value.is_key
    return _Triple(
        _part(head, prefixes, "entity"),
        _part(relation, prefixes, "relation"),
        end if may_be_entity else None,
        value,
    )


def _require_short(text: str, most: int) -> None:
    if len(text) > most:
        raise InvalidRequest(f"it has {len(text):,} characters where {most:,} are allowed. Copy it as results show it.")


def _is_quoted(text: str) -> bool:
    return text.startswith('"') and _NAMED.fullmatch(text) is None


def _value(text: str, prefixes: Prefixes) -> Value | None:
    """Return the value that a tail is or may be; None where it cannot be one."""
    if not _is_quoted(text):
        return None if not text or _SURROGATE.search(text) else Value(read_back(text), written=text, quoted=False)
    literal = _LITERAL.fullmatch(text)
    if literal is None:
        raise InvalidRequest('its tail is not a literal. Expected "text", "text"@en or "1832-03-22"^^xsd:date.')
    value, language, datatype = literal.group(1, 2, 3)
    if _SURROGATE.search(value):
        raise InvalidRequest("its tail holds a broken character, which no graph can hold. Remove it.")
    return Value(read_back(value), None if datatype is None else _datatype(datatype, prefixes), language, value)


def _datatype(text: str, prefixes: Prefixes) -> Iri:
    if text.startswith("xsd:"):
        return Iri(XSD + text.removeprefix("xsd:"))
    node = prefixes.expand(text)
    if not isinstance(node, Iri):
        raise InvalidRequest("the datatype of its tail is a blank node; a datatype is always an IRI.")
    return node


def _part(text: str, prefixes: Prefixes, position: Position) -> _Part:
    found = () if _is_quoted(text) else _candidates(text, prefixes, position)
    return _Part(text, position, list(found))


def _candidates(text: str, prefixes: Prefixes, position: Position) -> Iterator[NodeMention]:
    for each in with_ids(text):
        yield from _mentions(each.id, read_back(each.label), prefixes, position)
    yield from _mentions(text, None, prefixes, position)


def _mentions(text: str, label: str | None, prefixes: Prefixes, position: Position) -> Iterator[NodeMention]:
    """Yield what an id stands for, of several graphs in each."""
    if isinstance(prefixes, JoinedPrefixes):
        yield from (NodeMention(node, label) for node in prefixes.readings(text, position))
        return
    with suppress(InvalidRequest):
        node = prefixes.expand(text, position)
        plain = isinstance(node, Iri) and node.value == text and text.partition(":")[0].lower() not in SCHEMES
        yield NodeMention(node, label, text if plain else "")


async def _by_relation(graph: KGAdapter, triple: _Triple, named: _Named, identities: Mapping[_Part, Identity]) -> _Ends:
    """Return what the head and tail of a triple mean, where its relation decides on several things of one name."""
    head = identities.get(triple.head)
    tail = None if triple.tail is None else identities.get(triple.tail)
    if not triple.is_keyed and not any(each is not None and each.rivals for each in (head, tail)):
        return None, None
    found = named.get(triple.relation, [each.node for each in triple.relation.mentions[:1]])
    relations = [] if isinstance(found, KGError) else [each for each in found if isinstance(each, Iri)]
    return await of_triple(graph, head, triple.relation.text, relations, tail, is_keyed=triple.is_keyed)


async def _named(graph: KGAdapter, parts: Sequence[_Part]) -> tuple[_Named, Mapping[_Part, Identity]]:
    """Return the one thing or the relations that each part exactly names, or why it names none; and all who do."""
    found: dict[_Part, Sequence[Node] | KGError] = {}
    for part in dict.fromkeys(parts):
        try:
            if not (part.text.isprintable() and 0 < len(part.text) <= MAX_NAME):
                graph.prefixes.expand(part.text, part.position)
        except InvalidRequest as error:
            if not part.mentions:
                found[part] = error
    left = [part for part in dict.fromkeys(parts) if part not in found]
    entities = [part for part in left if part.position == "entity"]
    relations = [part for part in left if part.position == "relation"]
    identities = await identify(graph, [read_back(part.text) for part in entities])
    for part, identity in zip(entities, identities, strict=True):
        exact = identity.match == "exact" and len(identity.nodes) == 1
        if part.mentions and not (exact and identity.named[0].matched_by != "id"):
            continue
        found[part] = identity.nodes if exact else await naming_refusal(graph, identity)
    walked = await together([partial(_relations, graph, part.text) for part in relations], at_once=AT_ONCE)
    for failed in walked:
        if isinstance(failed, BackendError):
            raise failed
    meant = {part: each for part, each in zip(entities, identities, strict=True) if part in found}
    return found | dict(zip(relations, walked, strict=True)), meant


async def _relations(graph: KGAdapter, text: str) -> Sequence[Node]:
    match, found = await relations_named(graph, read_back(text), shown=True)
    relations = [each.relation for each in found]
    if match == "exact":
        return (
            relations
            if found[0].matched_by == "id"
            else [*relations, *subproperties(await graph.profile(), relations)[0]]
        )
    raise await _ambiguous(graph, text, relations)


async def _ambiguous(graph: KGAdapter, text: str, relations: Sequence[Iri]) -> InvalidRequest:
    names = await names_of(graph, relations)
    shown = ", ".join(names.relation(each, ",") for each in relations[:SHOWN])
    return InvalidRequest(f"{in_quotes(text, MAX_LABEL)} may mean {shown}. Give the id of the one that is meant.")
