"""Which slips of the pen turn one name into another, and which differences make it the name of something else.

Two names may be a letter apart and mean two things: `Henry VII` and `Henry VIII`, `Apollo 11` and `Apollo 12`, `SS
Dawn` and `TS Dawn`. So a number, an initial or a word too many or too few is never a slip, unless it is an article,
nor is another first letter, nor a second slip in the same word, unless two vowels of it change places.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from kg_adapters.folding import fold

Words: TypeAlias = tuple[str, ...]

_WORD: Final = re.compile(r"(?:[^\W_]|[+#])+")
_DIGITS: Final = re.compile(r"\d+")
_ROMAN: Final = re.compile(r"m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
# How many letters a name needs for a slip to leave no doubt, and for a second one in another word; in a shorter one,
# only two letters may have changed places.
_ONE_FROM: Final = 5
_TWO_FROM: Final = 12
# A shorter word is another word when one of its letters is another.
_WORD_FROM: Final = 4
# A shorter word is another word when two of its vowels change places.
_EXCHANGED_FROM: Final = 7
_VOWELS: Final = frozenset("aeiouy")
# A letter in place of a blank changes the number of words, which only a long name survives.
_BLANK_FROM: Final = 8
_IN_FULL: Final = {"ft": "fort", "jr": "junior", "mt": "mount", "st": "saint"}
_ARTICLES: Final = frozenset(("the", "der", "die", "das"))
SMALL_WORDS: Final = frozenset(
    "a an and at au aux by da das de del der des di die do du el en et for from in la las le les lo los of on or "  # noqa: SIM905 - a list of words reads best as words
    "the to und v van vom von with y zu zum zur".split()
)
"""Words that name nothing by themselves."""


@dataclass(frozen=True, slots=True)
class Slips:
    """How many slips lie between a text and a name, and the words of the text that they are in."""

    count: int
    words: Words = ()


def words_of(text: str) -> Words:
    """Return the words of a name as they are compared: without case, accents and punctuation, `&` as `and`, in full."""
    folded = fold(text)
    plain = folded.replace("'", "").replace(".", " " if ". " in folded else "").replace("&", " and ")
    words: list[str] = _WORD.findall(plain)
    return tuple(_IN_FULL.get(word, word) for word in words) or (folded,)


def orders(text: str) -> tuple[Words, ...]:
    """Return the words of a name, and of one with a comma also as people say it: `Beatles, The`, `Curie, Marie`."""
    before, _, after = text.partition(",")
    turned = "," not in after and words_of(text) != words_of(before)
    return (words_of(text), words_of(f"{after} {before}")) if turned else (words_of(text),)


def without_article(words: Words) -> Words:
    """Return the words of a name without an article before them, of a language where it is seldom part of a name."""
    return words[1:] if len(words) > 1 and words[0] in _ARTICLES else words


def apart(text: Words, name: Words) -> int:
    """Return how many letters are missing, too many, wrong or exchanged between two names."""
    return int(OSA.distance(" ".join(text), " ".join(name)))


def alike(text: str, name: str) -> float:
    """Return how alike two names are, from 0 to 1: one that holds every word of the text comes before any other."""
    ours, theirs = words_of(text), words_of(name)
    likeness = fuzz.token_sort_ratio(" ".join(ours), " ".join(theirs)) / 100
    return 0.9 + 0.09 * likeness if set(ours) <= set(theirs) else 0.9 * likeness


def slips_between(text: Words, name: Words) -> Slips | None:
    """Return the slips that turn a name into a text, or None where they are two names."""
    if _numbers(text) != _numbers(name):
        return None
    if "".join(text) == "".join(name):
        return Slips(0)
    if len(text) != len(name):
        only_article = without_article(text) == without_article(name) and len("".join(text)) >= _ONE_FROM
        return Slips(1) if only_article or _lost_a_blank(text, name) else None
    wrong = [(ours, theirs) for ours, theirs in zip(text, name, strict=True) if ours != theirs]
    length = len("".join(name))
    if len(wrong) > (1 if length < _TWO_FROM else 2):
        return None
    kinds = (_swapped,) if length < _ONE_FROM else (_swapped, _slipped, _exchanged)
    if not all(any(is_kind(*pair) for is_kind in kinds) for pair in wrong):
        return None
    return Slips(len(wrong), tuple(ours for ours, _ in wrong))


def is_slip(text: str, name: str) -> bool:
    """Return whether a word is another one with a slip of the pen."""
    return _swapped(text, name) or _slipped(text, name) or _exchanged(text, name)


def _exchanged(text: str, name: str) -> bool:
    """Say whether two vowels of a long word changed places, as in `Halverson` and `Halvorsen`."""
    if len(text) != len(name) or len(name) < _EXCHANGED_FROM:
        return False
    wrong = [(ours, theirs) for ours, theirs in zip(text, name, strict=True) if ours != theirs]
    return len(wrong) == 2 and wrong[0] == wrong[1][::-1] and _VOWELS.issuperset(wrong[0])


def _swapped(text: str, name: str) -> bool:
    """Say whether two letters of a word changed places."""
    return sorted(text) == sorted(name) and _is_near(text, name)


def _slipped(text: str, name: str) -> bool:
    """Say whether one word can be the other with a letter missing, too many or wrong behind the first one."""
    if text[0] != name[0] or not _is_near(text, name):
        return False
    if name in SMALL_WORDS:
        return True
    return min(len(text), len(name)) >= (_WORD_FROM if len(text) == len(name) else 2)


def _is_near(text: str, name: str) -> bool:
    numerals = _ROMAN.fullmatch(text) or _ROMAN.fullmatch(name)
    return text not in SMALL_WORDS and not numerals and OSA.distance(text, name, score_cutoff=1) == 1


def _lost_a_blank(text: Words, name: Words) -> bool:
    """Say whether a long name has a letter where the text has a blank, or the other way round."""
    short = min(map(len, (*text, *name)))
    return len("".join(name)) >= _BLANK_FROM and short > 1 and apart(text, name) == 1


def _numbers(words: Sequence[str]) -> list[str]:
    return [number for word in words for number in _DIGITS.findall(word)]
