"""What the names of entities and classes in an expression stand for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kg_adapters.algebra import (
    Instances,
    Members,
    SetExpression,
    Union,
)
from kg_adapters.errors import InvalidRequest, KGError, UnknownName
from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Listed, SetRequest, Witness
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Iri, Node, Term
from kg_boundary.shown import in_quotes, shown_within
from kg_server.answers.results import Note, Over
from kg_server.compose.syntax import (
    Call,
    EntityRef,
    Operand,
    Words,
)
from kg_server.names import MAX_LABEL
from kg_server.naming.class_names import CLASSES, class_named, without_instances
from kg_server.naming.entities import (
    MOST_NAMESAKES,
    SHOWN,
    Identity,
    all_nameless,
    decided,
    identify,
    naming_refusal,
    said_of_reading,
    told_apart,
)
from kg_server.naming.refusals import MisreadExpression, entity_of, id_of, unknown_entity
from kg_server.naming.relations import namesakes

_ID_MARKS: Final = frozenset("<>:")
_ENDS_OF_NAMES: Final = frozenset(",[]")
_MOST_ENDS: Final = 3


async def count_of(graph: KGAdapter, of: SetExpression, timeout_s: float = 10.0) -> Count:
    """Return how many members a set has."""
    return (await compute_sets(graph, SetRequest(Listed(of), limit=0, witnesses=0, timeout_s=timeout_s))).count


@dataclass(slots=True)
class Heard:
    """What should be known about how names were read.

    Args:
        notes: Remarks.
        nodes: The ids of names that are no ids.
        given: What is named, and nothing else is called so.
        compared: The facts that state what members are compared with.
        absent: The relations of which a remark says that nothing in the set has them.
    """

    notes: dict[Note, None] = field(default_factory=dict[Note, None])
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    given: set[Node] = field(default_factory=set[Node])
    compared: list[Witness] = field(default_factory=list[Witness])
    absent: set[Iri] = field(default_factory=set[Iri])

    def note(self, *pieces: str | Term | Over) -> None:
        """Remember a remark, unless it is empty."""
        if any(pieces):
            self.notes[pieces] = None


class Naming:
    """Reads the names of one call.

    Args:
        graph: The graph.
        text: The expression, which errors point into.
        identities: What the names of entities in it stand for.
    """

    def __init__(self, graph: KGAdapter, text: str, identities: Mapping[str, Identity]) -> None:
        self._graph = graph
        self._text = text
        self._identities = identities
        self.heard = Heard()

    def namesakes(self, text: str) -> tuple[Node, ...]:
        """Return those who bear a name, where they are several and few enough for a relation to decide on them."""
        return self._identities[text].rivals

    async def entities(
        self, words: Words | EntityRef, *, is_id: bool = True, having: Sequence[Collection[Node]] = ()
    ) -> Members:
        """Return the entities that a name stands for, and remember how it was read.

        Args:
            words: The name, or an id.
            is_id: Whether an id may be meant, before all else; otherwise all who bear the name are.
            having: Which of several have what is asked for, and then which may have it; see `decided`.

        Raises:
            MisreadExpression: It stands for nothing.
        """
        found = self._identities[words.text]
        found = decided(found, *having) if is_id else found.widened
        if all_nameless(self._graph, found):
            why = await naming_refusal(self._graph, found)
            raise MisreadExpression(self._text, words.span.start, str(why), words.text) from why
        if not found.named:
            why, longer = await self._refusal(found, is_id=is_id), await self._longer(words)
            raise MisreadExpression(self._text, words.span.start, f"{why}{longer}", words.text) from why
        if len(found.nodes) == 1:
            self.heard.given.update(found.nodes)
        if found.match == "close" or id_of(self._graph, words.text) not in found.nodes:
            await self._say(found)
        return Members(found.nodes)

    async def _longer(self, words: Words | EntityRef) -> str:
        """Return what to write where the name goes on behind a comma or bracket that ended it."""
        behind = self._text[words.span.end :]
        ends = [end for end, mark in enumerate(behind) if mark in _ENDS_OF_NAMES][1 : 1 + _MOST_ENDS]
        texts = [self._text[words.span.start : words.span.end + end].strip() for end in (*ends, len(behind))]
        for found in [each for each in await identify(self._graph, texts) if each.named]:
            name = shown_within(found.named[0].matched_text, MAX_LABEL).replace('"', r"\"")
            return f' Write "{name}", in quotation marks.'
        return ""

    def exactly(self, text: str) -> Members | None:
        """Return the entities whose name is exactly a text, or None."""
        found = self._identities[text]
        return Members(found.nodes) if found.match == "exact" else None

    async def names_entity(self, text: str) -> bool:
        """Say whether a text names something that is no relation."""
        nodes = self._identities[text].nodes
        if not nodes:
            return False
        described = await self._graph.describe(nodes)
        return not all("relation" in each.roles for each in described.values())

    async def instances(self, owner: Words) -> Instances | Union:
        """Return the instances of the class that a name stands for, or of its classes in several graphs.

        Raises:
            MisreadExpression: It stands for none.
        """
        try:
            found = await class_named(self._graph, owner.text)
        except UnknownName as error:
            raise MisreadExpression(self._text, owner.span.start, f"{error} {CLASSES}", owner.text) from error
        except KGError as error:
            raise MisreadExpression(self._text, owner.span.start, str(error)) from error
        first, *others = found.nodes
        if found.how or found.passed or others:
            await self._say(found)
        self.heard.given.update(found.nodes)
        profile, start = await self._graph.profile(), owner.span.start
        if profile.complete and profile.profile_of(first) is None:
            raise MisreadExpression(self._text, start, await without_instances(self._graph, owner.text, first))
        return Union(tuple(map(Instances, found.nodes))) if others else Instances(first)

    async def refuse_class(self, operand: Operand) -> None:
        """Refuse a class where its instances must be meant.

        Raises:
            MisreadExpression: The operand names a class.
        """
        if said := await self._class_said(operand):
            raise MisreadExpression(self._text, operand.span.start, said)

    async def note_class(self, operand: Operand | Words, shown_by: SetExpression | None = None) -> None:
        """Remember that a name is that of a class, where its instances may be meant.

        Args:
            operand: The name.
            shown_by: What is not empty where the class itself is meant.
        """
        said = await self._class_said(operand)
        if said and not (shown_by is not None and (await count_of(self._graph, shown_by)).value):
            self.heard.note(said)

    async def _class_said(self, operand: Operand | Words) -> str:
        """Return what to say of the name of a class; nothing where none is."""
        match operand:
            case EntityRef(text) | Words(text) | Call(function="Retrieve", words=Words(text)):
                nodes = self._identities[text].nodes
            case _:
                return ""
        profile = await self._graph.profile()
        if all(profile.profile_of(node) is None for node in nodes):
            return ""
        instances = f"Type[{shown_within(text, MAX_LABEL)}]"
        return f"{in_quotes(text, MAX_LABEL)} is a class here, which is one node. {instances} gives its instances."

    async def _refusal(self, found: Identity, *, is_id: bool) -> KGError:
        if is_id and not found.named:
            try:
                node = await entity_of(self._graph, found.text)
            except InvalidRequest as error:
                return error if _ID_MARKS.intersection(found.text) else await naming_refusal(self._graph, found)
            except KGError as error:
                return error
            return await unknown_entity(self._graph, node, found.text)
        return await naming_refusal(self._graph, found)

    async def _say(self, found: Identity) -> None:
        """Remember how a name was read where it was misspelt, or where several bear it."""
        if len(found.nodes) == 1:
            self.heard.nodes[found.text] = found.nodes[0]
        if len(found.nodes) == 1 and (found.how or found.passed):
            self.heard.note(*said_of_reading(found.text, found.nodes[0], found.how, found.passed))
        if len(found.nodes) > 1:
            shown = await told_apart(self._graph, found.nodes[:SHOWN])
            passed = len(found.passed)
            said = namesakes(found.text, "things", shown, len(found.nodes), most=MOST_NAMESAKES, passed=passed)
            self.heard.note(said)
