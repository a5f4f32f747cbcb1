"""The exact match of the Think-on-Graph line: as its script computes it, and mended."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

from kg_agents.evidence.matching import fold, same_date, same_number, truth_of
from kg_eval.questions import Gold

Verdict: TypeAlias = Literal["right", "wrong", "neither"]

NULL: Final = "NULL"
"""What the script counts neither as right nor as wrong, where it stands in braces; it stays in the denominator."""

_WORD: Final = re.compile(r"(?<!\w)-\d\w*|\w+")
"""A word; the sign of a number belongs to it."""


def in_braces(reply: str) -> str:
    """Return the text between the first braces of a reply, or all of it where there is none, cut as the script does.

    Where the closing brace is missing, the last character is lost; where it comes first, nothing is left.
    """
    begin = reply.find("{") + 1
    return reply[begin : reply.find("}")] if begin else reply


def published(reply: str, golds: Iterable[str]) -> Verdict:
    """Score a reply as the published script does, for `--official`.

    The prediction and a right answer match if either contains the other, without spaces and case: an empty prediction
    is contained in everything.
    """
    if "{" in reply and in_braces(reply) == NULL:
        return "neither"
    said = _squeezed(in_braces(reply))
    right = any(said in gold or gold in said for gold in map(_squeezed, golds))
    return "right" if right else "wrong"


def mended(reply: str, golds: Sequence[Gold]) -> bool:
    """Score a reply with the same idea: an empty one is wrong, aliases count, and words are contained whole."""
    said = in_braces(reply)
    words = _words(said)
    if not words or said.strip() == NULL:
        return False
    return any(_same(said, words, name) for gold in golds for name in gold.names)


def _same(said: str, words: Sequence[str], name: str) -> bool:
    right = truth_of(name)
    if right is not None:
        return truth_of(said) is right
    if same_number(said, name, 0) or same_date(said, name):
        return True
    wanted = _words(name)
    return bool(wanted) and (_contains(words, wanted) or _contains(wanted, words))


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(words[place : place + len(part)] == part for place in range(len(words) - len(part) + 1))


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def _squeezed(text: str) -> str:
    return text.strip().replace(" ", "").lower()
