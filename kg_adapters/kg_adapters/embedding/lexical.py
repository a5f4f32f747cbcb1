"""How alike texts look: the cosine of their letters, without any model."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.embedding.grams import Grams, Hashes, Longs, grams_of
from kg_adapters.embedding.protocol import Vectors, unit_rows

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
