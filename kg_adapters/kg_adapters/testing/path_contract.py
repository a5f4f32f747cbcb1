# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about a path search of the graph's own; skipped where it has none."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Count, Path, PathRequest, PathsFound
from kg_adapters.protocol import SupportsPaths
from kg_adapters.testing.graphs import CROWD, LOOPS, ROADS, edges, iri
from kg_adapters.testing.opening import GraphOpening

A_TO_Z = PathRequest(iri("a"), iri("z"))

DIRECT = (
    Path((iri("a"), iri("z")), edges("a near z"), 0),
    Path((iri("a"), iri("z")), edges("z near a"), 0),
)
OVER_TOWN = Path((iri("a"), iri("Town"), iri("z")), edges("a type Town", "z type Town"), 2)
OVER_M = Path((iri("a"), iri("m"), iri("z")), edges("a near m", "m near z"), 3)
OVER_N = Path((iri("a"), iri("n"), iri("z")), edges("a near n", "n near z"), 4)
OVER_BOTH = (
    Path((iri("a"), iri("m"), iri("n"), iri("z")), edges("a near m", "m partOf n", "n near z"), 7),
    Path((iri("a"), iri("n"), iri("m"), iri("z")), edges("a near n", "m partOf n", "m near z"), 7),
)
OVER_B = Path((iri("a"), iri("b"), iri("z")), edges("a near b", "b near z"), 2)
OVER_HUB = Path((iri("a"), iri("hub"), iri("z")), edges("a near hub", "hub near z"), 52)


def all_of(*paths: Path) -> PathsFound:
    """Return the answer of a search that found everything."""
    return PathsFound(paths, Count(len(paths)), None, ())


class PathContract(GraphOpening):
    """Paths: which there are, in which order, and what was left out."""

    @asynccontextmanager
    async def searchable(self, statements: Iterable[str]) -> AsyncGenerator[SupportsPaths]:
        """Open a graph and skip the test where it does not search paths."""
        async with self.opened(statements) as graph:
            if not isinstance(graph, SupportsPaths):
                pytest.skip("this adapter has no path search of its own")
            yield graph

    async def test_paths_are_sorted_by_hops_then_by_quiet_inner_nodes_then_by_ids(self) -> None:
        async with self.searchable(ROADS) as graph:
            assert await graph.paths(A_TO_Z) == all_of(*DIRECT, OVER_M, OVER_N, *OVER_BOTH)

    async def test_a_path_has_no_more_hops_than_asked_for(self) -> None:
        async with self.searchable(ROADS) as graph:
            one = await graph.paths(replace(A_TO_Z, max_hops=1))
            two = await graph.paths(replace(A_TO_Z, max_hops=2))
        assert one == all_of(*DIRECT)
        assert two == all_of(*DIRECT, OVER_M, OVER_N)

    async def test_a_limit_keeps_the_best_and_the_total_counts_all(self) -> None:
        async with self.searchable(ROADS) as graph:
            found = await graph.paths(replace(A_TO_Z, limit=3))
        assert found == PathsFound((*DIRECT, OVER_M), Count(6), None, ())

    async def test_type_relations_are_walked_only_on_demand(self) -> None:
        async with self.searchable(ROADS) as graph:
            found = await graph.paths(replace(A_TO_Z, max_hops=2, avoid_hubs=False))
        assert found == all_of(*DIRECT, OVER_TOWN, OVER_M, OVER_N)

    async def test_a_direct_edge_counts_even_over_a_type_relation(self) -> None:
        async with self.searchable(ROADS) as graph:
            found = await graph.paths(PathRequest(iri("Town"), iri("a"), max_hops=1))
        assert found == all_of(Path((iri("Town"), iri("a")), edges("a type Town"), 0))

    async def test_a_hub_is_not_passed_through_and_is_named(self) -> None:
        async with self.searchable(CROWD) as graph:
            avoided = await graph.paths(replace(A_TO_Z, max_hops=2, hub_degree=51))
            allowed = await graph.paths(replace(A_TO_Z, max_hops=2, hub_degree=52))
            walked = await graph.paths(replace(A_TO_Z, max_hops=2, hub_degree=51, avoid_hubs=False))
        assert avoided == PathsFound((OVER_B,), Count(1), None, (iri("hub"),))
        assert not avoided.exhaustive
        assert allowed == walked == all_of(OVER_B, OVER_HUB)

    async def test_a_hub_may_be_where_a_path_starts_or_ends(self) -> None:
        expected = (
            Path((iri("hub"), iri("a"), iri("b")), edges("a near hub", "a near b"), 2),
            Path((iri("hub"), iri("z"), iri("b")), edges("hub near z", "b near z"), 2),
        )
        async with self.searchable(CROWD) as graph:
            found = await graph.paths(PathRequest(iri("hub"), iri("b"), max_hops=2, hub_degree=10))
        assert found == all_of(*expected)

    async def test_edges_between_the_same_nodes_make_a_path_each(self) -> None:
        nodes = (iri("a"), iri("b"))
        expected = [Path(nodes, edges(text), 0) for text in ("a knows b", "a likes b", "b knows a")]
        async with self.searchable(LOOPS) as graph:
            assert await graph.paths(PathRequest(*nodes)) == all_of(*expected)

    async def test_what_is_not_connected_or_not_known_has_no_path(self) -> None:
        async with self.searchable([*ROADS, "far near away"]) as graph:
            assert await graph.paths(PathRequest(iri("a"), iri("away"))) == all_of()
            assert await graph.paths(PathRequest(iri("a"), iri("atlantis"))) == all_of()
            assert await graph.paths(PathRequest(iri("atlantis"), iri("a"))) == all_of()

    async def test_a_request_that_cannot_be_met_is_refused(self) -> None:
        impossible = (
            replace(A_TO_Z, max_hops=0),
            replace(A_TO_Z, max_hops=5),
            replace(A_TO_Z, limit=0),
            replace(A_TO_Z, target=iri("a")),
        )
        async with self.searchable(ROADS) as graph:
            for request in impossible:
                with pytest.raises(InvalidRequest):
                    await graph.paths(request)
