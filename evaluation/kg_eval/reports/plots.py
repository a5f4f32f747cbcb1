"""Runs as pictures (SVG)."""

# matplotlib leaves the types of its keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kg_boundary.private_files import private_folder
from kg_eval.metrics.scores import Figure
from kg_eval.reports.tables import ENTITIES, Done, merged

_NOTE: Final = "thin line: 95 % interval; diamond: the paper's figure"


def draw(runs: Sequence[Done], folder: Path, metric: str = "") -> Iterator[Path]:
    """Write a picture for each benchmark, and one for each parameter that alone differs between runs; yield the files.

    Args:
        runs: The runs.
        folder: Where the pictures go.
        metric: The metric; by default the one that each benchmark is published in.
    """
    private_folder(folder)
    # Without a date and with a fixed salt, the same runs give the same file; text stays text.
    mpl.rcParams.update({"svg.hashsalt": "kg-sextant", "svg.fonttype": "none"})
    for name, canvas in {**_bars(runs, metric), **_sweeps(runs, metric)}.items():
        path = folder / f"{name}.svg"
        canvas.savefig(path, metadata={"Date": None}, bbox_inches="tight")
        yield path


def _canvas(title: str, height: float) -> tuple[Canvas, Axes]:
    canvas = Canvas(figsize=(8, height))
    axes = canvas.subplots()
    axes.set_title(title)
    return canvas, axes


def _bars(runs: Sequence[Done], metric: str) -> dict[str, Canvas]:
    """Return bars with intervals and the papers' figures, for each benchmark and way of finding entities."""
    grouped: dict[tuple[str, str, str], list[tuple[str, Figure, float | None]]] = {}
    for run, named in ((each, named) for each in merged(runs) for named in each.metrics(metric)):
        group, figure = next(iter(run.figures(named).items()), ("", None))
        if figure is not None:
            paper = run.paper(group, named)
            key = (run.plan.benchmark, named, ENTITIES[run.plan.linking])
            grouped.setdefault(key, []).append((run.name, figure, None if paper is None else paper.value))
    pictures: dict[str, Canvas] = {}
    for (benchmark, named, linking), rows in grouped.items():
        canvas, axes = _canvas(f"{benchmark}: {named}, {linking}", 1.2 + 0.45 * len(rows))
        names, figures, papers = zip(*rows, strict=True)
        places = range(len(rows))
        axes.barh(places, [100 * each.value for each in figures], xerr=_errors(figures), color="#2b6cb0", alpha=0.75)
        axes.scatter(
            [paper for paper in papers if paper is not None],
            [place for place, paper in zip(places, papers, strict=True) if paper is not None],
            marker="D",
            facecolor="white",
            edgecolor="black",
            zorder=3,
        )
        axes.set_yticks(places, [f"{name} ({100 * each.value:.1f})" for name, each in zip(names, figures, strict=True)])
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel(f"%   ({_NOTE})")
        of_judge = (named,) if named.startswith("judge") else ()
        pictures[_file("-".join((benchmark, *of_judge, linking)))] = canvas
    return pictures


def _sweeps(runs: Sequence[Done], metric: str) -> dict[str, Canvas]:
    """Return a line over the values of each parameter in which runs differ and in nothing else."""
    pictures: dict[str, Canvas] = {}
    for parameter, swept in _swept(runs):
        plan = swept[0].plan
        named = next(iter(swept[0].metrics(metric)), metric)
        points = {
            float(run.plan.parameters[parameter]): figure
            for run in swept
            if (figure := run.summary.metrics.get(named)) is not None
        }
        if len(points) <= 1:
            continue
        others = ", ".join(f"{name}={value}" for name, value in plan.parameters.items() if name != parameter)
        about = ", ".join(filter(None, (plan.benchmark, plan.method, plan.model, others)))
        canvas, axes = _canvas(f"{about}: {named}, {ENTITIES[plan.linking]}", 4)
        ordered = sorted(points)
        figures = [points[at] for at in ordered]
        axes.errorbar(ordered, [100 * each.value for each in figures], yerr=_errors(figures), marker="o", capsize=3)
        axes.set_ylim(0, 100)
        axes.set_xlabel(parameter)
        axes.set_ylabel("%")
        axes.set_xticks(ordered)
        name = _file(f"{plan.benchmark}-{ENTITIES[plan.linking]}-{plan.method}-{parameter}")
        more = sum(each == name or each.startswith(f"{name}-") for each in pictures)
        pictures[f"{name}-{more + 1}" if more else name] = canvas
    return pictures


def _errors(figures: Sequence[Figure]) -> list[list[float]]:
    """Return how far intervals reach below and above, in percent."""
    return [[100 * (each.value - each.low) for each in figures], [100 * (each.high - each.value) for each in figures]]


def _swept(runs: Iterable[Done]) -> Iterator[tuple[str, list[Done]]]:
    """Yield each parameter with the runs that have it as a number and are alike in all else."""
    grouped: dict[tuple[str, str], list[Done]] = {}
    for run in runs:
        for parameter in _numbers(run.plan.parameters):
            rest = sorted(f"{name}={one}" for name, one in run.plan.parameters.items() if name != parameter)
            alike = run.plan.model_copy(update={"settings": tuple(rest)})
            grouped.setdefault((parameter, alike.model_dump_json()), []).append(run)
    yield from ((parameter, group) for (parameter, _), group in grouped.items() if len(group) > 1)


def _numbers(parameters: Mapping[str, str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, text in parameters.items():
        try:
            found[name] = float(text)
        except ValueError:
            continue
    return found


def _file(name: str) -> str:
    return name.replace(" ", "-").replace("/", "-")
