"""How an extraction asks a graph: in batches, smaller ones where it cannot cope, and never for what has no name."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kg_adapters.errors import BackendTimeout
from kg_adapters.extraction.records import Bounds
from kg_adapters.models import Description, FeaturePage, NeighborPage
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import BlankNode, Iri, Node, node_from_key

MOST_VALUES: Final = 1_000
"""The most literals of one term."""
MOST_TYPES: Final = 100
"""The most types of one entity."""


class Asker:
    """Asks one graph, and counts how often.

    Args:
        graph: What is asked.
        bounds: How much of its answers is wanted.

    Attributes:
        requests: How many calls about a batch were made.
        value_requests: How many calls for the literals of a batch were made.
    """

    def __init__(self, graph: KGAdapter, bounds: Bounds) -> None:
        self._graph = graph
        self._bounds = bounds
        self.requests = 0
        self.value_requests = 0

    @property
    def blank_nodes_last(self) -> bool:
        """Whether a blank node of one answer is the same node in the next."""
        return self._graph.prefixes.blank_nodes

    def askable(self, keys: Iterable[str]) -> list[Node]:
        """Return the nodes that the graph can be asked about, sorted by key."""
        return [node_from_key(key) for key in sorted(keys) if self.blank_nodes_last or not key.startswith("_:")]

    async def around(self, batch: Sequence[Node]) -> dict[Node, NeighborPage]:
        """Return the triples around entities, each within the bounds.

        What the graph only answers in part, or not in time, it is asked for again in halves.

        Raises:
            BackendTimeout: It cannot answer for a single entity.
            BackendError: It cannot be asked.
        """
        self.requests += 1
        pages: dict[Node, NeighborPage] = {}
        try:
            pages |= await self._graph.neighbors(
                NeighborRequest(
                    tuple(batch), limit_per_relation=self._bounds.per_relation, limit=self._bounds.max_degree
                )
            )
        except BackendTimeout:
            if len(batch) == 1:
                raise
            again = list(batch)
        else:
            again = [node for node in batch if node in pages and self._is_partial(pages[node])]
        if len(batch) > 1:
            middle = len(again) // 2
            for half in (again[:middle], again[middle:]):
                pages |= await self.around(half) if half else {}
        return pages

    async def types(self, batch: Sequence[Node], relations: Collection[Iri]) -> Mapping[Node, NeighborPage]:
        """Return the triples that say of what type entities are."""
        self.requests += 1
        return await self._graph.neighbors(
            NeighborRequest(tuple(batch), direction="out", relations=frozenset(relations), limit=MOST_TYPES)
        )

    async def descriptions(self, batch: Sequence[Node]) -> Mapping[Node, Description]:
        """Return what terms are called and described as."""
        self.requests += 1
        return await self._graph.describe(batch)

    async def values(self, batch: Sequence[Node]) -> dict[Node, FeaturePage]:
        """Return the literals of terms.

        What the graph does not answer in time it is asked for again in halves.

        Raises:
            BackendTimeout: It cannot answer for a single term.
            BackendError: It cannot be asked.
        """
        self.value_requests += 1
        try:
            return dict(await self._graph.features(FeatureRequest(tuple(batch), limit=MOST_VALUES)))
        except BackendTimeout:
            if len(batch) == 1:
                raise
        middle = len(batch) // 2
        return await self.values(batch[:middle]) | await self.values(batch[middle:])

    def _is_partial(self, page: NeighborPage) -> bool:
        return not page.total.exact and page.total.value <= self._bounds.max_degree


class Keys:
    """The keys of nodes, with names for blank nodes that no other answer gives where theirs do not last.

    Args:
        mark: What the names begin with; None where blank nodes keep theirs.
    """

    def __init__(self, mark: str | None) -> None:
        self._mark = mark
        self._names: dict[BlankNode, str] = {}

    def __call__(self, node: Node) -> str:
        """Return the key of a node."""
        if self._mark is None or not isinstance(node, BlankNode):
            return str(node)
        return self._names.setdefault(node, f"_:{self._mark}-{len(self._names)}")
