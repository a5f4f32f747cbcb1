"""The tool Sparql: a query's rows as an answer."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Final, Self

import anyio

from kg_adapters.calls import time_left_s
from kg_adapters.errors import BackendTimeout, InvalidRequest, KGError
from kg_adapters.folding import fold
from kg_adapters.models import SparqlAnswer
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_boundary.shown import clipped, in_quotes, shown, shown_within
from kg_server.answers.coverage import absence
from kg_server.answers.intermediates import with_intermediates_of_rows
from kg_server.answers.remarks import blank_sums, first_without, rounded_values
from kg_server.answers.results import (
    Answer,
    AnswerRows,
    Knowledge,
    Line,
    Over,
    Piece,
    SparqlResult,
    Status,
    fitted_rows,
    in_columns,
)
from kg_server.answers.values import plain_value
from kg_server.concurrency import off_loop
from kg_server.names import MAX_LABEL, MAX_VALUE, Names, names_of, shown_literal
from kg_server.naming.entities import MOST_NEAR, SHOWN, Identity, identify
from kg_server.naming.meaning import Meaning
from kg_server.sparql.naming import prepared
from kg_server.sparql.outline import outline_of
from kg_server.sparql.syntax import Edits, Element, Outline, Span, Statement

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
    """Yield the texts that may be names, and the language that they are told to have."""
    span = element.span if element.statement is None else element.statement.tail
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
        found = await first_without(len(elements), lambda first: self._holds(elements[:first]))
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
        names = await names_of(self.graph, [head, relation])
        if tail.kind != "variable" and await self._ask([f"<{head}> <{relation}> ?any"]):
            return "denied", f"{names.entity(head)} has others over {names.relation(relation)}."
        missing = await absence(self.graph, head, [relation])
        return missing.knowledge, Line(missing.note(Over(relation))).shown(names)

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


Row = Sequence[Term | None]

_MANY_ROWS: Final = 4


def terms_of_rows(rows: Sequence[Row]) -> Iterator[Node]:
    """Yield what rows name, with repeats."""
    return (term for row in rows for term in row if term is not None and not isinstance(term, Literal))


class RowLine(Line):
    """A row of an answer, in which numbers have no commas, as a query takes them."""

    @classmethod
    def of(cls, row: Row, prefixes: Prefixes, left_out: Collection[int] = ()) -> Self:
        """Return a row as one line, without the text of some columns."""
        pieces = tuple(_piece(term, prefixes) for term in row)
        return cls(in_columns(piece for place, piece in enumerate(pieces) if place not in left_out), pieces)

    def shown_piece(self, piece: Piece, names: Names, max_value: int, over: Iri | None) -> str:
        """See `Line`."""
        plain = plain_value(piece) if isinstance(piece, Literal) else None
        return super().shown_piece(piece, names, max_value, over) if plain is None else plain.replace(",", "")


def alike_columns(rows: Sequence[Row]) -> list[int]:
    """Return the columns that hold the same in every one of many rows, which need be told only once; never all."""
    if len(rows) < _MANY_ROWS:
        return []
    first, *others = rows
    alike = [place for place, term in enumerate(first) if term and all(row[place] == term for row in others)]
    return alike if len(alike) < len(first) else alike[:-1]


def told_once(
    row: Row, variables: Sequence[str], columns: Sequence[int], names: Names, max_value: int, every: str
) -> str:
    """Return a sentence on the columns that are alike in some rows, which `every` names."""
    cells = [RowLine.of((row[place],), names.prefixes).shown(names, max_value) for place in columns]
    parts = [f"?{variables[place]} is {cell}" for place, cell in zip(columns, cells, strict=True)]
    return f"In {every} {', '.join(parts)}."


def _piece(term: Term | None, prefixes: Prefixes) -> Piece:
    if term is None:
        return ""
    return Over(term) if isinstance(term, Iri) and _is_relation(term, prefixes) else term


def _is_relation(iri: Iri, prefixes: Prefixes) -> bool:
    """Say whether an IRI has a bare id as a relation and none as an entity, as `wdt:P106` has."""
    if prefixes.relations is None or prefixes.relations.shorten(iri) is None:
        return False
    return prefixes.entities is None or prefixes.entities.shorten(iri) is None


MAX_COLUMNS: Final = 100

MIN_CELL: Final = 10

_LEAST_S: Final = 0.01

SHOWN_TERMS: Final = 5

_AGGREGATE: Final = re.compile(r"\b(?:COUNT|SUM|AVG|MIN|MAX|SAMPLE|GROUP_CONCAT)\b", re.IGNORECASE)

_LEFT_OUT: Final = "Its patterns have matches; HAVING, OFFSET or LIMIT leaves none of them."


async def sparql_query(
    graph: KGAdapter,
    sparql: SupportsSparql,
    meaning: Meaning,
    *,
    query: str,
    max_rows: int,
    deadline: float,
    max_tokens: int,
) -> Answer:
    """Answer Sparql by one deadline, on the clock of `anyio.current_time`, for names, rows and explanation.

    Raises:
        InvalidRequest: The query is not SPARQL, does more than read this graph, or asks for more than `MAX_COLUMNS`.
        BackendTimeout: It was stopped at the deadline.
    """
    run = await prepared(graph, meaning, query, timeout_s=_left_s(deadline))
    found = await sparql.select(run.text, timeout_s=_left_s(deadline), max_rows=max_rows)
    answer = _own_columns(found, run.edits.added)
    columns = len(answer.variables)
    cell = max(MIN_CELL, min(MAX_VALUE, max_tokens // max(1, columns)))
    # A row takes a token at least.
    rows = answer.rows[:max_tokens]
    labelled = await names_of(graph, terms_of_rows(rows), max_tokens=4 * cell)
    names = await with_intermediates_of_rows(graph, rows, labelled)
    alike = alike_columns(rows)
    lines = await off_loop(lambda: [RowLine.of(row, graph.prefixes, alike) for row in rows], len(rows))
    variables = [shown(variable) for variable in answer.variables]
    every = "every row" if not answer.truncated and len(rows) == len(answer.rows) else "every row that was fetched"
    once = told_once(rows[0], variables, alike, names, cell, every) if alike else ""
    header = " | ".join(f"?{variable}" for place, variable in enumerate(variables) if place not in alike)
    remarks = (await rounded_values(graph, answer.rounded), blank_sums(answer, query))
    reason = await _reason(graph, sparql, query, run.edits, answer, time_left_s(_left_s(deadline)))

    def build(here: AnswerRows[RowLine]) -> Answer:
        fields = here.fields()
        result = SparqlResult(
            status=_status(answer, len(here)),
            knowledge=reason.knowledge,
            summary=" ".join(
                filter(None, (run.note, _summary(answer, len(here), max_rows, max_tokens), once, reason.text, *remarks))
            ),
            read=dict(run.read) or None,
            variables=variables,
            rows=here.cells(),
            labels=fields["labels"] | fields["relations"],
            held=fields["held"],
            relations=fields["relations"] or None,
            truth=answer.truth,
        )
        return Answer(result, (header, *here.texts()) if len(here) else ())

    ways = (names, labelled) if columns > 1 else (names,)
    return await off_loop(
        lambda: _whole(fitted_rows(AnswerRows(lines, each, cell), build, max_tokens) for each in ways), len(rows)
    )


def _left_s(deadline: float) -> float:
    return max(_LEAST_S, deadline - anyio.current_time())


def _whole(answers: Iterator[Answer]) -> Answer:
    """Return the first answer that shows all rows, worth more than what nodes without a name hold; else the first."""
    first = next(answers)
    return first if first.result.status == "ok" else next((a for a in answers if a.result.status == "ok"), first)


async def _reason(
    graph: KGAdapter, sparql: SupportsSparql, query: str, edits: Edits, answer: SparqlAnswer, timeout_s: float
) -> Reason:
    """Return why a query found nothing, or counted nothing; where it found something, that the graph says so."""
    nothing = not answer.rows and not answer.truth
    if not nothing and not _counts_nothing(answer, query):
        return Reason("stated", answer.note)
    if answer.note:
        return Reason("unknown", answer.note)
    try:
        with anyio.fail_after(timeout_s):
            unknown = await _unknown_terms(graph, answer.named)
            if unknown:
                return Reason("unnamed", unknown)
            reason = await reason_for(graph, sparql, query, edits, timeout_s=timeout_s)
    except (TimeoutError, BackendTimeout):
        return Reason("unknown", LATE)
    if reason is not None:
        return reason
    return Reason("denied", _LEFT_OUT) if nothing else Reason("stated", "")


def _counts_nothing(answer: SparqlAnswer, query: str) -> bool:
    """Say whether an answer is a single row of zeros and unbound variables that a query computed."""
    if len(answer.rows) != 1 or _AGGREGATE.search(query) is None:
        return False
    return all(term is None or (isinstance(term, Literal) and plain_value(term) == "0") for term in answer.rows[0])


def _own_columns(answer: SparqlAnswer, added: Sequence[str]) -> SparqlAnswer:
    """Return an answer without the variables that the query did not have.

    Raises:
        InvalidRequest: The query asks for more than `MAX_COLUMNS`.
    """
    kept = [number for number, variable in enumerate(answer.variables) if variable not in added]
    if len(kept) > MAX_COLUMNS:
        raise InvalidRequest(
            f"The query asks for {len(kept):,} variables, and at most {MAX_COLUMNS} fit into an answer. "
            "Name those that you need after SELECT."
        )
    if len(kept) == len(answer.variables):
        return answer
    rows = tuple(tuple(row[number] for number in kept) for row in answer.rows)
    return replace(answer, variables=tuple(answer.variables[number] for number in kept), rows=rows)


def _status(answer: SparqlAnswer, shown: int) -> Status:
    if answer.form == "ASK":
        return "ok"
    if not answer.rows:
        return "empty"
    return "truncated" if answer.truncated or shown < len(answer.rows) else "ok"


def _summary(answer: SparqlAnswer, shown: int, max_rows: int, max_tokens: int) -> str:
    if answer.form == "ASK":
        return "Yes." if answer.truth else "No."
    if not answer.rows:
        return "No rows."
    noun = "row" if len(answer.rows) == 1 else "rows"
    found = f"{'at least ' if answer.truncated else ''}{len(answer.rows)} {noun}"
    if not answer.truncated and shown == len(answer.rows):
        return f"{found}, all here."
    fetched = f"no more were fetched (max_rows={max_rows})"
    why = fetched if shown == len(answer.rows) else f"no more fit into max_tokens={max_tokens}"
    return f"{found}; {shown} here, since {why}. Narrow the query, or page with ORDER BY, LIMIT and OFFSET."


async def _unknown_terms(graph: KGAdapter, named: Sequence[Iri]) -> str:
    if not named:
        return ""
    known = await graph.describe(named)
    unknown = [graph.prefixes.shorten(iri) for iri in named if iri not in known]
    if not unknown:
        return ""
    more = f" and {len(unknown) - SHOWN_TERMS} others" if len(unknown) > SHOWN_TERMS else ""
    return f"This graph does not mention {', '.join(unknown[:SHOWN_TERMS])}{more}."
