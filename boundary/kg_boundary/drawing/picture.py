"""What a picture shows: facts, and labels on one line, cut to a length, with their widths."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kg_boundary.shown import clipped, visible_line

Triple: TypeAlias = tuple[str, str, str]
"""Head, relation and tail, by id; a tail may be a value, in quotes."""

MOST_LABEL: Final = 38
MOST_RELATION: Final = 30
MOST_WHOLE: Final = 300
"""How many characters are shown of a node, of a relation, and of either where the pointer rests on it."""

_WIDTHS: Final = (
    (0.30, "'ijlIJ"),
    (0.37, " ,./:;\\|f-"),
    (0.42, "()[]t!r"),
    (0.51, '"*_`sz'),
    (0.56, "?cL"),
    (0.61, "FkvxyPTYao"),
    (0.64, "eESbdghnpqu$0123456789{}"),
    (0.70, "KAVBRXZC"),
    (0.78, "UHNDG&"),
    (0.84, "OQw#+<=>^~"),
    (0.97, "M%m"),
    (1.00, "W@"),
)
_WIDTH_OF: Final = {mark: width for width, marks in _WIDTHS for mark in marks}
_OTHER: Final = 0.72
_BOLD: Final = 1.14
_WEB: Final = re.compile(r"https?://[^\s<>\"\\]+", re.IGNORECASE)


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a text is at most, in pixels, in the wider of the usual fonts.

    Args:
        text: The text.
        size: The size of the font, in pixels.
        bold: Whether it is bold.
    """
    marks = unicodedata.normalize("NFD", text)
    return sum(map(_width_of, marks)) * size * (_BOLD if bold else 1)


def _width_of(mark: str) -> float:
    if unicodedata.combining(mark):
        return 0.0
    return 1.05 if unicodedata.east_asian_width(mark) in {"W", "F"} else _WIDTH_OF.get(mark, _OTHER)


def shown_label(text: str, most: int) -> str:
    """Return a text as a picture shows it: on one line, everything in it to be seen, cut to a length."""
    return clipped(visible_line(text[: most * 2]), most)


def web_address(text: str) -> str | None:
    """Return the address that a node or a value is, if it is one of the web; None for every other."""
    inner = text[1:].partition('"')[0] if text.startswith('"') else text.removeprefix("<").removesuffix(">")
    return inner if len(inner) <= MOST_WHOLE and inner.isprintable() and _WEB.fullmatch(inner) else None


def is_value(end: str) -> bool:
    """Return whether the end of a fact is a value."""
    return end.startswith('"')


@dataclass(frozen=True, slots=True)
class Picture:
    """Facts to draw.

    Args:
        facts: The facts, by id; the first ones come first in the picture.
        title: What stands above it, such as a question.
        caption: What stands below the title, such as the answer.
        labels: What nodes are called.
        relations: What relations are called.
        classes: What the classes of nodes are called.
        roots: The nodes at which reading begins; the first head where there are none.
        evidence: The facts that stand out.
        answers: The nodes and values that stand out.
        doubtful: The facts that nothing confirms.
        more: How many facts of a node over a relation are left out, by node, relation and whether they lead to it; over
            relation "" those of all other relations.
        both_sides: Whether what leads to the first root stands to its left; otherwise all is to its right.
    """

    facts: tuple[Triple, ...]
    title: str = ""
    caption: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    relations: Mapping[str, str] = field(default_factory=dict[str, str])
    classes: Mapping[str, str] = field(default_factory=dict[str, str])
    roots: tuple[str, ...] = ()
    evidence: frozenset[Triple] = frozenset()
    answers: frozenset[str] = frozenset()
    doubtful: frozenset[Triple] = frozenset()
    more: Mapping[tuple[str, str, bool], int] = field(default_factory=dict[tuple[str, str, bool], int])
    both_sides: bool = False

    def name(self, end: str) -> str:
        """Return what the end of a fact is called: its label, the text of a value, or the local part of an id."""
        if end in self.labels:
            return self.labels[end]
        if is_value(end):
            text, _, kind = end[1:].rpartition('"')
            return f"{text} ({kind[1:]})" if kind.startswith("@") else text
        return local_part(end)

    def relation_name(self, relation: str) -> str:
        """Return what a relation is called."""
        return self.relations.get(relation) or self.labels.get(relation) or local_part(relation)

    def sentence(self, fact: Triple) -> str:
        """Return a fact as a line of text."""
        head, relation, tail = fact
        said = (self.name(head), self.relation_name(relation), self.name(tail))
        return " | ".join(shown_label(each, MOST_WHOLE) for each in said)

    def nodes(self) -> Sequence[str]:
        """Return the ends of all facts, each once, the roots first."""
        ends = (end for head, _, tail in self.facts for end in (head, tail))
        return tuple(dict.fromkeys((*self.roots, *ends)))


def local_part(id: str) -> str:
    """Return the last part of a web address; other ids as they are."""
    if not web_address(id):
        return id
    return re.split(r"[/#]", id.strip("<>").rstrip("/#"))[-1] or id
