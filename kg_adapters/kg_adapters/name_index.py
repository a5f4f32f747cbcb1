"""Search by name over entities and relations held in memory."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from kg_adapters.folding import bare_words, fold
from kg_adapters.models import Candidate, Match, RelationCandidate
from kg_adapters.terms import Iri, Node, node_key

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
# A name of several words, of which one is like the text, and how like it is at least.
_WORD_ALIKE, _LEAST_WORD_ALIKE = 0.7, 0.7
_WORD_FROM: Final = 5
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
        _WORD_ALIKE * _word_alike(text, names),
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


def _word_alike(text: str, names: Sequence[str]) -> Floats:
    """Return how like a text that is one word the most alike word of each longer name is."""
    best = np.zeros(len(names), dtype=np.float32)
    if len(text) < _WORD_FROM or " " in text:
        return best
    words = [name.split() if " " in name else [] for name in names]
    every = list(chain.from_iterable(words))
    if every:
        scorer = OSA.normalized_similarity
        alike = process.cdist([text], every, scorer=scorer, score_cutoff=_LEAST_WORD_ALIKE, dtype=np.float32)
        np.maximum.at(best, np.repeat(np.arange(len(names)), list(map(len, words))), alike.reshape(-1))
    return best


def _compared(text: str, names: Sequence[str], scorer: Callable[..., float], cutoff: float) -> Floats:
    found = process.cdist([text], names, scorer=scorer, score_cutoff=cutoff, dtype=np.float32)
    scores: Floats = np.asarray(found, dtype=np.float32).reshape(-1)
    scores /= 100
    return scores


SHORTLIST: Final = 1_000
"""How many names are compared with a text, of those that share most pairs of letters with it."""


class Name(NamedTuple):
    """A name of an entity; `local` where it is the local part of its IRI, since there is no other."""

    bearer: Node
    text: str
    alias: bool
    local: bool = False


class NameIndex:
    """Finds the bearers of names: the same but for case and accents, by words, by beginning, and with slips."""

    def __init__(self, names: Iterable[Name]) -> None:
        bearers: defaultdict[str, set[Name]] = defaultdict(set)
        for name in names:
            if folded := fold(name.text):
                bearers[folded].add(name)
        self._bearers = {
            folded: sorted(found, key=lambda name: (name.local, name.alias, node_key(name.bearer), name.text))
            for folded, found in sorted(bearers.items())
        }
        self._folded = list(self._bearers)
        self._words = [bare_words(folded) for folded in self._folded]
        self._pairs = _LetterPairs(self._words)

    def search(
        self, text: str, limit: int, accept: Callable[[Node], bool], called: Sequence[Node] = ()
    ) -> list[Candidate]:
        """Return at most `limit` of the entities that `text` may name and that `accept` allows, best first.

        Those whose local part it is, `called`, come behind those whose label or alias it is.
        """
        found: dict[Node, Candidate] = {}
        folded = fold(text)
        exact = [name for name in self._bearers.get(folded, ()) if not name.local]
        ids = [Name(node, text.strip(), alias=False, local=True) for node in called]
        for name, score in chain(((name, 1.0) for name in (*exact, *ids)), self._ranked(folded) if folded else ()):
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
    exact: Match = "id" if name.local else "alias" if name.alias else "label"
    return Candidate(name.bearer, score, exact if score == 1.0 else "text", name.text)


MAX_NAMES: Final = 20_000
"""How many names an index holds; of more, those of the relations that come first."""
_LEAST_SCORE: Final = 0.5
# What it counts that the name has the words of the text, and that it has few others.
_ASKED, _OTHERS = 0.6, 0.4
_MOST_LIKE: Final = 0.99
_MAX_WORDS: Final = 12
_FILLING: Final = frozenset(
    (*("a", "an", "and", "as", "at", "by", "for", "from", "has", "have"), *("in", "is", "of", "on", "or", "the", "to"))
)
_FILLING_WEIGHT: Final = 0.2
# From which length on a word may be misspelt in one place, and in two.
_MISSPELT_FROM, _MISSPELT_TWICE_FROM = 4, 8
_NUMBERED: Final = re.compile(r"[a-z]{1,3}[0-9]+[a-z]?")
_HUMP: Final = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])")


class RelationName(NamedTuple):
    """A name that a relation or feature goes by."""

    relation: Iri
    text: str
    alias: bool


class _Spoken(NamedTuple):
    """A name, with its words as they are compared."""

    name: RelationName
    words: tuple[str, ...]


def own_name(relation: Iri) -> RelationName:
    """Return the local part of a relation's IRI as a name of it: always an alias."""
    return RelationName(relation, unquote(relation.local_part).replace("_", " "), alias=True)


class RelationIndex:
    """Finds relations by their names: the same but for case, accents, blanks and punctuation, or else word by word.

    Words may be in any order, and long ones may be slightly misspelt. Letters count within a word only. The
    number before a name, as in `P1_is_identified_by`, is one more name.

    Args:
        names: Labels before aliases are preferred; among equals those that come first.
    """

    def __init__(self, names: Iterable[RelationName]) -> None:
        self._names = [_Spoken(name, _words(name.text)) for name, _ in zip(names, range(MAX_NAMES), strict=False)]
        self._same: defaultdict[str, list[RelationName]] = defaultdict(list)
        self._numbered: defaultdict[str, list[RelationName]] = defaultdict(list)
        self._with_word: defaultdict[str, list[int]] = defaultdict(list)
        for place, (name, words) in enumerate(self._names):
            if words:
                self._same["".join(words)].append(name)
            if len(words) > 1 and name.alias and _NUMBERED.fullmatch(words[0]):
                self._numbered[words[0]].append(name)
            for word in dict.fromkeys(words):
                self._with_word[word].append(place)

    def find(self, text: str, limit: int) -> list[RelationCandidate]:
        """Return at most `limit` of the relations that a text may name, best first, each once."""
        words = _words(text)[:_MAX_WORDS]
        found: dict[Iri, RelationCandidate] = {}
        named = self._same.get("".join(words)) or self._alone("".join(words))
        for name in sorted(named, key=lambda name: name.alias):
            matched: Match = "alias" if name.alias else "label"
            found.setdefault(name.relation, RelationCandidate(name.relation, 1.0, matched, name.text))
        if len(found) < limit:
            for score, name in sorted(self._like(words), key=lambda each: (-each[0], each[1].alias)):
                found.setdefault(name.relation, RelationCandidate(name.relation, score, "text", name.text))
        return list(found.values())[: max(limit, 0)]

    def _alone(self, number: str) -> Sequence[RelationName]:
        named = self._numbered.get(number, ())
        return named if len({name.relation for name in named}) == 1 else ()

    def _like(self, words: Sequence[str]) -> Iterator[tuple[float, RelationName]]:
        """Yield the names that share words with a text, with how alike they are."""
        alike = {word: self._alike(word) for word in words}
        telling = [word for word in words if word not in _FILLING]
        for place in sorted({place for word in telling for known in alike[word] for place in self._with_word[known]}):
            name, named = self._names[place]
            score = _ASKED * _share(words, named, alike) + _OTHERS * _share(named, words, _turned(alike))
            if score >= _LEAST_SCORE:
                yield min(score, _MOST_LIKE), name

    def _alike(self, word: str) -> Mapping[str, float]:
        """Return the words of names that a word may be meant for, and how alike they are, from 0 to 1."""
        slips = (len(word) >= _MISSPELT_FROM) + (len(word) >= _MISSPELT_TWICE_FROM)
        near = process.extract(word, list(self._with_word), scorer=OSA.distance, score_cutoff=slips, limit=None)
        return {known: 1 - slips / len(word) for known, slips, _ in near}


def _turned(alike: Mapping[str, Mapping[str, float]]) -> Mapping[str, Mapping[str, float]]:
    turned: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for word, known in alike.items():
        for other, likeness in known.items():
            turned[other][word] = likeness
    return turned


def _share(words: Sequence[str], among: Sequence[str], alike: Mapping[str, Mapping[str, float]]) -> float:
    """Return which part of some words is among others, from 0 to 1; those that only fill a phrase count little."""
    weights = [_FILLING_WEIGHT if word in _FILLING else 1.0 for word in words]
    found = (max((alike.get(word, {}).get(other, 0.0) for other in among), default=0.0) for word in words)
    return sum(weight * best for weight, best in zip(weights, found, strict=True)) / sum(weights)


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a name; a single one is taken apart at its capitals, as in `birthPlace`."""
    apart = text if any(map(str.isspace, text.strip())) else _HUMP.sub(" ", text)
    return tuple(bare_words(fold(apart)).split())
