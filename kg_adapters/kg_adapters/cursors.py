"""Cursors: a position in an answer, sealed to the question and the graph that it belongs to."""

import hashlib
import re
from typing import Final, TypeAlias

from kg_adapters.errors import InvalidRequest

Position: TypeAlias = tuple[int, ...]
"""Where an answer goes on: as many numbers as whoever answers needs, none of them negative."""

_CURSOR: Final = re.compile(r"([0-9a-f]{8})([0-9a-f]{8})\.([0-9]{1,12}(?:-[0-9]{1,12}){0,3})", re.ASCII)


def write_cursor(position: Position, question: object, graph: str) -> str:
    """Return the cursor of a position.

    Args:
        position: Where the answer goes on.
        question: What is answered, as a value whose `repr` tells it from other questions.
        graph: What tells the graph, or its present state, from others.
    """
    return f"{_seal(graph)}{_seal(question)}.{'-'.join(map(str, position))}"


def read_cursor(cursor: str, numbers: int, question: object, graph: str) -> Position:
    """Return the position that a cursor stands for: so many numbers.

    Raises:
        InvalidRequest: It is damaged, or belongs to another question or graph.
    """
    parts = _CURSOR.fullmatch(cursor)
    position = () if parts is None else tuple(map(int, parts[3].split("-")))
    if parts is None or len(position) != numbers:
        raise InvalidRequest(
            "This cursor is damaged. Copy it unchanged from the answer that gave it, or leave it out to start again."
        )
    if parts[1] != _seal(graph):
        raise InvalidRequest(
            "This cursor goes with another graph, or with this one as it was before it was imported again. "
            "Leave it out to start again in the graph as it is now."
        )
    if parts[2] != _seal(question):
        raise InvalidRequest(
            "This cursor belongs to another question. Repeat the call that gave it with the same arguments "
            "(limit and max_tokens may differ), or leave it out to start again."
        )
    return position


def past_the_end() -> InvalidRequest:
    """Return the error for a position where the answer has nothing more."""
    return InvalidRequest("This cursor points past the end: the graph has changed. Leave it out to start again.")


def _seal(sealed: object) -> str:
    return hashlib.blake2b(repr(sealed).encode(errors="replace"), digest_size=4).hexdigest()
