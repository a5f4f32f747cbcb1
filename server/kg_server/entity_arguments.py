"""What stands for entities in a call: ids, and names of exactly one thing.

A name is read where it names one thing exactly, or closely; the answer then says as what it was read. Otherwise nothing
is computed, and the refusal holds the candidates with what tells them apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.errors import InvalidRequest, KGError, UnknownEntity, UnknownName
from kg_adapters.local.names.folding import fold
from kg_adapters.models import Candidate
from kg_adapters.prefixes import MAX_ID_LENGTH
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_boundary.shown import in_quotes
from kg_server.answers.cards import portraits_of
from kg_server.answers.coverage import plural
from kg_server.answers.results import Answer, token_count
from kg_server.identity import Identity, entities_of_ids, identify, said_of_reading
from kg_server.names import MAX_LABEL, Names, names_of
from kg_server.resolve import relation_hint, require_entity

SHOWN: Final = 5
"""How many candidates a refusal shows."""
MOST_NEAR: Final = 3
"""How many of those that are near a name and do not bear it."""

_LEAST_TOKENS: Final = 300
_SEVERAL: Final = "Give the id of the one that is meant."
_SEARCH: Final = "Retrieve finds things by other words."
_IDS_BEGIN: Final = ("<", "_:")


@dataclass(frozen=True, slots=True)
class ReadAs:
    """An argument, and the id that it stands for.

    Args:
        text: The argument.
        id: The id.
        shown: What it was read as, where it was a name.
        note: A sentence on that, where the name is not simply the label.
        aside: The same before a sentence that begins with what it was read as.
    """

    text: str
    id: str
    shown: str = ""
    note: str = ""
    aside: str = ""


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """The entities of one call."""

    entities: tuple[ReadAs, ...]

    @property
    def ids(self) -> list[str]:
        """The ids, in the order of the arguments."""
        return [each.id for each in self.entities]

    @property
    def note(self) -> str:
        """What was read as what; empty where every argument is an id or a label."""
        return " ".join(dict.fromkeys(each.note for each in self.entities if each.note))

    def room(self, max_tokens: int) -> int:
        """Return what an answer may cost beside the note."""
        return max(_LEAST_TOKENS, max_tokens - 3 * token_count(self.note)) if self.note else max_tokens

    def told(self, answer: Answer) -> Answer:
        """Return an answer that says first what was read as what."""
        read = {each.text: each.id for each in self.entities if each.shown}
        if not read:
            return answer
        told = {"summary": self._before(answer.result.summary), "read": read}
        return replace(answer, result=answer.result.model_copy(update=told))

    def _before(self, summary: str) -> str:
        """Return a first line with the note before it; what is named in both is named once."""
        (first, *others) = self.entities
        if first.note and not others and summary.startswith(f"{first.shown} "):
            return f"{first.aside} {summary}"
        return f"{self.note} {summary}".lstrip()


async def read_entities(graph: KGAdapter, *texts: str) -> ReadArguments:
    """Return the entities that arguments stand for.

    What has the form of an id is taken for one, and whether the graph has it is left to who asks it next; only a local
    graph, which knows at once, reads an id that it does not have as a name.

    Raises:
        InvalidRequest: A text names several things, or is no id and no name; or several texts cannot be read.
        UnknownEntity: Nothing is named like that.
    """
    known = await _ids(graph, texts)
    read = {text: ReadAs(text, text) for text in known}
    refused: list[KGError] = []
    for identity in await identify(graph, [text for text in dict.fromkeys(texts) if text not in known]):
        if len(identity.nodes) == 1:
            read[identity.text] = _read_as(identity, await names_of(graph, identity.nodes))
        elif not identity.named and _has_form_of_id(graph, identity.text):
            read[identity.text] = ReadAs(identity.text, identity.text)
        else:
            refused.append(await naming_refusal(graph, identity))
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise InvalidRequest(" ".join(map(str, refused)))
    return ReadArguments(tuple(read[text] for text in texts))


def _read_as(identity: Identity, names: Names) -> ReadAs:
    (node,) = identity.nodes
    named, how = ReadAs(identity.text, names.entity_id(node), names.entity(node)), identity.how
    if not how:
        return named
    pieces = said_of_reading(identity.text, node, how)
    note = "".join(piece if isinstance(piece, str) else named.shown for piece in pieces)
    verb = "is" if how == "an alias" else "read,"
    return replace(named, note=note, aside=f"{in_quotes(identity.text, MAX_LABEL)} {verb} {how}:")


async def class_of(graph: KGAdapter, text: str) -> Node:
    """Return the class that an id or name stands for; see `class_named`."""
    return (await class_named(graph, text)).nodes[0]


async def class_named(graph: KGAdapter, text: str) -> Identity:
    """Return the one class that an id or name stands for, and how it was read.

    Of several namesakes it is the only one that has instances; what names nothing may be a class in the plural.

    Raises:
        InvalidRequest: It names several things, or is no id and no name.
        UnknownEntity: The graph does not mention it.
    """
    if text in await _ids(graph, [text]):
        return _by_id(await require_entity(graph, text), text)
    (identity,) = await identify(graph, [text])
    if len(identity.named) == 1:
        return identity
    classes = {each.iri: each.label for each in (await graph.schema()).classes}
    if identity.named:
        named = tuple(each for each in identity.named if each.entity in classes)
    else:
        named = tuple(Candidate(node, 1.0, "label", classes[node] or text) for node in in_plural(text, classes))
    if len(named) == 1:
        return replace(identity, match=identity.match if identity.named else "close", named=named)
    if not identity.named and _has_form_of_id(graph, text):
        return _by_id(await require_entity(graph, text), text)
    raise await naming_refusal(graph, identity)


def in_plural(text: str, classes: Mapping[Node, str | None]) -> list[Node]:
    """Return the classes, of some with their labels, whose instances are called so: `films` are what is a film."""
    wanted = fold(text)
    return [node for node, label in classes.items() if label is not None and fold(plural(label)) == wanted]


def _by_id(node: Node, text: str) -> Identity:
    return Identity(text, "exact", (Candidate(node, 1.0, "id", text),))


async def naming_refusal(graph: KGAdapter, identity: Identity) -> KGError:
    """Return why a text cannot be read as one entity: it names several, or nothing."""
    if not identity.named and (error := await _no_name(graph, identity.text)) is not None:
        return error
    nodes = [each.entity for each in identity.named[:SHOWN] or identity.alike[:MOST_NEAR]]
    portraits = await portraits_of(graph, nodes, [nodes] if identity.named else ())
    shown = [", ".join(portraits.of(node, ",;:")) for node in nodes]
    if not identity.named:
        return UnknownName(identity.text, near=shown, hint="" if shown else _SEARCH)
    if len(nodes) == 1:
        return InvalidRequest(f"{in_quotes(identity.text, MAX_LABEL)} may mean {shown[0]}. Give its id.")
    more = f"; and {len(identity.named) - SHOWN} more" if len(identity.named) > SHOWN else ""
    count = f"{in_quotes(identity.text, MAX_LABEL)} names {len(identity.named)} things here"
    return InvalidRequest(f"{count}: {'; '.join(shown)}{more}. {_SEVERAL}")


async def _ids(graph: KGAdapter, texts: Sequence[str]) -> frozenset[str]:
    if graph.remote:
        # It would need a request to tell, which what follows makes anyway.
        return frozenset(text for text in texts if _has_form_of_id(graph, text))
    return frozenset(await entities_of_ids(graph, texts))


def _has_form_of_id(graph: KGAdapter, text: str) -> bool:
    try:
        graph.prefixes.expand(text)
    except InvalidRequest:
        return False
    return True


async def _no_name(graph: KGAdapter, text: str) -> KGError | None:
    """Return what is wrong with a text that cannot be a name at all."""
    hint = await relation_hint(graph, text)
    if hint is not None:
        return UnknownEntity(text, hint=hint)
    if text.strip() and len(text) <= MAX_ID_LENGTH and not text.lstrip().startswith(_IDS_BEGIN):
        return None
    try:
        graph.prefixes.expand(text)
    except InvalidRequest as error:
        return error
    return None
