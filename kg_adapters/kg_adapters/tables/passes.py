"""The two passes over tables: survey each of them, plan all, and write the statements of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kg_adapters.files.rdf import Problem
from kg_adapters.files.rows import StatementColumn
from kg_adapters.files.sources import Source
from kg_adapters.tables.edges import EdgeColumns, EdgePlan, EdgeRows, EdgeSearch, EdgeSurvey, EdgeWriter
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.plan import Plan, edges_in, plan_tables
from kg_adapters.tables.report import TableReport, report_of
from kg_adapters.tables.rows import Batch, SourceTable, TableBatch
from kg_adapters.tables.statements import TableWriter
from kg_adapters.tables.survey import TableSearch, TableSurvey


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Survey the tables of a file.

    Args:
        options: What people said about them.
        edges: Where tables have their edges that are known to be lists of edges; if there are any, only these are
            surveyed.
    """

    options: TableOptions
    edges: Mapping[str, EdgeColumns] = field(default_factory=dict[str, EdgeColumns])


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Write the statements of the tables of a file.

    Args:
        plans: What becomes of each table, by its name.
    """

    plans: Mapping[str, Plan]


TableTask: TypeAlias = SurveyTask | WriteTask
Surveyed: TypeAlias = TableSurvey | EdgeSurvey


def survey_tables(
    task: SurveyTask, tables: Iterable[TableBatch], problem: Problem, on_batch: Callable[[], None]
) -> list[Surveyed]:
    """Return what is known about each table of a file."""
    if task.edges:
        return _survey_edges(task.edges, tables, problem, on_batch)
    searches: dict[str, TableSearch] = {}
    for table, batch in tables:
        if table.name not in searches:
            searches[table.name] = TableSearch(table, task.options)
        searches[table.name].add(table, batch)
        on_batch()
    return [search.survey() for search in searches.values()]


def _survey_edges(
    columns: Mapping[str, EdgeColumns], tables: Iterable[TableBatch], problem: Problem, on_batch: Callable[[], None]
) -> list[Surveyed]:
    rows = {name: EdgeRows(at, problem) for name, at in columns.items()}
    searches = {name: EdgeSearch(name) for name in columns}
    for table, batch in tables:
        if table.name in rows:
            searches[table.name].add(rows[table.name].edges(table, batch))
        on_batch()
    return [search.survey() for search in searches.values()]


def planned_statements(
    task: WriteTask, tables: Iterable[TableBatch], problem: Problem
) -> Iterator[list[StatementColumn]]:
    """Yield the statements of the tables of a file as their plans say."""
    writers: dict[str, Callable[[SourceTable, Batch], list[StatementColumn]]] = {}
    for table, batch in tables:
        plan = task.plans.get(table.name)
        if plan is None:
            continue
        if table.name not in writers:
            writers[table.name] = _writer(table, plan, problem)
        yield writers[table.name](table, batch)


def _writer(table: SourceTable, plan: Plan, problem: Problem) -> Callable[[SourceTable, Batch], list[StatementColumn]]:
    if isinstance(plan, EdgePlan):
        assert plan.at is not None  # noqa: S101 - the plan is for a table
        rows, edges = EdgeRows(plan.at, problem), EdgeWriter(plan)
        return lambda table, batch: edges.statements(rows.edges(table, batch))
    writer = TableWriter(table, plan, problem)
    return lambda _, batch: writer.statements(batch)


def plan_sources(
    sources: Sequence[Source], options: TableOptions, surveyed: Callable[[Source, SurveyTask], Sequence[Surveyed]]
) -> tuple[dict[Source, WriteTask], tuple[TableReport, ...]]:
    """Return the plans of the tables of each file that can be read, and a report on each table.

    Args:
        sources: The files.
        options: What people said about their tables.
        surveyed: Returns what is known about the tables of a file; nothing where it cannot be read.
    """
    found = [
        (source, table)
        for source in sources
        for table in surveyed(source, SurveyTask(options))
        if isinstance(table, TableSurvey)
    ]
    edges: dict[int, EdgeSurvey] = {}
    for source in dict.fromkeys(source for source, _ in found):
        mine = {table.name: place for place, (owner, table) in enumerate(found) if owner == source}
        at = {name: where for name, place in mine.items() if (where := edges_in(found[place][1], options)) is not None}
        known = surveyed(source, SurveyTask(options, at)) if at else ()
        edges |= {mine[each.table]: each for each in known if isinstance(each, EdgeSurvey)}
    tables = tuple(table for _, table in found)
    plans = plan_tables(tables, edges, options)
    tasks: dict[Source, dict[str, Plan]] = {}
    for (source, table), plan in zip(found, plans, strict=True):
        tasks.setdefault(source, {})[table.name] = plan
    reports = tuple(
        report_of(table, plan, edges.get(place)) for place, (table, plan) in enumerate(zip(tables, plans, strict=True))
    )
    return {source: WriteTask(each) for source, each in tasks.items()}, reports
