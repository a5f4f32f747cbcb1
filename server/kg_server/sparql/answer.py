"""Sparql: a read-only query, its rows with labels."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import SparqlAnswer
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.terms import Iri, Term
from kg_boundary.shown import shown
from kg_server.lines import Line, fitted_lines, in_columns, labels_of_entities, terms_of_lines
from kg_server.names import MAX_VALUE, names_of
from kg_server.results import Answer, SparqlResult, Status
from kg_server.sparql.preparing import prepared

MAX_COLUMNS: Final = 100
MIN_CELL: Final = 10
SHOWN_TERMS: Final = 5


async def sparql_query(
    graph: KGAdapter, sparql: SupportsSparql, *, query: str, max_rows: int, timeout_s: float, max_tokens: int
) -> Answer:
    """Answer Sparql.

    Raises:
        InvalidRequest: The query is not SPARQL, does more than read this graph, or asks for more than `MAX_COLUMNS`.
        BackendTimeout: It was stopped after `timeout_s` seconds.
    """
    prepared_query = await prepared(graph, query, timeout_s=timeout_s)
    found = await sparql.select(prepared_query.text, timeout_s=timeout_s, max_rows=max_rows)
    answer = _own_columns(found, prepared_query.added)
    columns = len(answer.variables)
    if columns > MAX_COLUMNS:
        raise InvalidRequest(
            f"The query asks for {columns:,} variables, and at most {MAX_COLUMNS} fit into an answer. "
            "Name those that you need after SELECT."
        )
    cell = max(MIN_CELL, min(MAX_VALUE, max_tokens // max(1, columns)))
    # A row takes a token at least.
    lines = [_line(row) for row in answer.rows[:max_tokens]]
    names = await names_of(graph, terms_of_lines(lines), max_tokens=4 * cell)
    variables = [shown(variable) for variable in answer.variables]
    header = " | ".join(f"?{variable}" for variable in variables)
    nothing = await _unknown_terms(graph, answer.named) if not answer.rows and not answer.truth else ""

    def build(here: Sequence[Line]) -> Answer:
        result = SparqlResult(
            status=_status(answer, len(here)),
            summary=f"{prepared_query.note} {_summary(answer, len(here), nothing)}".lstrip(),
            read=dict(prepared_query.read) or None,
            variables=variables,
            rows=[line.cells(names, cell) for line in here],
            labels=labels_of_entities(here, names),
            truth=answer.truth,
        )
        return Answer(result, (header, *(line.shown(names, cell) for line in here)) if here else ())

    return fitted_lines(lines, names, build, max_tokens, cell)


def _own_columns(answer: SparqlAnswer, added: Sequence[str]) -> SparqlAnswer:
    """Return an answer without the variables that the query did not have."""
    if not added or not set(added).intersection(answer.variables):
        return answer
    kept = [number for number, variable in enumerate(answer.variables) if variable not in added]
    rows = tuple(tuple(row[number] for number in kept) for row in answer.rows)
    return replace(answer, variables=tuple(answer.variables[number] for number in kept), rows=rows)


def _line(row: Sequence[Term | None]) -> Line:
    pieces = tuple("" if term is None else term for term in row)
    return Line(in_columns(pieces), pieces)


def _status(answer: SparqlAnswer, shown: int) -> Status:
    if answer.form == "ASK":
        return "ok"
    if not answer.rows:
        return "empty"
    return "truncated" if answer.truncated or shown < len(answer.rows) else "ok"


def _summary(answer: SparqlAnswer, shown: int, nothing: str) -> str:
    if answer.form == "ASK":
        return "Yes." if answer.truth else f"No. {nothing}".rstrip()
    if not answer.rows:
        return f"No rows. {nothing}".rstrip()
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
    if unknown:
        more = f" and {len(unknown) - SHOWN_TERMS} others" if len(unknown) > SHOWN_TERMS else ""
        return f"This graph does not mention {', '.join(unknown[:SHOWN_TERMS])}{more}."
    return "The graph knows every term of the query, only not in this combination."
