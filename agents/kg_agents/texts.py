"""Texts of prompts and replies: measured, shortened, and made fit to be sent and written."""

import re
from typing import Final

_BYTES_PER_TOKEN: Final = 4
_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT: Final = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def tokens_in(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its bytes."""
    return len(text.encode()) // _BYTES_PER_TOKEN


def clipped(text: str, most: int) -> str:
    """Return at most so many characters of a text, and say so where some are left out."""
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} […{len(text) - most:,} characters left out]"


def without_thinking(reply: str) -> str:
    """Return a reply without what a model that thinks aloud puts between tags.

    A tag that is never closed runs to the end. One that is never opened stands behind thoughts too: for some models it
    is opened by the service.
    """
    return _END_OF_THOUGHT.split(_THOUGHT.sub("", reply))[-1].strip()


def whole_characters(text: str) -> str:
    """Return a text with `?` for halves of characters, which models and shells produce and nothing can send."""
    return text.encode(errors="replace").decode()
