"""Values of entities behind an endpoint: with the edges, as features, and whether they are stated."""

from kg_adapters.models import Count, Feature, FeaturePage
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import RDF_LANG_STRING, Attribute, Fact, Literal, Triple
from kg_adapters.testing import iri, typed
from sparql_stand_in import adapter_over, endpoint_of

DATED = (
    'ship label "Ship"@en',
    'ship built "1905"',
    'ship built "1907"',
    "ship built yard",
    'ship weight "12.50"',
    "ship name yard",
    *(f'ship visit "day {number:03}"' for number in range(60)),
)


async def test_values_come_with_the_edges_and_cost_a_second_request_only_where_they_are_many() -> None:
    endpoint = endpoint_of(DATED)
    graph, ship = adapter_over(endpoint), iri("ship")
    page = (await graph.neighbors(NeighborRequest((ship,), "both", limit=5, values=True)))[ship]
    built, visits = iri("built"), [Literal(f"day {number:03}") for number in range(60)]
    assert page.facts == (
        Triple(ship, built, iri("yard")),
        Attribute(ship, built, Literal("1905")),
        Triple(ship, iri("name"), iri("yard")),
        Attribute(ship, iri("visit"), visits[0]),
        Attribute(ship, iri("weight"), Literal("12.50")),
    )
    assert (page.total, page.truncated) == (Count(65), True)
    assert len(endpoint.asked) == 2
    await graph.labels([ship, *(fact.relation for fact in page.facts), iri("yard")])
    assert len(endpoint.asked) == 2
    rest = (await graph.neighbors(NeighborRequest((ship,), "both", limit=60, values=True, cursor=page.cursor)))[ship]
    assert rest.facts == (
        Attribute(ship, built, Literal("1907")),
        *(Attribute(ship, iri("visit"), each) for each in visits[1:]),
    )


async def test_the_values_that_a_graph_holds_are_told_from_others_as_they_are_stored() -> None:
    endpoint = endpoint_of([*DATED, 'ship mark "two\\nlines"', 'ship mark "a\\u0007bell"'])
    graph, ship = adapter_over(endpoint), iri("ship")
    held: list[Fact] = [
        Attribute(ship, iri("weight"), Literal("12.50")),
        Attribute(ship, iri("mark"), Literal("two\nlines")),
        Attribute(ship, iri("mark"), Literal("a\x07bell")),
        Triple(ship, iri("name"), iri("yard")),
    ]
    others: list[Fact] = [
        Attribute(ship, iri("weight"), typed("12.50", "decimal")),
        Attribute(ship, iri("weight"), Literal("12.50", RDF_LANG_STRING, "en")),
        Attribute(ship, iri("name"), Literal("yard")),
    ]
    assert await graph.contains([*held, *others]) == frozenset(held)
    assert len(endpoint.asked) == 1


async def test_the_features_of_many_cost_one_request_and_those_of_the_talkative_one_more() -> None:
    many = [f's{number:02} size "{number}"' for number in range(40)]
    endpoint = endpoint_of([*many, *DATED])
    graph = adapter_over(endpoint)
    asked = tuple(iri(f"s{number:02}") for number in range(40))
    pages = await graph.features(FeatureRequest((*asked, iri("nobody")), limit=5))
    assert pages == {
        each: FeaturePage((Feature(iri("size"), Literal(str(place))),), Count(1)) for place, each in enumerate(asked)
    }
    assert len(endpoint.asked) == 1
    pages = await graph.features(FeatureRequest((*asked, iri("ship")), limit=5))
    assert (len(pages), len(pages[iri("ship")].features), pages[iri("ship")].total) == (41, 5, Count(64))
    assert len(endpoint.asked) == 3
    sizes = await graph.features(FeatureRequest((*asked, iri("ship")), frozenset({iri("size"), iri("weight")})))
    assert sizes[iri("ship")].features == (Feature(iri("weight"), Literal("12.50")),)
    assert len(endpoint.asked) == 4
    assert await graph.features(FeatureRequest(asked, frozenset())) == {}
