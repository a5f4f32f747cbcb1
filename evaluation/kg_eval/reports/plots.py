"""Runs as pictures (SVG)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from kg_eval.reports.tables import ENTITIES, Done, merged

_LEFT: Final = 60
_WIDTH: Final = 520
_TOP: Final = 50
_HEIGHT: Final = 300
_COLOR: Final = "#2b6cb0"
_LETTER: Final = 9
"""How wide a letter of the title is at most, on average."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep, in percent: the value of the parameter, the figure, and its interval."""

    at: float
    value: float
    low: float
    high: float


def sweeps_of(runs: Sequence[Done], metric: str = "") -> dict[str, str]:
    """Return a picture for each parameter in which runs differ and in nothing else, by a name for its file."""
    pictures: dict[str, str] = {}
    for parameter, swept in _sweeps(runs):
        plan = swept[0].plan
        named = next(iter(swept[0].metrics(metric)), metric)
        points = [point for each in swept if (point := _point(each, parameter, named)) is not None]
        if len({point.at for point in points}) <= 1:
            continue
        others = ", ".join(f"{name}={value}" for name, value in plan.parameters.items() if name != parameter)
        parts = (plan.benchmark, plan.method, plan.model, others)
        title = f"{', '.join(filter(None, parts))}: {named} over {parameter}, {ENTITIES[plan.linking]}"
        name = f"{plan.benchmark}-{ENTITIES[plan.linking].replace(' ', '-')}-{plan.method}-{parameter}"
        more = sum(each == name or each.startswith(f"{name}-") for each in pictures)
        pictures[f"{name}-{more + 1}" if more else name] = line_as_svg(title, parameter, points)
    return pictures


def line_as_svg(title: str, parameter: str, points: Sequence[Point]) -> str:
    """Return a line from 0 to 100 %, each point with its interval.

    Args:
        title: What stands above it.
        parameter: What stands below it.
        points: At least two, of different values.
    """
    ordered = sorted(points, key=lambda point: point.at)
    least, most = ordered[0].at, ordered[-1].at
    bottom = _TOP + _HEIGHT

    def x(at: float) -> float:
        return _LEFT + _WIDTH * (at - least) / (most - least)

    size = f'width="{max(_LEFT + _WIDTH + 40, _LETTER * len(title))}" height="{bottom + 60}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="16" y="26" font-size="15">{escape(title)}</text>',
    ]
    for percent in range(0, 101, 20):
        y = _y(percent)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_LEFT + _WIDTH}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{percent}</text>')
    line = " ".join(f"{x(point.at):.1f},{_y(point.value):.1f}" for point in ordered)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{_COLOR}" stroke-width="2"/>')
    for point in ordered:
        parts += _drawn(point, x(point.at), parameter)
    parts.append(f'<text x="{_LEFT + _WIDTH / 2}" y="{bottom + 44}" text-anchor="middle">{escape(parameter)}</text>')
    return "\n".join((*parts, "</svg>\n"))


def _drawn(point: Point, x: float, parameter: str) -> list[str]:
    said = f"{parameter} {point.at:g}: {point.value:.2f} ({point.low:.2f} to {point.high:.2f})"
    return [
        f"<g><title>{escape(said)}</title>",
        f'<line x1="{x:.1f}" y1="{_y(point.low):.1f}" x2="{x:.1f}" y2="{_y(point.high):.1f}" stroke="black"/>',
        f'<circle cx="{x:.1f}" cy="{_y(point.value):.1f}" r="4" fill="{_COLOR}"/>',
        f'<text x="{x:.1f}" y="{_TOP + _HEIGHT + 20}" text-anchor="middle" fill="#555">{point.at:g}</text></g>',
    ]


def _y(percent: float) -> float:
    return _TOP + _HEIGHT * (1 - percent / 100)


def _sweeps(runs: Sequence[Done]) -> Iterator[tuple[str, list[Done]]]:
    """Yield each parameter with runs that have it as a number and are alike in all else."""
    grouped: dict[tuple[str, str], list[Done]] = {}
    for each in runs:
        for parameter, value in each.plan.parameters.items():
            if _number(value) is not None:
                rest = sorted(f"{name}={one}" for name, one in each.plan.parameters.items() if name != parameter)
                alike = each.plan.model_copy(update={"settings": tuple(rest)})
                grouped.setdefault((parameter, alike.model_dump_json()), []).append(each)
    yield from ((parameter, group) for (parameter, _), group in grouped.items() if len(group) > 1)


def _point(run: Done, parameter: str, metric: str) -> Point | None:
    figure, at = run.summary.metrics.get(metric), _number(run.plan.parameters[parameter])
    if figure is None or at is None:
        return None
    return Point(at, *(100 * value for value in (figure.value, figure.low, figure.high)))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_MARGIN: Final = 230
_WIDE: Final = 460
_ROW: Final = 30
_ABOVE: Final = 54
_COLORS: Final = ("#2b6cb0", "#2f855a", "#b7791f", "#9b2c2c", "#6b46c1", "#2c7a7b")


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, in percent: ours with its interval, and what the paper prints."""

    name: str
    value: float
    low: float
    high: float
    paper: float | None = None


def plots_of(runs: Sequence[Done], metric: str = "") -> dict[str, str]:
    """Return a picture for each benchmark and way of linking, by a name for its file."""
    grouped: dict[tuple[str, str, str], list[Bar]] = {}
    for each, named in ((run, named) for run in merged(runs) for named in run.metrics(metric)):
        plan = each.plan
        group, figure = next(iter(each.figures(named).items()), ("", None))
        if figure is None:
            continue
        paper = each.paper(group, named)
        bar = Bar(each.name, *(100 * value for value in (figure.value, figure.low, figure.high)))
        bar = bar if paper is None else Bar(bar.name, bar.value, bar.low, bar.high, paper.value)
        grouped.setdefault((plan.benchmark, named, ENTITIES[plan.linking]), []).append(bar)
    pictures: dict[str, str] = {}
    for (benchmark, named, linking), bars in grouped.items():
        of_judge = (named,) if named.startswith("judge") else ()
        name = "-".join((benchmark, *of_judge, linking)).replace(" ", "-").replace("/", "-")
        pictures[name] = bars_as_svg(f"{benchmark}: {named}, {linking}", bars)
    return pictures


def bars_as_svg(title: str, bars: Sequence[Bar]) -> str:
    """Return bars from 0 to 100 %, each with its interval and a mark where the paper's figure is."""
    height = _ABOVE + _ROW * len(bars) + 50
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_MARGIN + _WIDE + 90}" height="{height}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="16" y="26" font-size="16">{escape(title)}</text>',
        *_axis(_ABOVE + _ROW * len(bars)),
    ]
    for place, bar in enumerate(bars):
        parts += _bar(bar, _ABOVE + _ROW * place, _COLORS[place % len(_COLORS)])
    key = "thin line: 95 % interval; diamond: the paper's figure"
    parts.append(f'<text x="16" y="{height - 10}" fill="#555" font-size="11">{key}</text>')
    return "\n".join((*parts, "</svg>\n"))


def _axis(bottom: int) -> list[str]:
    lines: list[str] = []
    for percent in range(0, 101, 20):
        x = _x(percent)
        lines.append(f'<line x1="{x}" y1="{_ABOVE - 8}" x2="{x}" y2="{bottom}" stroke="#ddd"/>')
        lines.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" fill="#555">{percent}</text>')
    return lines


def _bar(bar: Bar, top: int, color: str) -> list[str]:
    middle = top + _ROW / 2 - 2
    said = f"{bar.name}: {bar.value:.2f} ({bar.low:.2f} to {bar.high:.2f})"
    parts = [
        f"<g><title>{escape(said)}</title>",
        f'<text x="{_MARGIN - 8}" y="{middle + 4:g}" text-anchor="end">{escape(bar.name[:30])}</text>',
        (
            f'<rect x="{_MARGIN}" y="{top}" width="{_x(bar.value) - _MARGIN:.1f}" height="{_ROW - 8}" fill="{color}" '
            'fill-opacity="0.75"/>'
        ),
        f'<line x1="{_x(bar.low):.1f}" y1="{middle:g}" x2="{_x(bar.high):.1f}" y2="{middle:g}" stroke="black"/>',
    ]
    if bar.paper is not None:
        x = _x(bar.paper)
        parts.append(f'<path d="M{x:.1f} {middle - 6:g} l5 6 l-5 6 l-5 -6 z" fill="white" stroke="black"/>')
    parts.append(f'<text x="{_MARGIN + _WIDE + 12}" y="{middle + 4:g}">{bar.value:.1f}</text></g>')
    return parts


def _x(percent: float) -> float:
    return _MARGIN + _WIDE * percent / 100
