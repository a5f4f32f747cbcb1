"""Sets over graphs that cannot work them out by themselves, and over rdflib, which reads the whole graph for them."""

import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.algebra import Hop, HopPath, Members, Minus, Reached, SetExpression, Step
from kg_adapters.errors import Unsupported
from kg_adapters.models import Count
from kg_adapters.protocol import SupportsSets
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.set_requests import Grouped, Listed, SetQuestion, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Fact
from kg_adapters.testing import edges, iri
from set_answers import agree, written
from set_expressions import graphs, questions
from small_graphs import WithoutSets

TOWNS = tuple(iri(f"town{number}") for number in range(300))
FACTS = edges(*(f"town{number} in region{number % 3}" for number in range(300)))
IN = HopPath((Hop((Step(iri("in")),)),))
HOLDS = HopPath((Hop((Step(iri("in"), "in"),)),))
IN_REGION = Reached(Members((iri("region0"),)), HOLDS)


def over(facts: list[Fact] | tuple[Fact, ...]) -> RdflibAdapter:
    return RdflibAdapter(rdflib.Graph().parse(data=written(facts), format="nt"))


@settings(max_examples=30, deadline=None)
@given(graphs(), questions(), st.integers(0, 5))
async def test_random_questions_have_the_same_answers_as_over_all_facts(
    facts: list[Fact], question: SetQuestion, limit: int
) -> None:
    request, graph = SetRequest(question, limit=limit, cell_limit=2), over(facts)
    plain = WithoutSets(graph)
    assert not isinstance(plain, SupportsSets)
    found = await compute_sets(plain, request)
    assert agree(found, await compute_sets(graph, request))
    assert {fact for witness in found.witnesses for fact in witness.facts} <= set(facts)


async def test_a_hop_is_one_request_for_many_nodes() -> None:
    graph = WithoutSets(over(FACTS))
    found = await compute_sets(graph, SetRequest(Grouped(Members(TOWNS), IN)))
    assert [group.size for group in found.groups] == [Count(100)] * 3
    assert [len(request.entities) for request in graph.requests] == [200, 100]


@pytest.mark.parametrize(("expression", "least"), [(IN_REGION, 100), (Reached(IN_REGION, IN), 1)])
async def test_where_not_all_facts_are_fetched_the_answer_is_a_lower_bound(
    expression: SetExpression, least: int
) -> None:
    graph = WithoutSets(over(FACTS))
    found = await compute_sets(graph, SetRequest(Listed(Reached(Members(TOWNS), IN))), most_facts=200)
    assert found.count == Count(3, exact=False)
    whole = await compute_sets(graph, SetRequest(Listed(expression)))
    assert whole.count == Count(least)


async def test_how_many_have_no_group_is_not_known_where_not_all_facts_are_fetched() -> None:
    found = await compute_sets(
        WithoutSets(over(FACTS)), SetRequest(Grouped(Members(TOWNS), IN), witnesses=0), most_facts=200
    )
    assert found.without == Count(0, exact=False)


async def test_what_is_left_out_of_a_difference_is_refused() -> None:
    difference = Minus((Members(TOWNS), Reached(Members(TOWNS), IN)))
    with pytest.raises(Unsupported, match="those left out could change the answer"):
        await compute_sets(WithoutSets(over(FACTS)), SetRequest(Listed(difference)), most_facts=200)
