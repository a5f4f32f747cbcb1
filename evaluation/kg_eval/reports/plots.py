"""Bars with intervals as SVG, drawn without a library, so that the same figures give the same file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from kg_eval.metrics.scores import MAIN_METRIC
from kg_eval.reports.published import printed
from kg_eval.reports.tables import ENTITIES, Done

_LEFT: Final = 230
_WIDTH: Final = 460
_ROW: Final = 30
_TOP: Final = 54
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
    for each in runs:
        plan = each.plan
        named = metric or MAIN_METRIC[plan.benchmark]
        figure = each.summary.metrics.get(named)
        if figure is None:
            continue
        paper = printed(plan, "", named)
        bar = Bar(each.name, *(100 * value for value in (figure.value, figure.low, figure.high)))
        bar = bar if paper is None else Bar(bar.name, bar.value, bar.low, bar.high, paper.value)
        grouped.setdefault((plan.benchmark, named, ENTITIES[plan.linking]), []).append(bar)
    return {
        f"{benchmark}-{linking.replace(' ', '-')}": bars_as_svg(f"{benchmark}: {named}, {linking}", bars)
        for (benchmark, named, linking), bars in grouped.items()
    }


def bars_as_svg(title: str, bars: Sequence[Bar]) -> str:
    """Return bars from 0 to 100 %, each with its interval and a mark where the paper's figure is."""
    height = _TOP + _ROW * len(bars) + 50
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 90}" height="{height}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="16" y="26" font-size="16">{escape(title)}</text>',
        *_axis(_TOP + _ROW * len(bars)),
    ]
    for place, bar in enumerate(bars):
        parts += _bar(bar, _TOP + _ROW * place, _COLORS[place % len(_COLORS)])
    key = "thin line: 95 % interval; diamond: the paper's figure"
    parts.append(f'<text x="16" y="{height - 10}" fill="#555" font-size="11">{key}</text>')
    return "\n".join((*parts, "</svg>\n"))


def _axis(bottom: int) -> list[str]:
    lines: list[str] = []
    for percent in range(0, 101, 20):
        x = _x(percent)
        lines.append(f'<line x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{bottom}" stroke="#ddd"/>')
        lines.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" fill="#555">{percent}</text>')
    return lines


def _bar(bar: Bar, top: int, color: str) -> list[str]:
    middle = top + _ROW / 2 - 2
    said = f"{bar.name}: {bar.value:.2f} ({bar.low:.2f} to {bar.high:.2f})"
    parts = [
        f"<g><title>{escape(said)}</title>",
        f'<text x="{_LEFT - 8}" y="{middle + 4:g}" text-anchor="end">{escape(bar.name[:30])}</text>',
        (
            f'<rect x="{_LEFT}" y="{top}" width="{_x(bar.value) - _LEFT:.1f}" height="{_ROW - 8}" fill="{color}" '
            'fill-opacity="0.75"/>'
        ),
        f'<line x1="{_x(bar.low):.1f}" y1="{middle:g}" x2="{_x(bar.high):.1f}" y2="{middle:g}" stroke="black"/>',
    ]
    if bar.paper is not None:
        x = _x(bar.paper)
        parts.append(f'<path d="M{x:.1f} {middle - 6:g} l5 6 l-5 6 l-5 -6 z" fill="white" stroke="black"/>')
    parts.append(f'<text x="{_LEFT + _WIDTH + 12}" y="{middle + 4:g}">{bar.value:.1f}</text></g>')
    return parts


def _x(percent: float) -> float:
    return _LEFT + _WIDTH * percent / 100
