"""The tool Sparql: a query's rows as an answer."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import anyio

from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.models import SparqlAnswer
from kg_adapters.partial import time_left_s
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_boundary.shown import shown
from kg_server.answers.intermediates import ends_of, with_intermediates_of_rows
from kg_server.answers.results import (
    Answer,
    Line,
    Over,
    Piece,
    SparqlResult,
    Status,
    fitted_lines,
    in_columns,
    labels_of_entities,
    labels_of_relations,
)
from kg_server.answers.values import plain_value
from kg_server.concurrency import off_loop
from kg_server.meaning import Meaning
from kg_server.names import MAX_VALUE, Names, names_of
from kg_server.sparql.emptiness import LATE, Reason, reason_for
from kg_server.sparql.preparing import prepared
from kg_server.sparql.rewriting import Edits

Row = Sequence[Term | None]

_MANY_ROWS: Final = 4


def terms_of_rows(rows: Sequence[Row]) -> Iterator[Node]:
    """Yield what rows name, with repeats."""
    return (term for row in rows for term in row if term is not None and not isinstance(term, Literal))


def line_of(row: Row, names: Names, max_value: int, left_out: Collection[int] = ()) -> Line:
    """Return a row as one line, with values of at most so many characters, and without the text of some columns."""
    pieces = [_piece(term, names.prefixes) for term in row]
    shown = (piece for place, piece in enumerate(pieces) if place not in left_out)
    text = (_value(piece, names, max_value) if isinstance(piece, Literal) else piece for piece in shown)
    return Line(in_columns(text), tuple(pieces))


def alike_columns(rows: Sequence[Row]) -> list[int]:
    """Return the columns that hold the same in every one of many rows, which need be told only once; never all."""
    if len(rows) < _MANY_ROWS:
        return []
    first, *others = rows
    alike = [place for place, term in enumerate(first) if term and all(row[place] == term for row in others)]
    return alike if len(alike) < len(first) else alike[:-1]


def told_once(row: Row, variables: Sequence[str], columns: Sequence[int], names: Names, max_value: int) -> str:
    """Return a sentence on the columns that are alike; nothing where none is."""
    if not columns:
        return ""
    cells = [line_of((row[place],), names, max_value).shown(names, max_value) for place in columns]
    parts = [f"?{variables[place]} is {cell}" for place, cell in zip(columns, cells, strict=True)]
    return f"In every row {', '.join(parts)}."


def labels_of(lines: Sequence[Line], names: Names) -> dict[str, str]:
    """Return the labels of all that lines name, by short id."""
    return {**labels_of_entities(lines, names), **labels_of_relations(lines, names)}


def _piece(term: Term | None, prefixes: Prefixes) -> Piece:
    if term is None:
        return ""
    return Over(term) if isinstance(term, Iri) and _is_relation(term, prefixes) else term


def _is_relation(iri: Iri, prefixes: Prefixes) -> bool:
    """Say whether an IRI has a bare id as a relation and none as an entity, as `wdt:P106` has."""
    if prefixes.relations is None or prefixes.relations.shorten(iri) is None:
        return False
    return prefixes.entities is None or prefixes.entities.shorten(iri) is None


def _value(literal: Literal, names: Names, max_value: int) -> str:
    """Return a value plainly; numbers without commas, as a query takes them."""
    plain = plain_value(literal)
    return names.value(literal, max_value) if plain is None else plain.replace(",", "")


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
    timeout_s: float,
    max_tokens: int,
) -> Answer:
    """Answer Sparql.

    Raises:
        InvalidRequest: The query is not SPARQL, does more than read this graph, or asks for more than `MAX_COLUMNS`.
        BackendTimeout: It was stopped after `timeout_s` seconds.
    """
    end = anyio.current_time() + timeout_s
    run = await prepared(graph, meaning, query, timeout_s=timeout_s)
    left_s = timeout_s if run.text == query else max(_LEAST_S, end - anyio.current_time())
    found = await sparql.select(run.text, timeout_s=left_s, max_rows=max_rows)
    answer = _own_columns(found, run.edits.added)
    columns = len(answer.variables)
    cell = max(MIN_CELL, min(MAX_VALUE, max_tokens // max(1, columns)))
    # A row takes a token at least.
    rows = answer.rows[:max_tokens]
    labelled = await names_of(graph, terms_of_rows(rows), max_tokens=4 * cell)
    opened = await with_intermediates_of_rows(graph, rows, labelled)
    names = opened.names
    alike = alike_columns(rows)
    lines = await off_loop(lambda: [line_of(row, names, cell, alike) for row in rows], len(rows))
    variables = [shown(variable) for variable in answer.variables]
    once = told_once(rows[0], variables, alike, names, cell) if alike else ""
    header = " | ".join(f"?{variable}" for place, variable in enumerate(variables) if place not in alike)
    left_s = time_left_s(max(0.0, end - anyio.current_time()))
    reason = await _reason(graph, sparql, query, run.edits, answer, left_s)

    def build(names: Names, here: Sequence[Line]) -> Answer:
        held = opened.held(opened.facts, ()) if names is opened.names and here else ()
        result = SparqlResult(
            status=_status(answer, len(here)),
            knowledge=reason.knowledge,
            summary=" ".join(filter(None, (run.note, _summary(answer, len(here)), once, reason.text))),
            read=dict(run.read) or None,
            variables=variables,
            rows=[line.cells(names, cell) for line in here],
            labels=labels_of(here, names) | names.entity_labels(ends_of(held)),
            held=[names.row(fact) for fact in held] or None,
            relations=names.relation_labels(fact.relation for fact in held) or None,
            truth=answer.truth,
        )
        return Answer(result, (header, *(line.shown(names, cell) for line in here)) if here else ())

    ways = (names, labelled) if columns > 1 else (names,)
    return await off_loop(
        lambda: _whole(fitted_lines(lines, each, partial(build, each), max_tokens, cell) for each in ways), len(rows)
    )


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
        return Reason("stated", "")
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


def _summary(answer: SparqlAnswer, shown: int) -> str:
    if answer.form == "ASK":
        return "Yes." if answer.truth else "No."
    if not answer.rows:
        return "No rows."
    noun = "row" if len(answer.rows) == 1 else "rows"
    found = f"{'at least ' if answer.truncated else ''}{len(answer.rows)} {noun}"
    if not answer.truncated and shown == len(answer.rows):
        return f"{found}, all here."
    return f"{found}; {shown} here. Narrow the query, use COUNT, or page with ORDER BY, LIMIT and OFFSET."


async def _unknown_terms(graph: KGAdapter, named: Sequence[Iri]) -> str:
    if not named:
        return ""
    known = await graph.describe(named)
    unknown = [graph.prefixes.shorten(iri) for iri in named if iri not in known]
    if not unknown:
        return ""
    more = f" and {len(unknown) - SHOWN_TERMS} others" if len(unknown) > SHOWN_TERMS else ""
    return f"This graph does not mention {', '.join(unknown[:SHOWN_TERMS])}{more}."
