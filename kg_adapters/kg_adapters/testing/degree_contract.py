# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about degrees."""

from kg_adapters.models import Count, Degree, EdgeDirection, RelationCount
from kg_adapters.testing.graphs import BLANKS, CITIZENS, HUB, LOOPS, TOWNS, iri
from kg_adapters.testing.opening import GraphOpening


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

    async def test_a_hub_is_counted_by_relation(self) -> None:
        async with self.opened(HUB) as graph:
            found = await graph.degrees([iri("japan")])
        counts = degree(CITIZENS + 2, ("partOf", "out", 1), ("capitalOf", "in", 1), ("citizenOf", "in", CITIZENS))
        assert found == {iri("japan"): counts}

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

    async def test_blank_nodes_count_as_neighbors(self) -> None:
        async with self.opened(BLANKS) as graph:
            found = await graph.degrees([iri("tokyo")])
        assert found == {iri("tokyo"): degree(1, ("partOf", "in", 1))}
