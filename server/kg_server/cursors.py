"""Cursors that clients carry: opaque, and bound to the question they continue."""

import base64
import binascii
import hashlib
import json
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from kg_adapters.errors import InvalidRequest

MAX_LENGTH: Final = 1_000


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    position: str


def pack(position: str, *question: object) -> str:
    """Return a cursor that stands at an adapter's `position` in the answer to `question`."""
    content = json.dumps({"question": _fingerprint(question), "position": position}, separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def unpack(cursor: str, *question: object) -> str:
    """Return the position of a cursor.

    Raises:
        InvalidRequest: It is damaged, or belongs to another question.
    """
    content = _read(cursor)
    if content is None:
        raise InvalidRequest(
            "This cursor is damaged. Copy it unchanged from the answer, or leave it out to start anew."
        )
    if content.question != _fingerprint(question):
        raise InvalidRequest(
            "This cursor belongs to another question. Repeat the call that gave it with the same arguments "
            "(limit and max_tokens may differ), or leave it out to start anew."
        )
    return content.position


def _fingerprint(question: tuple[object, ...]) -> str:
    return hashlib.blake2b(repr(question).encode(), digest_size=6).hexdigest()


def _read(cursor: str) -> _Content | None:
    if len(cursor) > MAX_LENGTH or not cursor.isascii():
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return _Content.model_validate_json(text)
    except (binascii.Error, ValidationError):
        return None
