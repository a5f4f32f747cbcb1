"""The SPARQL adapter keeps the contract, and asks as rarely as it promises."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count, Degree, Description, Feature, FeaturePage, NeighborPage, PathRequest, SparqlAnswer
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.neighborhoods import BATCH, LabelMemory
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.surroundings import gather_surroundings
from kg_adapters.terms import RDF_LANG_STRING, XSD, Attribute, BlankNode, Fact, Iri, Literal, Node, Triple
from kg_adapters.testing import (
    BLANKS,
    HUB,
    NAMED,
    TANGLE,
    TOWNS,
    KGAdapterContract,
    ValuesContract,
    edge,
    edges,
    feature_page,
    in_order,
    iri,
    typed,
)
from kg_server.answers.paths import find_paths
from path_reference import reference_paths
from sparql_stand_in import CannedEndpoint, StandInEndpoint, adapter_over, endpoint_of, parts_of
from surrounding_values import everything

HERD = (*(f"sheep{number:03} livesIn valley" for number in range(120)), "valley partOf alps", "shepherd livesIn valley")
"""A hub with a group too large to come along whole."""
VIRTUOSO = DIALECTS["virtuoso"]


class TestSparqlAdapter(KGAdapterContract, ValuesContract):
    stable_blank_nodes = False

    async def open_graph(self, triples: str) -> KGAdapter:
        return adapter_over(StandInEndpoint(triples))


def answer(variables: str, *rows: Sequence[Iri | BlankNode | Literal | None], truncated: bool = False) -> Solutions:
    return Solutions(tuple(variables.split()), tuple(tuple(row) for row in rows), truncated=truncated)


async def test_a_page_costs_one_request_and_its_labels_none() -> None:
    endpoint = endpoint_of([*TOWNS, *NAMED, 'country label "country"@en'])
    graph = adapter_over(endpoint)
    page = (await graph.neighbors(NeighborRequest((iri("tokyo"),), limit=10)))[iri("tokyo")]
    labels = await graph.labels([iri("tokyo"), *(term for t in page.triples for term in (t.head, t.relation, t.tail))])
    assert labels == {iri("tokyo"): "Tokyo", iri("country"): "country"}
    assert len(endpoint.asked) == 1


async def test_labels_are_asked_for_again_when_they_are_old() -> None:
    endpoint, now = endpoint_of(NAMED), [100.0]
    parts = parts_of(endpoint, Queries.of(DIALECTS["standard"], Vocabulary()))
    graph = SparqlAdapter(replace(parts, memory=LabelMemory(expiry_s=60, clock=lambda: now[0])))
    found = [await graph.labels([iri("tokyo"), iri("nameless")])]
    now[0] = 159.0
    found.append(await graph.labels([iri("tokyo"), iri("nameless")]))
    assert len(endpoint.asked) == 1
    now[0] = 160.0
    found.append(await graph.labels([iri("tokyo")]))
    assert found == [{iri("tokyo"): "Tokyo"}] * 3
    assert len(endpoint.asked) == 2


def test_a_memory_of_labels_forgets_what_it_learned_first() -> None:
    memory = LabelMemory(max_labels=2)
    memory.learn({iri("a"): "A", iri("b"): None})
    memory.learn({iri("a"): "A again", BlankNode("b0"): "a blank"})
    assert memory.recall([iri("a"), iri("b"), BlankNode("b0")]) == {iri("a"): "A again", BlankNode("b0"): "a blank"}


async def test_a_page_of_a_hub_names_the_places_it_wants_in_a_second_request() -> None:
    endpoint = endpoint_of(HERD)
    graph = adapter_over(endpoint)
    first = (await graph.neighbors(NeighborRequest((iri("valley"),), limit=10)))[iri("valley")]
    expected = in_order(edges(*HERD), iri("valley"), "both")
    assert (first.triples, first.total, first.truncated) == (expected[:10], Count(122), True)
    assert len(endpoint.asked) == 2
    assert sum(endpoint.sizes) < 30
    second = (await graph.neighbors(NeighborRequest((iri("valley"),), limit=10, cursor=first.cursor)))[iri("valley")]
    assert second.triples == expected[10:20]


async def test_a_named_relation_of_a_hub_costs_one_request_a_page() -> None:
    endpoint = endpoint_of(HERD)
    graph = adapter_over(endpoint)
    wanted = frozenset({iri("livesIn")})
    page = (await graph.neighbors(NeighborRequest((iri("valley"),), direction="in", relations=wanted)))[iri("valley")]
    rest = (
        await graph.neighbors(
            NeighborRequest((iri("valley"),), direction="in", relations=wanted, limit=90, cursor=page.cursor)
        )
    )[iri("valley")]
    assert (*page.triples, *rest.triples) == in_order(edges(*HERD), iri("valley"), "in", wanted)
    assert (rest.truncated, rest.cursor) == (False, None)
    assert len(endpoint.asked) == 2


async def test_a_cursor_behind_the_end_is_refused() -> None:
    graph = adapter_over(endpoint_of(HERD))
    page = (await graph.neighbors(NeighborRequest((iri("valley"),), direction="in", limit=100)))[iri("valley")]
    shrunk = adapter_over(endpoint_of(HERD[:50]))
    with pytest.raises(InvalidRequest, match="past the end"):
        await shrunk.neighbors(NeighborRequest((iri("valley"),), direction="in", limit=100, cursor=page.cursor))


async def test_neighbors_that_vanish_between_two_requests_leave_a_shorter_page() -> None:
    class Shrinking(StandInEndpoint):
        async def query(self, text: str, **options: object) -> Solutions:
            return await super().query(text) if not self.asked else Solutions(("e", "d", "p", "o"), ())

    page = (
        await adapter_over(Shrinking(endpoint_of(HERD).triples)).neighbors(NeighborRequest((iri("valley"),), limit=5))
    )[iri("valley")]
    assert page == NeighborPage(edges("valley partOf alps"), Count(122), truncated=True, cursor=page.cursor)


async def test_any_number_of_entities_is_one_request_for_a_thousand_of_them() -> None:
    endpoint = endpoint_of(TANGLE)
    graph = adapter_over(endpoint)
    crowd = [iri(f"n{number}") for number in range(BATCH + 1)]
    pages = await graph.neighbors(NeighborRequest(tuple(crowd), direction="out", limit=3))
    degrees = await graph.degrees(crowd)
    described = await graph.describe(crowd)
    known = {iri(f"n{number}") for number in range(12)}
    assert set(pages) == set(degrees) == set(described) == known
    assert len(endpoint.asked) == 6


async def test_surroundings_are_one_request_and_those_that_neighbors_and_labels_would_give() -> None:
    named = ('n1 label "one"@en', 'n2 label "deux"@fr', 'r1 label "relation"@en')
    endpoint = endpoint_of([*TANGLE, *named])
    graph = adapter_over(endpoint)
    around = [iri("n1"), iri("n5"), iri("atlantis"), iri("n1")]
    for per_relation, per_entity in ((9, 99), (9, 7)):
        endpoint.asked.clear()
        found = await graph.surroundings(
            SurroundingsRequest(tuple(around), per_relation=per_relation, per_entity=per_entity)
        )
        assert len(endpoint.asked) == 1
        gathered = await gather_surroundings(
            graph, SurroundingsRequest(tuple(around), per_relation=per_relation, per_entity=per_entity)
        )
        assert everything(found) == everything(gathered)
    with pytest.raises(InvalidRequest):
        await graph.surroundings(SurroundingsRequest(tuple(around), per_relation=0, per_entity=5))


async def test_the_surroundings_of_a_hub_show_the_first_of_its_large_group() -> None:
    endpoint = endpoint_of(HERD)
    found = await adapter_over(endpoint).surroundings(
        SurroundingsRequest((iri("valley"),), per_relation=5, per_entity=50)
    )
    shown = {found.triple(place) for place in range(len(found))}
    assert shown == set(in_order(edges(*HERD), iri("valley"), "both", limit_per_relation=5))
    assert found.sampled == (iri("valley"),)
    assert len(endpoint.asked) == 1


async def test_even_a_group_that_sorts_behind_a_large_one_is_seen_in_surroundings() -> None:
    two = [*(f"a{number:03} in hub" for number in range(300)), *(f"z{number:03} at hub" for number in range(30))]
    found = await adapter_over(endpoint_of(two)).surroundings(
        SurroundingsRequest((iri("hub"),), per_relation=4, per_entity=50)
    )
    shown = [found.triple(place).relation for place in range(len(found))]
    assert (shown.count(iri("in")), shown.count(iri("at")) >= 1) == (4, True)


async def test_every_group_of_a_tangle_is_right_without_sorting_and_distinct_counting() -> None:
    plain = replace(DIALECTS["standard"], merges_graphs=False, orders_hubs=False)
    graph = adapter_over(endpoint_of(TANGLE), dialect=plain)
    nodes = [iri(f"n{number}") for number in range(12)]
    found = await graph.neighbors(NeighborRequest(tuple(nodes), limit=100))
    assert {node: page.triples for node, page in found.items()} == {
        node: in_order(edges(*TANGLE), node, "both") for node in nodes
    }


async def test_paths_are_those_of_the_whole_graph_with_few_requests() -> None:
    endpoint = endpoint_of(TANGLE)
    request = PathRequest(iri("n1"), iri("n8"), max_hops=3, limit=1_000)
    found = await find_paths(adapter_over(endpoint), request)
    assert found == reference_paths(set(edges(*TANGLE)), request)
    assert len(endpoint.asked) <= 5


async def test_blank_nodes_of_two_answers_are_never_the_same_and_keep_what_came_along() -> None:
    endpoint = endpoint_of([*BLANKS, '_:ward height "3"', "_:ward type Ward"])
    graph = adapter_over(endpoint)
    pages = [await graph.neighbors(NeighborRequest((iri("tokyo"),), direction="in", limit=9)) for _ in range(2)]
    heads = [page[iri("tokyo")].triples[0].head for page in pages]
    # The first blank node that is met costs a request more; a graph without any never asks for what they hold.
    assert (len(set(heads)), len(endpoint.asked)) == (2, 3)
    assert [" AS ?b)" in query for query in endpoint.asked] == [False, True, True]
    for head in heads:
        page = (await graph.neighbors(NeighborRequest((head,), "both", limit=9, values=True)))[head]
        relations = frozenset({iri("partOf"), iri("nothing")})
        over = await graph.neighbors(NeighborRequest((head,), "out", relations, limit=1))
        around = await graph.surroundings(SurroundingsRequest((head,), per_relation=9, per_entity=9, values=True))
        assert {fact.relation for fact in page.facts} == {iri("height"), iri("near"), iri("partOf"), iri("type")}
        assert over[head].facts == (Triple(head, iri("partOf"), iri("tokyo")),)
        assert {around.fact(place) for place in range(len(around))} == set(page.facts)
        assert await graph.labels([head]) == {head: "a ward without a name"}
        assert (await feature_page(graph, head)).features == (Feature(iri("height"), Literal("3")),)
        assert (await graph.describe([head]), await graph.degrees([head])) == ({}, {})
    assert len(endpoint.asked) == 3


async def test_blank_nodes_that_hold_too_much_are_not_opened() -> None:
    held = [f"_:ward near town{number}" for number in range(3_000)]
    graph = adapter_over(endpoint_of([*BLANKS, *held]))
    around = await graph.neighbors(NeighborRequest((iri("tokyo"),), direction="in", limit=9))
    (fact,) = around[iri("tokyo")].triples
    assert await graph.neighbors(NeighborRequest((fact.head,), limit=9)) == {}


async def test_a_blank_node_with_a_name_of_its_engine_can_be_asked_about() -> None:
    ward = BlankNode("b10")
    rows = [(Literal("nodeID://b10"), Literal("out"), iri("near"), iri("x"))]
    endpoint = CannedEndpoint(
        answer("e d p o n", *((*row, None) for row in rows), (ward, Literal("self"), None, None, None))
    )
    graph = adapter_over(endpoint, dialect=VIRTUOSO)
    found = await graph.surroundings(SurroundingsRequest((ward,), per_relation=1, per_entity=9))
    assert "<nodeID://b10>" in endpoint.asked[0]
    assert found.entities == (ward,)


def test_prefixes_refuse_blank_nodes_that_no_query_can_name() -> None:
    refusing = Prefixes({"ex": "http://example.org/"}, blank_nodes=False)
    with pytest.raises(InvalidRequest, match="renames in every answer"):
        refusing.expand("_:b0")
    assert refusing.shorten(BlankNode("b0")) == "_:b0"
    assert Prefixes().expand("_:b0") == BlankNode("b0")


async def test_an_answer_that_the_endpoint_cut_gives_counts_that_are_lower_bounds() -> None:
    number = Literal("3", Iri(XSD + "integer"))
    rows = (
        (iri("a"), Literal("self"), None, None, None),
        (iri("a"), Literal("out"), iri("r"), number, None),
        (iri("a"), Literal("out"), iri("r"), None, iri("b")),
        (iri("a"), Literal("all"), None, number, None),
        (iri("unasked"), Literal("out"), iri("r"), None, iri("b")),
        (iri("a"), Literal("out"), None, None, iri("b")),
    )
    graph = adapter_over(CannedEndpoint(answer("e d p n o", *rows, truncated=True)))
    page = (await graph.neighbors(NeighborRequest((iri("a"),), direction="out", limit=9)))[iri("a")]
    assert page == NeighborPage((edge("a r b"),), Count(3, exact=False), truncated=True)
    degree: Degree = (await graph.degrees([iri("a")]))[iri("a")]
    assert (degree.neighbors, [each.count for each in degree.relations]) == (Count(3, False), [Count(3, False)])


async def test_what_a_cut_answer_does_not_mention_is_not_taken_for_unknown() -> None:
    graph = adapter_over(CannedEndpoint(Solutions((), (), truncated=True)))
    for question in (
        graph.neighbors(NeighborRequest((iri("a"),), direction="out", limit=9)),
        graph.surroundings(SurroundingsRequest((iri("a"),), per_relation=9, per_entity=9)),
        graph.degrees([iri("a")]),
        graph.describe([iri("a")]),
        graph.labels([iri("a")]),
        graph.select("SELECT ?s { ?s ?p ?o }", timeout_s=5, max_rows=9),
        graph.select("ASK { ?s ?p ?o }", timeout_s=5, max_rows=9),
    ):
        with pytest.raises(BackendTimeout, match="only a part of its answer"):
            await question
    await graph.aclose()


async def test_a_cut_answer_does_not_teach_that_there_is_no_label() -> None:
    rows = ((iri("a"), Literal("self"), None, None, None), (iri("a"), Literal("out"), iri("r"), None, iri("b")))
    cut = answer("e d p n o", *rows, truncated=True)
    memory = LabelMemory()
    graph = SparqlAdapter(
        replace(parts_of(CannedEndpoint(cut), Queries.of(DIALECTS["standard"], Vocabulary())), memory=memory)
    )
    await graph.neighbors(NeighborRequest((iri("a"),), direction="out", limit=9))
    assert memory.recall([iri("b")]) == {}


async def test_rows_that_are_no_terms_do_not_make_an_answer_a_part_of_one() -> None:
    graph = adapter_over(CannedEndpoint(Solutions((), (), truncated=True, unreadable=1)))
    assert await graph.describe([iri("a")]) == {}
    assert await graph.neighbors(NeighborRequest((iri("a"),), direction="out", limit=9)) == {}


@pytest.mark.parametrize(
    ("variables", "row"),
    [
        ("e d p n o", (iri("a"), Literal("out"), Literal("a text"), typed("1", "integer"), None)),
        ("e d p n o", (iri("a"), Literal("out"), iri("r"), Literal("many"), None)),
        ("e d p n o", (iri("a"), Literal("out"), iri("r"), typed("9" * 30, "integer"), None)),
        ("e d p n o", (iri("a"), Literal("out"), iri("r"), iri("b"), None)),
        ("e d p n o", (iri("a"), Literal("out"), iri("r"), None, Literal("a text"))),
        ("e d p n o", (iri("a"), iri("out"), iri("r"), None, iri("b"))),
    ],
)
async def test_a_value_of_another_kind_than_was_asked_for_is_an_error_of_the_endpoint(
    variables: str, row: Sequence[Iri | Literal | None]
) -> None:
    with pytest.raises(BackendError, match="not what was asked for"):
        await adapter_over(CannedEndpoint(answer(variables, row))).neighbors(
            NeighborRequest((iri("a"),), direction="out", limit=9)
        )


async def test_counts_in_decimals_are_counts() -> None:
    rows = ((iri("a"), Literal("all"), None, typed("2.0", "decimal"), None), (iri("a"), Literal("self"), *[None] * 3))
    graph = adapter_over(CannedEndpoint(answer("e d p n o", *rows)))
    assert await graph.degrees([iri("a")]) == {iri("a"): Degree(Count(2), ())}


async def test_rows_without_what_they_are_about_are_left_out() -> None:
    empty: list[Iri | Literal | None] = [None] * 5
    graph = adapter_over(
        CannedEndpoint(answer("t k a label o", empty, [iri("a"), Literal("entity"), None, None, None]))
    )
    assert await graph.describe([iri("a")]) == {iri("a"): Description(None, None, (), frozenset({"entity"}))}
    assert await graph.labels([iri("a")]) == {}
    assert await feature_page(graph, iri("a")) == FeaturePage((), Count(0))


async def test_the_engine_is_told_to_give_up_before_its_caller_does() -> None:
    endpoint = endpoint_of(TOWNS)
    graph = adapter_over(endpoint, dialect=VIRTUOSO)
    await graph.labels([iri("tokyo")])
    await graph.select("ASK { ?s ?p ?o }", timeout_s=60.0, max_rows=1)
    assert endpoint.parameters == [{"timeout": "9000"}, {"timeout": "54000"}]


async def test_a_limit_below_one_is_refused() -> None:
    graph = adapter_over(endpoint_of(TOWNS))
    with pytest.raises(InvalidRequest):
        await feature_page(graph, iri("tokyo"), limit=0)
    for timeout_s, max_rows in ((0.0, 5), (5.0, 0)):
        with pytest.raises(InvalidRequest):
            await graph.select("ASK { ?s ?p ?o }", timeout_s=timeout_s, max_rows=max_rows)


async def test_a_construct_query_gives_each_statement_once() -> None:
    twice = answer("subject predicate object", *[(iri("a"), iri("r"), iri("b"))] * 2)
    found = await adapter_over(CannedEndpoint(twice)).select(
        "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }", timeout_s=9, max_rows=9
    )
    triple = Triple(iri("a"), iri("r"), iri("b"))
    expected = ((triple.head, triple.relation, triple.tail),)
    assert found == SparqlAnswer("CONSTRUCT", ("subject", "predicate", "object"), expected, truncated=False)


async def test_only_the_graphs_of_the_settings_may_be_named() -> None:
    endpoint = endpoint_of(TOWNS)
    graph = adapter_over(endpoint)
    await graph.select("ASK FROM <http://example.org/graph> { ?s ?p ?o }", timeout_s=9, max_rows=9)
    with pytest.raises(InvalidRequest, match="FROM"):
        await graph.select("ASK FROM <http://example.org/other> { ?s ?p ?o }", timeout_s=9, max_rows=9)
    assert len(endpoint.asked) == 1


async def test_an_error_of_the_endpoint_reaches_the_caller_as_it_is() -> None:
    failure = BackendTimeout("The endpoint gave no answer.")
    graph = adapter_over(StandInEndpoint("", [failure]))
    with pytest.raises(BackendTimeout) as caught:
        await graph.labels([iri("tokyo")])
    assert caught.value is failure


async def test_closing_the_adapter_closes_the_endpoint() -> None:
    endpoint = endpoint_of(HUB)
    await adapter_over(endpoint).aclose()
    assert endpoint.closed == 1


async def test_an_empty_batch_asks_nothing() -> None:
    endpoint = endpoint_of(TOWNS)
    graph = adapter_over(endpoint)
    nobody: list[Node] = []
    assert (await graph.labels(nobody), await graph.describe(nobody), await graph.degrees(nobody)) == ({}, {}, {})
    assert endpoint.asked == []


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
