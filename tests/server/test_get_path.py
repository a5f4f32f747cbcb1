"""GetPath: its answers, and that every search agrees with the definition."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import anyio
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import call, paths, refusal
from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidRequest
from kg_adapters.index.paths.search import find_paths_in_index
from kg_adapters.labels import RDF_TYPE
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Count, Degree, Direction, NeighborPage, Path, PathRequest, PathsFound
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import BlankNode, Iri, Node, Triple
from kg_adapters.testing import CROWD, ROADS, edges, iri, ntriples
from kg_server.answers.paths import find_paths, search_paths
from path_reference import UNWALKED, index_of_triples, reference_paths


async def test_a_path_is_one_line_that_shows_the_real_direction_of_every_edge(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetPath", source="Q179645", target="Q17", max_hops=2)
    assert reply.text == (
        "4 paths link Shinjuku (Q179645) and Japan (Q17) within 2 hops. "
        "The search was exhaustive, except over types and superclasses (avoid_hubs=false).\n"
        "Shinjuku (Q179645) -[country (P17)]-> Japan (Q17)\n"
        "Shinjuku (Q179645) <-[capital (P36)]- Tokyo (Q1490) -[country (P17)]-> Japan (Q17)\n"
        "Shinjuku (Q179645) <-[capital (P36)]- Tokyo (Q1490) <-[capital (P36)]- Japan (Q17)\n"
        "Shinjuku (Q179645) -[located in (P131)]-> Tokyo (Q1490) -[country (P17)]-> Japan (Q17)\n"
        "Shinjuku (Q179645) -[located in (P131)]-> Tokyo (Q1490) <-[capital (P36)]- Japan (Q17)"
    ).replace("4 paths", "5 paths")
    assert reply.data["exhaustive"] is True
    assert reply.data["total"] == 5


async def test_what_both_ends_share_over_a_relation_is_one_line_and_every_path_stays_in_the_data(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    shared = " , ".join(f"e:job{number:02}" for number in range(21))
    graph = graph_of(
        f"@prefix e: <http://e.org/> . e:a e:does {shared} ; e:near e:n . e:b e:does {shared} ; e:likes e:n . "
        "e:film1 e:cast e:a , e:b . e:film2 e:cast e:a , e:b ."
    )
    reply = await call(graph, "GetPath", source="e:a", target="e:b", max_hops=2, limit=50)
    nodes = ", ".join(f"e:job{number:02}" for number in range(20))
    assert reply.lines == [
        f"both | e:does | {nodes}",
        "e:a -[e:does]-> e:job20 <-[e:does]- e:b",
        "e:a -[e:near]-> e:n <-[e:likes]- e:b",
        "both | -e:cast | e:film1, e:film2",
    ]
    found = paths(reply.data["paths"])
    assert (len(found), reply.data["total"], reply.data["status"]) == (24, 24, "ok")
    assert found[-2] == [["e:film1", "e:cast", "e:a"], ["e:film1", "e:cast", "e:b"]]
    assert len({str(path) for path in found}) == 24


async def test_a_node_without_a_name_on_a_path_is_shown_with_what_else_it_holds(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(
        "@prefix e: <http://e.org/> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> . "
        'e:a r:label "Ann" ; e:career [ e:at e:b ; e:role e:chief ; e:from 1993 ] . e:b r:label "Bank" .'
    )
    reply = await call(graph, "GetPath", source="e:a", target="e:b", max_hops=2)
    (line,) = reply.plain.lines
    blank = line.partition("]-> ")[2].partition(" ")[0]
    assert line == f"Ann -[e:career]-> {blank} [from 1993; role e:chief] -[e:at]-> Bank"
    held = [[blank, "e:from", "1993"], [blank, "e:role", "e:chief"]]
    assert (paths(reply.data["paths"]), reply.data["held"]) == (
        [[["e:a", "e:career", blank], [blank, "e:at", "e:b"]]],
        held,
    )


async def test_a_question_brings_the_paths_most_like_it_to_the_front(tokyo: LocalAdapter) -> None:
    reply = await call(
        tokyo, "GetPath", source="Q179645", target="Q17", max_hops=2, limit=1, question="In what is it located?"
    )
    assert reply.plain.lines[0].startswith("Shinjuku -[located in]-> Tokyo")
    assert reply.data["status"] == "truncated"


class Hasty(LocalAdapter):
    """Stops a search for paths after one edge."""

    async def paths(self, request: PathRequest) -> PathsFound:
        return await super().paths(replace(request, max_expansions=1))


async def test_no_path_within_the_hops_is_told_apart_from_a_search_that_stopped(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    chain = graph_of("@prefix e: <http://e.org/> . e:a e:r e:b . e:b e:r e:c . e:c e:r e:d . e:x e:r e:y .")
    none = await call(chain, "GetPath", source="e:a", target="e:d", max_hops=2)
    stopped = await call(Hasty(chain.store), "GetPath", source="e:a", target="e:d", max_hops=3)
    assert none.data["status"] == "empty"
    assert none.summary.startswith("No path links e:a and e:d within 2 hops; max_hops=3 looks further.")
    assert stopped.data["status"] == "truncated"
    assert "stopped early" in stopped.summary


async def test_hubs_are_named_when_they_are_skipped_and_walked_on_demand(hub: LocalAdapter) -> None:
    ends = {"source": "ex:person0001", "target": "ex:person0002"}
    careful = await call(hub, "GetPath", **ends)
    bold = await call(hub, "GetPath", **ends, avoid_hubs=False)
    assert careful.data["exhaustive"] is False
    assert careful.data["skipped_hubs"] == ["ex:land"]
    assert "Hubs left out: ex:land" in careful.summary
    assert bold.lines == ["ex:person0001 -[ex:citizen]-> ex:land <-[ex:citizen]- ex:person0002"]


async def test_wrong_ends_are_refused(tokyo: LocalAdapter) -> None:
    assert "no entity 'Q424242'" in await refusal(tokyo, "GetPath", source="Q1490", target="Q424242")
    assert "No entity matches 'Osaka'" in await refusal(tokyo, "GetPath", source="Osaka", target="Q17")
    assert "are one thing" in await refusal(tokyo, "GetPath", source="Q1490", target="wd:Q1490")
    assert "less than or equal to 4" in await refusal(tokyo, "GetPath", source="Q1490", target="Q17", max_hops=9)


class Slow(LocalAdapter):
    """A graph whose path search runs into its deadline after one path."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def paths(self, request: PathRequest) -> PathsFound:
        found = await super().paths(request)
        return replace(found, paths=found.paths[:1], total=Count(1, exact=False), stopped="time")


async def test_a_search_that_ran_out_of_time_says_so_and_shows_what_it_has(tokyo: LocalAdapter) -> None:
    reply = await call(Slow(tokyo), "GetPath", source="Q179645", target="Q17")
    assert reply.plain.summary == (
        "at least 1 path links Shinjuku and Japan within 3 hops. "
        "The search stopped early, at its deadline: fewer hops need less."
    )
    assert (reply.data["status"], reply.data["exhaustive"], len(reply.plain.lines)) == ("timeout", False, 1)


NODES: tuple[Node, ...] = (*(Iri(f"http://example.org/n{number}") for number in range(6)), BlankNode("b"))
RELATIONS = (Iri("http://example.org/r"), Iri("http://example.org/a"), RDF_TYPE)

# Few nodes and relations make self-loops, parallel edges and cycles common.
graphs = st.lists(
    st.builds(Triple, st.sampled_from(NODES), st.sampled_from(RELATIONS), st.sampled_from(NODES)),
    min_size=4,
    max_size=30,
    unique=True,
)
requests = st.builds(
    PathRequest,
    st.sampled_from(NODES[:3]),
    st.sampled_from(NODES[3:]),
    max_hops=st.integers(1, 4),
    limit=st.sampled_from([1, 2, 7, 10_000]),
    avoid_hubs=st.booleans(),
    hub_degree=st.integers(1, 6),
)


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(graphs, requests)
def test_the_index_finds_what_networkx_finds(graph: list[Triple], request: PathRequest) -> None:
    assert find_paths_in_index(index_of_triples(graph), request, UNWALKED) == reference_paths(graph, request)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(graphs, requests)
def test_the_search_on_any_graph_finds_what_networkx_finds(graph: list[Triple], request: PathRequest) -> None:
    assert anyio.run(find_paths, rdflib_graph(graph), request) == reference_paths(graph, request)


def rdflib_graph(triples: list[Triple]) -> RdflibAdapter:
    graph = rdflib.Graph()
    for triple in triples:
        graph.add((rdflib_node(triple.head), rdflib.URIRef(triple.relation.value), rdflib_node(triple.tail)))
    return RdflibAdapter(graph)


def rdflib_node(node: Node) -> rdflib.URIRef | rdflib.BNode:
    return rdflib.BNode(node.label) if isinstance(node, BlankNode) else rdflib.URIRef(node.value)


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


async def test_a_path_over_an_inverse_is_shown_once(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of(
        "@prefix e: <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . e:owns owl:inverseOf e:ownedBy . "
        "e:a e:owns e:b, e:c . e:b e:ownedBy e:a . e:c e:ownedBy e:a ."
    )
    reply = await call(graph, "GetPath", source="e:b", target="e:c")
    assert reply.summary == (
        "1 path links e:b and e:c within 3 hops. 3 more paths say the same over inverse relations. "
        "The search was exhaustive, except over types and superclasses (avoid_hubs=false)."
    )
    assert reply.data["paths"] == [[["e:a", "e:owns", "e:b"], ["e:a", "e:owns", "e:c"]]]
    assert reply.data["total"] == 1


async def test_paths_that_are_not_compared_all_count_as_they_are_stored(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    both = "".join(f"e:{end} e:by e:n{n} . e:n{n} e:by e:{end} . " for end in "st" for n in range(30))
    graph = graph_of(
        "@prefix e: <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
        f"e:by a owl:SymmetricProperty . {both}"
    )
    reply = await call(graph, "GetPath", source="e:s", target="e:t", max_hops=2, limit=5)
    assert reply.summary.startswith(
        "120 paths link e:s and e:t within 2 hops. Of the best 20, 15 say the same as others, over inverse relations."
    )
    assert reply.data["total"] == 120
    assert len({path[0][2] + path[0][0] for path in paths(reply.data["paths"])}) == 5
