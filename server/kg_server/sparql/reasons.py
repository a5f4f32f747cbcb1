"""Why a query of SPARQL found nothing: its first part without a match, and what that means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Final

from kg_adapters.errors import BackendTimeout, InvalidRequest, KGError
from kg_adapters.folding import fold
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Literal, Node
from kg_boundary.shown import clipped, in_quotes, shown_within
from kg_server.answers.columns import texts_instead
from kg_server.answers.coverage import absence
from kg_server.answers.remarks import first_without
from kg_server.answers.results import Knowledge, Line, Over
from kg_server.names import MAX_LABEL, Names, names_of, shown_literal
from kg_server.naming.declared import declared_only
from kg_server.naming.entities import MOST_NEAR, SHOWN, Identity, identify
from kg_server.sparql.outline import outline_of
from kg_server.sparql.syntax import Edits, Element, Outline, Span, Statement
from kg_server.sparql.ways import narrower_note

_MOST: Final = 3

_FEWEST_LETTERS: Final = 3

_AROUND: Final = "^$.*"

_QUOTES: Final = ('"""', "'''", '"', "'")


async def unnamed_texts(graph: KGAdapter, outline: Outline, element: Element) -> tuple[bool, str]:
    """Return whether texts of a part of a query are nobody's name, and what is wrong with them, in full sentences."""
    if element.statement is not None and not _names(graph, outline, element.statement):
        return False, ""
    texts = dict(list(_texts(outline, element))[:_MOST])
    found = await identify(graph, list(texts))
    shown = await names_of(graph, [each.entity for one in found for each in one.named[:SHOWN] or one.alike[:MOST_NEAR]])
    written = await _written(graph, [each.entity for one in found for each in one.named[:SHOWN]])
    said = " ".join(_said(each, shown, written, texts[each.text]) for each in found)
    return any(each.match != "exact" for each in found), said


def _names(graph: KGAdapter, outline: Outline, statement: Statement) -> bool:
    """Say whether a statement is about names: over a variable, or over a relation that names."""
    verb = outline.within(statement.verb)
    return any(each.kind == "variable" or outline.iri(each, graph.prefixes) in graph.vocabulary.texts for each in verb)


async def _written(graph: KGAdapter, entities: Sequence[Node]) -> Mapping[Node, Sequence[Literal]]:
    """Return the labels of entities as the graph writes them."""
    if not entities:
        return {}
    pages = await graph.features(FeatureRequest(tuple(entities), frozenset(graph.vocabulary.labels)))
    return {entity: [feature.value for feature in page.features] for entity, page in pages.items()}


def _texts(outline: Outline, element: Element) -> Iterator[tuple[str, str]]:
    """Return the texts that may be names, each with its language tag."""
    return _texts_in(outline, element.span if element.statement is None else element.statement.tail)


def _texts_in(outline: Outline, span: Span) -> Iterator[tuple[str, str]]:
    for at in range(*span):
        token = outline.tokens[at]
        behind = outline.tokens[at + 1] if at + 1 < len(outline.tokens) else token
        if token.kind != "text" or behind.text == "^^":
            continue
        quote = next(quote for quote in _QUOTES if token.text.startswith(quote))
        text = token.text[len(quote) : -len(quote)].strip(_AROUND)
        if sum(map(str.isalpha, text)) >= _FEWEST_LETTERS:
            yield text, behind.text[1:].lower() if behind.kind == "tag" else ""


def _said(identity: Identity, names: Names, written: Mapping[Node, Sequence[Literal]], tag: str) -> str:
    text = in_quotes(identity.text, MAX_LABEL)
    shown = "; ".join(names.entity(each.entity, ";") for each in identity.named[:SHOWN] or identity.alike[:MOST_NEAR])
    if identity.match == "exact":
        named = [each for entity in identity.nodes for each in written.get(entity, ())]
        labels = [each for each in named if fold(each.value) == fold(identity.text)]
        if not labels or any((each.value, (each.language or "").lower()) == (identity.text, tag) for each in labels):
            return f"{text} is the name of {shown}."
        label = shown_literal(labels[0], names.prefixes, MAX_LABEL)
        return f'{text} is the name of {shown}. Write its label {label}, or @"…" in place of an id.'
    if identity.match == "close":
        return f"Nothing is named {text}, but {shown} is."
    return f"Nothing is named {text}.{f' Near, not the same: {shown}.' if shown else ''}"


_NO_ROWS_WANTED: Final = "Its patterns have matches, but LIMIT 0 asks for no rows."

_SHOWN: Final = 160

_NOT_COMPUTED: Final = "It can be computed of none: a variable has no value there, or values of two kinds are compared."

LATE: Final = "Which part of it has no match was not found in time."


@dataclass(frozen=True, slots=True)
class Reason:
    """Why nothing was found: what it means, and full sentences."""

    knowledge: Knowledge
    text: str


async def reason_for(
    graph: KGAdapter, sparql: SupportsSparql, query: str, edits: Edits, *, timeout_s: float
) -> Reason | None:
    """Return why a query that the graph has read found nothing; None where all its patterns together have a match.

    Args:
        graph: Where names are looked up.
        sparql: What is asked again.
        query: The query as it was written.
        edits: What was changed in it before it was run.
        timeout_s: How many seconds one query of the search may take.

    Raises:
        BackendTimeout: One took longer.
    """
    try:
        outline = outline_of(query)
    except InvalidRequest:
        # The guard has read it, so this is a text of a kind that is not looked into here.
        return Reason("unknown", "")
    try:
        return await _Search(graph, sparql, outline, edits, timeout_s).reason()
    except BackendTimeout:
        raise
    except KGError as error:
        return Reason("unknown", f"Which part of it has no match was not found: {clipped(str(error), _SHOWN)}")


async def one_way_only(graph: KGAdapter, query: str, edits: Edits) -> str:
    """Return which relations of a query have an inverse, not in it, or subproperties that hold more; empty where none.

    A remote graph is not asked for it.
    """
    if graph.remote:
        return ""
    try:
        outline = outline_of(query)
    except InvalidRequest:
        # The guard has read it, so this is a text of a kind that is not looked into here.
        return ""
    profile = await graph.profile()
    verbs = (each.verb for each in outline.statements if "|^" not in edits.instead.get(each.verb[0], ""))
    walked = {_iri_of(graph, outline, edits, verb) for verb in verbs}
    pairs = {relation: pair for relation in walked if relation and (pair := profile.inverses_of(relation)) is not None}
    lacking = {
        relation: (pair.inverse, pair.only_inverse)
        if relation == pair.relation
        else (pair.relation, pair.only_relation)
        for relation, pair in pairs.items()
        if not pair.symmetric
    }
    held_more = {relation: end for relation, end in sorted(lacking.items()) if end[1]}
    narrower = await narrower_note(graph, sorted(filter(None, walked)))
    if not held_more:
        return narrower
    named = {_iri_of(graph, outline, edits, (at, at + 1)) for at in range(len(outline.tokens))}
    more = {relation: end for relation, end in held_more.items() if end[0] not in named}
    names = await names_of(graph, [*more, *(inverse for inverse, _ in more.values())])
    notes = [narrower] if narrower else []
    for relation, (inverse, number) in islice(more.items(), _MOST):
        held = f"{number:,} more link{'' if number == 1 else 's'} in all"
        both = f"({graph.prefixes.shorten(relation)}|^{graph.prefixes.shorten(inverse)})"
        notes.append(
            f"The inverse of {names.relation(relation)}, {names.relation(inverse)}, holds {held}: {both} walks both."
        )
    return " ".join(notes)


def _iri_of(graph: KGAdapter, outline: Outline, edits: Edits, span: Span) -> Iri | None:
    """Return the one IRI that a part of a statement is, of a relation and its inverse the first, or None."""
    if span[1] - span[0] != 1:
        return None
    token = outline.tokens[span[0]]
    if token.kind == "name":
        text = outline.text(span, edits.texts(outline)).strip()
        ways = text.removeprefix("(").removesuffix(")").split("|")
        token = replace(token, kind="iri", text=ways[0] if all(way[0] == "^" for way in ways[1:]) else text)
    return outline.iri(token, graph.prefixes)


def limit_of(query: str) -> int | None:
    """Return the LIMIT of a whole query; None where it has none."""
    try:
        outline = outline_of(query)
    except InvalidRequest:
        # The guard has read it, so this is a text of a kind that is not looked into here.
        return None
    return _limit_in(outline)


def _limit_in(outline: Outline) -> int | None:
    words = [token.keyword or token.text for token in outline.within(outline.main.modifiers)]
    return next((int(number) for word, number in pairwise(words) if word == "LIMIT" and number.isdecimal()), None)


@dataclass(frozen=True)
class _Search:
    """Looks for the first part of one query that has no match."""

    graph: KGAdapter
    sparql: SupportsSparql
    outline: Outline
    edits: Edits
    timeout_s: float

    async def reason(self) -> Reason | None:
        elements = self._elements()
        found = await first_without(len(elements), lambda first: self._holds(elements[:first]))
        if found is None:
            wants_none = _limit_in(self.outline) == 0
            return Reason("unknown", _NO_ROWS_WANTED) if wants_none else None
        element, before = elements[found], elements[:found]
        said = [await self._described(element, before)]
        if element.statement is None:
            knowledge, more = await self._meaning(element, before)
        else:
            knowledge, more = await self._about(element.statement, before)
        unnamed, texts = await unnamed_texts(self.graph, self.outline, element)
        said += [more, texts]
        knowledge = "unnamed" if unnamed else knowledge
        return Reason(knowledge, " ".join(filter(None, said)))

    def _elements(self) -> list[Element]:
        """Return the parts that narrow what is found; FILTER, which looks at the whole group, comes last."""
        where, (first, end) = self.outline.main.where, self.outline.main.modifiers
        parts = [] if where is None else [each for each in where.elements if self._text(each)]
        values = (at for at in range(first, end) if self.outline.tokens[at].keyword == "VALUES")
        return [
            *sorted(parts, key=lambda each: each.kind == "filter"),
            *(Element("values", (at, end)) for at in islice(values, 1)),
        ]

    async def _described(self, element: Element, before: Sequence[Element]) -> str:
        shown = shown_within(self._written(element), _SHOWN)
        if not before:
            return f"Nothing matches {shown}."
        if element.kind not in {"filter", "values"} and await self._holds([element]):
            return f"The part before it has matches, and so has {shown} by itself, but not together."
        return f"The part before it has matches; {shown} leaves none."

    async def _meaning(self, element: Element, before: Sequence[Element]) -> tuple[Knowledge, str]:
        """Return what it means that a part leaves nothing: a condition says no of what its opposite holds of."""
        if element.kind != "filter":
            return "denied" if element.kind == "minus" else "unknown", ""
        span = element.span[0] + 1, element.span[1]
        words = [token.keyword or token.text for token in self.outline.within(span)]
        if any(word == "EXISTS" and before not in {"NOT", "!"} for before, word in pairwise(["", *words])):
            return "unknown", ""
        if await self._ask([*map(self._text, before), f"FILTER(!({self._run(span)}))"]):
            return "denied", ""
        return "unknown", _NOT_COMPUTED

    async def _about(self, statement: Statement, before: Sequence[Element]) -> tuple[Knowledge, str]:
        """Return what it means that a statement has no match, and in which other form it has some."""
        head, relation = (self._iri(span) for span in (statement.subject, statement.verb))
        tail = self.outline.tokens[statement.tail[0]]
        if turned := await self._turned(statement, relation, list(map(self._text, before))):
            return "unknown", turned
        if instead := await self._texts_instead(statement, before):
            return "unknown", instead
        if relation is not None and (otherwise := await self._without_facts(relation)):
            return "unknown", otherwise
        if head is None or relation is None:
            return "unknown", ""
        names = await names_of(self.graph, [head, relation])
        if tail.kind != "variable" and await self._ask([f"<{head}> <{relation}> ?any"]):
            return "denied", f"{names.entity(head)} has others over {names.relation(relation)}."
        missing = await absence(self.graph, head, [relation])
        return missing.knowledge, Line(missing.note(Over(relation))).shown(names)

    async def _texts_instead(self, statement: Statement, before: Sequence[Element]) -> str:
        """Return what stands for an entity, given by id or name, where a relation holds texts and not links to it.

        The relation is that of the statement, or the one that leads to its subject.
        """
        stated = [each.statement for each in before if each.statement is not None]
        subject = self.outline.text(statement.subject)
        leading = [each for each in stated if self.outline.text(each.tail) == subject]
        node = await self._meant(statement.tail)
        for relation in filter(None, (self._iri(each.verb) for each in (statement, *leading))):
            instead = None if node is None else await texts_instead(self.graph, node, [relation])
            if node is not None and instead is not None:
                names = await names_of(self.graph, [node, relation])
                return f"{names.relation(relation)}: {instead.clause(names.entity(node))}."
        return ""

    async def _without_facts(self, relation: Iri) -> str:
        """Return over what else a relation has facts, or where it is declared; empty where it has some itself."""
        if narrower := await narrower_note(self.graph, [relation]):
            return narrower
        described = (await self.graph.describe([relation])).get(relation)
        used = described is None or "relation" in described.roles
        return "" if used else await declared_only(self.graph, relation.value, relation)

    async def _meant(self, span: Span) -> Node | None:
        """Return the entity that a part of a statement is, by its id or as a text that names it."""
        if self.outline.tokens[span[0]].kind != "text":
            return self._iri(span)
        texts = [text for text, _ in _texts_in(self.outline, span)]
        return next((node for each in await identify(self.graph, texts) for node in each.nodes), None)

    async def _turned(self, statement: Statement, relation: Iri | None, before: Sequence[str]) -> str:
        """Return how a statement has matches the other way round, over its relation or that one's inverse."""
        subject, verb, tail = (self.outline.text(span) for span in (statement.subject, statement.verb, statement.tail))
        kinds = [self.outline.tokens[span[0]].kind for span in (statement.verb, statement.tail)]
        if kinds[0] == "variable" or kinds[1] in {"text", "number"}:
            return ""
        ends = self._run(statement.tail), self._run(statement.subject)
        if await self._ask([*before, f"{ends[0]} {self._run(statement.verb)} {ends[1]}"]):
            return f"The other way round it has matches: {tail} {verb} {subject}."
        inverse = None if relation is None else (await self.graph.profile()).inverse_of(relation)
        if inverse is None or not await self._ask([*before, f"{ends[0]} <{inverse}> {ends[1]}"]):
            return ""
        names = await names_of(self.graph, [inverse])
        short = self.graph.prefixes.shorten(inverse)
        return f"Over the inverse, {names.relation(inverse)}, it has matches: {tail} {short} {subject}."

    async def _holds(self, elements: Sequence[Element]) -> bool:
        return await self._ask(list(map(self._text, elements)))

    async def _ask(self, parts: Sequence[str]) -> bool:
        where = self.outline.main.where
        bound = "" if where is None else "".join(self.edits.behind.get(where.span[0], ()))
        prologue = self.outline.text(self.outline.prologue)
        asked = f"{prologue} ASK {{{bound} {' . '.join(parts)} }}"
        answer = await self.sparql.select(asked, timeout_s=self.timeout_s, max_rows=1)
        return bool(answer.truth)

    def _written(self, element: Element) -> str:
        if element.statement is None:
            return self.outline.text(element.span)
        each = element.statement
        return " ".join(map(self.outline.text, (each.subject, each.verb, each.tail)))

    def _text(self, element: Element) -> str:
        if element.statement is None:
            return self._run(element.span)
        each = element.statement
        return " ".join(map(self._run, (each.subject, each.verb, each.tail)))

    def _run(self, span: Span) -> str:
        return self.outline.text(span, self.edits.texts(self.outline)).strip()

    def _iri(self, span: Span) -> Iri | None:
        return _iri_of(self.graph, self.outline, self.edits, span)
