"""How names are compared: without case, accents, kinds of dashes and quotes, and odd spacing."""

import re
import unicodedata
from typing import Final

MAX_FOLDED: Final = 512
"""The most characters of a folded text; what is longer is cut."""
_MAX_READ: Final = 1_000
_BLANKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\u2060\ufeff]+")
_NO_WORD: Final = re.compile(r"[\W_]+")
# Letters that Unicode does not take apart, and signs that keyboards have in one shape only.
_PLAIN: Final = str.maketrans(
    {
        **dict(zip("øłđðıħŧ", "olddiht", strict=True)),
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
        **dict.fromkeys("‐‑‒–—―−", "-"),  # noqa: RUF001 - these are the ones to replace
        **dict.fromkeys("‘’‚‛`´ʼ", "'"),  # noqa: RUF001
        **dict.fromkeys("“”„‟«»", '"'),
    }
)
# Below this class stand the marks that make other letters (kana voicing, nukta, virama, Hebrew and Arabic vowels).
_FIRST_ACCENT: Final = 200


def fold(text: str) -> str:
    """Return a text as it is compared, at most `MAX_FOLDED` characters; empty where nothing can be compared.

    Any string is welcome: halves of surrogate pairs are dropped, control characters count as blanks.
    """
    return _folded(text[:_MAX_READ])[:MAX_FOLDED].rstrip()


def bare_words(folded: str) -> str:
    """Return a folded text with every run of punctuation as one blank; the text itself where nothing else is in it."""
    return _NO_WORD.sub(" ", folded).strip() or folded


def _folded(text: str) -> str:
    if text.isascii():
        return _BLANKS.sub(" ", text.lower()).strip()
    plain = _plain(text.encode(errors="ignore").decode())
    apart = unicodedata.normalize("NFKD", plain)
    bare = "".join(letter for letter in apart if unicodedata.combining(letter) < _FIRST_ACCENT)
    # What comes apart may hold capitals and letters of its own to replace, so that is done once more.
    return _BLANKS.sub(" ", _plain(unicodedata.normalize("NFC", bare))).strip()


def _plain(text: str) -> str:
    return text.casefold().translate(_PLAIN)
