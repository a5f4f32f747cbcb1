"""Search by name, held in memory: for graphs that bring no search of their own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kg_adapters.likeness import LEAST, likeness
from kg_adapters.local.names.folding import bare_words, fold
from kg_adapters.models import Candidate, Match
from kg_adapters.terms import Node, node_key

SHORTLIST: Final = 1_000
"""How many names are compared with a text, of those that share most pairs of letters with it."""


class Name(NamedTuple):
    """A name that an entity bears."""

    bearer: Node
    text: str
    alias: bool


class NameIndex:
    """Finds the bearers of names: the same but for case and accents, by words, by beginning, and with slips."""

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
        self._pairs = _LetterPairs(self._words)

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
        text = bare_words(folded)
        places = self._pairs.shortlist(text)
        scores = likeness(text, [self._words[place] for place in places])
        for best in np.argsort(-scores, kind="stable").tolist():
            if scores[best] < LEAST:
                return
            for name in self._bearers[self._folded[places[best]]]:
                yield name, float(scores[best])


class _LetterPairs:
    """Finds the names that share most pairs of neighbouring letters with a text, blanks at both ends counted.

    Args:
        names: The names, words alone.
    """

    def __init__(self, names: Sequence[str]) -> None:
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, name in enumerate(names):
            for pair in _pairs(name):
                places[pair].append(place)
        self._places = {pair: np.array(found, dtype=np.int32) for pair, found in places.items()}
        self._sizes = np.fromiter((len(name) + 1 for name in names), dtype=np.int32, count=len(names))

    def shortlist(self, text: str) -> list[int]:
        """Return at most `SHORTLIST` places, in their order; of names that share as much the shorter ones."""
        every: list[npt.NDArray[np.int32]] = [self._places[pair] for pair in _pairs(text) if pair in self._places]
        if not every:
            return []
        shared = np.bincount(np.concatenate(every), minlength=len(self._sizes))
        order = np.lexsort((self._sizes, -shared))[:SHORTLIST]
        return sorted(order[shared[order] > 0].tolist())


def _pairs(name: str) -> set[str]:
    text = f" {name} "
    return {text[start : start + 2] for start in range(len(text) - 1)}


def _candidate(name: Name, score: float) -> Candidate:
    exact: Match = "alias" if name.alias else "label"
    return Candidate(name.bearer, score, exact if score == 1.0 else "text", name.text)
