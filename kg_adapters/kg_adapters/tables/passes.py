"""The two passes over tables: survey each of them, plan all, and write the statements of each."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from kg_adapters.files.rdf import Problem
from kg_adapters.files.rows import StatementColumn
from kg_adapters.files.sources import Source
from kg_adapters.tables.edges import EdgeColumns, EdgePlan, EdgeRows, EdgeSearch, EdgeSurvey, EdgeWriter
from kg_adapters.tables.groups import joined_groups, referring_groups
from kg_adapters.tables.nearly import near_links, with_near
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.plan import Plan, TablePlan, edges_in, plan_tables
from kg_adapters.tables.report import TableReport, report_of
from kg_adapters.tables.rows import Batch, Joined, SourceTable, TableBatch
from kg_adapters.tables.statements import TableWriter
from kg_adapters.tables.survey import JoinedSearch, TableSearch, TableSurvey


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Survey the tables of a file.

    Args:
        options: The options of the tables.
        edges: Where tables have their edges that are known to be lists of edges; if there are any, only these are
            surveyed.
        joined: Columns of tables that may be an id together; if there are any, only these are surveyed.
        ids: Whether only those are wanted that are different in each row.
        cells: By table, columns whose distinct cells are wanted; if there are any, only these are surveyed.
    """

    surveys: ClassVar = True
    options: TableOptions
    edges: Mapping[str, EdgeColumns] = field(default_factory=dict[str, EdgeColumns])
    joined: Mapping[str, Joined] = field(default_factory=dict[str, Joined])
    ids: bool = False
    cells: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])


@dataclass(frozen=True, slots=True)
class CellSurvey:
    """The distinct cells of columns of a table.

    Args:
        table: What it is called.
        cells: By the place of each column, its cells that are not empty; None where they are too many.
    """

    table: str
    cells: Mapping[int, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Write the statements of the tables of a file.

    Args:
        plans: What becomes of each table, by its name.
    """

    surveys: ClassVar = False
    plans: Mapping[str, Plan]


TableTask: TypeAlias = SurveyTask | WriteTask
Surveyed: TypeAlias = TableSurvey | EdgeSurvey | CellSurvey
_MOST_CELLS: Final = 200_000


def survey_tables(
    task: SurveyTask, tables: Iterable[TableBatch], problem: Problem, on_batch: Callable[[], None]
) -> list[Surveyed]:
    """Return what is known about each table of a file."""
    if task.edges:
        return _survey_edges(task.edges, tables, problem, on_batch)
    if task.joined:
        return _survey_joined(task, tables, on_batch)
    if task.cells:
        return _survey_cells(task.cells, tables, on_batch)
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


def _survey_joined(task: SurveyTask, tables: Iterable[TableBatch], on_batch: Callable[[], None]) -> list[Surveyed]:
    searches = {name: JoinedSearch(groups, ids=task.ids) for name, groups in task.joined.items()}
    known: dict[str, SourceTable] = {}
    for table, batch in tables:
        if table.name in searches:
            known[table.name] = table
            searches[table.name].add(batch)
        on_batch()
        if not any(search.has_groups for search in searches.values()):
            break
    return [searches[name].survey(table) for name, table in known.items()]


def _survey_cells(
    wanted: Mapping[str, tuple[int, ...]], tables: Iterable[TableBatch], on_batch: Callable[[], None]
) -> list[Surveyed]:
    found = {
        name: dict[int, dict[str, None] | None]((place, {}) for place in places) for name, places in wanted.items()
    }
    for table, batch in tables:
        mine = found.get(table.name, {})
        for place, known in mine.items():
            if known is not None:
                known.update(dict.fromkeys(filter(None, batch.cells(place))))
                mine[place] = known if len(known) <= _MOST_CELLS else None
        on_batch()
    return [
        CellSurvey(name, {place: None if known is None else tuple(known) for place, known in columns.items()})
        for name, columns in found.items()
    ]


def planned_statements(
    task: WriteTask, tables: Iterable[TableBatch], problem: Problem
) -> Iterator[list[StatementColumn]]:
    """Yield the statements of the tables of a file by their plans."""
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
    width = len(plan.columns) - len(plan.joined)
    return lambda _, batch: writer.statements(batch.without(plan.left_out).with_joined(plan.joined, width))


def plan_sources(
    sources: Sequence[Source], options: TableOptions, surveyed: Callable[[Source, SurveyTask], Sequence[Surveyed]]
) -> tuple[dict[Source, WriteTask], tuple[TableReport, ...]]:
    """Return the plans of the tables of each file that can be read, and a report on each table.

    Args:
        sources: The files.
        options: The options of their tables.
        surveyed: Returns what is known about the tables of a file; nothing where it cannot be read.
    """
    found = [
        (source, table)
        for source in sources
        for table in surveyed(source, SurveyTask(options))
        if isinstance(table, TableSurvey)
    ]
    at = {place: where for place, (_, table) in enumerate(found) if (where := edges_in(table, options)) is not None}
    edges: dict[int, EdgeSurvey] = {}
    for source, mine in _by_file(found, at):
        known = surveyed(source, SurveyTask(options, {name: at[place] for name, place in mine.items()}))
        edges |= {mine[each.table]: each for each in known if isinstance(each, EdgeSurvey)}
    tables = tuple(table for _, table in found)
    plans = plan_tables(tables, edges, options)
    joined = _with_joined(found, plans, surveyed, options)
    if joined is not None:
        tables, plans = joined, plan_tables(joined, edges, options)
    plans = _with_near(found, tables, plans, surveyed, options)
    tasks: dict[Source, dict[str, Plan]] = {}
    for (source, table), plan in zip(found, plans, strict=True):
        tasks.setdefault(source, {})[table.name] = plan
    reports = tuple(
        report_of(table, plan, edges.get(place)) for place, (table, plan) in enumerate(zip(tables, plans, strict=True))
    )
    return {source: WriteTask(each) for source, each in tasks.items()}, reports


def _with_near(
    found: Sequence[tuple[Source, TableSurvey]],
    tables: Sequence[TableSurvey],
    plans: Sequence[Plan],
    surveyed: Callable[[Source, SurveyTask], Sequence[Surveyed]],
    options: TableOptions,
) -> tuple[Plan, ...]:
    """Return plans that say which columns are almost links."""
    links = list(near_links(tables, plans, options))
    wanted: dict[int, set[int]] = {}
    for link in links:
        wanted.setdefault(link.table, set()).add(link.column)
        wanted.setdefault(link.to, set()).add(link.key)
    cells: dict[tuple[int, int], Sequence[str]] = {}
    for source, mine in _by_file(found, wanted):
        task = SurveyTask(options, cells={name: tuple(sorted(wanted[place])) for name, place in mine.items()})
        for survey in surveyed(source, task):
            if isinstance(survey, CellSurvey):
                said = {place: known for place, known in survey.cells.items() if known is not None}
                cells |= {(mine[survey.table], place): known for place, known in said.items()}
    return with_near(tables, plans, links, cells)


def _by_file(
    found: Sequence[tuple[Source, TableSurvey]], wanted: Container[int]
) -> Iterator[tuple[Source, dict[str, int]]]:
    """Yield each file that has tables that are wanted, and their places by their names."""
    for source in dict.fromkeys(source for source, _ in found):
        mine = {table.name: place for place, (owner, table) in enumerate(found) if owner == source and place in wanted}
        if mine:
            yield source, mine


def _with_joined(
    found: Sequence[tuple[Source, TableSurvey]],
    plans: Sequence[Plan],
    surveyed: Callable[[Source, SurveyTask], Sequence[Surveyed]],
    options: TableOptions,
) -> tuple[TableSurvey, ...] | None:
    """Return the tables with columns that are made of others: ids of rows without one, and what may refer to them."""
    tables = [table for _, table in found]
    rows = [place for place, plan in enumerate(plans) if isinstance(plan, TablePlan)]

    def survey(groups: Mapping[int, Joined], *, ids: bool) -> dict[int, TableSurvey]:
        joined: dict[int, TableSurvey] = {}
        for source, mine in _by_file(found, [place for place, each in groups.items() if each]):
            task = SurveyTask(options, joined={name: groups[place] for name, place in mine.items()}, ids=ids)
            known = surveyed(source, task)
            joined |= {mine[each.name]: each for each in known if isinstance(each, TableSurvey)}
        return joined

    likely = {
        place: joined_groups(tables[place], [tables[other] for other in rows if other != place])
        for place, plan in enumerate(plans)
        if isinstance(plan, TablePlan) and plan.key is None
    }
    keys = survey(likely, ids=True)
    if not any(key.joined for key in keys.values()):
        return None
    referring = {
        place: referring_groups(
            tables[place], [(tables[other], key.joined) for other, key in keys.items() if other != place]
        )
        for place in rows
    }
    if not any(referring.values()):
        return None
    for each in (keys, survey(referring, ids=False)):
        tables = [table.with_joined(each[place]) if place in each else table for place, table in enumerate(tables)]
    return tuple(tables)
