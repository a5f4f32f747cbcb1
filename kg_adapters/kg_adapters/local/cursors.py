"""Cursors: where a page of neighbours goes on, bound to the question that they belong to."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.local.neighborhood import Position
from kg_adapters.models import Direction
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes

_CURSOR: Final = re.compile(r"([0-9]{1,12})-([0-9]{1,12})-([0-9a-f]{16})")
_HALF: Final = 8
"""How many digits of a seal are about the graph; as many are about the question."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a sequence of pages is about, but for the entity."""

    direction: Direction
    relations: Collection[Iri] | None
    limit_per_relation: int | None

    def seal(self, graph: str, entity: Node) -> str:
        """Return what ties a cursor to this question about one entity of one graph.

        Args:
            graph: What tells the graph from others.
            entity: The entity.
        """
        wanted = "*" if self.relations is None else " ".join(sorted({iri.value for iri in self.relations}))
        return _hash(graph) + _hash(str(entity), self.direction, wanted, str(self.limit_per_relation))


def write_cursor(position: Position, seal: str) -> str:
    """Return the cursor of a position."""
    rank, place = position
    return f"{rank}-{place}-{seal}"


def read_cursor(cursor: str, seal: str) -> Position:
    """Return the position that a cursor stands for.

    Raises:
        InvalidRequest: It is none, or belongs to another question or graph.
    """
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise invalid_cursor(cursor, "is none of this graph")
    if parts[3][:_HALF] != seal[:_HALF]:
        raise InvalidRequest(
            f"The cursor {in_quotes(cursor)} goes with the graph as it was before it was imported anew. "
            "Ask without a cursor to start again in the graph as it is now."
        )
    if parts[3] != seal:
        raise invalid_cursor(cursor, "belongs to another question")
    return int(parts[1]), int(parts[2])


def invalid_cursor(cursor: str, fault: str) -> InvalidRequest:
    """Return the error that says what is wrong with a cursor and what to do."""
    shown = repr(cursor if len(cursor) <= 60 else cursor[:60] + "…")
    return InvalidRequest(
        f"The cursor {shown} {fault}. Pass the one that the page before gave, with the other arguments unchanged, "
        "or none to start again."
    )


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\n".join(parts).encode(errors="replace"), digest_size=_HALF // 2).hexdigest()
