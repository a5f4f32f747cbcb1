"""How much of a model's context an answer may take."""

from collections.abc import Iterable
from typing import Final

BYTES_PER_TOKEN: Final = 3
MOST_TOKENS: Final = 50_000
"""The largest budget that an answer can be given."""


def token_count(text: str) -> int:
    """Return an upper estimate of the tokens in `text`.

    A third of its bytes in UTF-8: ids and digits cost a token for every two or three characters, words for four or
    more, and scripts beyond Latin about one for each character.
    """
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def fitting(lines: Iterable[str], max_tokens: int) -> int:
    """Return how many of the first lines fit into a budget; none is made behind the first that does not."""
    room, fits = max_tokens * BYTES_PER_TOKEN, 0
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        fits += 1
    return fits


def affordable(lines: Iterable[str], max_tokens: int) -> list[str]:
    """Return the first lines that fit into a budget, at least one; none is made behind the first that does not."""
    room, kept = max_tokens * BYTES_PER_TOKEN, list[str]()
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0 and kept:
            break
        kept.append(line)
    return kept
