"""Optional abilities that serve observations: everything around entities in one call, and stored vectors."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

from kg_adapters.labels import Vocabulary
from kg_adapters.models import Candidate, Count, NeighborPage
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Term, Triple, node_key

if TYPE_CHECKING:
    from kg_adapters.embedding.protocol import Vectors


Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
_NO_ALIASES: Final[Mapping[Iri, Sequence[str]]] = {}
MAX_ALIASES: Final = 8
"""How many other names of a relation count at most."""
T_co = TypeVar("T_co", covariant=True)


class Lazy(Sequence[T_co]):
    """A sequence whose items are made when somebody first looks at them.

    Args:
        length: How many items there are.
        make: What gives the item at a place.
    """

    def __init__(self, length: int, make: Callable[[int], T_co]) -> None:
        self._length = length
        self._make = make
        self._made: dict[int, T_co] = {}

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> T_co: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[T_co]: ...

    def __getitem__(self, place: int | slice) -> T_co | Sequence[T_co]:
        if isinstance(place, slice):
            return [self[each] for each in range(self._length)[place]]
        try:
            # Looked at a thousand times in one observation.
            return self._made[place]
        except KeyError:
            place = range(self._length)[place]
            if place not in self._made:
                self._made[place] = self._make(place)
            return self._made[place]

    def __iter__(self) -> Iterator[T_co]:
        return map(self.__getitem__, range(self._length))


@dataclass(frozen=True, slots=True)
class StoreIds:
    """The numbers that a store of its own gives to what the surroundings are about.

    Args:
        relations: For each of `Surroundings.relations` its relation id; shape [relations].
        far: For each of `Surroundings.far_nodes` its node id, and none for literals; shape [far nodes].
    """

    relations: Ints
    far: Ints


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts around some entities: fact `i` joins `entities[near[i]]` and the far term `far[i]`; c facts in all.

    Facts come by entity, outgoing before incoming, then by relation, edges before values, then by the far node or
    value. An edge from an entity to itself is there once, as outgoing.

    Args:
        entities: Whose surroundings these are, each once.
        near: Places in `entities`; shape [c].
        inverse: Whether the far node is the head; shape [c].
        relation: Places in `relations`; shape [c].
        far: Places among the far terms: in `far_nodes`, and behind them in `far_literals`; shape [c].
        relations: The distinct relations, sorted.
        far_nodes: The distinct far nodes, sorted by `node_key`.
        relation_labels: The label of each relation, or None.
        far_labels: The label of each far node, or None; then the text of each literal.
        sampled: The entities that have more facts than are here.
        ids: The store's own numbers, where the graph has some.
        far_literals: The literals, one for each attribute, in the order of the facts.
        relation_aliases: Other names of each relation, where the graph has them at hand; none where it would have to
            ask for them.
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
    far_literals: Sequence[Literal] = ()
    relation_aliases: Sequence[Sequence[str]] = ()

    def __len__(self) -> int:
        return len(self.near)

    def far_term(self, edge: int) -> Term:
        """Return the far end of a fact."""
        place = int(self.far[edge])
        value = place - len(self.far_nodes)
        return self.far_nodes[place] if value < 0 else self.far_literals[value]

    def triple(self, edge: int) -> Triple:
        """Return an edge in its real direction."""
        near, far = self.entities[int(self.near[edge])], self.far_nodes[int(self.far[edge])]
        relation = self.relations[int(self.relation[edge])]
        return Triple(far, relation, near) if self.inverse[edge] else Triple(near, relation, far)

    def fact(self, edge: int) -> Fact:
        """Return an edge in its real direction, or an attribute."""
        far = self.far_term(edge)
        if not isinstance(far, Literal):
            return self.triple(edge)
        return Attribute(self.entities[int(self.near[edge])], self.relations[int(self.relation[edge])], far)


@runtime_checkable
class SupportsSurroundings(Protocol):
    """A graph that knows the facts around many entities without making values of them."""

    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        """Return what `gather_surroundings` would: the same facts in the same order."""
        ...


async def surroundings(graph: KGAdapter, request: SurroundingsRequest) -> Surroundings:
    """Return the facts around entities, by the graph's own way where it has one."""
    if isinstance(graph, SupportsSurroundings):
        return await graph.surroundings(request)
    return await gather_surroundings(graph, request)


async def gather_surroundings(graph: KGAdapter, request: SurroundingsRequest) -> Surroundings:
    """Return the facts around entities from one request for neighbours and one for labels.

    A graph that is not remote is asked for the aliases of the relations too.
    """
    around = tuple(dict.fromkeys(request.entities))
    asked = NeighborRequest(
        around, limit_per_relation=request.per_relation, limit=request.per_entity, values=request.values
    )
    pages = await graph.neighbors(asked)
    rows = (_row(0, entity, fact) for entity, page in pages.items() for fact in page.facts)
    wanted = {term for *_, relation, far in rows for term in (relation, far) if not isinstance(term, Literal)}
    found = surroundings_of(around, pages, await graph.labels(wanted) if wanted else {})
    return found if graph.remote else replace(found, relation_aliases=await _aliases(graph, found.relations))


async def _aliases(graph: KGAdapter, relations: Sequence[Iri]) -> list[tuple[str, ...]]:
    """Return the other names of each relation, at most `MAX_ALIASES` of one."""
    if not relations:
        return []
    pages = await graph.features(FeatureRequest(tuple(relations), frozenset(graph.vocabulary.aliases)))
    return [
        spoken_aliases(graph.vocabulary, (feature.value for feature in pages[each].features) if each in pages else ())
        for each in relations
    ]


def spoken_aliases(vocabulary: Vocabulary, aliases: Iterable[Literal]) -> tuple[str, ...]:
    """Return the first aliases that are in a language that people read, or in none, each once."""
    texts = (each.value for each in aliases if each.language is None or _base(each.language) in vocabulary.languages)
    return tuple(islice(dict.fromkeys(texts), MAX_ALIASES))


def surroundings_of(
    around: tuple[Node, ...],
    pages: Mapping[Node, NeighborPage],
    labels: Mapping[Node, str],
    aliases: Mapping[Iri, Sequence[str]] = _NO_ALIASES,
) -> Surroundings:
    """Return the facts of pages as arrays.

    Args:
        around: The entities, each once.
        pages: By entity, its facts in both directions; none for what the graph does not mention.
        labels: What the relations and far nodes are called.
        aliases: What else relations are called.
    """
    edges = [edge for place, entity in enumerate(around) for edge in _edges(place, entity, pages.get(entity))]
    relations = sorted({relation for _, _, relation, _ in edges})
    far_nodes = sorted({far for *_, far in edges if not isinstance(far, Literal)}, key=node_key)
    literals = [far for *_, far in edges if isinstance(far, Literal)]
    place: Mapping[Term, int] = {node: number for number, node in enumerate(far_nodes)}
    behind = count(len(far_nodes))
    return Surroundings(
        entities=around,
        near=_ints(near for near, *_ in edges),
        inverse=np.fromiter((inverse for _, inverse, *_ in edges), dtype=np.bool_, count=len(edges)),
        relation=_places(relations, [relation for _, _, relation, _ in edges]),
        far=_ints(next(behind) if isinstance(far, Literal) else place[far] for *_, far in edges),
        relations=relations,
        far_nodes=far_nodes,
        relation_labels=[labels.get(each) for each in relations],
        far_labels=[*(labels.get(each) for each in far_nodes), *(each.value for each in literals)],
        sampled=tuple(entity for entity in around if entity in pages and pages[entity].truncated),
        far_literals=literals,
        relation_aliases=[aliases.get(each, ()) for each in relations],
    )


_Edge: TypeAlias = tuple[int, bool, Iri, Term]
_NO_FACTS: Final[tuple[Fact, ...]] = ()
T = TypeVar("T", bound=Node)


def _edges(place: int, entity: Node, page: NeighborPage | None) -> list[_Edge]:
    """Return a page's edges as rows, group by group: the page takes the groups in turns."""
    rows = [_row(place, entity, fact) for fact in (_NO_FACTS if page is None else page.facts)]
    return sorted(rows, key=lambda row: (row[1], row[2], isinstance(row[3], Literal)))


def _row(place: int, entity: Node, fact: Fact) -> _Edge:
    inverse = fact.head != entity
    return place, inverse, fact.relation, fact.head if inverse else fact.tail


def _places(known: Sequence[T], asked: Collection[T]) -> Ints:
    place: Mapping[T, int] = {each: number for number, each in enumerate(known)}
    return _ints(place[each] for each in asked)


def _base(language: str) -> str:
    return language.lower().partition("-")[0]


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Around:
    """One entity's part of surroundings: its edges, and what these are called."""

    page: NeighborPage
    labels: Mapping[Node, str]
    aliases: Mapping[Iri, Sequence[str]] = field(default_factory=dict[Iri, Sequence[str]])


def parts_of(found: Surroundings) -> dict[Node, Around]:
    """Return what surroundings say about each entity."""
    facts: defaultdict[int, list[Fact]] = defaultdict(list)
    labels: defaultdict[int, dict[Node, str]] = defaultdict(dict)
    for edge, place in enumerate(found.near.tolist()):
        relation, far = int(found.relation[edge]), int(found.far[edge])
        ends: list[tuple[Node, str | None]] = [(found.relations[relation], found.relation_labels[relation])]
        if far < len(found.far_nodes):
            ends.append((found.far_nodes[far], found.far_labels[far]))
        facts[place].append(found.fact(edge))
        labels[place].update((term, label) for term, label in ends if label is not None)
    sampled = frozenset(found.sampled)
    aliases = dict(zip(found.relations, found.relation_aliases, strict=False))
    return {
        entity: Around(
            NeighborPage(tuple(facts[place]), Count(len(facts[place])), truncated=entity in sampled),
            labels[place],
            {fact.relation: names for fact in facts[place] if (names := aliases.get(fact.relation))},
        )
        for place, entity in enumerate(found.entities)
    }


class LabelVectors(Protocol):
    """The vectors of a store's labels by one model; ids are those of `StoreIds`."""

    def nodes(self, numbers: Ints, /) -> "Vectors":
        """Return the rows of nodes by their ids, zeros for what has none; shape [ids, dimensions]."""
        ...

    def relations(self, numbers: Ints, /) -> "Vectors":
        """Return the rows of relations by their ids; shape [ids, dimensions]."""
        ...


@runtime_checkable
class SupportsVectors(Protocol):
    """A graph for which vectors were computed ahead, by one model or several."""

    async def label_vectors(self, fingerprint: str) -> LabelVectors | None:
        """Return the vectors of labels by the model of this fingerprint, or None where there are none."""
        ...

    async def search_vectors(
        self, vector: "Vectors", *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        """Return the entities whose label, description and types mean what a vector means, best first.

        The score is the cosine. There are none where no vectors by this model are there.

        Args:
            vector: A unit vector by the model of the fingerprint; shape [dimensions].
            fingerprint: The model.
            limit: The most entities to return.
            type: Only instances of this class.
        """
        ...
