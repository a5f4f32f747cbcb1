"""Tables of runs: what the papers print, what came out here, the difference, and how sure it is."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kg_eval.metrics.intervals import Figure, difference_of
from kg_eval.metrics.judging import JudgeVerdict
from kg_eval.metrics.scores import MAIN_METRIC, MEASURES
from kg_eval.metrics.summary import Summary, scores_of, summary_of
from kg_eval.outcomes import Outcome
from kg_eval.reports.published import printed
from kg_eval.runs.plan import LinkingName, RunPlan

ENTITIES: Final[dict[LinkingName, str]] = {
    "gold": "entities given",
    "model": "entities found",
    "none": "without entities",
}
"""What stands above a table: figures with given and with found entities never share one."""

NOTHING: Final = "-"
_SHARES: Final = frozenset(
    {
        *("answered from the graph", "answered by computing", "answered from the model", "with evidence"),
        *("abstained", "right on unanswerable"),
    }
)


@dataclass(frozen=True, slots=True)
class Done:
    """A run that is done, or as far as it is: its plan, what came of each question, verdicts, and the figures."""

    name: str
    plan: RunPlan
    outcomes: tuple[Outcome, ...]
    verdicts: Mapping[str, JudgeVerdict]
    summary: Summary


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns, with a title and remarks."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()


def done(
    name: str,
    plan: RunPlan,
    outcomes: Sequence[Outcome],
    verdicts: Mapping[str, JudgeVerdict] | None = None,
    *,
    official: bool = False,
) -> Done:
    """Return a run with its figures, and those of a judge where there are verdicts."""
    summary = summary_of(outcomes, verdicts, official=official, seed=plan.seed)
    return Done(name, plan, tuple(outcomes), dict(verdicts or {}), summary)


def tables_of(runs: Sequence[Done], metric: str = "") -> tuple[Table, ...]:
    """Return all tables of some runs: for each benchmark and way of linking results, differences and costs.

    Args:
        runs: The runs; the first of each table is the one that others are compared with.
        metric: The metric; by default the one that the benchmark's figures are published in.
    """
    grouped: dict[tuple[str, LinkingName, str], list[Done]] = {}
    for each in runs:
        named = metric or MAIN_METRIC[each.plan.benchmark]
        grouped.setdefault((each.plan.benchmark, each.plan.linking, named), []).append(each)
    return tuple(
        table
        for (benchmark, linking, named), group in grouped.items()
        for table in _tables(f"{benchmark}, {named}, {ENTITIES[linking]}", named, group)
    )


def as_text(table: Table) -> str:
    """Return a table for a terminal, its columns aligned."""
    rows = [table.columns, *table.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join((table.title, lines[0], "-" * len(lines[0]), *lines[1:], *table.remarks))


def as_markdown(table: Table) -> str:
    """Return a table in Markdown."""
    rows = [table.columns, ("---",) * len(table.columns), *table.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join((f"### {table.title}", "", *lines, "", *table.remarks)).rstrip() + "\n"


def as_csv(tables: Iterable[Table]) -> str:
    """Return tables as one file of comma-separated values, each under its title."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for table in tables:
        writer.writerows(((table.title,), table.columns, *table.rows, ()))
    return text.getvalue()


def _tables(title: str, metric: str, runs: Sequence[Done]) -> list[Table]:
    tables = [_results(title, metric, runs), _measures(title, runs)]
    if len(runs) > 1:
        tables.insert(1, _differences(title, metric, runs))
    return tables


def _results(title: str, metric: str, runs: Sequence[Done]) -> Table:
    columns = ("run", "method", "model", "group", "questions", "paper", "ours", "difference", "95 % interval")
    rows: list[tuple[str, ...]] = []
    for each in runs:
        groups = {"": each.summary.metrics.get(metric), **each.summary.groups.get(metric, {})}
        for group, figure in groups.items():
            if figure is not None:
                rows.append(_result(each, metric, group, figure))
    return Table(title, columns, tuple(rows), tuple(_remarks(runs, metric)))


def _result(run: Done, metric: str, group: str, figure: Figure) -> tuple[str, ...]:
    plan = run.plan
    paper = printed(plan, group, metric)
    return (
        run.name,
        plan.method,
        plan.model,
        group or "all",
        str(figure.count),
        NOTHING if paper is None else f"{paper.value:.2f}",
        f"{100 * figure.value:.2f}",
        NOTHING if paper is None else f"{100 * figure.value - paper.value:+.2f}",
        f"{100 * figure.low:.2f} to {100 * figure.high:.2f}",
    )


def _remarks(runs: Sequence[Done], metric: str) -> Iterable[str]:
    for each in runs:
        plan, found = each.plan, each.summary
        paper = printed(plan, "", metric)
        if paper is not None and paper.model.lower() != plan.model.rpartition("/")[2].lower():
            yield f"{each.name}: the paper's figure is that of {paper.model} ({paper.table})."
        if metric == "judge" and found.unreadable:
            yield f"{each.name}: {found.unreadable} verdicts could not be read; none of them counts as right."
        if lost := sum((Counter(outcome.unreadable) for outcome in each.outcomes), Counter[str]()):
            named = ", ".join(f"{purpose} {count}" for purpose, count in lost.most_common())
            yield f"{each.name}: replies that could not be read, even when asked again: {named}."
        if found.skipped:
            yield f"{each.name}: {found.skipped} questions skipped, as the graph has none of their entities."
        if found.missing_topics:
            yield f"{each.name}: the graph lacks {found.missing_topics} entities of questions."
        if found.without_gold:
            yield f"{each.name}: {found.without_gold} questions have no right answer in the file and are not scored."


def _differences(title: str, metric: str, runs: Sequence[Done]) -> Table:
    first, *others = runs
    values = {each.name: scores_of(each.outcomes, each.verdicts, official=True).get(metric, {}) for each in runs}
    rows: list[tuple[str, ...]] = []
    for each in others:
        found = difference_of(values[each.name], values[first.name], each.plan.seed)
        if found is not None:
            interval = f"{100 * found.low:+.2f} to {100 * found.high:+.2f}"
            rows.append((each.name, str(found.count), f"{100 * found.value:+.2f}", interval))
    columns = ("run", "questions of both", f"difference from {first.name}", "95 % interval")
    return Table(f"{title}: differences on the same questions", columns, tuple(rows))


def _measures(title: str, runs: Sequence[Done]) -> Table:
    named = [name for name in MEASURES if any(name in each.summary.measures for each in runs)]
    rows = tuple(
        (each.name, *(_measure(name, each.summary.measures.get(name)) for name in named), f"{each.summary.cost:.4f}")
        for each in runs
    )
    return Table(f"{title}: sources and costs, a question", ("run", *named, "cost of all"), rows)


def _measure(name: str, figure: Figure | None) -> str:
    if figure is None:
        return NOTHING
    return f"{100 * figure.value:.0f} %" if name in _SHARES else f"{figure.value:.4g}"
