"""Pages of one entity's neighbours: groups taken in turns, and the cursor that continues them."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Final, TypeVar

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Direction
from kg_adapters.terms import Iri, Node, node_key

T = TypeVar("T")

_CURSOR: Final = re.compile(r"([1-9][0-9]{0,11})\.([0-9a-f]{16})")


def in_turns(groups: Sequence[Sequence[T]]) -> Iterator[T]:
    """Yield the first of every group, then the second of every group, and so on."""
    for turn in zip_longest(*([(member,) for member in group] for group in groups), fillvalue=()):
        for places in turn:
            yield from places


@dataclass(frozen=True, slots=True)
class NeighborQuery:
    """What is asked about neighbours beside the entity itself; see `KGAdapter.neighbors`.

    Raises:
        InvalidRequest: A limit is below 1.
    """

    direction: Direction
    relations: frozenset[Iri] | None
    limit_per_relation: int | None
    limit: int

    def __post_init__(self) -> None:
        if self.limit < 1 or (self.limit_per_relation is not None and self.limit_per_relation < 1):
            raise InvalidRequest("A limit must be at least 1.")

    def cursor(self, entity: Node, offset: int) -> str:
        """Return the cursor that continues behind the first `offset` triples."""
        return f"{offset}.{self._mark(entity)}"

    def offset(self, entities: Collection[Node], cursor: str | None) -> int:
        """Return how many triples were shown already.

        Raises:
            InvalidRequest: The cursor is not of this question, or not with a single entity.
        """
        if cursor is None:
            return 0
        if len(entities) != 1:
            raise InvalidRequest("A cursor continues the list of one entity. Ask for that entity alone.")
        found = _CURSOR.fullmatch(cursor)
        if found is None or found[2] != self._mark(next(iter(entities))):
            raise InvalidRequest("This cursor does not continue this question. Ask again without a cursor.")
        return int(found[1])

    def _mark(self, entity: Node) -> str:
        relations = None if self.relations is None else sorted(iri.value for iri in self.relations)
        asked = repr((node_key(entity), self.direction, relations, self.limit_per_relation))
        return blake2b(asked.encode(), digest_size=8).hexdigest()
