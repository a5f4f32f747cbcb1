"""What is asked of a graph: one frozen value for each question with several parts, checked when it is made."""

from dataclasses import dataclass

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Direction
from kg_adapters.terms import Iri, Node


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
