"""Relations and features by name, held in memory: for graphs that bring no search of their own."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from rapidfuzz import process
from rapidfuzz.distance import OSA

from kg_adapters.local.names.folding import bare_words, fold
from kg_adapters.models import Match, RelationCandidate
from kg_adapters.terms import Iri

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

    Words may stand in any order, and be misspelt a little where they are long. Letters count within a word only.

    Args:
        names: Labels before aliases are preferred; among equals those that come first.
    """

    def __init__(self, names: Iterable[RelationName]) -> None:
        self._names = [_Spoken(name, _words(name.text)) for name, _ in zip(names, range(MAX_NAMES), strict=False)]
        self._same: defaultdict[str, list[RelationName]] = defaultdict(list)
        self._with_word: defaultdict[str, list[int]] = defaultdict(list)
        for place, (name, words) in enumerate(self._names):
            if words:
                self._same["".join(words)].append(name)
            for word in dict.fromkeys(words):
                self._with_word[word].append(place)

    def find(self, text: str, limit: int) -> list[RelationCandidate]:
        """Return at most `limit` of the relations that a text may name, best first, each once."""
        words = _words(text)[:_MAX_WORDS]
        found: dict[Iri, RelationCandidate] = {}
        for name in sorted(self._same.get("".join(words), ()), key=lambda name: name.alias):
            matched: Match = "alias" if name.alias else "label"
            found.setdefault(name.relation, RelationCandidate(name.relation, 1.0, matched, name.text))
        if len(found) < limit:
            for score, name in sorted(self._like(words), key=lambda each: (-each[0], each[1].alias)):
                found.setdefault(name.relation, RelationCandidate(name.relation, score, "text", name.text))
        return list(found.values())[: max(limit, 0)]

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
