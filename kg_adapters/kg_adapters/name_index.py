"""Search by name, held in memory: for graphs that bring no search of their own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from rapidfuzz import fuzz, process

from kg_adapters.local.folding import bare_words, fold
from kg_adapters.models import Candidate, Match
from kg_adapters.terms import Node, node_key

_LEAST_SCORE: Final = 0.55
# What a name is worth that only begins like the text, that has the same words in another order, and that shares words.
_BEGINS: Final = 0.8
_REORDERED: Final = 0.97
_WORDS, _LETTERS = 0.75, 0.2
# Between a name that is the same but for case and accents, and one that is merely like it.
_LIKE_AT_MOST: Final = 0.99


class Name(NamedTuple):
    """A name that an entity bears."""

    bearer: Node
    text: str
    alias: bool


class NameIndex:
    """Finds the bearers of names: exactly but for case and accents, by beginning, by words, and with slips of the pen.

    A search that is not exact compares the text with every name: a few milliseconds for ten thousand.
    """

    def __init__(self, names: Iterable[Name]) -> None:
        bearers: defaultdict[str, set[Name]] = defaultdict(set)
        for name in names:
            if folded := fold(name.text):
                bearers[folded].add(name)
        self._bearers = {
            folded: sorted(found, key=lambda name: (name.alias, node_key(name.bearer), name.text))
            for folded, found in sorted(bearers.items())
        }
        self._folded = list(self._bearers)
        self._words = [bare_words(folded) for folded in self._folded]

    def search(self, text: str, limit: int, accept: Callable[[Node], bool]) -> list[Candidate]:
        """Return at most `limit` of the entities that `text` may name and that `accept` allows, best first."""
        found: dict[Node, Candidate] = {}
        folded = fold(text)
        for name, score in self._ranked(folded) if folded else ():
            if len(found) >= limit:
                break
            if name.bearer not in found and accept(name.bearer):
                found[name.bearer] = _candidate(name, score)
        return list(found.values())

    def _ranked(self, folded: str) -> Iterator[tuple[Name, float]]:
        for name in self._bearers.get(folded, ()):
            yield name, 1.0
        scores = self._similarity(folded)
        for place in np.argsort(-scores, kind="stable").tolist():
            if scores[place] < _LEAST_SCORE:
                return
            for name in self._bearers[self._folded[place]]:
                yield name, min(float(scores[place]), _LIKE_AT_MOST)

    def _similarity(self, folded: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return how alike each name is, from 0 to 1; shape [number of names]."""
        text = bare_words(folded)
        letters, order, words = (
            np.asarray(process.cdist([text], self._words, scorer=scorer), dtype=np.float64).reshape(-1) / 100
            for scorer in (fuzz.ratio, fuzz.token_sort_ratio, fuzz.token_set_ratio)
        )
        begins = np.fromiter((name.startswith(text) for name in self._words), dtype=np.float64, count=len(self._words))
        alike = np.maximum(letters, _REORDERED * order)
        partly = np.maximum(_WORDS * words + _LETTERS * letters, begins * (_BEGINS + (1 - _BEGINS) * letters))
        return np.maximum(alike, partly)


def _candidate(name: Name, score: float) -> Candidate:
    exact: Match = "alias" if name.alias else "label"
    return Candidate(name.bearer, score, exact if score == 1.0 else "text", name.text)
