# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about values beside edges."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from kg_adapters.models import Count, NeighborPage
from kg_adapters.requests import NeighborRequest, SurroundingsRequest
from kg_adapters.surroundings import surroundings
from kg_adapters.terms import RDF_LANG_STRING, Attribute, Fact, Iri, Literal
from kg_adapters.testing.graphs import edge, edges, feature_page, iri, typed
from kg_adapters.testing.opening import GraphOpening

LIFE: Final = (
    'ada label "Ada Lovelace"@en',
    'ada altLabel "Augusta Ada King"@en',
    'ada description "mathematician"@en',
    'ada born "1815-12-10"^^<http://www.w3.org/2001/XMLSchema#date>',
    'ada height "1.65"^^<http://www.w3.org/2001/XMLSchema#decimal>',
    'ada motto "b"@en',
    'ada motto "b"',
    'ada motto "a"@fr',
    'ada known "not by everybody"',
    "ada known charles",
    "ada parent byron",
    "byron child ada",
    'byron born "1788-01-22"^^<http://www.w3.org/2001/XMLSchema#date>',
)
ADA: Final = iri("ada")


def attribute(relation: str, value: Literal, head: Iri = ADA) -> Attribute:
    """Return a statement that ends in a value."""
    return Attribute(head, iri(relation), value)


BORN: Final = attribute("born", typed("1815-12-10", "date"))
HEIGHT: Final = attribute("height", typed("1.65", "decimal"))
KNOWN: Final = attribute("known", Literal("not by everybody"))
MOTTOS: Final = (
    attribute("motto", Literal("a", RDF_LANG_STRING, "fr")),
    attribute("motto", Literal("b")),
    attribute("motto", Literal("b", RDF_LANG_STRING, "en")),
)
IN_TURNS: Final[Sequence[Fact]] = (
    BORN,
    HEIGHT,
    edge("ada known charles"),
    KNOWN,
    MOTTOS[0],
    edge("ada parent byron"),
    edge("byron child ada"),
    *MOTTOS[1:],
)


class ValuesContract(GraphOpening):
    """Values beside edges: in `neighbors` and in surroundings, where they are asked for, and in `contains`."""

    async def test_values_are_groups_behind_the_edges_of_their_relation(self) -> None:
        async with self.opened(LIFE) as graph:
            found = await graph.neighbors(NeighborRequest((ADA,), values=True))
        assert found == {ADA: NeighborPage(tuple(IN_TURNS), Count(len(IN_TURNS)), truncated=False)}
        assert found[ADA].triples == edges("ada known charles", "ada parent byron", "byron child ada")

    async def test_values_count_only_where_they_are_asked_for_and_never_when_looking_backwards(self) -> None:
        async with self.opened(LIFE) as graph:
            edges_alone = await graph.neighbors(NeighborRequest((ADA,)))
            incoming = await graph.neighbors(NeighborRequest((ADA,), "in", values=True))
        assert edges_alone[ADA].facts == edges("ada known charles", "ada parent byron", "byron child ada")
        assert incoming == {ADA: NeighborPage((edge("byron child ada"),), Count(1), truncated=False)}

    async def test_names_and_descriptions_are_values_only_where_they_are_named(self) -> None:
        label, born = iri("label"), iri("born")
        async with self.opened(LIFE) as graph:
            found = await graph.neighbors(NeighborRequest((ADA,), "out", frozenset({label, born}), values=True))
            without = await graph.neighbors(NeighborRequest((ADA,), "out", frozenset({label, born})))
        name = attribute("label", Literal("Ada Lovelace", RDF_LANG_STRING, "en"))
        assert set(found[ADA].facts) == {BORN, name}
        assert without == {ADA: NeighborPage((), Count(0), truncated=False)}

    async def test_pages_with_values_join_to_the_same_sequence(self) -> None:
        async with self.opened(LIFE) as graph:
            pages = [(await graph.neighbors(NeighborRequest((ADA,), limit=2, values=True)))[ADA]]
            while (cursor := pages[-1].cursor) is not None:
                found = await graph.neighbors(NeighborRequest((ADA,), limit=2, values=True, cursor=cursor))
                pages.append(found[ADA])
        assert tuple(chain.from_iterable(page.facts for page in pages)) == tuple(IN_TURNS)
        assert {page.total for page in pages} == {Count(len(IN_TURNS))}

    async def test_a_limit_per_relation_holds_for_values_too(self) -> None:
        request = NeighborRequest((ADA,), limit_per_relation=1, values=True)
        async with self.opened(LIFE) as graph:
            found = await graph.neighbors(request)
        assert found == {ADA: NeighborPage(tuple(IN_TURNS[:-2]), Count(len(IN_TURNS)), truncated=True)}

    async def test_surroundings_hold_values_where_they_are_asked_for(self) -> None:
        around = (ADA, iri("byron"), iri("charles"))
        async with self.opened(LIFE) as graph:
            found = await surroundings(graph, SurroundingsRequest(around, 9, 99, values=True))
            fewer = await surroundings(graph, SurroundingsRequest((ADA,), 1, 3, values=True))
            without = await surroundings(graph, SurroundingsRequest(around, 9, 99))
        ada: list[Fact] = [
            BORN,
            HEIGHT,
            edge("ada known charles"),
            KNOWN,
            *MOTTOS,
            *edges("ada parent byron", "byron child ada"),
        ]
        byron = [attribute("born", typed("1788-01-22", "date"), iri("byron"))]
        assert [found.fact(place) for place in range(len(found))] == [
            *ada,
            *byron,
            *edges("byron child ada", "ada parent byron", "ada known charles"),
        ]
        far_ends: list[int] = found.far.tolist()
        texts = [found.far_labels[far] for far in far_ends if far >= len(found.far_nodes)]
        assert texts == ["1815-12-10", "1.65", "not by everybody", "a", "b", "b", "1788-01-22"]
        assert ([fewer.fact(place) for place in range(len(fewer))], fewer.sampled) == (ada[:3], (ADA,))
        assert [without.fact(place) for place in range(len(without))] == [
            without.triple(place) for place in range(len(without))
        ]

    async def test_attributes_are_there_with_their_value_language_and_datatype_alone(self) -> None:
        absent = [
            attribute("born", Literal("1815-12-10")),
            attribute("born", typed("1788-01-22", "date")),
            attribute("motto", Literal("b", RDF_LANG_STRING, "fr")),
            attribute("height", typed("1.650", "decimal")),
            attribute("unheardOf", Literal("b")),
            attribute("motto", Literal("b"), iri("atlantis")),
        ]
        there: list[Fact] = [BORN, HEIGHT, KNOWN, *MOTTOS, edge("ada known charles")]
        async with self.opened(LIFE) as graph:
            asked: list[Fact] = [*there, *absent, edge("charles known ada")]
            assert await graph.contains(asked) == frozenset(there)

    async def test_language_tags_are_compared_without_regard_to_case(self) -> None:
        def named(value: str, language: str) -> Attribute:
            return attribute("name", Literal(value, RDF_LANG_STRING, language), iri("oslo"))

        stated = {named("Christiania", "nb-NO"), named("Kristiania", "EN")}
        asked = [*stated, named("Christiania", "nb-no"), named("Christiania", "NB-NO"), named("Kristiania", "en")]
        absent = [named("Christiania", "nb"), named("Kristiania", "en-GB")]
        async with self.opened(('oslo name "Christiania"@nb-NO', 'oslo name "Kristiania"@EN')) as graph:
            assert await graph.contains([*asked, *absent]) == stated
            page = await feature_page(graph, iri("oslo"))
        assert {Attribute(iri("oslo"), each.relation, each.value) for each in page.features} == stated
