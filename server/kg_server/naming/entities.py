"""Reading of entity arguments: ids, names, classes, and what a name that fits several means."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Final

from kg_adapters.appellations import NAMING
from kg_adapters.errors import InvalidRequest, KGError, UnknownEntity, UnknownName
from kg_adapters.federated import FederatedGraph
from kg_adapters.folding import fold
from kg_adapters.models import Candidate, Count, Description, Direction, ValueUse
from kg_adapters.prefixes import MAX_ID_LENGTH, WELL_KNOWN, in_full
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import XSD, BlankNode, Iri, Node
from kg_boundary.shown import in_quotes, set_apart
from kg_server.answers.cards import sketches_of
from kg_server.answers.results import Answer, Verdict, token_count
from kg_server.concurrency import all_of
from kg_server.names import MAX_LABEL, names_of
from kg_server.naming.bearers import bearers_of, entities_of_ids, first_of, of_local_names
from kg_server.naming.close import POOL, bearer_of_part, close_to, how_part, is_near, judged
from kg_server.naming.having import instances_among, with_relation
from kg_server.naming.labelled import Labelled, labelled, with_ids
from kg_server.naming.misspelling import apart, orders, without_article, words_of
from kg_server.naming.refusals import id_of, one_error, relation_hint
from kg_server.naming.valued import ValueText, bearers_of_value, identifier_among, read_as_value, said_of_value, uses_of

MOST_DECIDED: Final = 20
"""Among how many namesakes a relation decides."""

MOST_NAMESAKES: Final = 500
"""How many of those that bear one name exactly are found."""

AT_ONCE: Final = 8
"""How many texts are looked for at a time."""

_DATATYPE: Final = Iri(f"{WELL_KNOWN['rdfs']}Datatype")

_OTHERWISE: Final = "written otherwise"


@dataclass(frozen=True, slots=True)
class Identity:
    """What one text names.

    Args:
        text: The text.
        match: The verdict.
        named: Those who bear the name, where the match is `exact` or `close`: several are namesakes.
        near: What else is like it, best first.
        passed: Who else bears the name and is not meant; see `decided`.
        uses: Which entities have the text as a value, where it is no name, or only nearly one.
        by: What the text is of the one that it names: `its identifier`; empty where it is an id or a name.
    """

    text: str
    match: Verdict
    named: tuple[Candidate, ...] = ()
    near: tuple[Candidate, ...] = ()
    passed: tuple[Candidate, ...] = ()
    uses: tuple[ValueUse, ...] = ()
    by: str = ""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The entities that the text names."""
        return tuple(each.entity for each in self.named)

    @property
    def rivals(self) -> tuple[Node, ...]:
        """Those between whom a relation decides: all who bear the name, however exactly; none of too many or one."""
        bearers = self.widened.nodes
        return bearers if len(bearers) > 1 and len(self.named) <= MOST_DECIDED else ()

    @property
    def widened(self) -> "Identity":
        """The same, in which all who bear the name are named, the exactest first."""
        return replace(self, named=(*self.named, *self.passed), passed=()) if self.match == "exact" else self

    @property
    def alike(self) -> tuple[Candidate, ...]:
        """What shares a word with the text or is near in letters or meaning, best first."""
        words = words_of(self.text)
        return tuple(each for each in self.near if is_near(words, each))

    @property
    def is_misnamed(self) -> bool:
        """Whether the text has the id of what it names behind a label of something else."""
        return self.match == "close" and self.named[0].matched_by == "id"

    @property
    def is_certain(self) -> bool:
        """Whether a name is meant even where the text is also a value: by an id, or by all letters of the name."""
        return self.match == "close" and (self.is_misnamed or self.how == _OTHERWISE)

    @property
    def is_part(self) -> bool:
        """Whether the text is only a part of the name of the one that it names."""
        return self.match == "close" and bool(how_part(self.text, self.named[0].matched_text))

    @property
    def how(self) -> str:
        """How the text names the first of them: `an alias`, `one letter off`; empty where it is its id or label."""
        if not self.named:
            return ""
        by = self.named[0]
        if self.by:
            return self.by
        if self.is_misnamed:
            return "by its id, not by its label"
        if self.match == "exact":
            return "an alias" if by.matched_by == "alias" else ""
        if part := how_part(self.text, by.matched_text):
            return part
        names = [without_article(name) for name in orders(by.matched_text)]
        letters = min(apart(without_article(text), name) for text in orders(self.text) for name in names)
        off = {0: _OTHERWISE, 1: "one letter off"}.get(letters, f"{letters} letters off")
        return f"{off} its alias {in_quotes(by.matched_text)}" if letters and by.matched_by == "alias" else off


async def identify(
    graph: KGAdapter, texts: Sequence[str], *, type: Node | None = None, compared: Collection[str] = ()
) -> list[Identity]:
    """Return what texts name, in their order; among the instances of a type where one is given.

    A text is first an id, alone or behind its label (`kg_server.naming.labelled`), or the local part of one, then a
    label or alias in its case, then one in any case, and else a name with slips (`kg_server.naming.bearers`). A
    relation or datatype is named only where nothing else has the name.

    Args:
        graph: The graph.
        texts: Ids or names.
        type: Only what has this type counts.
        compared: Texts that are compared with values anyway: it is not asked whether they are some.
    """
    written = {text: with_ids(text) for text in texts}
    behind = dict.fromkeys(each.id for of in written.values() for each in of)
    ids = await entities_of_ids(graph, [*(written if type is None else ()), *behind])
    own = await of_local_names(graph, [each for each in dict.fromkeys((*written, *behind)) if each not in ids])
    if type is not None:
        ids, own = await _of_type(graph, [ids, own], type)
    shown = await labelled(graph, written, ids)
    local = await labelled(graph, {text: [each for each in of if each.label] for text, of in written.items()}, own)
    printed = {text: each.nodes for text, each in shown.items() if each.is_printed}
    nodes = printed if type is not None else {**printed, **ids}
    behind_labels = {**{text: each for text, each in local.items() if each.is_called_so}, **shown}
    found = await all_of(
        [
            partial(_identity, graph, text, nodes.get(text, ()), own.get(text, ()), behind_labels.get(text), type)
            for text in written
        ],
        at_once=AT_ONCE,
    )
    found = await _with_values(graph, await _without_relations(graph, found), type, compared)
    by_text = dict(zip(written, found, strict=True))
    return [by_text[text] for text in texts]


def decided(identity: Identity, *having: Collection[Node]) -> Identity:
    """Return a text as the name of those namesakes that have what is asked for, and of these by label before alias.

    Those who bear it less exactly are asked last. Where none has it, all of them stay.

    Args:
        identity: The text.
        having: Which of those who bear it have what is asked for, and then which by their class may have it: these
            count where the text is their id.
    """
    for bearers, (place, meant) in product((identity.named, identity.passed), enumerate(having)):
        kept = [each for each in bearers if each.entity in meant and (not place or each.matched_by == "id")]
        if named := tuple(each for each in kept if each.matched_by != "alias") or tuple(kept):
            return replace(identity, named=named, passed=_without((*identity.named, *identity.passed), named))
    return identity


def said_of_reading(text: str, node: Node, how: str, passed: Sequence[Candidate] = ()) -> tuple[str | Node, ...]:
    """Return the sentence on what a text was read as, from how it names that and who else bears the name."""
    quoted = in_quotes(text, MAX_LABEL)
    if passed:
        more = f" or {len(passed) - 1} more of that name" if len(passed) > 1 else ""
        return f"{quoted} is read as ", node, ", not ", passed[0].entity, f"{more}."
    if how == "an alias":
        return f"{quoted} is an alias of ", node, "."
    return f"{quoted} read as ", node, f", {how}."


async def how_read(graph: KGAdapter, identity: Identity) -> str:
    """Return the sentence on what a text was read as; nothing where it is simply the id or label of what it names."""
    if not identity.passed and not identity.how:
        return ""
    names = await names_of(graph, [identity.nodes[0], *(each.entity for each in identity.passed[:1])])
    pieces = said_of_reading(identity.text, identity.nodes[0], identity.how, identity.passed)
    return "".join(piece if isinstance(piece, str) else names.entity(piece) for piece in pieces)


async def _with_values(
    graph: KGAdapter, identities: Sequence[Identity], type: Node | None, compared: Collection[str]
) -> list[Identity]:
    """Return verdicts in which texts that are no names may be values of entities, and identifiers name them."""
    open_ones = [
        each.text for each in identities if each.match != "exact" and not each.is_certain and each.text not in compared
    ]
    found = await uses_of(graph, open_ones, type)
    return [_as_value(each, tuple(found[each.text])) if each.text in found else each for each in identities]


def _as_value(identity: Identity, uses: tuple[ValueUse, ...]) -> Identity:
    """Return the verdict on a text that is a value, whatever it is nearly the name of."""
    near = (*identity.named, *identity.near)
    if names := [use for use in uses if use.relation in NAMING]:
        called = (replace(each, matched_by="label") for each in bearers_of_value(identity.text, names))
        return Identity(identity.text, "exact", tuple(called), near)
    if (relation := identifier_among(identity.text, uses)) is not None:
        named = bearers_of_value(identity.text, uses)
        return Identity(identity.text, "exact", named, near, by=f"by its {relation.local_part}")
    return Identity(identity.text, "value", near=near, uses=uses)


async def _without_relations(graph: KGAdapter, identities: Sequence[Identity]) -> list[Identity]:
    """Return verdicts in which a relation or a datatype is no namesake of an entity: it is among what is near."""
    several = {node: None for each in identities if len(each.widened.named) > 1 for node in each.widened.nodes}
    if not several:
        return list(identities)
    described = await graph.describe(list(several))
    others = {node for node, each in described.items() if "relation" in each.roles or _is_datatype(node, each)}

    def only_entities(identity: Identity) -> Identity:
        every = identity.widened.named
        kept = tuple(each for each in every if each.entity not in others)
        if not kept or len(kept) == len(every):
            return identity
        named = first_of(identity.text, kept) if identity.match == "exact" else kept
        near = (*(each for each in every if each.entity in others), *identity.near)
        return replace(identity, named=named, near=near, passed=_without(kept, named))

    return list(map(only_entities, identities))


def _is_datatype(node: Node, described: Description) -> bool:
    return (isinstance(node, Iri) and node.value.startswith(XSD)) or _DATATYPE in described.types


async def _identity(
    graph: KGAdapter,
    text: str,
    nodes: Sequence[Node],
    own: Sequence[Node],
    shown: Labelled | None,
    type: Node | None,
) -> Identity:
    if nodes:
        return Identity(text, "exact", tuple(Candidate(node, 1.0, "id", text) for node in nodes))
    pool = await graph.search(text, limit=POOL, type=type) if fold(text) else ()
    same = await bearers_of(graph, text, pool, own)
    if len(same) >= POOL:
        same = await bearers_of(graph, text, await graph.search(text, limit=MOST_NAMESAKES, type=type), own)
    if same:
        named = first_of(text, same)
        return Identity(text, "exact", named, _without(pool, same), _without(same, named))
    if shown is not None and shown.is_called_so:
        return Identity(text, "exact", tuple(Candidate(node, 1.0, "id", text) for node in shown.nodes))
    if shown is not None and not shown.written.holds_more(graph):
        return await _called_otherwise(graph, text, shown.nodes, shown.written.label)
    close = await close_to(graph, text, pool)
    if not close and (joined := text.replace(".", "")) != text and fold(joined):
        # Words do not find `USA` by `U.S.A.`.
        close = await close_to(graph, text, await graph.search(joined, limit=POOL, type=type))
    if close := close or await bearer_of_part(graph, text, pool):
        return Identity(text, "close", close, _without(pool, close))
    return Identity(text, judged(text, pool), near=tuple(pool))


async def _of_type(
    graph: KGAdapter, known: Sequence[Mapping[str, tuple[Node, ...]]], type: Node
) -> list[Mapping[str, tuple[Node, ...]]]:
    """Return what ids stand for, without what is no instance of a type."""
    nodes = list(dict.fromkeys(node for each in known for of in each.values() for node in of))
    among = await instances_among(graph, nodes, type) if nodes else ()
    kept = [{text: tuple(node for node in of if node in among) for text, of in each.items()} for each in known]
    return [{text: of for text, of in each.items() if of} for each in kept]


async def _called_otherwise(graph: KGAdapter, text: str, nodes: Sequence[Node], label: str) -> Identity:
    """Return the verdict on an id behind another label than answers show: an alias, or the name of something else."""
    bearers = await bearers_of(graph, label, await graph.search(label, limit=POOL))
    called = [node for node in nodes if any(node == each.entity for each in bearers)]
    named = tuple(Candidate(node, 1.0, "id", text) for node in called or nodes)
    return Identity(text, "exact", named) if called else Identity(text, "close", named, passed=bearers)


def _without(pool: Sequence[Candidate], named: Sequence[Candidate]) -> tuple[Candidate, ...]:
    bearers = {each.entity for each in named}
    return tuple(each for each in pool if each.entity not in bearers)


SHOWN: Final = 5
"""How many candidates a refusal shows."""

MOST_NEAR: Final = 3
"""How many of those that are near a name and do not bear it."""

_LEAST_TOKENS: Final = 300

_SEVERAL: Final = "Give the id of the one that is meant."

_IDS_BEGIN: Final = ("<", "_:")


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """The entities of one call.

    Args:
        ids: The ids, in the order of the arguments.
        names: Which arguments are names, and the ids that they were read as.
        note: What was read as what; empty where every argument is an id or a label.
        values: The arguments that are values, where these may stand for those who have them.
    """

    ids: Sequence[str]
    names: Mapping[str, str]
    note: str
    values: Sequence[ValueText] = ()

    def room(self, max_tokens: int) -> int:
        """Return what an answer may cost beside the note."""
        return max(_LEAST_TOKENS, max_tokens - 3 * token_count(self.note)) if self.note else max_tokens

    def told(self, answer: Answer) -> Answer:
        """Return an answer that begins with what was read as what."""
        if not self.note and not self.names:
            return answer
        summary = f"{self.note} {answer.result.summary}".lstrip()
        return replace(
            answer, result=answer.result.model_copy(update={"summary": summary, "read": {**self.names} or None})
        )


async def read_entities(
    graph: KGAdapter,
    *texts: str,
    relation: str | None = None,
    direction: Direction = "out",
    values: bool = False,
) -> ReadArguments:
    """Return the entities that arguments stand for; where a relation or feature is asked for, it decides on namesakes.

    What has the form of an id is taken for one, and whether the graph has it is left to who asks it next; only a local
    graph, which knows at once, reads an id that it does not have as a name. With `values` a text that is a value stands
    for those who have it, as many as are named.

    Raises:
        InvalidRequest: A text names several things, or is no id and no name; or several texts cannot be read.
        UnknownEntity: Nothing is named like that.
    """
    known = await ids_among(graph, texts)
    names: dict[str, str] = {}
    ids: dict[str, Sequence[str]] = {}
    found: list[ValueText] = []
    notes: list[str] = []
    refused: list[KGError] = []
    others = [text for text in dict.fromkeys(texts) if text not in known]
    for identity in await identify(graph, others) if others else ():
        if relation is not None and (rivals := identity.rivals):
            identity = decided(identity, *await with_relation(graph, rivals, relation, direction))  # noqa: PLW2901
        if len(identity.nodes) == 1 and not all_nameless(graph, identity):
            (node,) = identity.nodes
            names[identity.text] = (await names_of(graph, [node])).entity_id(node)
            ids[identity.text] = [in_full(node) if isinstance(graph, FederatedGraph) else names[identity.text]]
            notes.append(await how_read(graph, identity))
        elif values and identity.uses:
            found.append(await read_as_value(graph, identity.text, identity.uses))
            ids[identity.text] = found[-1].ids
            notes.append(said_of_value(found[-1]))
        elif identity.named or id_of(graph, identity.text) is None:
            refused.append(await naming_refusal(graph, identity))
    if refused:
        raise one_error(refused)
    every = [each for text in texts for each in ids.get(text, (text,))]
    return ReadArguments(every, names, " ".join(filter(None, notes)), found)


async def naming_refusal(graph: KGAdapter, identity: Identity) -> KGError:
    """Return why a text cannot be read as one entity: it names several, or nothing, or what has no id."""
    if all_nameless(graph, identity):
        quoted = in_quotes(identity.text, MAX_LABEL)
        return InvalidRequest(
            f"{quoted} names a node without an id (a blank node), and this endpoint can be asked about none of these. "
            f"Sparql reaches it by its name: ?x ?any {quoted}."
        )
    if not identity.named and (error := await _no_name(graph, identity.text)) is not None:
        return error
    nodes = [each.entity for each in identity.named[:SHOWN] or identity.alike[:MOST_NEAR]]
    shown = await told_apart(graph, nodes, namesakes=bool(identity.named))
    if not identity.named:
        value = f"It is a {await read_as_value(graph, identity.text, identity.uses)}" if identity.uses else ""
        return UnknownName(identity.text, near=() if value else shown, hint=value)
    if len(nodes) == 1:
        return InvalidRequest(f"{in_quotes(identity.text, MAX_LABEL)} may mean {shown[0]}. Give its id.")
    more = f"; and {len(identity.named) - SHOWN} more" if len(identity.named) > SHOWN else ""
    number = Count(len(identity.named), exact=len(identity.named) < MOST_NAMESAKES)
    count = f"{in_quotes(identity.text, MAX_LABEL)} names {number} things here"
    return InvalidRequest(f"{count}: {'; '.join(shown)}{more}. {_SEVERAL}")


def is_nameless(graph: KGAdapter, node: Node) -> bool:
    """Say whether a node has no id by which its graph could be asked about it."""
    return isinstance(node, BlankNode) and not graph.prefixes.blank_nodes


def all_nameless(graph: KGAdapter, identity: Identity) -> bool:
    """Say whether a text names only what the graph cannot be asked about."""
    return bool(identity.named) and all(is_nameless(graph, each.entity) for each in identity.named)


async def told_apart(graph: KGAdapter, nodes: Sequence[Node], *, namesakes: bool = True) -> list[str]:
    """Return entities with their ids and what distinguishes them: description, types and, of namesakes, a fact.

    Of namesakes their descriptions alone, where they have different ones.
    """
    sketches = await sketches_of(graph, nodes, [nodes] if namesakes else ())
    described = [sketches.description(node) for node in nodes]
    if namesakes and all(described) and len(set(described)) == len(nodes):
        entities = [sketches.names.entity(node, ",;:") for node in nodes]
        return [f"{name}, {set_apart(about, ';:')}" for name, about in zip(entities, described, strict=True)]
    return [", ".join(sketches.of(node, ",;:")) for node in nodes]


async def ids_among(graph: KGAdapter, texts: Sequence[str]) -> frozenset[str]:
    """Return which of some texts are ids of entities; over a remote graph, which may be."""
    if graph.remote and not isinstance(graph, FederatedGraph):
        # It would need a request to tell, which what follows makes anyway.
        return frozenset(text for text in texts if id_of(graph, text) is not None)
    return frozenset(await entities_of_ids(graph, texts))


async def _no_name(graph: KGAdapter, text: str) -> KGError | None:
    """Return what is wrong with a text that cannot be a name at all."""
    for written in (text, *(each.id for each in with_ids(text) if not each.holds_more(graph))):
        if (hint := await relation_hint(graph, written)) is not None:
            return UnknownEntity(text, hint=hint)
    if text.strip() and len(text) <= MAX_ID_LENGTH and not text.lstrip().startswith(_IDS_BEGIN):
        return None
    try:
        graph.prefixes.expand(text)
    except InvalidRequest as error:
        return error
    return None
