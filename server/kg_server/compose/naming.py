"""What the names of entities and classes in an expression stand for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kg_adapters.algebra import Instances, Members, SetExpression
from kg_adapters.errors import InvalidRequest, KGError, UnknownName
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Listed, SetRequest, Witness
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Node
from kg_boundary.shown import in_quotes, shown_within
from kg_server.compose.lines import Note
from kg_server.compose.syntax import Call, EntityRef, Operand, RetrieveCall, WhereCall, Words, calls_in, entities_in
from kg_server.entity_arguments import class_named, naming_refusal
from kg_server.identity import POOL, Identity, identify, said_of_reading
from kg_server.meaning import Meaning
from kg_server.names import MAX_LABEL
from kg_server.pointing import MisreadExpression
from kg_server.resolve import entity_of, unknown_entity

LISTED_NAMESAKES: Final = 5
_CLASSES: Final = "Schema lists the classes."
_ID_MARKS: Final = frozenset("<>:")
_ENDS_OF_NAMES: Final = frozenset(",[]")
_MOST_ENDS: Final = 3


@dataclass(slots=True)
class Heard:
    """What should be known about how names were read.

    Args:
        notes: Remarks.
        nodes: The ids of names that are no ids.
        given: What is named, and nothing else is called so.
        compared: The facts that state what members are compared with.
    """

    notes: dict[Note, None] = field(default_factory=dict[Note, None])
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    given: set[Node] = field(default_factory=set[Node])
    compared: list[Witness] = field(default_factory=list[Witness])

    def note(self, *pieces: str | Node) -> None:
        """Remember a remark."""
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

    async def entities(self, words: Words | EntityRef, *, is_id: bool = True) -> Members:
        """Return the entities that a name stands for, and remember how it was read.

        Args:
            words: The name, or an id.
            is_id: Whether an id may be meant.

        Raises:
            MisreadExpression: It stands for nothing.
        """
        found = self._identities[words.text]
        if not found.named:
            problem = f"{await self._refusal(found, is_id=is_id)}{await self._longer(words)}"
            raise MisreadExpression(self._text, words.span.start, problem, words.text)
        if len(found.nodes) == 1:
            self.heard.given.update(found.nodes)
        if found.match == "close" or found.named[0].matched_by != "id":
            self._say(found)
        return Members(found.nodes)

    async def _longer(self, words: Words | EntityRef) -> str:
        """Return what to write where the name goes on behind a comma or bracket that ended it."""
        behind = self._text[words.span.end :]
        ends = [end for end, mark in enumerate(behind) if mark in _ENDS_OF_NAMES][1 : 1 + _MOST_ENDS]
        texts = [self._text[words.span.start : words.span.end + end].strip() for end in (*ends, len(behind))]
        for found in await identify(self._graph, texts):
            if found.named:
                return f' Write "{shown_within(found.named[0].matched_text, MAX_LABEL)}", in quotation marks.'
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

    async def instances(self, owner: Words) -> Instances:
        """Return the instances of the class that a name stands for.

        Raises:
            MisreadExpression: It stands for none.
        """
        try:
            found = await class_named(self._graph, owner.text)
        except UnknownName as error:
            raise MisreadExpression(self._text, owner.span.start, f"{error} {_CLASSES}", owner.text) from error
        except KGError as error:
            raise MisreadExpression(self._text, owner.span.start, str(error)) from error
        if found.how:
            self._say(found)
        (node,) = found.nodes
        self.heard.given.add(node)
        profile = await self._graph.profile()
        if profile.complete and profile.profile_of(node) is None:
            problem = f"{in_quotes(owner.text, MAX_LABEL)} is not a class here: it has no instances. {_CLASSES}"
            raise MisreadExpression(self._text, owner.span.start, problem)
        return Instances(node)

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
        if said and not (shown_by is not None and await self._any(shown_by)):
            self.heard.note(said)

    async def _class_said(self, operand: Operand | Words) -> str:
        """Return what to say of the name of a class; nothing where none is."""
        match operand:
            case EntityRef(text) | Words(text) | RetrieveCall(Words(text)):
                nodes = self._identities[text].nodes
            case _:
                return ""
        profile = await self._graph.profile()
        if all(profile.profile_of(node) is None for node in nodes):
            return ""
        instances = f"Type[{shown_within(text, MAX_LABEL)}]"
        return f"{in_quotes(text, MAX_LABEL)} is a class here, which is one node. {instances} gives its instances."

    async def _any(self, of: SetExpression) -> bool:
        found = await compute_sets(self._graph, SetRequest(Listed(of), limit=0, witnesses=0))
        return found.count.value > 0

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

    def _say(self, found: Identity) -> None:
        """Remember how a name was read where it was misspelt, or where several bear it."""
        if len(found.nodes) == 1:
            self.heard.nodes[found.text] = found.nodes[0]
        quoted = in_quotes(found.text, MAX_LABEL)
        if len(found.nodes) == 1 and found.how:
            self.heard.note(*said_of_reading(found.text, found.nodes[0], found.how))
        if len(found.nodes) > 1:
            ids = [self._graph.prefixes.shorten(node) for node in found.nodes[:LISTED_NAMESAKES]]
            more = ", …" if len(found.nodes) > LISTED_NAMESAKES else ""
            self.heard.note(f"{quoted} names {len(found.nodes)}, and all take part: {', '.join(ids)}{more}.")


async def identities_of(
    graph: KGAdapter, calls: Iterable[Call], meaning: Meaning | None = None
) -> Mapping[str, Identity]:
    """Return what all names of entities in some calls stand for, asked for together.

    Args:
        graph: The graph.
        calls: The calls.
        meaning: What `Retrieve` finds the nearest node by; None where it goes by names.
    """
    texts: dict[str, None] = {}
    retrieved: dict[str, None] = {}
    for call in calls:
        texts |= dict.fromkeys(ref.text for ref in entities_in(call))
        for each in calls_in(call):
            if isinstance(each, RetrieveCall):
                (texts if meaning is None else retrieved)[each.text.text] = None
            if isinstance(each, WhereCall):
                values = (clause.value for clause in each.clauses)
                texts |= dict.fromkeys(value.text for value in values if isinstance(value, Words))
    found = await identify(graph, list(texts))
    nearest = {} if meaning is None else {text: await _nearest(graph, meaning, text) for text in retrieved}
    return {each.text: each for each in found} | nearest


async def _nearest(graph: KGAdapter, meaning: Meaning, text: str) -> Identity:
    """Return the one node that is nearest to a text by embedding (the paper, section 2.2).

    Where a graph keeps no vectors it is the nearest of those that share words or letters with the text, and where no
    model runs the one that a search by name finds first.
    """
    near = (await meaning.candidates(text, limit=1, type=None)).candidates
    if not near:
        pool = await graph.search(text, limit=POOL)
        near = (await meaning.nearest(text, {each.entity: each.matched_text for each in pool}, limit=1)).candidates
        near = near or pool[:1]
    return Identity(text, "exact" if near else "none", tuple(near))
