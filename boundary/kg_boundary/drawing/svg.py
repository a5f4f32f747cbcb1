"""A picture as SVG: light and dark, readable without seeing it, and with nothing in it that runs."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from xml.etree import ElementTree as ET

from kg_boundary.drawing.layout import DOT, FONT, PADDING, PILL, SMALL_FONT, Laid, Link, Pill, Sheaf, Vertex, laid_out
from kg_boundary.drawing.picture import MOST_WHOLE, Picture, is_value, shown_label, web_address, width_of
from kg_boundary.installation import install_command

Theme: TypeAlias = Literal["light", "dark", "both"]
"""The colours of a picture; `both` follows what the reader prefers."""

_COLORS: Final = 10
_NAMES: Final = (
    *("background", "raised", "text", "muted", "line", "border", "accent", "on-accent", "none"),
    *(f"c{place}" for place in range(_COLORS)),
)


def _named(colors: str) -> dict[str, str]:
    return dict(zip(_NAMES, colors.split(), strict=True))


_LIGHT: Final = _named(
    "#ffffff #f3f5f8 #18202b #4e5a6b #aab4c2 #d4dae3 #b34700 #ffffff #6f7b8c "
    "#2a6fdb #1b8a5a #9a4fc4 #c23f66 #0e8594 #8a7500 #5b62c9 #77603f #4b7f1e #b0479b"
)
_DARK: Final = _named(
    "#12161d #1c222c #e8ecf2 #a9b4c3 #566273 #353f4d #ff9a3d #1a1206 #8b98a9 "
    "#6aa5ff #4fc993 #c690ee #f47f9f #45c4d4 #d3bb3c #9da3ff #c4a57c #93cc5c #ec8fd8"
)
"""The colours of the page that explores graphs."""

FONTS: Final = (
    "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', "
    "sans-serif"
)
_TITLE: Final = 21.0
_CAPTION: Final = 18.0
_MARGIN: Final = 28.0
_LEAST: Final = 420.0
_WIDE: Final = 760.0
_MOST_LINES: Final = 4
_SENTENCES: Final = 200
_ARROW: Final = 9.0


class CannotDraw(Exception):
    """A picture cannot be drawn here; the message says why and what to do."""


def svg_of(picture: Picture, theme: Theme = "both") -> str:
    """Return a picture as SVG; the same picture is always the same text.

    Raises:
        CannotDraw: The library for layouts is not installed.
    """
    try:
        laid = laid_out(picture)
    except ImportError as error:
        raise CannotDraw(f"Drawing needs the extra draw. Run: {install_command('draw')}") from error
    return _Writer(picture, laid).written(theme)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of text, whose colour is that of a class of the style."""

    text: str
    size: float
    style: str


class _Writer:
    """Writes one picture.

    Args:
        picture: The picture.
        laid: The places of its parts.
    """

    def __init__(self, picture: Picture, laid: Laid) -> None:
        self._picture = picture
        self._laid = laid
        counts = Counter(picture.classes[node] for node in picture.nodes() if node in picture.classes)
        self._colors = {name: f"c{place}" for place, (name, _) in enumerate(counts.most_common(_COLORS))}

    def written(self, theme: Theme) -> str:
        """Return the whole as text."""
        picture, laid = self._picture, self._laid
        inner = max(laid.width, _LEAST, min(width_of(_plain(picture.title), _TITLE, bold=True), _WIDE))
        found = ("answer", _CAPTION) if picture.answers or picture.evidence else ("key", FONT)
        lines = [_Line(each, _TITLE, "title") for each in _wrapped(picture.title, inner, _TITLE)]
        lines += [_Line(each, found[1], found[0]) for each in _wrapped(picture.caption, inner, found[1])]
        top = _MARGIN + sum(line.size * 1.35 for line in lines) + (18 if lines else 0)
        keys = list(self._keys(inner))
        bottom = top + laid.height + (30 if keys else 0)
        width, height = inner + 2 * _MARGIN, bottom + (keys[-1][1] + 14 if keys else 0) + _MARGIN - 6
        svg = _node(
            None,
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "role": "img",
                "width": _number(width),
                "height": _number(height),
                "viewBox": f"0 0 {_number(width)} {_number(height)}",
                "class": "kgs",
            },
        )
        _node(svg, "title", {}, _plain(picture.title) or "A graph")
        _node(svg, "desc", {}, self._described())
        _node(svg, "style", {}, _style(theme))
        _node(svg, "rect", {"class": "kgs-background", "width": "100%", "height": "100%"})
        y = _MARGIN
        for line in lines:
            y += line.size * 1.35
            _text(svg, line.text, (_MARGIN, y - line.size * 0.35), f"kgs-{line.style}", line.size)
        left = _MARGIN + (inner - laid.width) / 2
        drawing = _node(svg, "g", {"transform": f"translate({_number(left)} {_number(top)})"})
        self._draw(drawing)
        for x, row, color, name in keys:
            self._key(svg, (_MARGIN + x, bottom + row), color, name)
        return ET.tostring(svg, encoding="unicode") + "\n"

    def _described(self) -> str:
        """Return the facts as sentences."""
        picture = self._picture
        facts = list(dict.fromkeys((*(each for each in picture.facts if each in picture.evidence), *picture.facts)))
        left = [f"And {len(facts) - _SENTENCES:,} more facts"] if len(facts) > _SENTENCES else []
        said = [_plain(picture.caption)] if picture.caption else []
        return "\n".join(f"{each}." for each in (*said, *map(picture.sentence, facts[:_SENTENCES]), *left))

    def _draw(self, parent: ET.Element) -> None:
        for link in sorted(self._laid.links, key=lambda link: link.group.evidence):
            self._link(parent, link)
        for vertex in self._laid.vertices:
            if vertex.group is not None:
                self._relation(parent, vertex, vertex.group)
                continue
            if len(vertex.pills) > 1:
                corner = {"x": _number(vertex.x), "y": _number(vertex.y - vertex.height / 2), "rx": "10"}
                size = {"width": _number(vertex.width), "height": _number(vertex.height)}
                _node(parent, "rect", {"class": "kgs-block", **corner, **size})
            for pill in vertex.pills:
                self._pill(parent, pill, (vertex.x + pill.at[0], vertex.y - vertex.height / 2 + pill.at[1]))

    def _link(self, parent: ET.Element, link: Link) -> None:
        start, end = link.points[0], link.points[-1]
        from_x = start[0] + (_ARROW - 1 if link.at_start else 0)
        to_x = end[0] - (_ARROW - 1 if link.at_end else 0)
        points = [(min(max(x, from_x), to_x), y) for x, y in link.points]
        way = f"M{_point(points[0])}"
        for before, after in itertools.pairwise(points):
            middle = (before[0] + after[0]) / 2
            straight = abs(before[1] - after[1]) < 0.05
            way += (
                f"L{_point(after)}"
                if straight
                else (f"C{_point((middle, before[1]))} {_point((middle, after[1]))} {_point(after)}")
            )
        style = f"kgs-line{_marks(link.group)}"
        _node(parent, "path", {"class": style, "d": way})
        for shown, (x, y), towards in ((link.at_start, start, 1), (link.at_end, end, -1)):
            if shown:
                back = x + towards * _ARROW
                corners = f"M{_point((x, y))}L{_point((back, y - 4.5))}L{_point((back, y + 4.5))}Z"
                _node(parent, "path", {"class": f"kgs-arrow{_marks(link.group)}", "d": corners})

    def _relation(self, parent: ET.Element, vertex: Vertex, group: Sheaf) -> None:
        if vertex.label:
            place = (vertex.x + vertex.width / 2, vertex.y + SMALL_FONT * 0.36)
            style = f"kgs-relation{_marks(group)}"
            text = _text(parent, vertex.label, place, style, SMALL_FONT, middle=True)
            _hover(text, self._picture.relation_name(group.relation))

    def _pill(self, parent: ET.Element, pill: Pill, corner: tuple[float, float]) -> None:
        picture, (x, y) = self._picture, corner
        if pill.end.startswith("\n"):
            _text(parent, pill.text, (x + PADDING, y + PILL / 2 + FONT * 0.36), "kgs-more", FONT)
            return
        address = web_address(pill.end)
        if address is not None:
            parent = _node(parent, "a", {"href": address, "target": "_blank", "rel": "noreferrer"})
        group, value = _node(parent, "g", {"class": "kgs-node"}), is_value(pill.end)
        answers = pill.end in picture.answers
        kind = "answer-box" if answers else "root" if pill.end in picture.roots else "value" if value else "box"
        rounded = "5" if value else _number(PILL / 2)
        size = {"width": _number(pill.width), "height": _number(PILL), "rx": rounded}
        _node(group, "rect", {"class": f"kgs-{kind}", "x": _number(x), "y": _number(y), **size})
        offset = PADDING
        if pill.end in picture.classes:
            color = self._color(pill.end)
            dot = {"cx": _number(x + PADDING + 5), "cy": _number(y + PILL / 2), "r": "5.5"}
            _node(group, "circle", {"class": f"kgs-dot kgs-{color}", **dot})
            offset += DOT
        style = "kgs-on-accent" if answers else "kgs-strong" if kind == "root" else "kgs-label"
        _text(group, pill.text, (x + offset, y + PILL / 2 + FONT * 0.36), style, FONT)
        _hover(group, picture.name(pill.end))

    def _color(self, node: str) -> str:
        return self._colors.get(self._picture.classes.get(node, ""), "none")

    def _keys(self, width: float) -> Iterator[tuple[float, float, str, str]]:
        """Yield the entries of the legend: where each is, its colour and its name."""
        picture = self._picture
        kinds = [(color, name) for name, color in self._colors.items()]
        if any(self._color(node) == "none" for node in picture.nodes() if node in picture.classes):
            kinds.append(("none", "other"))
        if picture.evidence and any(fact not in picture.evidence for fact in picture.facts):
            kinds.append(("evidence", "evidence"))
        if picture.doubtful:
            kinds.append(("doubtful", "not verified"))
        x, y = 0.0, 0.0
        for color, name in kinds:
            text = shown_label(name, 30)
            wide = width_of(text, SMALL_FONT) + 34
            if x and x + wide > width:
                x, y = 0.0, y + 22
            yield x, y, color, text
            x += wide

    def _key(self, parent: ET.Element, at: tuple[float, float], color: str, name: str) -> None:
        x, y = at
        if color in {"evidence", "doubtful"}:
            _node(parent, "path", {"class": f"kgs-line kgs-is-{color}", "d": f"M{_point((x - 2, y))}h14"})
        else:
            dot = {"cx": _number(x + 5), "cy": _number(y), "r": "5"}
            _node(parent, "circle", {"class": f"kgs-dot kgs-{color}", **dot})
        _text(parent, name, (x + 18, y + SMALL_FONT * 0.36), "kgs-key", SMALL_FONT)


def _marks(group: Sheaf) -> str:
    return f"{' kgs-is-evidence' if group.evidence else ''}{' kgs-is-doubtful' if group.doubtful else ''}"


def _node(parent: ET.Element | None, name: str, attributes: Mapping[str, str], text: str = "") -> ET.Element:
    """Add an element; the library escapes what is in it."""
    element = ET.Element(name, dict(attributes))
    if parent is not None:
        parent.append(element)
    element.text = text or None
    return element


def _text(
    parent: ET.Element,
    text: str,
    at: tuple[float, float],
    style: str,
    size: float,
    *,
    middle: bool = False,
) -> ET.Element:
    place = {"x": _number(at[0]), "y": _number(at[1]), "font-size": _number(size)}
    anchor = {"text-anchor": "middle"} if middle else {}
    return _node(parent, "text", {"class": f"kgs-text {style}", **place, **anchor}, text)


def _hover(element: ET.Element, text: str) -> None:
    """Give an element the whole text that its label cuts."""
    title = ET.Element("title")
    title.text = _plain(text)
    title.tail, element.text = element.text, None
    element.insert(0, title)


def _plain(text: str) -> str:
    return shown_label(text, MOST_WHOLE)


def _number(value: float) -> str:
    """Return a number with at most one digit behind the point, so that it is the same wherever it is computed."""
    return f"{value + 0.0 if abs(value) >= 0.05 else 0.0:.1f}".removesuffix(".0")


def _point(at: tuple[float, float]) -> str:
    return f"{_number(at[0])},{_number(at[1])}"


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """Return a text in a few lines of at most a width."""
    lines: list[str] = []
    for word in _plain(text).split():
        if lines and width_of(f"{lines[-1]} {word}", size, bold=True) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(shown_label(word, max(8, int(width / size))))
    return [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1]} …"] if len(lines) > _MOST_LINES else lines


def _style(theme: Theme) -> str:
    rules = _rules(_DARK if theme == "dark" else _LIGHT)
    if theme == "both":
        rules += f"@media (prefers-color-scheme:dark){{{_rules(_DARK)}}}"
    return f".kgs-text{{font-family:{FONTS};unicode-bidi:isolate}}{_SHAPES}{rules}"


_SHAPES: Final = (
    ".kgs-title,.kgs-strong{font-weight:600}.kgs-answer,.kgs-on-accent{font-weight:700}"
    ".kgs-line{fill:none;stroke-width:1.5}.kgs-line.kgs-is-evidence{stroke-width:2.6}"
    ".kgs-line.kgs-is-doubtful{stroke-dasharray:5 4}"
    ".kgs-box,.kgs-value{stroke-width:1.2}.kgs-root{stroke-width:2.4}"
    ".kgs-relation{paint-order:stroke;stroke-width:4;stroke-linejoin:round}"
    ".kgs-more{font-style:italic}"
)


def _rules(colors: Mapping[str, str]) -> str:
    of: Sequence[tuple[str, str]] = (
        (".kgs-background", "fill:{background}"),
        (".kgs-title,.kgs-label,.kgs-strong", "fill:{text}"),
        (".kgs-answer", "fill:{accent}"),
        (".kgs-relation", "fill:{muted};stroke:{background}"),
        (".kgs-relation.kgs-is-evidence", "fill:{accent}"),
        (".kgs-key,.kgs-more", "fill:{muted}"),
        (".kgs-line", "stroke:{line}"),
        (".kgs-arrow", "fill:{line}"),
        (".kgs-line.kgs-is-evidence", "stroke:{accent}"),
        (".kgs-arrow.kgs-is-evidence", "fill:{accent}"),
        (".kgs-box", "fill:{background};stroke:{line}"),
        (".kgs-root", "fill:{background};stroke:{text}"),
        (".kgs-value", "fill:{raised};stroke:{border}"),
        (".kgs-answer-box", "fill:{accent};stroke:{accent}"),
        (".kgs-on-accent", "fill:{on-accent}"),
        (".kgs-block", "fill:{raised}"),
        (".kgs-dot", "stroke:{background};stroke-width:1.5"),
        (".kgs-none", "fill:{none}"),
        *((f".kgs-c{place}", f"fill:{{c{place}}}") for place in range(_COLORS)),
    )
    return "".join(f"{what}{{{_filled(how, colors)}}}" for what, how in of)


def _filled(rule: str, colors: Mapping[str, str]) -> str:
    return re.sub(r"\{([\w-]+)\}", lambda found: colors[found[1]], rule)
