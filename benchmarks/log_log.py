"""Lines over a size, both on logarithmic scales, as small pictures side by side in one SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

_WIDTH: Final = 300
_HEIGHT: Final = 220
_LEFT: Final = 58
_RIGHT: Final = 14
_TOP: Final = 30
_BOTTOM: Final = 36
_ACROSS: Final = 3
_HEAD: Final = 64
_COLORS: Final = ("#2b6cb0", "#9b2c2c", "#2f855a", "#b7791f", "#6b46c1", "#2c7a7b")


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: its title, and for each name its points, as size and figure, both above zero."""

    title: str
    lines: dict[str, list[tuple[float, float]]]


def as_svg(title: str, below: str, panels: Sequence[Panel]) -> str:
    """Return pictures of lines side by side.

    Args:
        title: What stands above all of them.
        below: What the sizes are.
        panels: At least one, with at least one point each.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    colors = {name: _COLORS[place % len(_COLORS)] for place, name in enumerate(names)}
    rows = math.ceil(len(panels) / _ACROSS)
    size = f'width="{_ACROSS * _WIDTH + _RIGHT}" height="{_HEAD + rows * _HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="16" y="26" font-size="16">{escape(title)}</text>',
    ]
    for place, name in enumerate(names):
        x = 16 + 110 * place
        parts.append(f'<line x1="{x}" y1="45" x2="{x + 18}" y2="45" stroke="{colors[name]}" stroke-width="2"/>')
        parts.append(f'<text x="{x + 24}" y="49">{escape(name)}</text>')
    for place, panel in enumerate(panels):
        row, column = divmod(place, _ACROSS)
        parts.append(f'<g transform="translate({column * _WIDTH} {_HEAD + row * _HEIGHT})">')
        parts += [*_drawn(panel, below, colors), "</g>"]
    return "\n".join((*parts, "</svg>\n"))


def _drawn(panel: Panel, below: str, colors: Mapping[str, str]) -> list[str]:
    sizes = _Scale([size for line in panel.lines.values() for size, _ in line], _LEFT, _WIDTH - _RIGHT)
    figures = _Scale([figure for line in panel.lines.values() for _, figure in line], _HEIGHT - _BOTTOM, _TOP)
    parts = [f'<text x="{_LEFT}" y="18" font-size="12">{escape(panel.title)}</text>']
    for tick in figures.ticks:
        y = figures.place(tick)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{_short(tick)}</text>')
    for tick in sizes.ticks:
        x = sizes.place(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#eee"/>')
        y = _HEIGHT - _BOTTOM + 14
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle" fill="#555">{_short(tick)}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 6}" text-anchor="middle" fill="#555">{escape(below)}</text>')
    for name, line in panel.lines.items():
        places = [(sizes.place(size), figures.place(figure)) for size, figure in line]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colors[name]}" stroke-width="2"/>')
        for (x, y), (size, figure) in zip(places, line, strict=True):
            said = escape(f"{name}, {size:,.0f} {below}: {figure:.3g}")
            circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colors[name]}">'
            parts.append(f"{circle}<title>{said}</title></circle>")
    return parts


class _Scale:
    """Powers of ten from one place to another, wide enough for some numbers."""

    def __init__(self, numbers: Sequence[float], first: float, last: float) -> None:
        self._low = math.floor(math.log10(min(numbers)))
        self._high = max(math.ceil(math.log10(max(numbers))), self._low + 1)
        self._first, self._last = first, last

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self._low, self._high + 1)]

    def place(self, number: float) -> float:
        share = (math.log10(number) - self._low) / (self._high - self._low)
        return self._first + share * (self._last - self._first)


def _short(number: float) -> str:
    for least, letter in ((1e6, "M"), (1e3, "k")):
        if number >= least:
            return f"{number / least:g} {letter}"
    return f"{number:g}"
