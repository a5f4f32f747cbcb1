"""Lines over a parameter as SVG: runs that differ in nothing but its value, each a point with its interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from kg_eval.metrics.scores import MAIN_METRIC
from kg_eval.reports.tables import ENTITIES, Done

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
        named = metric or MAIN_METRIC[plan.benchmark]
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
