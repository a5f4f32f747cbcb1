from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest
import rdflib

from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidRequest
from kg_adapters.models import Count, Degree, Direction, NeighborPage, Path, PathRequest, PathsFound
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Node
from kg_adapters.testing import CROWD, ROADS, edges, iri, ntriples
from kg_server.answers.paths import find_paths, search_paths
from path_reference import reference_paths

A_TO_Z = PathRequest(iri("a"), iri("z"))
DIRECT = Path((iri("a"), iri("z")), edges("a r z"), 0)
TRIANGLE = ("a r z", "a r b", "b r z")
LADDER = ("a r z", "a r b", "b r z", "b r c", "c r z", "c r d", "d r z")


class RecordingAdapter(RdflibAdapter):
    """Notes what it is asked for, and may be told to show small pages or to fail."""

    def __init__(
        self, statements: Collection[str], *, page: int = 5_000, cursors: bool = True, fault: Exception | None = None
    ) -> None:
        super().__init__(rdflib.Graph().parse(data=ntriples(statements), format="nt"))
        self._page = page
        self._cursors = cursors
        self._fault = fault
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        self.asked.append(("neighbors", tuple(sorted(node.local_part for node in request.entities))))
        found = await super().neighbors(replace(request, limit=min(request.limit, self._page)))
        return found if self._cursors else {node: replace(page, cursor=None) for node, page in found.items()}

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        self.asked.append(("degrees", tuple(sorted(node.local_part for node in entities))))
        if self._fault is not None:
            raise self._fault
        return await super().degrees(entities, direction=direction, relations=relations)


async def test_a_hop_costs_one_request_for_neighbors_and_one_for_degrees() -> None:
    graph = RecordingAdapter(LADDER)
    await find_paths(graph, replace(A_TO_Z, max_hops=4))
    assert graph.asked == [
        ("neighbors", ("a", "z")),
        ("degrees", ("b", "c", "d")),
        ("neighbors", ("b", "c", "d")),
    ]


async def test_of_two_ends_only_the_quieter_is_walked_on_for_three_hops() -> None:
    graph = RecordingAdapter([*(f"n{number} r z" for number in range(9)), "a r b", "b r n4", "b r c"])
    await find_paths(graph, A_TO_Z)
    assert graph.asked == [
        ("neighbors", ("a", "z")),
        ("degrees", ("b",)),
        ("neighbors", ("b",)),
        ("degrees", ("n4",)),
    ]


async def test_a_hub_is_never_expanded() -> None:
    graph = RecordingAdapter(CROWD)
    found = await find_paths(graph, replace(A_TO_Z, hub_degree=51))
    assert found == reference_paths(edges(*CROWD), replace(A_TO_Z, hub_degree=51))
    assert found.skipped_hubs == (iri("hub"),)
    assert ("neighbors", ("b",)) in graph.asked
    assert not any("hub" in entities for question, entities in graph.asked if question == "neighbors")


async def test_one_hop_reads_only_the_quieter_end() -> None:
    graph = RecordingAdapter(["a r z", *(f"n{number} r z" for number in range(9))])
    found = await find_paths(graph, replace(A_TO_Z, max_hops=1))
    assert found == PathsFound((DIRECT,), Count(1), None, ())
    assert graph.asked == [("degrees", ("a", "z")), ("neighbors", ("a",))]


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("statements", [ROADS, CROWD, LADDER])
async def test_pages_are_followed_to_their_end(statements: tuple[str, ...], hops: int) -> None:
    request = replace(A_TO_Z, max_hops=hops)
    found = await find_paths(RecordingAdapter(statements, page=2), request)
    assert found == reference_paths(edges(*statements), request)


async def test_a_frontier_too_wide_for_one_request_is_asked_for_in_parts() -> None:
    wide = [f"a r n{number}" for number in range(2_100)] + [f"n{number} r z" for number in range(2_100)]
    graph = RecordingAdapter(wide)
    found = await find_paths(graph, replace(A_TO_Z, limit=1, hub_degree=3_000))
    first = Path((iri("a"), iri("n0"), iri("z")), edges("a r n0", "n0 r z"), 2)
    assert found == PathsFound((first,), Count(2_100), None, ())
    assert [(question, len(entities)) for question, entities in graph.asked] == [
        ("neighbors", 2),
        ("degrees", 2_000),
        ("degrees", 100),
        ("neighbors", 2_000),
        ("neighbors", 100),
    ]


async def test_a_page_that_is_cut_without_a_cursor_makes_the_answer_incomplete() -> None:
    found = await find_paths(RecordingAdapter(TRIANGLE, page=1, cursors=False), A_TO_Z)
    assert (found.stopped, found.total.exact, found.exhaustive) == ("expansions", False, False)


async def test_no_more_edges_are_fetched_than_allowed() -> None:
    graph = RecordingAdapter(LADDER)
    found = await find_paths(graph, replace(A_TO_Z, max_expansions=6))
    over_b = Path((iri("a"), iri("b"), iri("z")), edges("a r b", "b r z"), 3)
    assert found == PathsFound((DIRECT, over_b), Count(2, exact=False), "expansions", ())
    assert graph.asked == [("neighbors", ("a", "z")), ("degrees", ("b",))]


async def test_a_budget_that_ends_at_the_ends_still_gives_the_ways_between_them() -> None:
    graph = RecordingAdapter(TRIANGLE, page=1)
    found = await find_paths(graph, replace(A_TO_Z, max_expansions=3))
    assert found.stopped == "expansions"
    assert found.paths[0] == DIRECT


async def test_without_time_nothing_is_asked_for() -> None:
    graph = RecordingAdapter(TRIANGLE)
    found = await find_paths(graph, replace(A_TO_Z, timeout_s=0.0))
    assert found == PathsFound((), Count(0, exact=False), "time", ())
    assert graph.asked == []


async def test_a_backend_that_times_out_leaves_what_was_found_before() -> None:
    graph = RecordingAdapter(TRIANGLE, fault=BackendTimeout("too slow"))
    found = await find_paths(graph, A_TO_Z)
    assert found == PathsFound((DIRECT,), Count(1, exact=False), "time", ())


async def test_a_backend_that_cannot_be_reached_is_an_error() -> None:
    with pytest.raises(BackendUnavailable):
        await find_paths(RecordingAdapter(TRIANGLE, fault=BackendUnavailable("gone")), A_TO_Z)


async def test_a_request_that_means_nothing_is_refused_before_the_graph_is_asked() -> None:
    graph = RecordingAdapter(TRIANGLE)
    with pytest.raises(InvalidRequest):
        await find_paths(graph, replace(A_TO_Z, max_hops=5))
    assert graph.asked == []


async def test_a_graph_with_a_search_of_its_own_is_left_to_it() -> None:
    expected = PathsFound((DIRECT,), Count(1), None, ())

    class OwnSearch(RecordingAdapter):
        async def paths(self, request: PathRequest) -> PathsFound:
            return expected

    graph = OwnSearch(TRIANGLE)
    assert await search_paths(graph, A_TO_Z) is expected
    assert graph.asked == []


async def test_a_graph_without_one_is_searched_step_by_step() -> None:
    found = await search_paths(RecordingAdapter(TRIANGLE), A_TO_Z)
    assert found == reference_paths(edges(*TRIANGLE), A_TO_Z)
