"""What tests read in a picture: the boxes of its labels, its texts and its links."""

from dataclasses import dataclass
from itertools import combinations
from typing import Final
from xml.etree import ElementTree as ET

from kg_boundary.drawing.picture import width_of

_SVG: Final = "{http://www.w3.org/2000/svg}"
_BOXES: Final = {"kgs-box", "kgs-root", "kgs-value", "kgs-answer-box"}


@dataclass(frozen=True)
class Drawn:
    """A picture that was parsed."""

    root: ET.Element

    @classmethod
    def of(cls, svg: str) -> "Drawn":
        return cls(ET.fromstring(svg))  # noqa: S314 - we wrote it

    @property
    def size(self) -> tuple[float, float]:
        return float(self.root.attrib["width"]), float(self.root.attrib["height"])

    def texts(self, style: str = "") -> list[str]:
        """Return what is written, as it is seen; only in one style, if one is named."""
        return ["".join(each.itertext()) if len(each) == 0 else each[-1].tail or "" for each in self._texts(style)]

    def _texts(self, style: str) -> list[ET.Element]:
        return [each for each in self.root.iter(f"{_SVG}text") if style in each.attrib["class"].split() or not style]

    def described(self) -> str:
        return self.root.findtext(f"{_SVG}desc") or ""

    def styles(self) -> set[str]:
        return {style for each in self.root.iter() for style in each.attrib.get("class", "").split()}

    def elements(self) -> set[str]:
        return {each.tag.removeprefix(_SVG) for each in self.root.iter()}

    def attributes(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for each in self.root.iter():
            for name, value in each.attrib.items():
                found.setdefault(name, set()).add(value)
        return found

    def overlaps(self) -> list[tuple[str, str]]:
        """Return what lies upon something else, or leaves the picture."""
        boxes: list[_Box] = []
        for each in self.root.iter(f"{_SVG}rect"):
            if each.attrib["class"] in _BOXES:
                x, y, wide, high = (float(each.attrib[name]) for name in ("x", "y", "width", "height"))
                boxes.append((f"box at {x},{y}", x, y, wide, high))
        for text, each in zip(self.texts("kgs-relation"), self._texts("kgs-relation"), strict=True):
            wide = width_of(text, float(each.attrib["font-size"]))
            boxes.append((text, float(each.attrib["x"]) - wide / 2, float(each.attrib["y"]) - 11, wide, 14.0))
        upon = [(one[0], other[0]) for one, other in combinations(boxes, 2) if _meet(one, other)]
        wide, high = self.size
        return upon + [(box[0], "edge") for box in boxes if box[1] < -wide / 2 or box[3] > wide or box[4] > high]


_Box = tuple[str, float, float, float, float]


def _meet(one: _Box, other: _Box) -> bool:
    _, x, y, width, height = one
    _, left, top, wide, high = other
    return x < left + wide and left < x + width and y < top + high and top < y + height
