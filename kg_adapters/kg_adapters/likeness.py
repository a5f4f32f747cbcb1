"""How alike names are to a text: whole words count before letters."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

Floats: TypeAlias = npt.NDArray[np.float32]

LEAST: Final = 0.45
"""What is less alike than this is not worth showing."""

MOST: Final = 0.99
"""What is alike without being the same stays below 1."""

# The parts of the worth of a name: one that has all words of the text in another order, one that has them and more, one
# that shares words with it, one that begins like it, and one that merely has letters of it.
_REORDERED: Final = 0.98
_HOLDS, _HOLDS_LETTERS, _HOLDS_CONNECTED = 0.9, 0.05, 0.02
_SHARES, _SHARES_LETTERS, _SHARES_CONNECTED = 0.7, 0.1, 0.05
_BEGINS, _BEGINS_LETTERS = 0.75, 0.14
_LETTERS: Final = 0.89
# Names with fewer letters in common, in hundredths, are not compared by letters.
_NO_LETTERS: Final = 50


def likeness(text: str, names: Sequence[str], connected: Floats | None = None) -> Floats:
    """Return how alike names are to a text, from 0 to `MOST`; shape [number of names].

    A name that holds every word of the text comes before all that merely have letters of it: `Lakers` is part of *Los
    Angeles Lakers*, and not *lake*.

    Args:
        text: What is looked for, folded, words alone.
        names: What is compared with it, folded, words alone.
        connected: How well connected who bears each name is, from 0 to 1; it decides between names that share as much.
    """
    ratio, same, shared = (
        _compared(text, names, scorer, cutoff)
        for scorer, cutoff in ((fuzz.ratio, _NO_LETTERS), (fuzz.token_sort_ratio, 100), (fuzz.token_set_ratio, 50))
    )
    letters = _letters(text, names, ratio)
    known = np.zeros(len(names), dtype=np.float32) if connected is None else connected
    wanted = frozenset(text.split())
    holds = np.zeros(len(names), dtype=np.bool_)
    for place in np.flatnonzero(shared == 1).tolist():
        holds[place] = wanted.issubset(names[place].split())
    begins = np.fromiter((name.startswith(text) for name in names), dtype=np.bool_, count=len(names))
    ranked = (
        _LETTERS * letters,
        _SHARES * shared + _SHARES_LETTERS * letters + _SHARES_CONNECTED * known,
        begins * (_BEGINS + _BEGINS_LETTERS * letters),
        holds * (_HOLDS + _HOLDS_LETTERS * letters + _HOLDS_CONNECTED * known),
        _REORDERED * same,
    )
    best: Floats = np.minimum(np.maximum.reduce(ranked), MOST).astype(np.float32)
    return best


def _letters(text: str, names: Sequence[str], ratio: Floats) -> Floats:
    """Return how alike the letters are: two that changed places count as one slip, not as two."""
    letters: Floats = ratio.copy()
    places = np.flatnonzero(ratio)
    alike = [names[place] for place in places.tolist()]
    letters[places] += np.asarray(process.cdist([text], alike, scorer=OSA.normalized_similarity)).reshape(-1)
    letters /= 2
    return letters


def _compared(text: str, names: Sequence[str], scorer: Callable[..., float], cutoff: float) -> Floats:
    found = process.cdist([text], names, scorer=scorer, score_cutoff=cutoff, dtype=np.float32)
    scores: Floats = np.asarray(found, dtype=np.float32).reshape(-1)
    scores /= 100
    return scores
