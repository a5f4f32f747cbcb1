"""How like two questions are, and whether they are one and the same."""

import re
import unicodedata
from collections import Counter
from difflib import SequenceMatcher
from typing import Final

SAME: Final = 0.9
"""From which share of common letters on two questions count as the same."""

_MORE_WORDS: Final = 3
"""How many words a question may have beside those of another and still be the same."""

_MISSPELT: Final = 2
"""How many words may be misspelt."""

_SPELLING: Final = 0.8
_LONG: Final = 60
_LETTERS: Final = 3
_WORD: Final = re.compile(r"\w+")


class Likened:
    """A question in the form in which it is compared with others.

    Args:
        question: The question.
    """

    def __init__(self, question: str) -> None:
        plain = unicodedata.normalize("NFKD", question.casefold())
        words = _WORD.findall("".join(letter for letter in plain if not unicodedata.combining(letter)))
        text = f" {' '.join(words)} "
        self.words = Counter(words)
        self.letters = Counter(text[at : at + _LETTERS] for at in range(len(text) - _LETTERS + 1))

    def to(self, other: "Likened") -> float:
        """Return how like two questions are, from 0 to 1: half by words, half by letters."""
        return (_share(self.words, other.words) + _share(self.letters, other.letters)) / 2

    def is_same(self, other: "Likened") -> bool:
        """Say whether two questions are the same but for case, accents, order, a typing error or words around."""
        here, there = self.words - other.words, other.words - self.words
        around = not (here and there) and max(here.total(), there.total()) <= _MORE_WORDS
        return around or _misspelt(here, there) or _share(self.letters, other.letters) >= SAME


def _misspelt(here: Counter[str], there: Counter[str]) -> bool:
    """Say whether a few words are spelt in two ways."""
    if not here.total() == there.total() <= _MISSPELT:
        return False
    one, two = (" ".join(sorted(words.elements()))[:_LONG] for words in (here, there))
    return SequenceMatcher(None, one, two).ratio() >= _SPELLING


def _share(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of what two have in common (Dice)."""
    both = one.total() + other.total()
    return 2 * (one & other).total() / both if both else 1.0
