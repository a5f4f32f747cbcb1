"""How much of a model's context an answer may take."""

from collections.abc import Iterable, Sequence
from typing import Final

BYTES_PER_TOKEN: Final = 3


def token_count(text: str) -> int:
    """Return an upper estimate of the tokens in `text`.

    A third of its bytes in UTF-8: ids and digits cost a token for every two or three characters, words for four or
    more, and scripts beyond Latin about one for each character.
    """
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def until_full(lines: Iterable[str], max_tokens: int) -> list[str]:
    """Return the first lines, up to the first that does not fit into a budget; no more of them are made."""
    room = max_tokens * BYTES_PER_TOKEN
    taken: list[str] = []
    for line in lines:
        taken.append(line)
        room -= len(line.encode()) + 1
        if room < 0:
            break
    return taken


def fitting(lines: Sequence[str], max_tokens: int) -> int:
    """Return how many of the first lines fit into a budget."""
    room = max_tokens * BYTES_PER_TOKEN
    for number, line in enumerate(lines):
        room -= len(line.encode()) + 1
        if room < 0:
            return number
    return len(lines)
