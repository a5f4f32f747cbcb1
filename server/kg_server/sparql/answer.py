"""Sparql: a read-only query, its rows with labels."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import SparqlAnswer
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.terms import Iri, Literal
from kg_boundary.shown import shown
from kg_server.lines import Line, fitted_lines
from kg_server.meaning import Meaning
from kg_server.names import MAX_VALUE, names_of
from kg_server.plain_values import plain_value
from kg_server.results import Answer, SparqlResult, Status
from kg_server.sparql.emptiness import Reason, reason_for
from kg_server.sparql.preparing import prepared
from kg_server.sparql.rewriting import Edits
from kg_server.sparql.rows import alike_columns, labels_of, line_of, terms_of_rows, told_once

MAX_COLUMNS: Final = 100
MIN_CELL: Final = 10
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
    run = await prepared(graph, meaning, query, timeout_s=timeout_s)
    found = await sparql.select(run.text, timeout_s=timeout_s, max_rows=max_rows)
    answer = _own_columns(found, run.edits.added)
    columns = len(answer.variables)
    if columns > MAX_COLUMNS:
        raise InvalidRequest(
            f"The query asks for {columns:,} variables, and at most {MAX_COLUMNS} fit into an answer. "
            "Name those that you need after SELECT."
        )
    cell = max(MIN_CELL, min(MAX_VALUE, max_tokens // max(1, columns)))
    # A row takes a token at least.
    rows = answer.rows[:max_tokens]
    names = await names_of(graph, terms_of_rows(rows), max_tokens=4 * cell)
    alike = alike_columns(rows)
    lines = [line_of(row, names, cell, alike) for row in rows]
    variables = [shown(variable) for variable in answer.variables]
    once = told_once(rows[0], variables, alike, names, cell) if alike else ""
    header = " | ".join(f"?{variable}" for place, variable in enumerate(variables) if place not in alike)
    reason = await _reason(graph, sparql, query, run.edits, answer, timeout_s)

    def build(here: Sequence[Line]) -> Answer:
        result = SparqlResult(
            status=_status(answer, len(here)),
            knowledge=reason.knowledge,
            summary=" ".join(filter(None, (run.note, _summary(answer, len(here)), once, reason.text))),
            read=dict(run.read) or None,
            variables=variables,
            rows=[line.cells(names, cell) for line in here],
            labels=labels_of(here, names),
            truth=answer.truth,
        )
        return Answer(result, (header, *(line.shown(names, cell) for line in here)) if here else ())

    return fitted_lines(lines, names, build, max_tokens, cell)


async def _reason(
    graph: KGAdapter, sparql: SupportsSparql, query: str, edits: Edits, answer: SparqlAnswer, timeout_s: float
) -> Reason:
    """Return why a query found nothing, or counted nothing; where it found something, that the graph says so."""
    nothing = not answer.rows and not answer.truth
    if not nothing and not _counts_nothing(answer, query):
        return Reason("stated", "")
    unknown = await _unknown_terms(graph, answer.named)
    if unknown:
        return Reason("unnamed", unknown)
    reason = await reason_for(graph, sparql, query, edits, timeout_s=timeout_s)
    if reason is not None:
        return reason
    return Reason("denied", _LEFT_OUT) if nothing else Reason("stated", "")


def _counts_nothing(answer: SparqlAnswer, query: str) -> bool:
    """Say whether an answer is a single row of zeros and unbound variables that a query computed."""
    if len(answer.rows) != 1 or _AGGREGATE.search(query) is None:
        return False
    return all(term is None or (isinstance(term, Literal) and plain_value(term) == "0") for term in answer.rows[0])


def _own_columns(answer: SparqlAnswer, added: Sequence[str]) -> SparqlAnswer:
    """Return an answer without the variables that the query did not have."""
    if not added or not set(added).intersection(answer.variables):
        return answer
    kept = [number for number, variable in enumerate(answer.variables) if variable not in added]
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
