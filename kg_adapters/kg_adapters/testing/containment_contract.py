# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about whether triples are there."""

from kg_adapters.requests import NeighborRequest
from kg_adapters.testing.graphs import BLANKS, CITIZENS, HUB, LOOPS, TANGLE, TOWNS, edge, edges, iri
from kg_adapters.testing.opening import GraphOpening, apart


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

    async def test_a_triple_from_an_entity_to_itself_is_there_like_any_other(self) -> None:
        async with self.opened(LOOPS) as graph:
            assert await graph.contains(edges("a knows a", "a likes a", "b likes b")) == {
                *edges("a knows a", "b likes b")
            }

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
