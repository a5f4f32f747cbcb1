"""How alike texts look: the cosine of their letters, without any model."""

import codecs
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.embedding.protocol import Vectors, unit_rows

Hashes: TypeAlias = npt.NDArray[np.uint32]
Flags: TypeAlias = npt.NDArray[np.bool_]
Longs: TypeAlias = npt.NDArray[np.int64]
MAX_CHARACTERS: Final = 2_000
"""How many characters of a text count."""
_SMALLEST, _LARGEST = 3, 5
_SIZES: Final = _LARGEST - _SMALLEST + 1
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
# Odd constants of multiplicative hashing; the same in every process, so vectors may be stored.
_STEP, _MIX = np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B)
# Found here, as finding it imports a module.
_ENCODED: Final = codecs.getencoder("utf-32-le")


@dataclass(frozen=True, slots=True)
class Grams:
    """The grams of several texts, one behind the other: those of text `i` are `hashes[starts[i]:starts[i + 1]]`."""

    hashes: Hashes
    starts: Longs

    @property
    def owners(self) -> Longs:
        """The text that each gram is from; shape [grams]."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def grams_of(texts: Sequence[str]) -> Grams:
    """Return the grams of texts, without case, accents and punctuation; a word's ends count as one character each."""
    folded = [_fold(text) for text in texts]
    encoded, _ = _ENCODED(f" {' '.join(folded)}    ", "surrogatepass")
    codes = np.frombuffer(encoded, dtype=np.uint32)
    blank = _is_blank(codes)
    codes = np.where(blank, np.uint32(32), codes)
    count = len(codes) - _LARGEST + 1
    hashes = np.empty((count, _SIZES), dtype=np.uint32)
    whole = np.empty((count, _SIZES), dtype=np.bool_)
    rolling = codes[:count] * _STEP + codes[1 : count + 1]
    parted = np.zeros(count, dtype=np.bool_)
    for column in range(_SIZES):
        last = column + _SMALLEST - 1
        rolling = rolling * _STEP + codes[last : last + count]
        parted |= blank[last - 1 : last - 1 + count]
        hashes[:, column] = (rolling ^ (rolling >> np.uint32(15))) * _MIX
        np.logical_not(parted, out=whole[:, column])
    return Grams(hashes[whole], _starts(folded, whole))


def _starts(folded: Sequence[str], whole: Flags) -> Longs:
    """Return where the grams of each text begin, from which windows hold a gram; shape [texts + 1]."""
    places = np.zeros(len(folded) + 1, dtype=np.int64)
    # A text begins at the blank before it.
    np.cumsum(np.fromiter(map(len, folded), dtype=np.int64, count=len(folded)) + 1, out=places[1:])
    before = np.zeros(len(whole) + 1, dtype=np.int64)
    np.cumsum(np.count_nonzero(whole, axis=1), out=before[1:])
    starts: Longs = before[places]
    return starts


def _fold(text: str) -> str:
    folded = text[:MAX_CHARACTERS].casefold()
    return folded if folded.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFKD", folded))


def _is_blank(codes: Hashes) -> Flags:
    ascii_letters = (codes - np.uint32(ord("a")) < 26) | (codes - np.uint32(ord("0")) < 10)
    punctuation = (codes - np.uint32(0x2000) < 0x70) | (codes - np.uint32(0x3000) < 0x40)
    blank: Flags = ((codes < 0xC0) & ~ascii_letters) | punctuation
    return blank


Floats: TypeAlias = npt.NDArray[np.float32]
DIMENSIONS: Final = 1_024
_TEXTS_AT_ONCE: Final = 4_096
_KEPT_TEXTS: Final = 50_000
# What is longer is rare, and its grams would fill the memory.
_MAX_KEPT_GRAMS: Final = 1_000
_LOW_BITS: Final = np.uint32(0xFFFF)
_SIGN_BIT: Final = np.uint32(1 << 31)


class LexicalEmbedder:
    """Vectors of letters: the grams of a text, each counted in one of `dimensions` places.

    Needs no model and no library beside numpy. Texts are alike when they share letters, whatever they mean.
    """

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self._dimensions = dimensions

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        return f"lexical-{self._dimensions}-1"

    @property
    def dimensions(self) -> int:
        """See `Embedder`."""
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            part = texts[first : first + _TEXTS_AT_ONCE]
            vectors[first : first + len(part)] = unit_rows(self._counts(grams_of(part), len(part)))
        return vectors

    def _counts(self, grams: Grams, texts: int) -> Vectors:
        # Signs make grams that share a place cancel out on average.
        signs = np.where(grams.hashes & _SIGN_BIT, np.float32(-1), np.float32(1))
        places = grams.owners * self._dimensions + grams.hashes % np.uint32(self._dimensions)
        counts = np.bincount(places, weights=signs, minlength=texts * self._dimensions)
        return counts.reshape(texts, self._dimensions).astype(np.float32)


class LexicalScorer:
    """Scores texts by the grams that they share with a question.

    The score is the cosine of two vectors that hold the square root of how often each gram occurs. Grams are not
    weighted by rarity: beside a model's cosine that gained nothing, and without it a text's length is known ahead.

    Calls may come from several threads.

    Args:
        kept_texts: How many texts' grams are kept in memory, about 400 bytes each.
    """

    def __init__(self, kept_texts: int = _KEPT_TEXTS) -> None:
        self._kept_texts = kept_texts
        self._kept: dict[str, Hashes] = {}

    @property
    def kept(self) -> int:
        """How many texts' grams are in memory now."""
        return len(self._kept)

    def scores(self, question: str, texts: Sequence[str]) -> Floats:
        """Return how alike the question and each text are, from 0 to 1; shape [texts]."""
        wanted, wanted_counts = _wanted(question)
        if not len(wanted) or not texts:
            return np.zeros(len(texts), dtype=np.float32)
        grams = self._grams(texts)
        lengths = np.sqrt(np.maximum(np.diff(grams.starts), 1) * int(wanted_counts.sum()))
        shared = _shared(grams, wanted, wanted_counts)
        scores: Floats = np.minimum(shared / lengths, 1).astype(np.float32)
        return scores

    def _grams(self, texts: Sequence[str]) -> Grams:
        found = {text: self._kept.get(text) for text in dict.fromkeys(texts)}
        fresh = _hashes([text for text, hashes in found.items() if hashes is None])
        self._keep(fresh)
        known = {text: hashes for text, hashes in found.items() if hashes is not None} | fresh
        every = [known[text] for text in texts]
        starts = np.zeros(len(every) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, every), dtype=np.int64, count=len(every)), out=starts[1:])
        return Grams(np.concatenate(every), starts)

    def _keep(self, fresh: Mapping[str, Hashes]) -> None:
        short = [(text, hashes) for text, hashes in fresh.items() if len(hashes) <= _MAX_KEPT_GRAMS]
        surplus = len(self._kept) + len(short) - self._kept_texts
        for text in list(islice(self._kept, max(surplus, 0))):
            self._kept.pop(text, None)
        self._kept.update(short[: self._kept_texts])


def lexical_scores(question: str, texts: Sequence[str]) -> Floats:
    """Return how alike the question and each text are by their letters, from 0 to 1; shape [texts]."""
    return _SCORER.scores(question, texts)


_SCORER: Final = LexicalScorer()


@lru_cache(maxsize=64)
def _wanted(question: str) -> tuple[Hashes, Longs]:
    """Return the distinct grams of a question and how often each occurs; one search asks for the same again."""
    hashes, counts = np.unique(grams_of([question]).hashes, return_counts=True)
    return hashes, counts


def _hashes(texts: Sequence[str]) -> dict[str, Hashes]:
    hashes: dict[str, Hashes] = {}
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        part = texts[first : first + _TEXTS_AT_ONCE]
        grams = grams_of(part)
        bounds: list[int] = grams.starts.tolist()
        hashes.update(
            (text, grams.hashes[start:end]) for text, (start, end) in zip(part, pairwise(bounds), strict=True)
        )
    return hashes


def _shared(grams: Grams, wanted: Hashes, wanted_counts: Longs) -> npt.NDArray[np.float64]:
    """Return the product of each text's vector and the question's; shape [texts]."""
    # Most grams are not the question's: a table of their low bits drops nearly all of them at once.
    table = np.zeros(int(_LOW_BITS) + 1, dtype=np.bool_)
    table[wanted & _LOW_BITS] = True
    places = np.flatnonzero(table[grams.hashes & _LOW_BITS])
    numbers = np.minimum(np.searchsorted(wanted, grams.hashes[places]), len(wanted) - 1)
    same = wanted[numbers] == grams.hashes[places]
    owners = np.searchsorted(grams.starts, places[same], side="right") - 1
    pairs, counts = np.unique(owners * len(wanted) + numbers[same], return_counts=True)
    texts, shared = np.divmod(pairs, len(wanted))
    products = np.bincount(texts, weights=np.sqrt(counts * wanted_counts[shared]), minlength=len(grams.starts) - 1)
    return np.asarray(products, dtype=np.float64)
