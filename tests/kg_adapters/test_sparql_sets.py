"""Questions about sets, asked of an endpoint: each in one request, and with the same answer as in plain Python."""

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pyoxigraph
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kg_adapters.algebra import (
    Best,
    Compares,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Members,
    Minus,
    NumberOf,
    Numbers,
    Operator,
    Reached,
    Step,
    Union,
    ValueOf,
)
from kg_adapters.caching import CachingAdapter
from kg_adapters.calls import watching_completeness
from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable, KGError
from kg_adapters.index.sets.answers import sets_of
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import SupportsSets
from kg_adapters.set_requests import (
    Aggregated,
    Computed,
    Ends,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    Tabled,
    Witness,
)
from kg_adapters.sparql.queries.sets import MOST_CELLS
from kg_adapters.sparql.sets import as_sparql
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Attribute, Fact, Literal
from kg_adapters.testing import edge, iri, typed
from set_answers import agree, walks_through_values, written
from set_expressions import graphs, questions
from sparql_stand_in import CannedEndpoint, StandInEndpoint, adapter_over

EXAMPLES = 40
FACTS: tuple[Fact, ...] = (
    *(edge(text) for text in ("heat type film", "ran type film", "noir subClassOf film", "m type noir")),
    *(edge(text) for text in ("heat cast ann", "heat cast bob", "ran cast bob", "m cast cid", "ann born rome")),
    *(Attribute(iri(head), iri("length"), typed(text, "integer")) for head, text in (("heat", "170"), ("m", "99"))),
)
KNOWN = Prefixes(
    {
        "ex": "http://example.org/",
        "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    }
)
FILMS = Instances(iri("film"))
CAST = HopPath((Hop((Step(iri("cast")),)),))
OF_CAST = HopPath((Hop((Step(iri("cast"), "in"),)),))
LENGTH = HopPath((Hop((Step(iri("length")),)),))
LONG = Kept(FILMS, Compares(LENGTH, ">", typed("100", "integer")))
QUESTIONS: Sequence[SetQuestion] = (
    Listed(Intersect((Reached(Members((iri("ann"),)), OF_CAST), Reached(Members((iri("bob"),)), OF_CAST)))),
    Listed(Minus((FILMS, Kept(FILMS, Linked(CAST, Members((iri("bob"),))))))),
    Listed(Union((LONG, Best(FILMS, NumberOf(CAST), 2)))),
    Listed(Best(Kept(FILMS, Numbers(CAST, ">=", 1)), ValueOf(LENGTH))),
    Aggregated(FILMS, ValueOf(LENGTH), "mean"),
    Aggregated(FILMS, ValueOf(LENGTH), "max"),
    Grouped(FILMS, CAST),
    Tabled(FILMS, (Ends(CAST), NumberOf(CAST), Ends(LENGTH))),
    SharedBy((Members((iri("heat"),)), Members((iri("ran"),)))),
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(graphs(), questions(), st.integers(0, 5))
async def test_random_questions_have_the_same_answers_as_over_an_index(
    facts: list[Fact], question: SetQuestion, limit: int
) -> None:
    assume(not walks_through_values(question, facts))
    request = SetRequest(question, limit=limit, cell_limit=2)

    found = await adapter_over(StandInEndpoint(written(facts))).compute(request)

    assert agree(found, sets_of(facts, Vocabulary()).compute(request))
    assert {fact for witness in found.witnesses for fact in witness.facts} <= set(facts)


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_question_is_one_request_and_one_or_two_more_for_the_evidence(question: SetQuestion) -> None:
    endpoint = StandInEndpoint(written(FACTS))
    graph = adapter_over(endpoint)

    unshown = await graph.compute(SetRequest(question, witnesses=0))
    assert agree(unshown, sets_of(FACTS, Vocabulary()).compute(SetRequest(question)))
    assert len(endpoint.asked) == 1

    shown = await graph.compute(SetRequest(question))
    assert shown.witnesses
    assert all(witness.facts for witness in shown.witnesses)
    # Which members a sum or mean is shown by is asked first.
    assert len(endpoint.asked) <= 4


async def test_what_shows_a_result_leads_to_it_in_order() -> None:
    births = HopPath((*CAST.hops, Hop((Step(iri("born")),))))
    found = await adapter_over(StandInEndpoint(written(FACTS))).compute(SetRequest(Listed(Reached(LONG, births))))

    film, length = iri("heat"), Attribute(iri("heat"), iri("length"), typed("170", "integer"))
    told = (edge("heat type film"), length, edge("heat cast ann"), edge("ann born rome"))
    assert found == Computed(Count(1), members=(iri("rome"),), witnesses=(Witness(iri("rome"), told),))
    assert film in {fact.head for fact in told}


class WithoutEvidence(StandInEndpoint):
    """Answers the first query; the others fail, or have no answer."""

    def __init__(self, triples: str, failure: KGError | None) -> None:
        super().__init__(triples)
        self._failure = failure
        self.deadlines: list[float] = []

    async def answer(self, text: str, timeout_s: float | None, max_rows: int | None) -> Solutions:
        if len(self.asked) > 1:
            self.deadlines.append(anyio.current_effective_deadline())
            if self._failure is not None:
                raise self._failure
            await anyio.sleep_forever()
        return await super().answer(text, timeout_s, max_rows)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (None, "did not send it within"),
        (BackendUnavailable("It is down."), "It is down"),
        (BackendError("Bad."), "Bad"),
    ],
)
async def test_an_answer_comes_in_time_without_its_evidence_where_that_is_late_or_fails(
    failure: KGError | None, reason: str
) -> None:
    endpoint = WithoutEvidence(written(FACTS), failure)
    request, start = SetRequest(QUESTIONS[2], timeout_s=1.0), anyio.current_time()
    with watching_completeness() as seen:
        found = await adapter_over(endpoint).compute(request)
    assert agree(replace(found, without_witnesses=""), sets_of(FACTS, Vocabulary()).compute(request))
    assert reason in found.without_witnesses
    assert seen.partial
    assert max(endpoint.deadlines) < start + request.timeout_s


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
async def test_years_of_more_than_four_digits_compare_with_others(operator: Operator) -> None:
    dates = (("far", "12000-01-01", "date"), ("old", "-0044-03-15", "date"), ("new", "2000", "gYear"))
    facts = tuple(Attribute(iri(head), iri("began"), typed(text, kind)) for head, text, kind in dates)
    among, began = Members(tuple(iri(head) for head, *_ in dates)), HopPath((Hop((Step(iri("began")),)),))
    for wanted in (typed("1977", "gYear"), typed("2000-05-01", "date"), typed("11000", "gYear")):
        question = Listed(Kept(among, Compares(began, operator, wanted)))
        found = await adapter_over(StandInEndpoint(written(facts))).compute(SetRequest(question, witnesses=0))
        assert agree(found, sets_of(facts, Vocabulary()).compute(SetRequest(question))), wanted


async def test_an_answer_that_was_cut_is_a_lower_bound() -> None:
    row = (Literal("count"), typed("684", "integer"), None, None, None, None)
    endpoint = CannedEndpoint(Solutions(("d", "n", "m", "x", "y", "p"), (row,), truncated=True))

    found = await adapter_over(endpoint).compute(SetRequest(Listed(FILMS), limit=0))

    assert found == Computed(Count(684, exact=False))


@pytest.mark.parametrize(
    "question",
    [
        Aggregated(FILMS, ValueOf(LENGTH), "sum"),
        Listed(Best(FILMS, ValueOf(LENGTH))),
        Listed(Minus((FILMS, LONG))),
        Listed(Kept(FILMS, Numbers(CAST, "<", 2))),
    ],
)
async def test_a_part_of_an_answer_is_none_where_the_rest_could_change_it(question: SetQuestion) -> None:
    numbers = [("count", "3"), ("of", "3"), ("with", "2")]
    rows = [(Literal(about), typed(number, "integer"), None, None, None, None) for about, number in numbers]
    total = (Literal("sum"), None, typed("269", "double"), None, None, None)
    columns = ("d", "n", "m", "x", "y", "p")
    endpoint = CannedEndpoint(Solutions(columns, (*rows, total), truncated=True))
    with pytest.raises(BackendTimeout, match="only a part of its answer"):
        await adapter_over(endpoint).compute(SetRequest(question, limit=0))


async def test_how_many_have_no_group_is_not_known_where_only_a_part_was_counted() -> None:
    rows = [
        (Literal(about), typed(number, "integer"), None, None, None, None)
        for about, number in (("count", "2"), ("of", "684"), ("with", "3"))
    ]
    endpoint = CannedEndpoint(Solutions(("d", "n", "m", "x", "y", "p"), tuple(rows), truncated=True))
    found = await adapter_over(endpoint).compute(SetRequest(Grouped(FILMS, CAST), limit=0))
    assert found == Computed(Count(2, exact=False), without=Count(0, exact=False))


async def test_a_row_whose_cells_did_not_fit_is_not_said_to_have_none() -> None:
    crowd = tuple(edge(f"big cast person{number:05}") for number in range(MOST_CELLS))
    facts = (*crowd, edge("big type film"), edge("late type film"), edge("late cast ann"))
    question = Tabled(FILMS, (Ends(CAST), NumberOf(CAST)))

    found = await adapter_over(StandInEndpoint(written(facts))).compute(SetRequest(question, cell_limit=2, witnesses=0))

    ends, numbers = zip(*(row.cells for row in found.rows), strict=True)
    assert not any(cell.count.exact for cell in ends)
    assert [cell.count for cell in numbers] == [Count(MOST_CELLS), Count(1)]


async def test_an_answer_that_does_not_even_count_is_none() -> None:
    endpoint = CannedEndpoint(Solutions(("d", "n", "m", "x", "y", "p"), (), truncated=True))
    with pytest.raises(BackendTimeout, match="only a part of its answer"):
        await adapter_over(endpoint).compute(SetRequest(Listed(FILMS)))


async def test_only_as_much_is_asked_for_as_is_wanted() -> None:
    endpoint = StandInEndpoint(written(FACTS))
    found = await adapter_over(endpoint).compute(SetRequest(Listed(FILMS), limit=2, witnesses=0))
    assert (found.count, found.members) == (Count(3), (iri("heat"), iri("m")))
    assert endpoint.sizes[0] == 3


async def test_a_question_that_was_answered_is_not_asked_again() -> None:
    endpoint = StandInEndpoint(written(FACTS))
    graph = CachingAdapter(adapter_over(endpoint))
    assert isinstance(graph, SupportsSets)
    request = SetRequest(Grouped(FILMS, CAST), witnesses=0)
    assert await graph.compute(request) == await graph.compute(request)
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("question", "query"),
    [
        (
            Listed(Reached(Members((iri("ann"),)), OF_CAST)),
            "SELECT DISTINCT ?x { ?x ex:cast ex:ann . } ORDER BY STR(?x)",
        ),
        (
            Listed(LONG),
            "SELECT DISTINCT ?x { ?x rdf:type ?v1 . ?v1 rdfs:subClassOf* ex:film . ?x ex:length ?v2 . "
            "FILTER(isNumeric(?v2) && ?v2 > 100) } ORDER BY STR(?x)",
        ),
        (
            Grouped(Members((iri("heat"), iri("ran"))), CAST),
            "SELECT ?x (COUNT(DISTINCT ?member) AS ?n) { VALUES ?member { ex:heat ex:ran } ?member ex:cast ?x . } "
            "GROUP BY ?x ORDER BY DESC(?n) isLiteral(?x) STR(?x) LANG(?x) STR(DATATYPE(?x))",
        ),
    ],
)
def test_a_question_is_explained_as_sparql_with_prefixes(question: SetQuestion, query: str) -> None:
    text = as_sparql(question, Vocabulary(), KNOWN)
    assert text.endswith(f"> {query}")
    assert pyoxigraph.Store().query(text) is not None


def test_every_question_is_explained_by_a_query_that_engines_read() -> None:
    for question in QUESTIONS:
        pyoxigraph.Store().query(as_sparql(question, Vocabulary(), KNOWN))
    counted = as_sparql(Listed(FILMS), Vocabulary(), KNOWN, only_count=True)
    assert "SELECT (COUNT(DISTINCT ?x) AS ?n) { ?x rdf:type ?v1 . ?v1 rdfs:subClassOf* ex:film . }" in counted
