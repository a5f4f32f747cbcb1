"""Texts as the numbers of their word pieces, as BERT without capitals reads them."""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from pydantic import BaseModel

_UNKNOWN, _BEGIN, _END = "[UNK]", "[CLS]", "[SEP]"
_LONGEST_WORD: Final = 100
_WORDS_KEPT: Final = 50_000
# Whatever a line may be broken at counts as a space, other control characters as nothing.
_SPACES: Final = frozenset("\t\n\r")
_DROPPED: Final = frozenset({"Cc", "Cf", "Co"})
_CHINESE: Final = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Added(BaseModel):
    id: int
    content: str


class _Model(BaseModel):
    vocab: dict[str, int]


class _File(BaseModel):
    """What is read of a `tokenizer.json`."""

    added_tokens: list[_Added]
    model: _Model


class WordPieces:
    """Splits texts into the pieces of a vocabulary.

    Args:
        content: A `tokenizer.json` with a vocabulary of word pieces for text without capitals.
        max_pieces: The most pieces of a text, with one before and one behind it; more are left out.
    """

    def __init__(self, content: bytes, max_pieces: int) -> None:
        file = _File.model_validate(json.loads(content))
        self._vocabulary = file.model.vocab
        self._special = {added.content: added.id for added in file.added_tokens}
        self._between = re.compile("(" + "|".join(map(re.escape, self._special)) + ")")
        self._max_pieces = max_pieces
        self._begin, self._end = self._vocabulary[_BEGIN], self._vocabulary[_END]
        self._pieces = lru_cache(maxsize=_WORDS_KEPT)(self._split)

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces."""
        room = self._max_pieces - 2
        found: list[int] = []
        for part in self._between.split(text) if "[" in text else (text,):
            if part in self._special:
                found.append(self._special[part])
            else:
                for word in _words(part):
                    found += self._pieces(word)
                    if len(found) >= room:
                        break
        return [self._begin, *found[:room], self._end]

    def _split(self, word: str) -> Sequence[int]:
        """Return the numbers of the longest pieces that a word begins with, one after the other."""
        unknown = (self._vocabulary[_UNKNOWN],)
        if len(word) > _LONGEST_WORD:
            return unknown
        numbers: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._vocabulary), None)
            if end is None:
                return unknown
            numbers.append(self._vocabulary[prefix + word[start:end]])
            start = end
        return tuple(numbers)


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text without capitals and accents, and its punctuation marks."""
    plain = text.lower() if text.isascii() and text.isprintable() else _plain(text)
    for word in plain.split():
        if word.isalnum():
            yield word
        else:
            yield from _around_marks(word)


def _plain(text: str) -> str:
    cleaned = "".join(map(_cleaned, text))
    bare = "".join(letter for letter in unicodedata.normalize("NFD", cleaned) if unicodedata.category(letter) != "Mn")
    # Letter by letter: which sigma stands at the end of a word makes no difference then.
    return "".join(letter.lower() for letter in bare)


@lru_cache(maxsize=4_096)
def _cleaned(letter: str) -> str:
    if letter in _SPACES or (letter.isspace() and unicodedata.category(letter) not in _DROPPED):
        return " "
    if letter in "\0\ufffd" or unicodedata.category(letter) in _DROPPED:
        return ""
    code = ord(letter)
    return f" {letter} " if code >= 0x3400 and any(first <= code <= last for first, last in _CHINESE) else letter


def _around_marks(word: str) -> Iterator[str]:
    start = 0
    for place, letter in enumerate(word):
        if _is_mark(letter):
            if start < place:
                yield word[start:place]
            yield letter
            start = place + 1
    if start < len(word):
        yield word[start:]


@lru_cache(maxsize=4_096)
def _is_mark(letter: str) -> bool:
    if letter.isascii():
        return not letter.isalnum()
    return unicodedata.category(letter).startswith("P")
