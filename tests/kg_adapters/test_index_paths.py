from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.index.paths.search import UNKNOWN_DEGREE, find_paths_in_index
from kg_adapters.models import Count, Path, PathRequest, PathsFound
from kg_adapters.terms import Node, Triple
from kg_adapters.testing import edges, iri
from path_reference import UNWALKED, index_of_triples, reference_paths

A_TO_Z = PathRequest(iri("a"), iri("z"))

# Two dozen ways in, a narrow middle and two dozen ways out, all alike, so that most paths tie.
LATTICE = edges(
    *(f"a r{number % 2} x{number:02}" for number in range(24)),
    *(f"x{number:02} r m{number % 5}" for number in range(24)),
    *(f"x{number:02} s m{number % 5}" for number in range(0, 24, 7)),
    *(f"y{number:02} r m{number % 5}" for number in range(24)),
    *(f"y{number:02} r z" for number in range(24)),
    "x03 r z",
    "y07 r a",
)
# Twenty-five ways over hubs, the later the larger.
HUBS = edges(
    *(f"a r h{number:02}" for number in range(25)),
    *(f"h{number:02} r z" for number in range(25)),
    *(f"h{number:02} r leaf{number}-{each}" for number in range(25) for each in range(10 + number // 2)),
)
# One path of each length from 1 to 4.
LADDER = edges("a r z", "a r b", "b r z", "b r c", "c r z", "c r d", "d r z")


def find(triples: Collection[Triple], request: PathRequest) -> PathsFound:
    return find_paths_in_index(index_of_triples(triples), request, UNWALKED)


def path(*triples: str, cost: int) -> Path:
    walked = edges(*triples)
    nodes: list[Node] = [iri("a")]
    for triple in walked:
        nodes.append(triple.tail if triple.head == nodes[-1] else triple.head)
    return Path(tuple(nodes), walked, cost)


@pytest.mark.parametrize("limit", [1, 2, 9, 30, 500, 5_000])
def test_of_many_paths_that_tie_the_first_by_id_are_kept(limit: int) -> None:
    request = replace(A_TO_Z, max_hops=4, limit=limit)
    assert find(LATTICE, request) == reference_paths(LATTICE, request)


@pytest.mark.parametrize("limit", [1, 2, 9, 30, 500, 5_000])
def test_of_paths_that_differ_in_inverses_only_the_first_is_kept(limit: int) -> None:
    turned = edges(*(f"m{number % 5} back x{number:02}" for number in range(24)), "z r y03", "z r0 a", "a back z")
    request = replace(A_TO_Z, max_hops=4, limit=limit, inverses=((iri("r"), iri("back")), (iri("r0"), iri("r0"))))
    found = find((*LATTICE, *turned), request)
    assert found == reference_paths((*LATTICE, *turned), request)
    assert found.twins > 0 or limit < 9


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_a_path_has_at_most_so_many_hops(hops: int) -> None:
    ways = (
        path("a r z", cost=0),
        path("a r b", "b r z", cost=3),
        path("a r b", "b r c", "c r z", cost=6),
        path("a r b", "b r c", "c r d", "d r z", cost=8),
    )
    assert find(LADDER, replace(A_TO_Z, max_hops=hops)) == PathsFound(ways[:hops], Count(hops), None, ())


def test_the_hubs_that_were_skipped_are_named_the_largest_first_and_at_most_twenty() -> None:
    found = find(HUBS, replace(A_TO_Z, hub_degree=11))
    largest = sorted(range(25), key=lambda number: (-(number // 2), number))[:20]
    assert found == PathsFound((), Count(0), None, tuple(iri(f"h{number:02}") for number in largest))
    assert not found.exhaustive


def test_a_hub_that_cannot_be_on_a_path_is_not_reported() -> None:
    crowd = edges("a r b", "b r z", "a r hub", *(f"hub r p{number}" for number in range(9)))
    two_hops = find(crowd, replace(A_TO_Z, max_hops=2, hub_degree=5))
    assert two_hops == PathsFound((path("a r b", "b r z", cost=2),), Count(1), None, ())
    assert two_hops.exhaustive


def test_hubs_do_not_matter_where_nothing_else_touches_the_target() -> None:
    crowd = edges("a r hub", "a r z", *(f"hub r p{number}" for number in range(9)))
    for hops in (3, 4):
        found = find(crowd, replace(A_TO_Z, max_hops=hops, hub_degree=5))
        assert found == PathsFound((path("a r z", cost=0),), Count(1), None, ())


def test_the_busiest_source_finds_the_triples_of_a_few_ways() -> None:
    busy = edges(*(f"a r leaf{number}" for number in range(5_000)), "a r b", "c r a", "b s z", "z s b", "c r z")
    found = find(busy, A_TO_Z)
    ways = (
        path("a r b", "b s z", cost=2),
        path("a r b", "z s b", cost=2),
        path("c r a", "c r z", cost=2),
    )
    assert found == PathsFound(ways, Count(3), None, ())


@pytest.mark.parametrize(("budget", "total"), [(0, 1), (3, 1), (4, 2), (7, 3), (13, 3)])
def test_a_search_stops_when_it_has_looked_at_enough_edges(budget: int, total: int) -> None:
    found = find(LADDER, replace(A_TO_Z, max_hops=4, max_expansions=budget))
    assert (found.stopped, found.total, len(found.paths)) == ("expansions", Count(total, exact=False), total)
    assert not found.exhaustive


def test_a_search_with_just_enough_budget_is_exhaustive() -> None:
    assert find(LADDER, replace(A_TO_Z, max_hops=4, max_expansions=100)) == find(LADDER, replace(A_TO_Z, max_hops=4))


def test_a_search_without_time_knows_the_direct_edges() -> None:
    found = find(LADDER, replace(A_TO_Z, timeout_s=0.0))
    assert found == PathsFound((path("a r z", cost=0),), Count(1, exact=False), "time", ())


def test_nodes_that_the_graph_does_not_mention_have_no_paths() -> None:
    nothing = PathsFound((), Count(0), None, ())
    assert find(LADDER, PathRequest(iri("a"), iri("atlantis"))) == nothing
    assert find(LADDER, PathRequest(iri("atlantis"), iri("a"))) == nothing


def test_given_degrees_replace_those_of_a_part_of_a_graph() -> None:
    index = index_of_triples(edges("a r b", "b r z", "a r c", "c r z", "a r d", "d r z"))
    degrees = np.array([3, 50, 2_000, UNKNOWN_DEGREE, 3], dtype=np.int64)
    avoided = find_paths_in_index(index, A_TO_Z, UNWALKED, degrees)
    assert avoided == PathsFound((path("a r b", "b r z", cost=50),), Count(1), None, (iri("c"),))
    walked = find_paths_in_index(index, replace(A_TO_Z, avoid_hubs=False), UNWALKED, degrees)
    over_c = path("a r c", "c r z", cost=2_000)
    assert walked == PathsFound((*avoided.paths, over_c), Count(2), None, ())


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (replace(A_TO_Z, max_hops=0), "A path has 1 to 4 hops; max_hops was 0."),
        (replace(A_TO_Z, max_hops=5), "A path has 1 to 4 hops; max_hops was 5."),
        (replace(A_TO_Z, limit=0), "limit must be at least 1; it was 0."),
        (
            replace(A_TO_Z, target=iri("a")),
            "Source and target are both 'http://example.org/a'. Name two different entities, or ask for the neighbors "
            "of the one.",
        ),
    ],
)
def test_a_request_that_means_nothing_is_refused(request_: PathRequest, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        find(LADDER, request_)
    assert str(refused.value) == message
