"""The two passes over tables: survey each of them, plan all, and write the statements of each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kg_adapters.files.rdf import Problem
from kg_adapters.files.rows import StatementColumn
from kg_adapters.files.sources import Source
from kg_adapters.tables.edges import EdgeColumns, EdgePlan, EdgeSurvey, edge_statements, edges_of, survey_edges
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.plan import Plan, edges_in, plan_tables
from kg_adapters.tables.report import TableReport, report_of
from kg_adapters.tables.rows import SourceTable
from kg_adapters.tables.statements import table_statements
from kg_adapters.tables.survey import TableSurvey, survey


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Survey a table.

    Args:
        options: What people said about it.
        edges: Where it has its edges, if it is known to be a list of edges.
    """

    options: TableOptions
    edges: EdgeColumns | None = None


TableTask: TypeAlias = SurveyTask | Plan
Surveyed: TypeAlias = TableSurvey | EdgeSurvey


def survey_table(task: SurveyTask, table: SourceTable, problem: Problem, on_batch: Callable[[], None]) -> Surveyed:
    """Return what is known about a table."""
    if task.edges is None:
        return survey(table, task.options, problem, on_batch)
    return survey_edges(edges_of(table, task.edges, problem), on_batch)


def planned_statements(plan: Plan, table: SourceTable, problem: Problem) -> Iterator[list[StatementColumn]]:
    """Yield the statements of a table as its plan says."""
    if isinstance(plan, EdgePlan):
        assert plan.at is not None  # noqa: S101 - the plan is for a table
        return edge_statements(edges_of(table, plan.at, problem), plan)
    return table_statements(table, plan, problem)


def plan_sources(
    sources: Sequence[Source], options: TableOptions, surveyed: Callable[[Source, SurveyTask], Surveyed | None]
) -> tuple[dict[Source, Plan], tuple[TableReport, ...]]:
    """Return the plan of each table that can be read, and a report on each.

    Args:
        sources: The tables.
        options: What people said about them.
        surveyed: Returns what is known about a table, or None where it cannot be read.
    """
    found = {source: surveyed(source, SurveyTask(options)) for source in sources}
    tables = {source: table for source, table in found.items() if isinstance(table, TableSurvey)}
    edges: dict[int, EdgeSurvey] = {}
    for place, (source, table) in enumerate(tables.items()):
        at = edges_in(table, options)
        known = None if at is None else surveyed(source, SurveyTask(options, at))
        if isinstance(known, EdgeSurvey):
            edges[place] = known
    plans = plan_tables(tuple(tables.values()), edges, options)
    reports = (
        report_of(table, plan, edges.get(place))
        for place, (table, plan) in enumerate(zip(tables.values(), plans, strict=True))
    )
    return dict(zip(tables, plans, strict=True)), tuple(reports)
