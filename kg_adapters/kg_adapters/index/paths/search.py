"""All simple paths between two nodes of the adjacency index, searched from both ends.

The numbers are exact although few paths are ever built: a frontier is walked edge by edge, and paths are counted as
products of the triples that lie side by side.
"""

import time
from collections.abc import Callable, Collection
from typing import Final
from typing import Literal as Choice

import numpy as np

from kg_adapters.index.graph_index import GraphIndex, Ints, Longs
from kg_adapters.index.paths.assembly import NodePaths, TripleFinder, cutoff
from kg_adapters.index.paths.meetings import (
    Fan,
    Flags,
    Steps,
    chained,
    count_meetings,
    fan_of,
    join_steps,
    matches,
    nearest_meetings,
    steps_of,
)
from kg_adapters.models import Count, PathRequest, PathsFound
from kg_adapters.requests import check_path_request
from kg_adapters.terms import Iri, node_key

UNKNOWN_DEGREE: Final = -1
SHOWN_HUBS: Final = 20
# A block of so many edges is a few milliseconds' work, and the clock is read between blocks.
_BLOCK_EDGES: Final = 200_000


def find_paths_in_index(
    index: GraphIndex, request: PathRequest, unwalked: Collection[Iri], degrees: Longs | None = None
) -> PathsFound:
    """Return the best simple paths between two nodes, as `SupportsPaths.paths` promises.

    The hubs reported as skipped are those that the search met where a path might have gone on: with two hops those
    beside both ends; with three those beside the end with fewer neighbours, and those beside the other end that are
    reached from there; with four those beside either end, and those that both sides reach in the middle. Type
    relations that are not walked do not make the answer less than exhaustive: they are outside its rules.

    Args:
        index: The graph.
        request: What to look for.
        unwalked: The relations that `index.walks` was built without.
        degrees: For each node the number of its distinct neighbours where `index` is only a part of a graph, or
            `UNKNOWN_DEGREE` for a node that no path passes through; shape [n].

    Raises:
        InvalidRequest: See `check_path_request`.
    """
    check_path_request(request)
    source = index.nodes.find(node_key(request.source))
    target = index.nodes.find(node_key(request.target))
    if source is None or target is None:
        return PathsFound((), Count(0), None, ())
    finder = TripleFinder(index, unwalked if request.avoid_hubs else (), request.inverses)
    search = _Search(index, request, degrees, source, target)
    search.run(finder.by_first_triple)
    return PathsFound(
        paths=finder.best_paths(search.layers, request.limit),
        total=Count(search.total, exact=search.stopped is None),
        stopped=search.stopped,
        skipped_hubs=tuple(finder.node(hub) for hub in search.largest_hubs()),
        twins=finder.twins,
    )


class _Search:
    """One search; what it has found so far."""

    def __init__(
        self, index: GraphIndex, request: PathRequest, degrees: Longs | None, source: int, target: int
    ) -> None:
        self._request = request
        self._deadline = time.monotonic() + request.timeout_s
        self._links = index.links
        self._table = index.walks if request.avoid_hubs else index.links
        self._size = len(index.nodes)
        self._known_degrees = degrees
        self._source = source
        self._target = target
        self._spent = 0
        self._hubs: set[int] = set()
        self._distinct = 0
        """At least so many paths were found that differ in more than inverses."""
        self.layers: list[NodePaths] = []
        self.total = 0
        self.stopped: Choice["expansions", "time"] | None = None

    def run(self, order: Callable[[int, Ints], Ints]) -> None:
        """Search, fewer hops first; `order` sorts nodes by the first triple that links each to a given one."""
        hops = self._request.max_hops
        self._direct()
        fans = fan_of(self._table, self._source, self._target), fan_of(self._table, self._target, self._source)
        small, large = sorted(fans, key=lambda fan: len(fan.nodes))
        if hops == 1 or len(small.nodes) == 0 or self._exhausted(len(small.nodes) + len(large.nodes)):
            return
        self._two_hops(small, large)
        if hops == 2:
            return
        small = self._passable(small)
        large = self._passable(large) if hops == 4 else large
        steps = self._steps(small, None if hops == 4 else large.nodes)
        self._three_hops(small, steps, large)
        if hops == 4 and self.stopped is None:
            beyond = self._steps(large, None)
            left, right = (steps, beyond) if small.end == self._source else (beyond, steps)
            self._four_hops(left, right, order)

    def largest_hubs(self) -> list[int]:
        """Return the first hubs that were skipped, the largest first."""
        hubs = np.array(sorted(self._hubs), dtype=np.int32)
        found: list[int] = hubs[np.argsort(-self._degrees(hubs), kind="stable")][:SHOWN_HUBS].tolist()
        return found

    def _direct(self) -> None:
        row = slice(int(self._links.starts[self._source]), int(self._links.starts[self._source + 1]))
        places = np.flatnonzero(self._links.neighbors[row] == self._target)
        self._add(int(self._links.edges[row][places].sum()), np.empty((len(places), 0), dtype=np.int32))

    def _two_hops(self, small: Fan, large: Fan) -> None:
        shared, places = matches(large.nodes, small.nodes, self._size)
        ways = small.edges[shared] * large.edges[places]
        middle = self._passable(Fan(small.end, small.nodes[shared], ways))
        self._add(int(middle.edges.sum()), middle.nodes[:, None])

    def _three_hops(self, small: Fan, steps: Steps, large: Fan) -> None:
        hits, places = matches(large.nodes, steps.far, self._size)
        ways = steps.ways[hits] * large.edges[places]
        inner = np.stack((steps.near[hits], steps.far[hits]), axis=1)
        kept = self._admit(inner[:, 1])
        self._add(int(ways[kept].sum()), inner[kept] if small.end == self._source else inner[kept, ::-1])

    def _four_hops(self, left: Steps, right: Steps, order: Callable[[int, Ints], Ints]) -> None:
        left, right = join_steps(left, right, self._size)
        left, right = left.only(self._admit(left.far)), right.only(self._admit(right.far))
        count = count_meetings(left, right, self._size)
        if self._distinct >= self._request.limit or self._late():
            self.total += count
            return
        source = self._source
        self._add(
            count,
            nearest_meetings(left, right, self._degrees, lambda nodes: order(source, nodes), self._request.limit),
        )

    def _steps(self, fan: Fan, wanted: Ints | None) -> Steps:
        """Return the steps beyond a fan that reach a wanted node, or any but the two ends."""
        starts = self._table.starts
        ends = np.cumsum(starts[fan.nodes + 1] - starts[fan.nodes])
        affordable = int(np.searchsorted(ends, self._request.max_expansions - self._spent, side="right"))
        found: list[Steps] = []
        first = done = 0
        while first < affordable and not self._late():
            last = max(first + 1, int(np.searchsorted(ends[:affordable], done + _BLOCK_EDGES, side="right")))
            block = slice(first, last)
            steps = steps_of(self._table, Fan(fan.end, fan.nodes[block], fan.edges[block]), wanted, self._size)
            found.append(steps.only((steps.far != self._source) & (steps.far != self._target)))
            first, done = last, int(ends[last - 1])
        self._spent += done
        if affordable < len(fan.nodes) and self.stopped is None:
            self.stopped = "expansions"
        return chained(found)

    def _add(self, count: int, inner: Ints) -> None:
        """Add so many paths of one length, given the inner nodes of the best of them; shape [paths, hops - 1]."""
        if self._distinct < self._request.limit:
            costs = self._degrees(inner).sum(axis=1)
            kept = costs <= cutoff(costs, self._request.limit)
            ends = np.full((int(kept.sum()), 2), (self._source, self._target), dtype=np.int32)
            self.layers.append(NodePaths(np.hstack((ends[:, :1], inner[kept], ends[:, 1:])), costs[kept]))
        self.total += count
        self._distinct += len(inner) if self._request.inverses else count

    def _passable(self, fan: Fan) -> Fan:
        return fan.only(self._admit(fan.nodes))

    def _admit(self, nodes: Ints) -> Flags:
        """Return which nodes a path may pass through, and note the hubs among the others."""
        degrees = self._degrees(nodes)
        admitted: Flags = degrees != UNKNOWN_DEGREE
        if self._request.avoid_hubs:
            hubs = degrees > self._request.hub_degree
            self._hubs.update(np.unique(nodes[hubs]).tolist())
            admitted &= ~hubs
        return admitted

    def _degrees(self, nodes: Ints) -> Longs:
        if self._known_degrees is not None:
            return self._known_degrees[nodes]
        return self._links.starts[nodes + 1] - self._links.starts[nodes]

    def _exhausted(self, edges: int) -> bool:
        self._spent += edges
        if self._spent > self._request.max_expansions:
            self.stopped = "expansions"
        return self.stopped is not None or self._late()

    def _late(self) -> bool:
        if time.monotonic() >= self._deadline:
            self.stopped = "time"
        return self.stopped == "time"
