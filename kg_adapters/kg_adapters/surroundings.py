"""The edges around many entities at once, as arrays: what a search looks through before it builds a single triple."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

from kg_adapters.models import NeighborPage
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest, SurroundingsRequest
from kg_adapters.terms import Iri, Node, Triple, node_key

Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

T_co = TypeVar("T_co", covariant=True)


class Lazy(Sequence[T_co]):
    """A sequence whose items are made when somebody looks at them.

    Args:
        length: How many items there are.
        make: What gives the item at a place.
    """

    def __init__(self, length: int, make: Callable[[int], T_co]) -> None:
        self._length = length
        self._make = make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> T_co: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[T_co]: ...

    def __getitem__(self, place: int | slice) -> T_co | Sequence[T_co]:
        places = range(self._length)[place]
        return self._make(places) if isinstance(places, int) else [self._make(each) for each in places]

    def __iter__(self) -> Iterator[T_co]:
        return map(self._make, range(self._length))


@dataclass(frozen=True, slots=True)
class StoreIds:
    """The numbers that a store of its own gives to what the surroundings are about.

    Args:
        relations: For each of `Surroundings.relations` its relation id; shape [relations].
        far: For each of `Surroundings.far_nodes` its node id; shape [far nodes].
    """

    relations: Ints
    far: Ints


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The edges around some entities: edge `i` joins `entities[near[i]]` and `far_nodes[far[i]]`; c edges in all.

    Edges come by entity, outgoing before incoming, then by relation, then by the far node. An edge from an entity to
    itself is there once, as outgoing.

    Args:
        entities: Whose surroundings these are, each once.
        near: Places in `entities`; shape [c].
        inverse: Whether the far node is the head; shape [c].
        relation: Places in `relations`; shape [c].
        far: Places in `far_nodes`; shape [c].
        relations: The distinct relations, sorted.
        far_nodes: The distinct far nodes, sorted by `node_key`.
        relation_labels: The label of each relation, or None.
        far_labels: The label of each far node, or None.
        sampled: The entities that have more edges than are here.
        ids: The store's own numbers, where the graph has some.
    """

    entities: tuple[Node, ...]
    near: Ints
    inverse: Flags
    relation: Ints
    far: Ints
    relations: Sequence[Iri]
    far_nodes: Sequence[Node]
    relation_labels: Sequence[str | None]
    far_labels: Sequence[str | None]
    sampled: tuple[Node, ...]
    ids: StoreIds | None = None

    def __len__(self) -> int:
        return len(self.near)

    def triple(self, edge: int) -> Triple:
        """Return an edge in its real direction."""
        near, far = self.entities[int(self.near[edge])], self.far_nodes[int(self.far[edge])]
        relation = self.relations[int(self.relation[edge])]
        return Triple(far, relation, near) if self.inverse[edge] else Triple(near, relation, far)


@runtime_checkable
class SupportsSurroundings(Protocol):
    """A graph that knows the edges around many entities without making triples of them."""

    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        """Return what `gather_surroundings` would: the same edges in the same order."""
        ...


async def surroundings(graph: KGAdapter, request: SurroundingsRequest) -> Surroundings:
    """Return the edges around entities, by the graph's own way where it has one."""
    if isinstance(graph, SupportsSurroundings):
        return await graph.surroundings(request)
    return await gather_surroundings(graph, request)


async def gather_surroundings(graph: KGAdapter, request: SurroundingsRequest) -> Surroundings:
    """Return the edges around entities from one request for neighbours and one for labels."""
    around = tuple(dict.fromkeys(request.entities))
    asked = NeighborRequest(around, limit_per_relation=request.per_relation, limit=request.per_entity)
    pages = await graph.neighbors(asked)
    edges = (_row(0, entity, triple) for entity, page in pages.items() for triple in page.triples)
    wanted: set[Node] = {term for *_, relation, far in edges for term in (relation, far)}
    return surroundings_of(around, pages, await graph.labels(wanted) if wanted else {})


def surroundings_of(
    around: tuple[Node, ...], pages: Mapping[Node, NeighborPage], labels: Mapping[Node, str]
) -> Surroundings:
    """Return the edges of pages as arrays.

    Args:
        around: The entities, each once.
        pages: By entity, its triples in both directions; none for what the graph does not mention.
        labels: What the relations and far nodes are called.
    """
    edges = [edge for place, entity in enumerate(around) for edge in _edges(place, entity, pages.get(entity))]
    relations = sorted({relation for _, _, relation, _ in edges})
    far_nodes = sorted({far for *_, far in edges}, key=node_key)
    return Surroundings(
        entities=around,
        near=_ints(near for near, *_ in edges),
        inverse=np.fromiter((inverse for _, inverse, *_ in edges), dtype=np.bool_, count=len(edges)),
        relation=_places(relations, [relation for _, _, relation, _ in edges]),
        far=_places(far_nodes, [far for *_, far in edges]),
        relations=relations,
        far_nodes=far_nodes,
        relation_labels=[labels.get(each) for each in relations],
        far_labels=[labels.get(each) for each in far_nodes],
        sampled=tuple(entity for entity in around if entity in pages and pages[entity].truncated),
    )


_Edge: TypeAlias = tuple[int, bool, Iri, Node]
_NO_TRIPLES: Final[tuple[Triple, ...]] = ()

T = TypeVar("T", bound=Node)


def _edges(place: int, entity: Node, page: NeighborPage | None) -> list[_Edge]:
    """Return a page's edges as rows, group by group: the page takes the groups in turns."""
    rows = [_row(place, entity, triple) for triple in (_NO_TRIPLES if page is None else page.triples)]
    return sorted(rows, key=lambda row: (row[1], row[2]))


def _row(place: int, entity: Node, triple: Triple) -> _Edge:
    inverse = triple.head != entity
    return place, inverse, triple.relation, triple.head if inverse else triple.tail


def _places(known: Sequence[T], asked: Collection[T]) -> Ints:
    place: Mapping[T, int] = {each: number for number, each in enumerate(known)}
    return _ints(place[each] for each in asked)


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int32)
