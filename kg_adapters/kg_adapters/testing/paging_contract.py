# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about pages and their cursors."""

from itertools import chain, cycle, repeat
from typing import Final

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import NeighborPage
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Node
from kg_adapters.testing.graphs import CITIZENS, HUB, TANGLE, edges, in_order, iri
from kg_adapters.testing.opening import GraphOpening, allows, apart

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
            for cursor in GARBAGE:
                with pytest.raises(InvalidRequest):
                    await page_of(graph, iri("n1"), 3, cursor)

    async def test_a_damaged_cursor_is_refused(self) -> None:
        async with self.opened(TANGLE) as graph:
            cursor = (await page_of(graph, iri("n1"), 3, None)).cursor
            assert cursor is not None
            for damaged in (cursor[: len(cursor) // 2], cursor * 2):
                with pytest.raises(InvalidRequest):
                    await page_of(graph, iri("n1"), 3, damaged)

    async def test_the_cursor_of_another_question_is_refused(self) -> None:
        async with self.opened(TANGLE) as graph:
            cursor = (await page_of(graph, iri("n1"), 3, None)).cursor
            assert cursor is not None
            with pytest.raises(InvalidRequest):
                await page_of(graph, iri("n2"), 3, cursor)
            with pytest.raises(InvalidRequest):
                await graph.neighbors(NeighborRequest((iri("n1"),), direction="out", limit=3, cursor=cursor))
            with pytest.raises(InvalidRequest):
                await graph.neighbors(
                    NeighborRequest((iri("n1"),), relations=frozenset({iri("r1")}), limit=3, cursor=cursor)
                )
            with pytest.raises(InvalidRequest):
                await graph.neighbors(NeighborRequest((iri("n1"),), limit_per_relation=1, limit=3, cursor=cursor))
