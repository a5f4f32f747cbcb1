"""Cursors that clients carry: short enough to be copied, and bound to the question they continue."""

import hashlib
import re
from typing import Final
from urllib.parse import quote, unquote

from kg_adapters.errors import InvalidRequest

MAX_LENGTH: Final = 1_000

_CURSOR: Final = re.compile(r"([0-9a-f]{12})\.([\w.~%-]+)", re.ASCII)


def pack(position: str, *question: object) -> str:
    """Return a cursor that stands at an adapter's `position` in the answer to `question`."""
    return f"{_fingerprint(question)}.{quote(position, safe='')}"


def unpack(cursor: str, *question: object) -> str:
    """Return the position of a cursor.

    Raises:
        InvalidRequest: It is damaged, or belongs to another question.
    """
    parts = _CURSOR.fullmatch(cursor) if len(cursor) <= MAX_LENGTH else None
    if parts is None:
        raise InvalidRequest(
            "This cursor is damaged. Copy it unchanged from the answer, or leave it out to start anew."
        )
    if parts[1] != _fingerprint(question):
        raise InvalidRequest(
            "This cursor belongs to another question. Repeat the call that gave it with the same arguments "
            "(limit and max_tokens may differ), or leave it out to start anew."
        )
    return unquote(parts[2])


def _fingerprint(question: tuple[object, ...]) -> str:
    return hashlib.blake2b(repr(question).encode(), digest_size=6).hexdigest()
