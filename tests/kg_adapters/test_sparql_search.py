"""Names are found with whatever an endpoint has, within bounds, and the adapter says how."""

from collections.abc import Sequence

import pytest

from kg_adapters.caching import CachingAdapter
from kg_adapters.errors import BackendTimeout
from kg_adapters.http.options import TextSearch
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Candidate, RelationCandidate
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import DIALECTS, Dialect
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.search import EndpointSearch
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Iri, Literal
from kg_adapters.testing import SEARCHABLE, iri, ntriples
from sparql_stand_in import CannedEndpoint, LateEndpoint, StandInEndpoint, adapter_over, endpoint_of

CITIES = (
    'q1 label "Tokyo"@en',
    'q1 altLabel "Edo"@en',
    'q2 label "Tokyo Tower"@en',
    'q3 label "Kyoto"@en',
    'q4 label "東京"@ja',
    "q1 type City",
    "q3 type City",
    "q3 near q1",
    "q4 near q1",
    'near label "near Tokyo"@en',
    'near2 label "nearby Tokyo"@en',
    "near2 near near2",
    "q1 near2 q3",
)


def searching(
    endpoint: StandInEndpoint, index: TextSearch = "none", dialect: Dialect = DIALECTS["standard"], scanned: int = 1_000
) -> EndpointSearch:
    names = Queries.of(dialect, Vocabulary()).names
    return EndpointSearch(QueryAsker(endpoint, dialect, 10.0), names, index, scanned=scanned)


def found_by(candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
    return [(candidate.entity.local_part, candidate.matched_by) for candidate in candidates]


async def test_the_exact_name_comes_before_names_that_hold_it() -> None:
    endpoint = endpoint_of(CITIES)
    candidates = await adapter_over(endpoint).search("tokyo", limit=5)
    assert candidates[0] == Candidate(iri("q1"), 1.0, "label", "Tokyo")
    assert ("q2", "text") in found_by(candidates)
    # Two for the names, and one for what may have the word as its id.
    assert len(endpoint.asked) == 3


async def test_relations_are_found_by_all_names_of_the_surveyed_ones_which_are_asked_for_once() -> None:
    endpoint = endpoint_of((*CITIES, 'near2 altLabel "next door"@en'))
    graph = adapter_over(endpoint)
    await graph.schema()
    surveyed = len(endpoint.asked)
    assert await graph.find_relations("Next Door", limit=1) == [
        RelationCandidate(iri("near2"), 1.0, "alias", "next door")
    ]
    assert [each.relation for each in await graph.find_relations("Tokyo, near", limit=9)] == [iri("near"), iri("near2")]
    assert len(endpoint.asked) == surveyed + 1


@pytest.mark.parametrize("slip", ["Chcio", "Cico", "Chiico", "Chaco"])
async def test_a_short_word_with_a_slip_comes_before_many_that_share_more_of_its_parts(slip: str) -> None:
    others = [f'm{number} label "Marcio Cicolo Chaka {number}"@en' for number in range(250)]
    candidates = await adapter_over(endpoint_of([*others, 'q1 label "Chico"@en'])).search(slip, limit=1)
    assert found_by(candidates) == [("q1", "text")]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Zurich", "q1"),
        ("cafe central zurich", "q2"),
        ("lake", "q4"),
        ("Oxfrod", "q6"),
        ("xOford", "q6"),
        ("Oslp", "q7"),
        ("O'Hara's house", "q8"),
    ],
)
async def test_accents_and_swapped_letters_are_forgiven(text: str, name: str) -> None:
    names = (
        "Zürich",
        "Café Central Zürich",
        "Los Angeles Lakers",
        "lake",
        "lakes",
        "Oxford",
        "Oslo",
        "O\u2019Hara\u2019s  house",
    )
    # However many share the words of a name, the name itself is found.
    crowd = [f'r{number} label "{text} number {number}"@de' for number in range(300)] if text == "Zurich" else []
    endpoint = endpoint_of([*(f'q{place} label "{each}"@de' for place, each in enumerate(names, 1)), *crowd])
    found = await searching(endpoint).search(text, limit=1, type=None)
    assert [candidate.entity for candidate in found] == [iri(name)]
    assert len(endpoint.asked) == 2


async def test_a_relation_is_found_only_if_edges_are_about_it() -> None:
    candidates = await adapter_over(endpoint_of(CITIES)).search("near Tokyo", limit=9)
    assert "near" not in {candidate.entity.local_part for candidate in candidates}
    assert "near2" in {candidate.entity.local_part for candidate in candidates}


async def test_no_more_names_are_looked_through_than_allowed() -> None:
    endpoint = endpoint_of([f'a{number} label "Tokyo Tower {number}"@en' for number in range(50)])
    found = [await searching(endpoint, scanned=scanned).search("Tokyo", limit=90, type=None) for scanned in (2, 99)]
    assert [len(each) for each in found] == [2, 50]


async def test_a_look_through_that_takes_too_long_leaves_the_exact_name() -> None:
    endpoint = LateEndpoint(ntriples(SEARCHABLE), "CONTAINS")
    found = await searching(endpoint).search("Mercury", limit=5, type=None)
    assert sorted(found_by(found)) == [("element", "label"), ("planet", "label")]
    assert len(endpoint.asked) == 2
    with pytest.raises(BackendTimeout):
        await searching(endpoint).search("Mercurx", limit=5, type=None)


async def test_a_full_text_index_is_asked_where_there_is_one() -> None:
    rows = ((iri("q2"), Vocabulary().labels[0], Literal("Tokyo Tower")), (iri("q9"), None, iri("no-name")), (None,) * 3)
    endpoint = CannedEndpoint(Solutions(("s", "a", "l"), rows))
    search = searching(endpoint, "virtuoso", DIALECTS["virtuoso"])
    assert await search.search("Tokyo tower", limit=3, type=None) == [Candidate(iri("q2"), 1.0, "label", "Tokyo Tower")]
    assert ["bif:contains" in asked for asked in endpoint.asked] == [False, True]
    # Only where nothing is alike is anything looked for without it.
    await search.search("Kyoto", limit=3, type=None)
    assert ["bif:contains" in asked for asked in endpoint.asked[2:]] == [False, True, False]


def test_the_note_says_how_names_are_found() -> None:
    endpoint = endpoint_of(CITIES)
    assert "shared with the first 200,000 labels" in adapter_over(endpoint).search_note
    assert "full-text index" in searching(endpoint, "qlever").note
    assert "no full-text index" not in searching(endpoint, "qlever").note


async def test_an_alias_relation_of_the_vocabulary_makes_an_alias() -> None:
    vocabulary = Vocabulary(aliases=(Iri("http://example.org/nick"),))
    graph = adapter_over(endpoint_of(['q1 nick "Edo"', "q1 near q2"]), vocabulary=vocabulary)
    assert found_by(await graph.search("edo", limit=3)) == [("q1", "alias")]


async def test_names_that_are_alike_are_looked_for_again_where_there_was_no_time() -> None:
    endpoint = StandInEndpoint(ntriples(CITIES), [None, BackendTimeout("late")])
    graph = CachingAdapter(adapter_over(endpoint))
    few = await graph.search("Tokyo", limit=5)
    many = await graph.search("Tokyo", limit=5)
    assert 0 < len(few) < len(many)
