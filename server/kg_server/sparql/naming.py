"""What the names in a query stand for, by the places where they stand.

All entities and classes of a query are looked for together, and so are all its relations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.errors import InvalidRequest, KGError
from kg_adapters.local.names.folding import fold
from kg_adapters.models import Candidate
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri
from kg_boundary.shown import in_quotes
from kg_server.answers.results import Verdict
from kg_server.concurrency import together
from kg_server.entity_arguments import SHOWN, in_plural, naming_refusal
from kg_server.identity import AT_ONCE, Identity, identify
from kg_server.meaning import Meaning
from kg_server.names import MAX_LABEL, Names, names_of
from kg_server.near_definitions import near_classes, with_near_relations
from kg_server.pointing import MisreadExpression
from kg_server.relation_resolution import NoSuchRelation, relations_named
from kg_server.sparql.syntax import Outline, Place, Span
from kg_server.sparql.tokens import Token

MAX_NAMES: Final = 50
"""How many names one query may hold."""

_SHOWN_ERRORS: Final = 3
_ONE_ONLY: Final = "Only one id is allowed here: write that of the one you mean."

Sort: TypeAlias = Choice["entity", "class", "relation"]


@dataclass(frozen=True, slots=True)
class Meant:
    """What one name stands for: several are namesakes.

    Args:
        text: The name.
        sort: As what it was read.
        match: `exact` or `close`.
        iris: All that it names.
        plain: Whether it is exactly an id or label, so that nothing need be said.
        how: How it names an entity or class, where that is known: `an alias`, `one letter off`.
    """

    text: str
    sort: Sort
    match: Verdict
    iris: tuple[Iri, ...]
    plain: bool
    how: str = ""


async def meanings(graph: KGAdapter, meaning: Meaning, query: str, outline: Outline) -> Mapping[int, Meant]:
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
    meant: dict[int, Meant] = {}
    refused: list[KGError] = []
    for place in outline.places:
        name, sort = outline.tokens[place.token].name, sorts[place.token]
        found = relations[name] if sort == "relation" else others[name, sort]
        if isinstance(found, Meant) and (place.form != "single" or len(found.iris) == 1):
            meant[place.token] = found
        else:
            problem = await _ambiguous(graph, found) if isinstance(found, Meant) else found
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
    graph: KGAdapter, outline: Outline, relations: Mapping[str, Meant | KGError], over: set[str]
) -> dict[int, Sort]:
    """Return as what each name is to be read."""
    typing = _Typing(graph, outline, relations)
    classes = {
        variable
        for each in outline.statements
        if typing.says_what_is(each.verb)
        for variable in outline.variables(each.tail)
    }

    def sort_of(place: Place) -> Sort:
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
    relations: Mapping[str, Meant | KGError]

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
            return isinstance(found, Meant) and not self.graph.vocabulary.unwalked.isdisjoint(found.iris)
        return token.text == "a" or self.outline.iri(token, self.graph.prefixes) in self.graph.vocabulary.unwalked


async def _relations(graph: KGAdapter, meaning: Meaning, names: set[str]) -> dict[str, Meant | KGError]:
    async def read(name: str) -> Meant:
        try:
            match, found = await relations_named(graph, name)
        except NoSuchRelation as error:
            raise NoSuchRelation(await with_near_relations(graph, meaning, name, str(error))) from error
        plain = match == "exact" and found[0].matched_by != "alias"
        return Meant(name, "relation", match, tuple(sorted(each.relation for each in found)), plain)

    wanted = sorted(names)
    return dict(zip(wanted, await together([partial(read, name) for name in wanted], at_once=AT_ONCE), strict=True))


async def _things(
    graph: KGAdapter, meaning: Meaning, wanted: set[tuple[str, Sort]]
) -> dict[tuple[str, Sort], Meant | KGError]:
    if not wanted:
        return {}
    asked = sorted(wanted)
    schema = await graph.schema()
    classes = {each.iri: each.label for each in schema.classes}
    found: dict[tuple[str, Sort], Meant | KGError] = {}
    for (name, sort), identity in zip(asked, await identify(graph, [name for name, _ in asked]), strict=True):
        iris = [each for each in identity.nodes if isinstance(each, Iri)]
        if sort == "class":
            iris = (
                [each for each in iris if each in classes]
                or iris
                or [each for each in in_plural(name, classes) if isinstance(each, Iri)]
            )
        if iris:
            match: Verdict = identity.match if identity.named else "close"
            plain = match == "exact" and all(
                each.matched_by != "alias" for each in identity.named if each.entity in iris
            )
            found[name, sort] = Meant(name, sort, match, tuple(sorted(iris)), plain, identity.how)
        elif identity.named:
            found[name, sort] = InvalidRequest(
                f"{in_quotes(name, MAX_LABEL)} is a blank node, which no query can name."
            )
        else:
            meant = await near_classes(meaning, schema, name) if sort == "class" else ()
            found[name, sort] = await naming_refusal(graph, _nearest(identity, meant))
    return found


def _nearest(identity: Identity, meant: Sequence[Candidate]) -> Identity:
    """Return a verdict with the classes near in meaning before all else that is near."""
    near = {each.entity: each for each in (*meant, *identity.near)}
    return replace(identity, near=tuple(near.values()))


async def _ambiguous(graph: KGAdapter, meant: Meant) -> KGError:
    names = await names_of(graph, meant.iris)
    return InvalidRequest(f"{in_quotes(meant.text, MAX_LABEL)} names {shown_all(meant, names)}. {_ONE_ONLY}")


def shown_all(meant: Meant, names: Names) -> str:
    """Return how many things a name stands for, and the first of them."""
    alike = all(fold(names.labels.get(each, "")) == fold(meant.text) for each in meant.iris)
    if meant.sort == "relation":
        shown = [names.relation_id(each) if alike else names.relation(each, ";") for each in meant.iris[:SHOWN]]
    else:
        shown = [names.entity_id(each) if alike else names.entity(each, ";") for each in meant.iris[:SHOWN]]
    more = f"; and {len(meant.iris) - SHOWN} more" if len(meant.iris) > SHOWN else ""
    return f"{len(meant.iris)} things here: {'; '.join(shown)}{more}"
