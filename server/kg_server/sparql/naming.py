"""What the names in a query stand for, by the places where they stand.

All entities and classes of a query are looked for together, and so are all its relations.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Final, TypeAlias
from typing import Literal as Choice

import anyio

from kg_adapters.errors import BackendTimeout, InvalidRequest, KGError
from kg_adapters.models import Candidate
from kg_adapters.prefixes import Position
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri
from kg_boundary.shown import in_quotes
from kg_server.answers.results import Verdict
from kg_server.concurrency import together
from kg_server.names import MAX_LABEL, names_of
from kg_server.naming.class_names import as_class
from kg_server.naming.entities import (
    AT_ONCE,
    MOST_NAMESAKES,
    SHOWN,
    Identity,
    identify,
    naming_refusal,
    said_of_reading,
    told_apart,
)
from kg_server.naming.labelled import with_ids
from kg_server.naming.meaning import Meaning, near_classes, with_near_relations
from kg_server.naming.refusals import MisreadExpression, NoSuchRelation, id_of
from kg_server.naming.relations import namesakes, relations_named, said_of_union
from kg_server.sparql.classes import ClassStatements, alone, instances_in, with_subclasses
from kg_server.sparql.label_service import asks_for_labels, put_labels
from kg_server.sparql.outline import outline_of
from kg_server.sparql.syntax import Edits, NamePlace, Outline, Span, Token
from kg_server.sparql.ways import NamedWays, state_once, ways_of

MAX_NAMES: Final = 50
"""How many names one query may hold."""

_SHOWN_ERRORS: Final = 3

_ONE_ONLY: Final = "Only one id is allowed here: write that of the one you mean."

Sort: TypeAlias = Choice["entity", "class", "relation"]


@dataclass(frozen=True, slots=True)
class NameMeaning:
    """What one name stands for: several are namesakes.

    Args:
        text: The name.
        sort: As what it was read.
        match: `exact` or `close`.
        iris: All that it names.
        plain: Whether it is exactly an id or label, so that nothing need be said.
        how: How it names an entity or class, where that is known: `an alias`, `one letter off`.
        passed: The classes that bear the name too and are not meant.
        by_id: Whether the name is the id, or holds it as in `planet (e:Planet)`.
        ways: Over what else the facts of a relation are stored.
    """

    text: str
    sort: Sort
    match: Verdict
    iris: tuple[Iri, ...]
    plain: bool
    how: str = ""
    passed: tuple[Candidate, ...] = ()
    by_id: bool = False
    ways: NamedWays = field(default_factory=NamedWays)


async def meanings(graph: KGAdapter, meaning: Meaning, query: str, outline: Outline) -> Mapping[int, NameMeaning]:
    """Return what each name of a query stands for, by its token.

    Raises:
        MisreadExpression: Names stand for nothing, or for several things where only one can stand; it says for what
            they may have been meant, and where they stand.
    """
    _check_places(query, outline)
    over = {variable for each in outline.statements for variable in outline.variables(each.verb)}
    verbs = [place for place in outline.places if place.role == "verb" or place.variable in over]
    relations = await _relations(graph, meaning, {outline.tokens[place.token].name for place in verbs})
    sorts = _sorts(graph, outline, relations, over)
    things: set[tuple[str, Sort]] = {
        (outline.tokens[at].name, sort) for at, sort in sorts.items() if sort != "relation"
    }
    others = await _things(graph, meaning, things)
    meant: dict[int, NameMeaning] = {}
    refused: list[KGError] = []
    for place in outline.places:
        name, sort = outline.tokens[place.token].name, sorts[place.token]
        found = relations[name] if sort == "relation" else others[name, sort]
        if isinstance(found, NameMeaning) and (place.form != "single" or len(found.iris) == 1):
            meant[place.token] = found
        else:
            problem = await _ambiguous(graph, found) if isinstance(found, NameMeaning) else found
            refused.append(MisreadExpression(query, outline.tokens[place.token].at, str(problem)))
    if refused:
        raise InvalidRequest("\n".join(map(str, refused[:_SHOWN_ERRORS])))
    return meant


def _check_places(query: str, outline: Outline) -> None:
    placed = {place.token for place in outline.places}
    for number, token in enumerate(outline.tokens):
        if token.kind == "name" and number not in placed:
            raise MisreadExpression(query, token.at, "A name is not allowed here, where no id of the graph is.")
    if len(placed) > MAX_NAMES:
        raise InvalidRequest(f"A query holds at most {MAX_NAMES} names; this one has {len(placed)}. Split it.")


def _sorts(
    graph: KGAdapter, outline: Outline, relations: Mapping[str, NameMeaning | KGError], over: set[str]
) -> dict[int, Sort]:
    """Return as what each name is to be read."""
    typing = _Typing(graph, outline, relations)
    classes = {
        variable
        for each in outline.statements
        if typing.says_what_is(each.verb)
        for variable in outline.variables(each.tail)
    }

    def sort_of(place: NamePlace) -> Sort:
        if place.role == "verb" or place.variable in over:
            return "relation"
        if place.variable in classes:
            return "class"
        return "class" if place.verb is not None and typing.leads_to_class(place.verb, place.ahead) else "entity"

    return {place.token: sort_of(place) for place in outline.places}


@dataclass(frozen=True, slots=True)
class _Typing:
    """Tells which paths lead to classes."""

    graph: KGAdapter
    outline: Outline
    relations: Mapping[str, NameMeaning | KGError]

    def says_what_is(self, verb: Span) -> bool:
        """Say whether a path holds the relation from an instance to its class, or from a class to a wider one."""
        return any(map(self._is_typing, self.outline.within(verb)))

    def leads_to_class(self, verb: Span, ahead: bool) -> bool:
        """Say whether a class is meant at an end of a path."""
        backwards = any(token.text == "^" for token in self.outline.within(verb))
        return self.says_what_is(verb) and (ahead or backwards)

    def _is_typing(self, token: Token) -> bool:
        if token.kind == "name":
            found = self.relations.get(token.name)
            return isinstance(found, NameMeaning) and not self.graph.vocabulary.unwalked.isdisjoint(found.iris)
        return token.text == "a" or self.outline.iri(token, self.graph.prefixes) in self.graph.vocabulary.unwalked


async def _relations(graph: KGAdapter, meaning: Meaning, names: set[str]) -> dict[str, NameMeaning | KGError]:
    async def read(name: str) -> NameMeaning:
        try:
            match, found = await relations_named(graph, name)
        except NoSuchRelation as error:
            raise NoSuchRelation(await with_near_relations(graph, meaning, name, str(error))) from error
        plain = match == "exact" and found[0].matched_by != "alias"
        iris = tuple(each.relation for each in found)
        ways = NamedWays() if found[0].matched_by == "id" else await ways_of(graph, iris)
        return NameMeaning(name, "relation", match, iris, plain, ways=ways)

    wanted = sorted(names)
    return dict(zip(wanted, await together([partial(read, name) for name in wanted], at_once=AT_ONCE), strict=True))


async def _things(
    graph: KGAdapter, meaning: Meaning, wanted: set[tuple[str, Sort]]
) -> dict[tuple[str, Sort], NameMeaning | KGError]:
    if not wanted:
        return {}
    asked = sorted(wanted)
    found: dict[tuple[str, Sort], NameMeaning | KGError] = {}
    identities = await identify(graph, [name for name, _ in asked])
    for (name, sort), each in zip(asked, identities, strict=True):
        identity = await as_class(graph, each) if sort == "class" else each.widened
        iris = [each for each in identity.nodes if isinstance(each, Iri)]
        if iris:
            match: Verdict = identity.match if identity.named else "close"
            plain = match == "exact" and all(
                each.matched_by not in {"alias", "value"} for each in identity.named if each.entity in iris
            )
            passed = identity.passed if sort == "class" else ()
            by_id = id_of(graph, name) in iris or (
                bool(with_ids(name)) and all(each.matched_by == "id" for each in identity.named)
            )
            found[name, sort] = NameMeaning(name, sort, match, tuple(sorted(iris)), plain, identity.how, passed, by_id)
        elif identity.named:
            found[name, sort] = InvalidRequest(
                f"{in_quotes(name, MAX_LABEL)} is a blank node, which no query can name."
            )
        else:
            meant = await near_classes(meaning, await graph.schema(), name) if sort == "class" else ()
            found[name, sort] = await naming_refusal(graph, _nearest(identity, meant))
    return found


def _nearest(identity: Identity, meant: Sequence[Candidate]) -> Identity:
    """Return a verdict with the classes near in meaning before all else that is near."""
    near = {each.entity: each for each in (*meant, *identity.near)}
    return replace(identity, near=tuple(near.values()))


async def _ambiguous(graph: KGAdapter, meant: NameMeaning) -> KGError:
    return InvalidRequest(f"{await shown_all(graph, meant, taken=False)} {_ONE_ONLY}")


async def shown_all(graph: KGAdapter, meant: NameMeaning, *, taken: bool = True) -> str:
    """Return a sentence on how many things a name means, with what distinguishes the first of them."""
    if meant.sort == "relation":
        return await said_of_union(graph, meant.iris, meant.text, taken=taken)
    shown = await told_apart(graph, meant.iris[:SHOWN])
    return namesakes(meant.text, "things", shown, len(meant.iris), most=MOST_NAMESAKES, taken=taken)


def put_ids(query: str, outline: Outline, meant: Mapping[int, NameMeaning], edits: Edits) -> None:
    """Put ids in place of some names: of namesakes all, by a variable, a path or a list."""
    variables: dict[NameMeaning, str] = {}
    bound: set[tuple[int, str]] = set()
    for place in outline.places:
        each = meant.get(place.token)
        if each is None:
            continue
        if place.role == "verb" and place.form == "pattern":
            edits.instead[place.token] = each.ways.path(each.iris)
            continue
        iris = each.iris if place.form == "single" else (*each.iris, *each.ways.below)
        if len(iris) == 1 or place.role == "verb" or place.form != "pattern":
            _write(outline, place, iris, edits)
            continue
        if each not in variables:
            variables[each] = _unused(query, variables.values())
        name = edits.instead[place.token] = variables[each]
        # A pattern always stands in a group.
        if place.group is not None and (place.group, name) not in bound:
            bound.add((place.group, name))
            edits.behind[place.group].append(f" VALUES {name} {{ {_listed(iris, ' ')} }}")
    state_once(outline, {at: each.ways for at, each in meant.items()}, edits)
    edits.added.extend(name.removeprefix("?") for name in variables.values())


def _write(outline: Outline, place: NamePlace, iris: Sequence[Iri], edits: Edits) -> None:
    before = place.token - 1
    text = _listed(iris, {"list": " ", "commas": ", ", "equal": ", ", "unequal": ", "}.get(place.form, "|"))
    if len(iris) > 1 and place.form in {"equal", "unequal"}:
        edits.instead[before] = " IN " if place.form == "equal" else " NOT IN "
    in_list = place.form in {"list", "commas"} or (place.form == "negated" and outline.tokens[before].text != "!")
    edits.instead[place.token] = text if len(iris) == 1 or in_list else f"({text})"


def _listed(iris: Sequence[Iri], between: str) -> str:
    # What an Iri may hold cannot end it.
    return between.join(f"<{iri.value}>" for iri in iris)


def _unused(query: str, taken: Collection[str]) -> str:
    return next(name for number in count(1) if (name := f"?named{number}") not in query and name not in taken)


_MARKS: Final = ('@"', "@'")

_LABEL: Final = "label"
_MAY_BE_RESTATED: Final = re.compile(r"\^\^|[\d.]{19}")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query as it is run.

    Args:
        text: SPARQL.
        note: What was read as what, in full sentences; empty where every name was exact.
        read: The ids that names stand for.
        edits: How it came out of the query that was written.
    """

    text: str
    note: str = ""
    read: Mapping[str, str] = field(default_factory=dict[str, str])
    edits: Edits = field(default_factory=Edits)


async def prepared(graph: KGAdapter, meaning: Meaning, query: str, *, timeout_s: float) -> Prepared:
    """Return a query with ids in place of its names, and without Wikidata's ways to ask for labels.

    Raises:
        InvalidRequest: A name stands for nothing in its place, or for too much.
        BackendTimeout: The graph did not say in time what the names stand for.
    """
    restates = not graph.remote and _MAY_BE_RESTATED.search(query)
    if _LABEL not in query.lower() and not any(mark in query for mark in _MARKS) and not restates:
        return Prepared(query)
    try:
        with anyio.fail_after(timeout_s):
            return await _with_ids(graph, meaning, query)
    except TimeoutError:
        raise BackendTimeout(
            f"The graph gave no answer within {round(timeout_s, 2):g} s to what the names in the query stand for. "
            "Ask again with a larger timeout_s, or write ids: Retrieve finds them."
        ) from None


async def _with_ids(graph: KGAdapter, meaning: Meaning, query: str) -> Prepared:
    outline = outline_of(query)
    meant = await meanings(graph, meaning, query, outline)
    instances = await _instances(graph, query, outline, meant)
    instances.check()
    edits = Edits()
    labels = await _with_labels(graph, outline, edits) if _LABEL in query.lower() else ""
    if not graph.remote:
        edits.restate(outline, graph.prefixes)
    run = edits
    if once := {each.tail[0] for each in instances.once}:
        run = deepcopy(edits)
        put_ids(query, outline, {at: each for at, each in meant.items() if at not in once}, run)
        instances.put_paths(run)
        instances.count_once(run)
    put_ids(query, outline, meant, edits)
    instances.put_paths(edits)
    distinct = list(dict.fromkeys(meant.values()))
    read = {each.text: "" for each in distinct}
    for text in read:
        ids = (short for each in distinct if each.text == text for short in _ids(graph, each))
        read[text] = ", ".join(dict.fromkeys(ids))
    wide = await with_subclasses(graph, instances, {at: each.text for at, each in meant.items()})
    free = {place.token for place in outline.places if place.role == "free"}
    compared = [iri for at, each in meant.items() if at in free and each.sort == "class" for iri in each.iris]
    narrow = await alone(graph, compared, "compared with a variable")
    note = " ".join(filter(None, (await _note(graph, distinct), *wide, narrow, labels)))
    return Prepared(run.applied(query, outline), note, read, edits)


async def _instances(
    graph: KGAdapter, query: str, outline: Outline, meant: Mapping[int, NameMeaning]
) -> ClassStatements:
    types = frozenset(graph.vocabulary.types)
    classes = {at: each.iris for at, each in meant.items() if each.sort == "class"}
    verbs = {at for at, each in meant.items() if each.sort == "relation" and types.issuperset(each.iris)}
    by_id = {iri for each in meant.values() if each.by_id for iri in each.iris}
    return await instances_in(query, outline, graph, classes, verbs, by_id)


async def _with_labels(graph: KGAdapter, outline: Outline, edits: Edits) -> str:
    """Do without Wikidata's ways to ask for labels, by the relations to labels that the graph has."""
    if not asks_for_labels(outline):
        return ""
    features = {each.iri for each in (await graph.schema()).features}
    vocabulary = graph.vocabulary
    used = tuple(each for each in vocabulary.labels if each in features)
    return put_labels(outline, replace(vocabulary, labels=used or vocabulary.labels[:1]), edits)


def _ids(graph: KGAdapter, meant: NameMeaning) -> Sequence[str]:
    position: Position = "relation" if meant.sort == "relation" else "entity"
    return [graph.prefixes.shorten(each, position) for each in meant.iris]


async def _note(graph: KGAdapter, meant: Sequence[NameMeaning]) -> str:
    """Return what was not plainly the name of one thing."""
    readings = Counter(text for text, _ in {(each.text, each.iris) for each in meant})
    told = [each for each in meant if not each.plain or len(each.iris) > 1 or readings[each.text] > 1 or each.passed]
    names = await names_of(graph, [iri for each in told for iri in (*each.iris, *(one.entity for one in each.passed))])
    notes: list[str] = []
    for each in told:
        name = in_quotes(each.text, MAX_LABEL)
        if len(each.iris) > 1:
            notes.append(await shown_all(graph, each))
        elif each.how or each.passed:
            pieces = said_of_reading(each.text, next(iter(each.iris)), each.how, each.passed)
            notes.append("".join(piece if isinstance(piece, str) else names.entity(piece) for piece in pieces))
        else:
            show = names.relation if each.sort == "relation" else names.entity
            notes.append(f"Read {name} as {' '.join(map(show, each.iris))}.")
    notes += [await each.ways.note(graph, each.iris) for each in meant]
    return " ".join(dict.fromkeys(filter(None, notes)))
