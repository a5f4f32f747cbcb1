"""Requests about entities, the cursors of their pages, and what every path search refuses."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, TypeAlias, TypeVar

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Direction, PathRequest
from kg_adapters.terms import Iri, Node, node_key
from kg_boundary.shown import in_quotes


@dataclass(frozen=True, slots=True)
class NeighborRequest:
    """A question for what is stated around entities; `KGAdapter.neighbors` says in which order it is answered.

    Args:
        entities: What to look around; order and repeats do not matter.
        direction: Triples whose head is the entity (`out`), whose tail it is (`in`), or both.
        relations: Only these relations; None for all.
        limit: The most facts of one entity in a page, at least 1.
        limit_per_relation: Keep only the first so many of each group; what is dropped still counts in `total`.
        values: Whether attributes count beside edges, where the direction is not `in`. Names, descriptions and aliases
            (`Vocabulary.texts`) do so only where `relations` names them.
        cursor: Where to go on, from the page before; only with a single entity and with all else but `limit` unchanged.

    Raises:
        InvalidRequest: A limit is below 1, or a cursor comes with several entities.
    """

    entities: tuple[Node, ...]
    direction: Direction = "both"
    relations: frozenset[Iri] | None = None
    limit: int = 50
    limit_per_relation: int | None = None
    values: bool = False
    cursor: str | None = None

    def __post_init__(self) -> None:
        _require_positive(self.limit)
        _require_positive(self.limit_per_relation)
        if self.cursor is not None and len(set(self.entities)) != 1:
            raise InvalidRequest("A cursor continues the list of one entity. Ask for that entity alone.")


@dataclass(frozen=True, slots=True)
class FeatureRequest:
    """A question for the attributes of entities.

    Args:
        entities: Whose; order and repeats do not matter.
        relations: Only these features; None for all.
        limit: The most values of one entity, at least 1.

    Raises:
        InvalidRequest: The limit is below 1.
    """

    entities: tuple[Node, ...]
    relations: frozenset[Iri] | None = None
    limit: int = 200

    def __post_init__(self) -> None:
        _require_positive(self.limit)


@dataclass(frozen=True, slots=True)
class SurroundingsRequest:
    """A question for the facts around entities, in both directions, as arrays.

    Args:
        entities: What to look around; repeats do not matter, and what the graph does not mention has no facts.
        per_relation: The most facts of one entity over one relation in one direction, at least 1.
        per_entity: The most facts of one entity, at least 1; taken from its relations in turns.
        values: Whether attributes count beside edges, but for names, descriptions and aliases (`Vocabulary.texts`).

    Raises:
        InvalidRequest: A limit is below 1.
    """

    entities: tuple[Node, ...]
    per_relation: int
    per_entity: int
    values: bool = False

    def __post_init__(self) -> None:
        _require_positive(self.per_relation)
        _require_positive(self.per_entity)


def _require_positive(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise InvalidRequest(f"A limit must be at least 1; it is {limit}.")


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


MAX_HOPS: Final = 4


def check_path_request(request: PathRequest) -> None:
    """Refuse a request that no graph could answer.

    Raises:
        InvalidRequest: `max_hops` is not 1 to 4, `limit` is below 1, or source and target are the same.
    """
    if not 1 <= request.max_hops <= MAX_HOPS:
        raise InvalidRequest(f"A path has 1 to {MAX_HOPS} hops; max_hops was {request.max_hops}.")
    if request.limit < 1:
        raise InvalidRequest(f"limit must be at least 1; it was {request.limit}.")
    if request.source == request.target:
        raise InvalidRequest(
            f"Source and target are both {in_quotes(str(request.source))}. Name two different entities, or ask for the "
            "neighbors of the one."
        )
