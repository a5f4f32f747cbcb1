"""The texts that are compared: what an edge says, and what a question asks about one entity."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import unquote

from rapidfuzz import fuzz

from kg_adapters.terms import BlankNode, Node

PRONOUN: Final = "it"
_ALIKE: Final = 85
_SHORTEST_ALIKE: Final = 4
_SHORTEST_PART: Final = 5
_MOST_WORDS: Final = 30
_WORD: Final = re.compile(r"\w+")
_PARENTHESES: Final = re.compile(r"\s*\([^()]*\)\s*$")

_Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is asked about one entity.

    Args:
        text: The question as it was asked.
        about: The question with a pronoun in place of the entity's name.
    """

    text: str
    about: str


def inquiry(question: str, name: str) -> Inquiry:
    """Return what a question asks about an entity of this name."""
    return Inquiry(question, question_about(question, name))


def spoken(node: Node, label: str | None) -> str:
    """Return a term as people would say it: its label, or else the local part of its IRI in words."""
    if label is not None:
        return label
    return "" if isinstance(node, BlankNode) else unquote(node.local_part).replace("_", " ")


def edge_text(relation: str, far: str, *, inverse: bool) -> str:
    """Return what an edge says about the entity at its near end, as in `capital Shinjuku`."""
    return f"inverse of {relation} {far}" if inverse else f"{relation} {far}"


def question_about(question: str, name: str) -> str:
    """Return a question with the name of the entity that it is about replaced by a pronoun.

    No edge around the entity says its name, so what else the question says must decide. A name that is spelt a little
    differently counts too, and a part of the name that holds a longer word; one that does not occur leaves the question
    as it is.
    """
    shorter = _PARENTHESES.sub("", name)
    place = _place(question, name) or _place(question, shorter)
    place = place or _similar_place(question, shorter) or _partial_place(question, shorter)
    return question if place is None else f"{question[: place[0]]}{PRONOUN}{question[place[1] :]}"


def _place(question: str, name: str) -> _Place | None:
    for found in re.finditer(re.escape(name), question, re.IGNORECASE) if name else ():
        if not _joined(question, found.start()) and not _joined(question, found.end()):
            return found.span()
    return None


def _similar_place(question: str, name: str) -> _Place | None:
    asked, wanted = question.lower(), name.lower()
    # Places in the lowered text must be places in the question; a name longer than it cannot be in it.
    if len(asked) != len(question) or not _SHORTEST_ALIKE <= len(wanted) <= len(asked):
        return None
    found = fuzz.partial_ratio_alignment(wanted, asked, score_cutoff=_ALIKE)
    if found is None:
        return None
    start, end = found.dest_start, found.dest_end
    while _joined(question, start):
        start -= 1
    while _joined(question, end):
        end += 1
    text = question[start:end]
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())


def _partial_place(question: str, name: str) -> _Place | None:
    """Return where the longest run of words stands that the name has too."""
    words = list(_WORD.finditer(question))
    asked, named = (
        [word.group().lower() for word in words],
        [word.lower() for word in _WORD.findall(name)[:_MOST_WORDS]],
    )
    runs = (
        (start, start + length)
        for length in range(min(len(asked), len(named)), 0, -1)
        for start in range(len(asked) - length + 1)
        if max(map(len, asked[start : start + length])) >= _SHORTEST_PART
        and _holds(named, asked[start : start + length])
    )
    run = next(runs, None)
    return None if run is None else (words[run[0]].start(), words[run[1] - 1].end())


def _holds(words: Sequence[str], run: Sequence[str]) -> bool:
    return any(words[start : start + len(run)] == run for start in range(len(words) - len(run) + 1))


def _joined(text: str, place: int) -> bool:
    """Say whether a place is inside a word; scripts without letter case write no blanks to tell by."""
    return 0 < place < len(text) and _in_word(text[place - 1]) and _in_word(text[place])


def _in_word(mark: str) -> bool:
    return mark.isdigit() or mark.lower() != mark.upper()
