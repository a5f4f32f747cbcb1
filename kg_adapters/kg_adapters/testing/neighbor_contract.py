# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about neighbours."""

from collections.abc import Sequence

from kg_adapters.models import Count, Direction, NeighborPage
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import BlankNode, Iri, Node, Triple
from kg_adapters.testing.graphs import (
    BLANKS,
    CITIZENS,
    HUB,
    LOOPS,
    TANGLE,
    TOWNS,
    UNICODE,
    edge,
    edges,
    in_order,
    iri,
)
from kg_adapters.testing.opening import GraphOpening, allows

DIRECTIONS: Sequence[Direction] = ("out", "in", "both")


def whole(*triples: Triple) -> NeighborPage:
    """Return the page that shows everything there is."""
    return NeighborPage(triples, Count(len(triples)), truncated=False)


class NeighborContract(GraphOpening):
    """Neighbours: what belongs to a page, in which order, for one entity or many."""

    async def test_outgoing_neighbors_come_in_turns_by_relation(self) -> None:
        async with self.opened(TOWNS) as graph:
            found = await graph.neighbors(NeighborRequest((iri("kyoto"),), direction="out", limit=10))
        in_turns = (
            "kyoto borders otsu",
            "kyoto country japan",
            "kyoto twin kyiv",
            "kyoto borders uji",
            "kyoto twin paris",
        )
        assert found == {iri("kyoto"): whole(*edges(*in_turns))}

    async def test_incoming_neighbors_come_in_turns_by_relation(self) -> None:
        async with self.opened(TOWNS) as graph:
            found = await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=10))
        in_turns = (
            "nara capitalOf japan",
            "kyoto country japan",
            "tokyo capitalOf japan",
            "osaka country japan",
            "tokyo country japan",
        )
        assert found == {iri("japan"): whole(*edges(*in_turns))}

    async def test_both_directions_alternate_with_outgoing_first(self) -> None:
        async with self.opened(TOWNS) as graph:
            found = await graph.neighbors(NeighborRequest((iri("kyoto"),), limit=10))
        in_turns = (
            "kyoto borders otsu",
            "kyoto country japan",
            "kyoto twin kyiv",
            "paris twin kyoto",
            "kyoto borders uji",
            "kyoto twin paris",
        )
        assert found == {iri("kyoto"): whole(*edges(*in_turns))}

    async def test_an_edge_from_an_entity_to_itself_is_listed_once_as_outgoing(self) -> None:
        async with self.opened(LOOPS) as graph:
            both = await graph.neighbors(NeighborRequest((iri("a"),), limit=10))
            incoming = await graph.neighbors(NeighborRequest((iri("a"),), direction="in", limit=10))
        in_turns = ("a knows a", "a likes b", "b knows a", "c likes a", "a knows b")
        assert both == {iri("a"): whole(*edges(*in_turns))}
        assert incoming == {iri("a"): whole(*edges("a knows a", "c likes a", "b knows a"))}

    async def test_every_entity_of_a_tangle_has_the_neighbors_that_a_plain_reading_finds(self) -> None:
        everything = edges(*TANGLE)
        nodes = sorted({node for triple in everything for node in (triple.head, triple.tail)}, key=str)
        async with self.opened(TANGLE) as graph:
            for direction in DIRECTIONS:
                found = await graph.neighbors(NeighborRequest(tuple(nodes), direction=direction, limit=500))
                assert set(found) == set(nodes)
                for node in nodes:
                    assert found[node] == whole(*in_order(everything, node, direction))

    async def test_only_the_relations_that_were_asked_for_are_listed_and_counted(self) -> None:
        async with self.opened(TOWNS) as graph:
            wanted = frozenset({iri("twin"), iri("unheardOf")})
            found = await graph.neighbors(NeighborRequest((iri("kyoto"),), relations=wanted, limit=10))
            nothing = await graph.neighbors(NeighborRequest((iri("kyoto"),), relations=frozenset(), limit=10))
        assert found == {iri("kyoto"): whole(*edges("kyoto twin kyiv", "paris twin kyoto", "kyoto twin paris"))}
        assert nothing == {iri("kyoto"): whole()}

    async def test_many_entities_in_one_call_get_what_each_would_get_alone(self) -> None:
        nodes = [iri(f"n{number}") for number in range(12)]
        async with self.opened(TANGLE) as graph:
            together = await graph.neighbors(NeighborRequest(tuple(nodes), limit_per_relation=2, limit=5))
            alone: dict[Node, NeighborPage] = {}
            for node in nodes:
                alone.update(await graph.neighbors(NeighborRequest((node,), limit_per_relation=2, limit=5)))
        shown = {node: (page.triples, page.truncated) for node, page in together.items()}
        assert shown == {node: (page.triples, page.truncated) for node, page in alone.items()}

    async def test_order_and_repeats_of_the_entities_do_not_matter(self) -> None:
        async with self.opened(TOWNS) as graph:
            plain = await graph.neighbors(NeighborRequest((iri("kyoto"), iri("paris")), direction="out", limit=10))
            mixed = await graph.neighbors(
                NeighborRequest(tuple(iri(n) for n in ("paris", "kyoto", "paris")), direction="out", limit=10)
            )
        assert mixed == plain

    async def test_an_entity_that_the_graph_does_not_mention_is_left_out(self) -> None:
        async with self.opened(TOWNS) as graph:
            asked: list[Node] = [iri("atlantis"), iri("paris"), BlankNode("nobody")]
            found = await graph.neighbors(NeighborRequest(tuple(asked), direction="out", limit=10))
            empty = await graph.neighbors(NeighborRequest((), direction="out", limit=10))
        assert found == {iri("paris"): whole(*edges("paris country france", "paris twin kyoto"))}
        assert empty == {}

    async def test_an_entity_that_is_mentioned_but_has_no_neighbors_has_an_empty_page(self) -> None:
        async with self.opened(TOWNS) as graph:
            found = await graph.neighbors(NeighborRequest((iri("hermit"), iri("france")), direction="out", limit=10))
        assert found == {iri("hermit"): whole(), iri("france"): whole()}

    async def test_a_relation_that_nothing_is_said_about_is_no_entity(self) -> None:
        async with self.opened(TOWNS) as graph:
            assert await graph.neighbors(NeighborRequest((iri("twin"),), limit=10)) == {}

    async def test_a_hub_is_cut_to_the_limit_and_its_rare_relation_is_seen_first(self) -> None:
        async with self.opened(HUB) as graph:
            page = (await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=20)))[iri("japan")]
        citizens = [edge(f"person{number:04} citizenOf japan") for number in range(19)]
        assert page.triples == (edge("tokyo capitalOf japan"), *citizens)
        assert page.truncated
        assert page.cursor is not None
        assert allows(page.total, CITIZENS + 1)

    async def test_a_limit_per_relation_samples_each_group_and_the_rest_still_counts(self) -> None:
        async with self.opened(HUB) as graph:
            page = (await graph.neighbors(NeighborRequest((iri("japan"),), limit_per_relation=2, limit=20)))[
                iri("japan")
            ]
        kept = (
            "japan partOf asia",
            "tokyo capitalOf japan",
            "person0000 citizenOf japan",
            "person0001 citizenOf japan",
        )
        assert (page.triples, page.truncated, page.cursor) == (edges(*kept), True, None)
        assert allows(page.total, CITIZENS + 2)

    async def test_a_limit_per_relation_that_drops_nothing_truncates_nothing(self) -> None:
        async with self.opened(TOWNS) as graph:
            found = await graph.neighbors(
                NeighborRequest((iri("paris"),), direction="out", limit_per_relation=1, limit=2)
            )
        assert found == {iri("paris"): whole(*edges("paris country france", "paris twin kyoto"))}

    async def test_neighbors_are_sorted_by_code_point(self) -> None:
        async with self.opened(UNICODE) as graph:
            found = await graph.neighbors(NeighborRequest((iri("mitte"),), direction="out", limit=10))
            japan = await graph.neighbors(
                NeighborRequest((iri("日本"),), direction="in", relations=frozenset({iri("国")}), limit=10)
            )
        assert found == {iri("mitte"): whole(*(edge(f"mitte near {name}") for name in ("Z", "a", "Ä", "ﾊ", "😀")))}
        assert japan == {iri("日本"): whole(edge("東京 国 日本"))}

    async def test_blank_nodes_are_neighbors_like_any_other_and_can_be_asked_about(self) -> None:
        async with self.opened(BLANKS) as graph:
            around = (await graph.neighbors(NeighborRequest((iri("tokyo"),), direction="in", limit=10)))[iri("tokyo")]
            ward = around.triples[0].head
            assert around == whole(Triple(ward, iri("partOf"), iri("tokyo")))
            assert isinstance(ward, BlankNode)
            if not self.stable_blank_nodes:
                return
            page = (await graph.neighbors(NeighborRequest((ward,), direction="out", limit=10)))[ward]
            labels = await graph.labels([ward])
        park = page.triples[0].tail
        assert isinstance(park, BlankNode)
        assert page == whole(Triple(ward, iri("near"), park), Triple(ward, iri("partOf"), iri("tokyo")))
        assert labels == {ward: "a ward without a name"}

    async def test_every_node_has_a_short_id_that_reads_back(self) -> None:
        async with self.opened([*TOWNS, *UNICODE, *LOOPS]) as graph:
            prefixes = graph.prefixes
            nodes: list[Iri] = [iri(name) for name in ("tokyo", "東京", "😀", "a")]
            assert [prefixes.expand(prefixes.shorten(node)) for node in nodes] == nodes
            relations = [iri(name) for name in ("country", "国", "type")]
            assert [prefixes.expand(prefixes.shorten(r, "relation"), "relation") for r in relations] == relations
