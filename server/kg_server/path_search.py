"""Path search on any graph, over batched neighbours and degrees.

It fetches the surroundings in which all paths run, one request per side and hop, and leaves the search itself to the
adjacency index of what it fetched.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from sys import maxsize
from typing import Final
from typing import Literal as Choice

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np

from kg_adapters.errors import BackendTimeout
from kg_adapters.local.building.arrays import IndexBuilder
from kg_adapters.local.paths.search import UNKNOWN_DEGREE, find_paths_in_index
from kg_adapters.models import Count, Degree, NeighborPage, PathRequest, PathsFound
from kg_adapters.paths import check_path_request
from kg_adapters.protocol import KGAdapter, SupportsPaths
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import BlankNode, Iri, Node, Triple, node_key

_PAGE: Final = 5_000
_TRIPLES_PER_REQUEST: Final = 20_000
_ENTITIES_PER_REQUEST: Final = 2_000
# The rest of the time is for the search in what was fetched.
_FETCHING_SHARE: Final = 0.9


async def search_paths(graph: KGAdapter, request: PathRequest) -> PathsFound:
    """Return the best simple paths between two nodes, by the graph's own search where it has one.

    Raises:
        InvalidRequest: See `check_path_request`.
    """
    if isinstance(graph, SupportsPaths):
        return await graph.paths(request)
    return await find_paths(graph, request)


async def find_paths(graph: KGAdapter, request: PathRequest) -> PathsFound:
    """Return the best simple paths between two nodes, as `find_paths_in_index` does on the same graph.

    An edge counts as looked at when it is fetched. A backend that times out ends the search as its own deadline does.

    Raises:
        InvalidRequest: See `check_path_request`.
    """
    check_path_request(request)
    surroundings = _Surroundings(graph, request)
    deadline = anyio.current_time() + request.timeout_s
    with anyio.move_on_after(request.timeout_s * _FETCHING_SHARE) as fetching:
        try:
            await surroundings.fetch()
        except BackendTimeout:
            surroundings.stopped = "time"
    stopped = "time" if fetching.cancelled_caught else surroundings.stopped
    found = await anyio.to_thread.run_sync(surroundings.search, deadline - anyio.current_time(), abandon_on_cancel=True)
    found = replace(found, unnamed=surroundings.unnamed)
    return found if stopped is None else replace(found, total=Count(found.total.value, exact=False), stopped=stopped)


class _Surroundings:
    """The part of a graph in which the paths of one request run, as far as it was fetched."""

    def __init__(self, graph: KGAdapter, request: PathRequest) -> None:
        self._graph = graph
        self._request = request
        self._left_out = graph.vocabulary.unwalked if request.avoid_hubs else frozenset[Iri]()
        self._builder = IndexBuilder(graph.vocabulary)
        self._around: dict[Node, set[Node]] = {}
        self._degrees: dict[Node, Degree] = {}
        self._spent = 0
        self.stopped: Choice["expansions", "time"] | None = None
        self.unnamed = False

    async def fetch(self) -> None:
        """Fetch what the search will look at: the same nodes and edges as on an index of the whole graph."""
        ends = self._request.source, self._request.target
        if self._request.max_hops == 1:
            await self._learn(ends)
            await self._expand([min(ends, key=self._edge_count)])
            return
        await self._expand(ends)
        left, right = (self._around.get(end, set()) - set(ends) for end in ends)
        if not left or not right:
            return
        if self._request.max_hops == 2 or self.stopped:
            await self._learn(left & right)
            return
        near, far = sorted((left, right), key=len)
        frontier = near if self._request.max_hops == 3 else near | far
        await self._learn(frontier)
        await self._expand(self._passable(frontier))
        met = self._beyond(near) & (far if self._request.max_hops == 3 else self._beyond(far))
        await self._learn(met - self._degrees.keys() - set(ends))

    def search(self, timeout_s: float) -> PathsFound:
        """Return the paths in what was fetched."""
        index = self._builder.finish()
        keys = {node_key(node): degree.neighbors.value for node, degree in self._degrees.items()}
        known = (keys.get(index.nodes[number], UNKNOWN_DEGREE) for number in range(len(index.nodes)))
        degrees = np.fromiter(known, dtype=np.int64, count=len(index.nodes))
        request = replace(self._request, max_expansions=maxsize, timeout_s=timeout_s)
        return find_paths_in_index(index, request, self._left_out, degrees)

    async def _learn(self, nodes: Collection[Node]) -> None:
        """Ask for the degrees of nodes."""
        ordered = sorted(nodes, key=node_key)
        for first in range(0, len(ordered), _ENTITIES_PER_REQUEST):
            await anyio.lowlevel.checkpoint()
            self._degrees.update(await self._graph.degrees(ordered[first : first + _ENTITIES_PER_REQUEST]))

    async def _expand(self, nodes: Collection[Node]) -> None:
        """Fetch all edges of nodes, as far as the request's budget goes."""
        for batch in self._batches(sorted(nodes, key=node_key)):
            if self._remaining() < 1:
                self.stopped = "expansions"
                return
            for node, page in (await self._pages(batch)).items():
                await self._go_on(node, page)

    async def _go_on(self, node: Node, page: NeighborPage) -> None:
        """Fetch the pages behind the first."""
        while page.truncated:
            if page.cursor is None or self._remaining() < 1:
                self.stopped = "expansions"
                return
            page = (await self._pages([node], page.cursor))[node]

    async def _pages(self, nodes: Sequence[Node], cursor: str | None = None) -> dict[Node, NeighborPage]:
        await anyio.lowlevel.checkpoint()
        limit = max(1, min(_PAGE, self._remaining()))
        pages = await self._graph.neighbors(NeighborRequest(tuple(nodes), limit=limit, cursor=cursor))
        for page in pages.values():
            self._spent += len(page.triples)
            for triple in page.triples:
                self._add(triple)
        return dict(pages)

    def _add(self, triple: Triple) -> None:
        if not self._graph.prefixes.blank_nodes:
            self.unnamed |= isinstance(triple.head, BlankNode) or isinstance(triple.tail, BlankNode)
        self._builder.add_edge(node_key(triple.head), triple.relation.value, node_key(triple.tail))
        if triple.head != triple.tail and triple.relation not in self._left_out:
            self._around.setdefault(triple.head, set()).add(triple.tail)
            self._around.setdefault(triple.tail, set()).add(triple.head)

    def _batches(self, nodes: Sequence[Node]) -> Iterator[list[Node]]:
        """Yield nodes whose edges fit into one request; none once the budget is spent."""
        batch: list[Node] = []
        expected = 0
        for node in nodes:
            edges = self._edge_count(node)
            room = min(_TRIPLES_PER_REQUEST, self._remaining())
            if batch and (expected + edges > room or len(batch) == _ENTITIES_PER_REQUEST):
                yield batch
                batch, expected = [], 0
            batch.append(node)
            expected += edges
        if batch:
            yield batch

    def _passable(self, nodes: Collection[Node]) -> list[Node]:
        highest = self._request.hub_degree if self._request.avoid_hubs else maxsize
        return [node for node in nodes if node in self._degrees and self._degrees[node].neighbors.value <= highest]

    def _beyond(self, nodes: Collection[Node]) -> set[Node]:
        return set[Node]().union(*(self._around[node] for node in self._passable(nodes)))

    def _edge_count(self, node: Node) -> int:
        degree = self._degrees.get(node)
        return 0 if degree is None else sum(each.count.value for each in degree.relations)

    def _remaining(self) -> int:
        return self._request.max_expansions - self._spent
