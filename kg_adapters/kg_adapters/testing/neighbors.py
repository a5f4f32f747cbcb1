# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""Contract tests about neighbours: pages, cursors, degrees and whether facts are there."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, cycle, repeat
from typing import Final

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Count, Degree, Direction, EdgeDirection, NeighborPage, RelationCount
from kg_adapters.protocol import KGAdapter
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
    GraphOpening,
    allows,
    apart,
    edge,
    edges,
    in_order,
    iri,
)

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

    async def test_an_entity_that_the_graph_does_not_mention_is_left_out(self) -> None:
        async with self.opened(TOWNS) as graph:
            asked: list[Node] = [iri("paris"), iri("atlantis"), iri("paris"), BlankNode("nobody")]
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


GARBAGE: Final = ("", " ", "no cursor of yours", "💥", "\x00", "-1", "../../etc/passwd", "A" * 10_000)


async def page_of(graph: KGAdapter, entity: Node, limit: int, cursor: str | None) -> NeighborPage:
    """Return one page around an entity, in both directions."""
    return (await graph.neighbors(NeighborRequest((entity,), limit=limit, cursor=cursor)))[entity]


async def walk(graph: KGAdapter, entity: Node, *limits: int) -> list[NeighborPage]:
    """Return all pages around an entity, whose sizes repeat in turn."""
    pages: list[NeighborPage] = []
    cursor: str | None = None
    for limit in cycle(limits):
        pages.append(await page_of(graph, entity, limit, cursor))
        cursor = pages[-1].cursor
        if cursor is None:
            break
    return pages


class PagingContract(GraphOpening):
    """Cursors: they walk to the end without loss or repeat, and nothing else passes for one."""

    async def test_pages_of_any_size_join_to_the_same_sequence(self) -> None:
        expected = in_order(edges(*TANGLE), iri("n1"), "both")
        async with self.opened(TANGLE) as graph:
            for limits in ((1,), (2,), (3,), (7,), (len(expected),), (1, 4, 2)):
                pages = await walk(graph, iri("n1"), *limits)
                assert tuple(chain.from_iterable(page.triples for page in pages)) == expected
                assert [len(page.triples) for page in pages[:-1]] == [
                    limit for limit, _ in zip(cycle(limits), pages[:-1], strict=False)
                ]

    async def test_pages_are_truncated_up_to_the_last_and_agree_on_the_total(self) -> None:
        expected = in_order(edges(*TANGLE), iri("n1"), "both")
        async with self.opened(TANGLE) as graph:
            pages = await walk(graph, iri("n1"), 3)
        assert [page.truncated for page in pages] == [*repeat(True, len(pages) - 1), False]
        assert all(allows(page.total, len(expected)) for page in pages)

    async def test_a_page_that_ends_exactly_at_the_end_has_no_cursor(self) -> None:
        expected = in_order(edges(*TANGLE), iri("n1"), "both")
        async with self.opened(TANGLE) as graph:
            page = await page_of(graph, iri("n1"), len(expected), None)
        assert (page.triples, page.truncated, page.cursor) == (expected, False, None)

    async def test_a_hub_is_walked_to_its_end(self) -> None:
        async with self.opened(HUB) as graph:
            pages = await walk(graph, iri("japan"), 800)
        everything = [triple for page in pages for triple in page.triples]
        assert not apart(tuple(everything), in_order(edges(*HUB[:-1]), iri("japan"), "both"))
        assert len(everything) == CITIZENS + 2

    async def test_the_same_cursor_gives_the_same_page_again(self) -> None:
        async with self.opened(TANGLE) as graph:
            first = await page_of(graph, iri("n1"), 4, None)
            assert await page_of(graph, iri("n1"), 4, first.cursor) == await page_of(graph, iri("n1"), 4, first.cursor)

    async def test_sampled_groups_are_paged_and_stay_truncated_to_the_end(self) -> None:
        entity = iri("n1")
        expected = in_order(edges(*TANGLE), entity, "both", limit_per_relation=1)
        async with self.opened(TANGLE) as graph:
            found = await graph.neighbors(NeighborRequest((entity,), limit_per_relation=1, limit=2))
            pages = [found[entity]]
            while (cursor := pages[-1].cursor) is not None:
                found = await graph.neighbors(NeighborRequest((entity,), limit_per_relation=1, limit=2, cursor=cursor))
                pages.append(found[entity])
        assert tuple(chain.from_iterable(page.triples for page in pages)) == expected
        assert all(page.truncated for page in pages)

    async def test_a_text_that_is_no_cursor_is_refused(self) -> None:
        async with self.opened(TANGLE) as graph:
            cursor = (await page_of(graph, iri("n1"), 3, None)).cursor
            assert cursor is not None
            for wrong in (*GARBAGE, cursor[: len(cursor) // 2], cursor * 2):
                with pytest.raises(InvalidRequest):
                    await page_of(graph, iri("n1"), 3, wrong)

    async def test_the_cursor_of_another_question_is_refused(self) -> None:
        async with self.opened(TANGLE) as graph:
            cursor = (await page_of(graph, iri("n1"), 3, None)).cursor
            assert cursor is not None
            asked = NeighborRequest((iri("n1"),), limit=3, cursor=cursor)
            for other in (
                replace(asked, entities=(iri("n2"),)),
                replace(asked, direction="out"),
                replace(asked, relations=frozenset({iri("r1")})),
                replace(asked, limit_per_relation=1),
            ):
                with pytest.raises(InvalidRequest):
                    await graph.neighbors(other)


def degree(neighbors: int, *relations: tuple[str, EdgeDirection, int]) -> Degree:
    """Return a degree with exact counts."""
    counts = (RelationCount(iri(name), direction, Count(number)) for name, direction, number in relations)
    return Degree(Count(neighbors), tuple(counts))


class DegreeContract(GraphOpening):
    """Degrees: distinct neighbours, in all and by relation."""

    async def test_a_neighbor_over_several_relations_counts_once_in_all_and_once_for_each(self) -> None:
        async with self.opened(TOWNS) as graph:
            found = await graph.degrees([iri("tokyo"), iri("kyoto")])
        tokyo = degree(1, ("capitalOf", "out", 1), ("country", "out", 1), ("capital", "in", 1))
        kyoto = degree(5, ("borders", "out", 2), ("country", "out", 1), ("twin", "out", 2), ("twin", "in", 1))
        assert found == {iri("tokyo"): tokyo, iri("kyoto"): kyoto}

    async def test_a_direction_leaves_the_other_out(self) -> None:
        async with self.opened(TOWNS) as graph:
            outgoing = await graph.degrees([iri("japan")], direction="out")
            incoming = await graph.degrees([iri("japan")], direction="in")
        assert outgoing == {iri("japan"): degree(1, ("capital", "out", 1))}
        assert incoming == {iri("japan"): degree(4, ("capitalOf", "in", 2), ("country", "in", 3))}

    async def test_relations_that_were_not_asked_for_do_not_count(self) -> None:
        async with self.opened(TOWNS) as graph:
            found = await graph.degrees([iri("kyoto")], relations=[iri("twin"), iri("unheardOf")])
            nothing = await graph.degrees([iri("kyoto")], relations=[])
        assert found == {iri("kyoto"): degree(2, ("twin", "out", 2), ("twin", "in", 1))}
        assert nothing == {iri("kyoto"): degree(0)}

    async def test_a_hub_is_counted_by_relation_and_a_neighbor_without_a_name_too(self) -> None:
        async with self.opened(HUB) as graph:
            found = await graph.degrees([iri("japan")])
        counts = degree(CITIZENS + 2, ("partOf", "out", 1), ("capitalOf", "in", 1), ("citizenOf", "in", CITIZENS))
        assert found == {iri("japan"): counts}
        async with self.opened(BLANKS) as graph:
            assert await graph.degrees([iri("tokyo")]) == {iri("tokyo"): degree(1, ("partOf", "in", 1))}

    async def test_an_entity_is_not_among_its_own_neighbors_in_all(self) -> None:
        async with self.opened(LOOPS) as graph:
            found = await graph.degrees([iri("a"), iri("b")])
        assert {node: found[node].neighbors for node in found} == {iri("a"): Count(2), iri("b"): Count(1)}

    async def test_a_loop_is_counted_by_relation_as_it_is_listed(self) -> None:
        async with self.opened(LOOPS) as graph:
            found = await graph.degrees([iri("a")])
        counts = degree(2, ("knows", "out", 2), ("likes", "out", 1), ("knows", "in", 1), ("likes", "in", 1))
        assert found == {iri("a"): counts}

    async def test_unknown_entities_are_left_out_and_lonely_ones_have_no_neighbors(self) -> None:
        async with self.opened(TOWNS) as graph:
            found = await graph.degrees([iri("atlantis"), iri("hermit"), iri("hermit")])
        assert found == {iri("hermit"): degree(0)}


class ContainmentContract(GraphOpening):
    """Which triples a graph holds."""

    async def test_of_several_triples_those_are_returned_that_are_there(self) -> None:
        there = edges("kyoto twin paris", "kyoto twin kyiv", "japan capital tokyo")
        async with self.opened(TOWNS) as graph:
            found = await graph.contains([*there, *edges("kyoto twin tokyo", "tokyo capital japan"), there[0]])
            assert await graph.contains([]) == frozenset()
        assert found == frozenset(there)

    async def test_a_triple_with_an_unknown_part_is_not_there(self) -> None:
        absent = edges("atlantis twin paris", "kyoto twin atlantis", "kyoto unheardOf paris", "kyoto label paris")
        async with self.opened(TOWNS) as graph:
            assert await graph.contains(absent) == frozenset()

    async def test_a_hub_at_both_ends_of_a_relation_hides_nothing(self) -> None:
        last, between = f"person{CITIZENS - 1:04}", edge("tokyo likes japan")
        fans = (f"{citizen} likes japan" for citizen in (f"person{number:04}" for number in range(CITIZENS)))
        arts = (f"tokyo likes art{number:04}" for number in range(CITIZENS))
        async with self.opened((*HUB, *fans, *arts, "tokyo likes japan")) as graph:
            found = await graph.contains([between, *edges(f"{last} likes japan", f"japan likes {last}")])
        assert found == {between, edge(f"{last} likes japan")}

    async def test_every_triple_of_a_tangle_is_there_and_no_other(self) -> None:
        there = frozenset(edges(*TANGLE))
        possible = edges(*(f"n{head} r{r} n{tail}" for head in range(12) for r in range(5) for tail in range(12)))
        async with self.opened(TANGLE) as graph:
            found = await graph.contains(possible)
        assert not apart(found, there)

    async def test_triples_with_blank_nodes_are_there_under_the_names_that_the_graph_gave_them(self) -> None:
        async with self.opened(BLANKS) as graph:
            page = (await graph.neighbors(NeighborRequest((iri("tokyo"),), direction="in", limit=10)))[iri("tokyo")]
            assert page.triples
            if graph.prefixes.blank_nodes:
                assert await graph.contains(page.triples) == frozenset(page.triples)
