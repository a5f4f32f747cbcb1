"""The tool Sparql: a query's rows as an answer."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final, Self

import anyio

from kg_adapters.calls import time_left_s
from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.models import SparqlAnswer
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_boundary.shown import shown
from kg_server.answers.intermediates import with_intermediates_of_rows
from kg_server.answers.remarks import blank_sums, rounded_values
from kg_server.answers.results import (
    Answer,
    AnswerRows,
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
from kg_server.names import MAX_VALUE, Names, names_of
from kg_server.naming.meaning import Meaning
from kg_server.sparql.classes import without_subclasses
from kg_server.sparql.naming import prepared
from kg_server.sparql.reasons import LATE, Reason, limit_of, one_way_only, reason_for
from kg_server.sparql.syntax import Edits

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
    reason = await _reason(graph, sparql, query, run.edits, answer, time_left_s(_left_s(deadline)))
    remarks = await _remarks(graph, query, run.edits, answer, reason)

    def build(here: AnswerRows[RowLine]) -> Answer:
        fields, summary = here.fields(), _summary(answer, len(here), max_rows, max_tokens, query)
        result = SparqlResult(
            status=_status(answer, len(here)),
            knowledge=reason.knowledge,
            summary=" ".join(filter(None, (run.note, summary, once, reason.text, *remarks))),
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


async def _remarks(graph: KGAdapter, query: str, edits: Edits, answer: SparqlAnswer, reason: Reason) -> Sequence[str]:
    """Return what should be known about the values of an answer, and about facts that it leaves out."""
    one_way = await one_way_only(graph, query, edits) if reason.knowledge == "stated" else ""
    classes = await without_subclasses(graph, query)
    return await rounded_values(graph, answer.rounded), blank_sums(answer, query), one_way, classes


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


def _summary(answer: SparqlAnswer, shown: int, max_rows: int, max_tokens: int, query: str) -> str:
    if answer.form == "ASK":
        return "Yes." if answer.truth else "No."
    if not answer.rows:
        return "No rows."
    noun = "row" if len(answer.rows) == 1 else "rows"
    found = f"{'at least ' if answer.truncated else ''}{len(answer.rows)} {noun}"
    if not answer.truncated and shown == len(answer.rows):
        limit = limit_of(query)
        cut = f"; the query's LIMIT {limit} leaves out any more." if len(answer.rows) == limit else ", all here."
        return f"{found}{cut}"
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
