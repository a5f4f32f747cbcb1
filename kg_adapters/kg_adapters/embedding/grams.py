"""The letters of texts: runs of three to five characters inside words, as numbers."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

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
    codes = np.frombuffer(f" {' '.join(folded)}    ".encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
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
