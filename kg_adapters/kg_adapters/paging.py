"""Pages of one entity's neighbours: groups taken in turns, and the cursor that continues them."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

from kg_adapters.cursors import read_cursor, write_cursor
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Node, node_key

T = TypeVar("T")


def in_turns(groups: Sequence[Sequence[T]]) -> Iterator[T]:
    """Yield the first of every group, then the second of every group, and so on."""
    for turn in zip_longest(*([(member,) for member in group] for group in groups), fillvalue=()):
        for places in turn:
            yield from places


def cursor_at(offset: int, request: NeighborRequest, entity: Node, graph: str) -> str:
    """Return the cursor that continues behind the first `offset` facts of an entity of a graph."""
    return write_cursor((offset,), question_about(entity, request), graph)


def offset_of(request: NeighborRequest, graph: str) -> int:
    """Return how many facts were shown before: what the cursor of a request says, 0 without one.

    Raises:
        InvalidRequest: The cursor is damaged, or belongs to another question or graph.
    """
    if request.cursor is None:
        return 0
    return read_cursor(request.cursor, 1, question_about(request.entities[0], request), graph)[0]


def question_about(entity: Node, request: NeighborRequest) -> tuple[object, ...]:
    """Return what a cursor is sealed to: all that a request asks about one entity, but for the size of the page."""
    relations = None if request.relations is None else sorted(iri.value for iri in request.relations)
    return node_key(entity), request.direction, relations, request.limit_per_relation, request.values
