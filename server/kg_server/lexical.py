"""How alike two texts look, without any model."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt

SIZES = (3, 4, 5)


def similarities(question: str, texts: Sequence[str]) -> list[float]:
    """Return the cosine of the character 3- to 5-grams of `question` and of each text, from 0 to 1; shape [texts]."""
    wanted = _grams(question)
    return [_cosine(wanted, _grams(text)) for text in texts]


def _grams(text: str) -> Counter[str]:
    grams: Counter[str] = Counter()
    for word in text.casefold().split():
        padded = f" {word} "
        for size in SIZES:
            grams.update(padded[start : start + size] for start in range(len(padded) - size + 1))
    return grams


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    shared = sum(count * other[gram] for gram, count in one.items())
    return shared / (_length(one) * _length(other)) if shared else 0.0


def _length(grams: Counter[str]) -> float:
    return sqrt(sum(count * count for count in grams.values()))
