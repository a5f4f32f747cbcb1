"""How a misspelled name is still found: by its parts that are spelled right."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Final

from kg_adapters.local.names.folding import fold

WILD_FROM: Final = 4
"""How many letters a wildcard needs before it."""
_MAX_WORDS: Final = 8
_MAX_WORD: Final = 60
_MAX_PIECES: Final = 16
_PIECE, _SHORT_PIECE, _SHORT_WORD, _SLIPPED_WORD = 3, 2, 7, 7
_FEW_WORDS: Final = 4
_MAX_ALIKE: Final = 120
_WORD: Final = re.compile(r"\w+")
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
# The letters of the Latin, Greek and Cyrillic scripts that may bear accents.
_ACCENTED: Final = (range(0xC0, 0x250), range(0x370, 0x530), range(0x1E00, 0x2000))
_SIGNS: Final = re.compile(r"[^\w\s]")


def cleaned(text: str) -> str:
    """Return a text with single blanks in place of blanks and control characters."""
    return _BLANK.sub(" ", text).strip()


def words(text: str) -> list[str]:
    """Return the longest words of a text, in lower case; only letters and digits, in which no index reads syntax."""
    found = dict.fromkeys(word for word in _WORD.findall(cleaned(text).lower()) if len(word) <= _MAX_WORD)
    return sorted(found, key=len, reverse=True)[:_MAX_WORDS]


def pieces(text: str) -> list[str]:
    """Return some short parts of the words of a text, spread evenly: most of them survive a slip of the pen.

    Words of up to seven letters also give both their ends, since a slip in the middle leaves no longer part of them.
    """
    found = list(dict.fromkeys(piece for word in words(text) for piece in _pieces(word)))
    step = max(1.0, len(found) / _MAX_PIECES)
    return [found[int(place * step)] for place in range(min(len(found), _MAX_PIECES))]


def intact(wanted: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield some of the words each, so that one choice is without any single word that may be misspelled.

    Of a few words all but one; of many the one half or the other.
    """
    if len(wanted) > _FEW_WORDS:
        yield from (wanted[::2], wanted[1::2])
    elif len(wanted) > 1:
        yield from combinations(wanted, len(wanted) - 1)


def beginning(word: str) -> str | None:
    """Return the first half of a word that is long enough to be looked for by it."""
    half = max(WILD_FROM, len(word) // 2)
    return word[:half] if len(word) > half else None


def spelled_alike(text: str) -> str:
    """Return the regular expression for texts in lower case that are this one but for accents and kinds of signs."""
    return f"^{''.join(map(_alike, fold(text)[:_MAX_ALIKE]))}$"


def one_slip(text: str) -> str | None:
    """Return the regular expression for texts in lower case that hold a short word with one slip of the pen.

    So few parts of it may be left that other names share more. None for what is no single word, or a long one.
    """
    found = words(text)
    if len(found) != 1 or not _SHORT_PIECE < len(found[0]) <= _SLIPPED_WORD:
        return None
    word = found[0]
    wrong = (f"{word[:place]}.{{0,2}}{word[place + 1 :]}" for place in range(1, len(word)))
    swapped = (word[:place] + word[place + 1] + word[place] + word[place + 2 :] for place in range(len(word) - 1))
    return f"(^|[^a-z])({'|'.join((*wrong, *swapped))})([^a-z]|$)"


def _pieces(word: str) -> Iterator[str]:
    if len(word) <= _SHORT_PIECE:
        yield word
    elif len(word) <= _SHORT_WORD:
        yield from (word[:_SHORT_PIECE], word[-_SHORT_PIECE:])
    for start in range(len(word) - _PIECE + 1):
        yield word[start : start + _PIECE]


def _alike(letter: str) -> str:
    if letter == " ":
        return " +"
    if _SIGNS.match(letter):
        # Nobody types quotes and dashes as they are printed.
        return "."
    accented = _accented().get(letter, "")
    return f"[{letter}{accented}]" if accented else letter


@cache
def _accented() -> Mapping[str, str]:
    """Return the accented letters, in lower case, by the letter that they are without."""
    found: defaultdict[str, str] = defaultdict(str)
    for code in (code for letters in _ACCENTED for code in letters):
        letter = chr(code)
        bare = fold(letter)
        if letter == letter.lower() and len(bare) == 1 and bare != letter and unicodedata.category(letter) == "Ll":
            found[bare] += letter
    return found
