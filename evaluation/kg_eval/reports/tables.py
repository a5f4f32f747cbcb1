"""Tables of runs: what the papers print, what came out here, the difference, and how sure it is."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kg_eval.logs import LoggedRun
from kg_eval.metrics.scores import (
    MAIN_METRIC,
    MEASURES,
    OFFICIAL,
    Figure,
    JudgeVerdict,
    Summary,
    difference_of,
    judge_metric,
    macro_mean_of,
    scores_of,
    summary_of,
)
from kg_eval.plan import LinkingName, RunPlan
from kg_eval.questions import BenchmarkName
from kg_eval.questions.formats import ACADEMIC
from kg_eval.reports.published import Published, drop_without, printed, published_figures

ENTITIES: Final[dict[LinkingName, str]] = {
    "gold": "entities given",
    "model": "entities found",
    "none": "without entities",
}
"""What stands above a table: figures with given and with found entities never share one."""

NOTHING: Final = "-"
RESULTS: Final = ("run", "method", "model", "group", "questions", "paper", "ours", "difference", "95 % interval")
_AVERAGED: Final[tuple[BenchmarkName, ...]] = ("qald10", "creak", "t-rex", "zero-shot-re")
"""The benchmarks whose mean ODA's tables print."""

_SHARES: Final = frozenset(
    {
        *("answered from the graph", "answered by computing", "answered from the model", "with evidence"),
        *("abstained", "right on unanswerable"),
    }
)


@dataclass(frozen=True, slots=True)
class Done(LoggedRun):
    """A run as far as it is done, under a name, with its figures."""

    name: str
    summary: Summary

    def metrics(self, metric: str) -> tuple[str, ...]:
        """Return the metric that is meant: the one published where it is empty, that of each judge for `judge`."""
        if metric == "judge":
            return tuple(map(judge_metric, self.verdicts))
        return (metric or MAIN_METRIC[self.plan.benchmark],)

    def figures(self, metric: str) -> dict[str, Figure]:
        """Return the figures in a metric: of all questions, named as their only group if any, and of groups."""
        whole = self.summary.metrics.get(metric)
        if whole is None:
            return {}
        groups = {outcome.record.group for outcome in self.outcomes}
        return {groups.pop() if len(groups) == 1 else "": whole, **self.summary.groups.get(metric, {})}

    def paper(self, group: str, metric: str) -> Published | None:
        """Return the paper's figure for a group of the questions; of Academic only if all of its graphs are asked."""
        domain, graphs = ACADEMIC
        asked = {each.record.id.partition(":")[0] for each in self.outcomes if each.record.group == domain}
        return None if group == domain and len(asked) != graphs else printed(self.plan, group, metric)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns, with a title and remarks."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()


def done(name: str, run: LoggedRun, *, official: bool = False) -> Done:
    """Return a run with its figures, and those of judges where there are verdicts."""
    summary = summary_of(run.outcomes, run.verdicts, official=official, seed=run.plan.seed)
    return Done(run.plan, run.questions, run.verdicts, name, summary)


def tables_of(runs: Sequence[Done], metric: str = "") -> tuple[Table, ...]:
    """Return all tables of some runs: for each benchmark and way of linking results, differences and costs.

    Args:
        runs: The runs; the first of each table is the one that others are compared with.
        metric: The metric; by default the one that the benchmark's figures are published in.
    """
    grouped: dict[tuple[str, LinkingName, str], list[Done]] = {}
    for each in merged(runs):
        for named in each.metrics(metric):
            grouped.setdefault((each.plan.benchmark, each.plan.linking, named), []).append(each)
    tables = [
        table
        for (benchmark, linking, named), group in grouped.items()
        for table in _tables(f"{benchmark}, {named}, {ENTITIES[linking]}", named, group)
    ]
    averages = _averages(runs, metric or MAIN_METRIC[_AVERAGED[0]])
    return (*tables, *([averages] if averages.rows else []))


def merged(runs: Sequence[Done]) -> list[Done]:
    """Return runs of which those over different graphs of GRBench, and alike in all else, are one."""
    alike: dict[object, list[Done]] = {}
    for place, each in enumerate(runs):
        plan = each.plan.model_copy(update={"data": Path(), "graph": ""})
        alike.setdefault(plan if plan.benchmark == "grbench" else place, []).append(each)
    found: list[Done] = []
    for same in alike.values():
        if len({each.plan.data for each in same}) < len(same) or len(same) == 1:
            found += same
            continue
        verdicts: dict[str, dict[str, JudgeVerdict]] = {}
        for each in same:
            for judge, said in each.verdicts.items():
                verdicts.setdefault(judge, {}).update(said)
        name = " + ".join(each.name for each in same)
        whole = LoggedRun(same[0].plan, tuple(question for each in same for question in each.questions), verdicts)
        found.append(done(name, whole, official=OFFICIAL in same[0].summary.metrics))
    return found


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
    judges = dict.fromkeys(judge_metric(judge) for each in runs for judge in each.verdicts)
    printed_too = (each.metric for each in published_figures() if each.benchmark == runs[0].plan.benchmark)
    others = [name for name in dict.fromkeys((*printed_too, *judges)) if name in {"rouge-l", *judges} - {metric}]
    columns = (*RESULTS, *others)
    rows = [
        (
            *_result(each.name, each.plan, group, figure, each.paper(group, metric)),
            *(_beside(each, group, other) for other in others),
        )
        for each in runs
        for group, figure in each.figures(metric).items()
    ]
    return Table(title, columns, tuple(rows), tuple(_remarks(runs, metric)))


def _beside(run: Done, group: str, metric: str) -> str:
    """Return a figure in another metric, and the paper's in brackets."""
    figure, paper = run.figures(metric).get(group), run.paper(group, metric)
    said = NOTHING if figure is None else f"{100 * figure.value:.2f}"
    return said if paper is None else f"{said} (paper {paper.value:.2f})"


def _averages(runs: Sequence[Done], metric: str) -> Table:
    """Return the means over the benchmarks of ODA's table 2, of runs that differ in nothing else."""
    alike: dict[RunPlan, dict[str, Done]] = {}
    for each in runs:
        apart = {"benchmark": "average", "data": Path(), "graph": ""}
        alike.setdefault(each.plan.model_copy(update=apart), {})[each.plan.benchmark] = each
    rows: list[tuple[str, ...]] = []
    for plan, found in alike.items():
        scores: dict[str, list[float]] = {
            name: [*scores_of(found[name].outcomes, found[name].verdicts, official=True).get(metric, {}).values()]
            for name in _AVERAGED
            if name in found
        }
        figure = macro_mean_of(scores, plan.seed) if len(scores) == len(_AVERAGED) and all(scores.values()) else None
        if figure is not None:
            name = " + ".join(each.name for each in found.values())
            rows.append(_result(name, plan, "average", figure, printed(plan, "", metric)))
    return Table(f"average of {', '.join(_AVERAGED)}, {metric}", RESULTS, tuple(rows))


def _result(name: str, plan: RunPlan, group: str, figure: Figure, paper: Published | None) -> tuple[str, ...]:
    return (
        name,
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
        found = each.summary
        yield from _remarks_on_figures(each, metric)
        if unread := sum((Counter(outcome.unreadable) for outcome in each.outcomes), Counter[str]()):
            named = ", ".join(f"{purpose} {count}" for purpose, count in unread.most_common())
            yield f"{each.name}: replies that could not be read, even when asked again: {named}."
        if fallbacks := sum(outcome.fallbacks for outcome in each.outcomes):
            yield f"{each.name}: {fallbacks} observations were scored by spelling, as the embedder was busy."
        if found.skipped:
            yield f"{each.name}: {found.skipped} questions skipped, as the graph has none of their entities."
        if found.missing_topics:
            yield f"{each.name}: the graph lacks {found.missing_topics} entities of questions."
        if found.without_gold:
            yield f"{each.name}: {found.without_gold} questions have no right answer in the file and are not scored."


def _remarks_on_figures(run: Done, metric: str) -> Iterable[str]:
    papers = (run.paper(group, metric) for group in run.figures(metric))
    for model, table in dict.fromkeys((paper.model, paper.table) for paper in papers if paper is not None):
        if model.lower() != run.plan.model.rpartition("/")[2].lower():
            yield f"{run.name}: the paper's figure is that of {model} ({table})."
    for judge, verdicts in run.verdicts.items():
        if metric == judge_metric(judge) and (lost := [*verdicts.values()].count("unreadable")):
            yield f"{run.name}: {lost} verdicts could not be read; none of them counts as right."


def _differences(title: str, metric: str, runs: Sequence[Done]) -> Table:
    first, *others = runs
    values = {each.name: scores_of(each.outcomes, each.verdicts, official=True).get(metric, {}) for each in runs}
    rows: list[tuple[str, ...]] = []
    remarks: list[str] = []
    for each in others:
        if (drop := drop_without(each.plan)) is not None:
            remarks.append(f"{each.name}: up to {drop.value:g} points less on {drop.group} ({drop.table}).")
        found = difference_of(values[each.name], values[first.name], each.plan.seed)
        if found is not None:
            interval = f"{100 * found.low:+.2f} to {100 * found.high:+.2f}"
            rows.append((each.name, str(found.count), f"{100 * found.value:+.2f}", interval))
    columns = ("run", "questions of both", f"difference from {first.name}", "95 % interval")
    return Table(f"{title}: differences on the same questions", columns, tuple(rows), tuple(remarks))


def _measures(title: str, runs: Sequence[Done]) -> Table:
    named = [name for name in MEASURES if any(name in each.summary.measures for each in runs)]
    rows = tuple((each.name, *(_measure(name, each) for name in named), f"{each.summary.cost:.4f}") for each in runs)
    return Table(f"{title}: sources and costs, a question", ("run", *named, "cost of all"), rows)


def _measure(name: str, run: Done) -> str:
    figure = run.summary.measures.get(name)
    if figure is None:
        return NOTHING
    groups = {outcome.record.group for outcome in run.outcomes}
    paper = run.paper(groups.pop(), name) if len(groups) == 1 else None
    beside = "" if paper is None else f" (paper {paper.value:g})"
    return f"{100 * figure.value:.0f} %" if name in _SHARES else f"{figure.value:.4g}{beside}"
