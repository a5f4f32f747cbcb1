"""Why a query has no rows: the first part of it that nothing matches, and texts that are nobody's name.

The parts of the query are asked for again, as ASK: by halves, so that seven requests do for a hundred parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Final

import anyio

from kg_adapters.errors import BackendTimeout, InvalidRequest, KGError
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.terms import Iri
from kg_boundary.shown import clipped, shown_within
from kg_server.coverage import absence
from kg_server.names import names_of
from kg_server.results import Knowledge
from kg_server.sparql.outline import outline_of
from kg_server.sparql.rewriting import Edits
from kg_server.sparql.syntax import Element, Outline, Span, Statement
from kg_server.sparql.texts import unnamed_texts

_SHOWN: Final = 160
_NOT_COMPUTED: Final = "It can be computed of none: a variable has no value there, or values of two kinds are compared."
_LATE: Final = "Which part of it has no match was not found in time."


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
        timeout_s: How many seconds the whole search may take.
    """
    try:
        outline = outline_of(query)
    except InvalidRequest:
        # The guard has read it, so this is a text of a kind that is not looked into here.
        return Reason("unknown", "")
    search = _Search(graph, sparql, outline, edits, timeout_s)
    try:
        with anyio.fail_after(search.timeout_s):
            return await search.reason()
    except (TimeoutError, BackendTimeout):
        return Reason("unknown", _LATE)
    except KGError as error:
        return Reason("unknown", f"Which part of it has no match was not found: {clipped(str(error), _SHOWN)}")


def _no_rows_wanted(outline: Outline) -> Reason | None:
    words = [token.keyword or token.text for token in outline.within(outline.main.modifiers)]
    asked_for_none = ("LIMIT", "0") in pairwise(words)
    return Reason("unknown", "Its patterns have matches, but LIMIT 0 asks for no rows.") if asked_for_none else None


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
        found = await self._first_without(elements)
        if found is None:
            return _no_rows_wanted(self.outline)
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

    async def _first_without(self, elements: Sequence[Element]) -> int | None:
        """Return the number of the first part that leaves nothing, or None where all of them together have a match."""
        if not elements or await self._holds(elements):
            return None
        with_match, without = 0, len(elements)
        while without - with_match > 1:
            middle = (with_match + without) // 2
            if await self._holds(elements[:middle]):
                with_match = middle
            else:
                without = middle
        return without - 1

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
        if head is None or relation is None:
            return "unknown", ""
        if tail.kind != "variable" and await self._ask([f"<{head}> <{relation}> ?any"]):
            names = await names_of(self.graph, [head, relation])
            return "denied", f"{names.entity(head)} has others over {names.relation(relation)}."
        missing = await absence(self.graph, head, relation)
        return missing.knowledge, f"{missing.clause[0].upper()}{missing.clause[1:]}."

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
        """Return the one IRI that a part of a statement is, or None."""
        if span[1] - span[0] != 1:
            return None
        token = self.outline.tokens[span[0]]
        run = replace(token, kind="iri", text=self._run(span)) if token.kind == "name" else token
        return self.outline.iri(run, self.graph.prefixes)
