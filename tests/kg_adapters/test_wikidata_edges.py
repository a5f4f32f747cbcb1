"""Wikidata's edges, and sets over them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pyoxigraph

from kg_adapters.http.pacing import Rates
from kg_adapters.index.sets.answers import sets_of
from kg_adapters.labels import WIKIDATA_TYPES
from kg_adapters.models import Count, Degree, Description, Feature, FeaturePage, NeighborPage, RelationCount
from kg_adapters.protocol import SupportsJoins
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest
from kg_adapters.set_requests import SetRequest
from kg_adapters.terms import XSD, Attribute, Fact, Iri, Literal, Triple
from kg_adapters.testing import feature_page, iri, typed
from kg_adapters.wikidata.adapter import WikidataAdapter
from kg_adapters.wikidata.opening import open_wikidata
from kg_adapters.wikidata.queries import VOCABULARY
from set_answers import agree, written
from set_expressions import CLASSES, FEATURES, NODES, RELATIONS, drawn
from wikidata_stand_in import QUERY, SCHOLARLY, WikidataStandIn, graph, running, wd, wdt

CITIZENS = 60
PROPERTIES = {
    "P17": "WikibaseItem",
    "P18": "CommonsMedia",
    "P27": "WikibaseItem",
    "P31": "WikibaseItem",
    "P36": "WikibaseItem",
    "P856": "Url",
}
PICTURE, PAGE = "http://commons.wikimedia.org/wiki/Special:FilePath/Tokyo.jpg", "https://www.metro.tokyo.lg.jp/"
TURTLE = (
    f"""
wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P17 wd:Q17 ; wdt:P31 wd:Q515 ; wdt:P18 <{PICTURE}> ; wdt:P856 <{PAGE}> ;
  wdt:P36 <http://www.wikidata.org/.well-known/genid/0badcafe> ; wdt:P31 _:unknown ; schema:version 7 .
wd:Q17 rdfs:label "Japan"@en , "Japon"@fr ; wdt:P36 wd:Q1490 . wd:Q515 rdfs:label "city"@en .
"""
    + "".join(f'wd:Q{2_000 + n} rdfs:label "citizen {n:02}"@en ; wdt:P27 wd:Q17 .\n' for n in range(CITIZENS))
    + "".join(
        f'wd:{each} rdfs:label "property {each}"@en ; wikibase:directClaim wdt:{each} ; '
        f"wikibase:propertyType wikibase:{kind} .\n"
        for each, kind in PROPERTIES.items()
    )
)
ARTICLES = 'wd:Q999 rdfs:label "On Tokyo"@en ; wdt:P17 wd:Q17 .'


TOKYO, JAPAN, ARTICLE = wd("Q1490"), wd("Q17"), wd("Q999")
UNKNOWN = Literal("unknown value")


@asynccontextmanager
async def opened(cache: Path, **options: object) -> AsyncGenerator[tuple[WikidataAdapter, WikidataStandIn]]:
    async with running(WikidataStandIn(graph(TURTLE), graph(ARTICLES))) as stand_in:
        told = OpenOptions(cache, wikidata=stand_in.options(**options))
        async with aclosing(await open_wikidata("", told, rates=Rates())) as adapter:
            yield adapter, stand_in


async def test_files_web_pages_and_unknown_values_are_no_neighbours(tmp_path: Path) -> None:
    edges = (Triple(TOKYO, wdt("P17"), JAPAN), Triple(TOKYO, wdt("P31"), wd("Q515")))
    async with opened(tmp_path) as (wikidata, _):
        found = await wikidata.neighbors(NeighborRequest((TOKYO,), direction="out", limit=10))
        assert found == {TOKYO: NeighborPage(edges, Count(2), truncated=False)}
        one = await wikidata.neighbors(
            NeighborRequest((TOKYO,), direction="out", relations=frozenset({wdt("P31")}), limit=10)
        )
        assert one == {TOKYO: NeighborPage(edges[1:], Count(1), truncated=False)}


async def test_files_web_pages_and_unknown_values_are_features(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, _):
        page = await feature_page(wikidata, TOKYO)
        assert [each for each in page.features if each.relation.value.startswith(wdt("P").value)] == [
            Feature(wdt("P18"), Literal(PICTURE, Iri(XSD + "anyURI"))),
            Feature(wdt("P31"), UNKNOWN),
            Feature(wdt("P36"), UNKNOWN),
            Feature(wdt("P856"), Literal(PAGE, Iri(XSD + "anyURI"))),
        ]
        pages = FeaturePage((Feature(wdt("P856"), Literal(PAGE, Iri(XSD + "anyURI"))),), Count(1))
        assert await feature_page(wikidata, TOKYO, relation=wdt("P856")) == pages


async def test_an_entity_without_a_value_stays_where_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, _):
        assert await feature_page(wikidata, JAPAN, relation=wdt("P18")) == FeaturePage((), Count(0))
        page = (await wikidata.neighbors(NeighborRequest((JAPAN,), direction="out", limit=10)))[JAPAN]
        assert page.triples == (Triple(JAPAN, wdt("P36"), TOKYO),)


async def test_what_the_scholarly_endpoint_has_no_name_for_keeps_its_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        page = (await wikidata.neighbors(NeighborRequest((ARTICLE,), direction="out", limit=10)))[ARTICLE]
        assert page.triples == (Triple(ARTICLE, wdt("P17"), JAPAN),)
        assert await wikidata.labels([ARTICLE, JAPAN]) == {ARTICLE: "On Tokyo", JAPAN: "Japan"}
        await wikidata.neighbors(NeighborRequest((ARTICLE,), direction="out", limit=10))
        assert [len(stand_in.asked(path)) for path in (QUERY, SCHOLARLY)] == [1, 2]


async def test_only_what_was_not_counted_to_the_end_is_said_to_be_more(tmp_path: Path) -> None:
    capital = RelationCount(wdt("P36"), "out", Count(1))
    async with opened(tmp_path, most_counted=40) as (wikidata, _):
        citizens = RelationCount(wdt("P27"), "in", Count(40, exact=False))
        degrees = await wikidata.degrees([JAPAN])
        assert degrees == {JAPAN: Degree(Count(41, exact=False), (capital, citizens))}
        assert await wikidata.degrees([JAPAN], direction="out") == {JAPAN: Degree(Count(1), (capital,))}


async def test_a_hub_takes_nothing_from_those_that_are_asked_about_beside_it(tmp_path: Path) -> None:
    async with opened(tmp_path, most_counted=40) as (wikidata, _):
        found = await wikidata.degrees([JAPAN, TOKYO, wd("Q515")], direction="in")
        assert found == {
            JAPAN: Degree(Count(13, exact=False), (RelationCount(wdt("P27"), "in", Count(13, exact=False)),)),
            TOKYO: Degree(Count(1), (RelationCount(wdt("P36"), "in", Count(1)),)),
            wd("Q515"): Degree(Count(1), (RelationCount(wdt("P31"), "in", Count(1)),)),
        }


async def test_a_crowd_shares_one_bound_and_says_so(tmp_path: Path) -> None:
    crowd = [JAPAN, *(wd(f"Q{2_000 + n}") for n in range(30))]
    async with opened(tmp_path, most_counted=40) as (wikidata, _):
        found = await wikidata.degrees(crowd)
        assert set(found) == set(crowd)
        assert found[JAPAN].neighbors.exact is False
        assert found[wd("Q2000")] == Degree(Count(1, exact=False), (RelationCount(wdt("P27"), "out", Count(1)),))
    async with opened(tmp_path, most_counted=40, dialect="standard", scholarly_url=None) as (wikidata, _):
        assert isinstance(wikidata, SupportsJoins)
        counts = await wikidata.neighbor_counts(crowd)
        assert {each.exact for each in counts.values()} == {False}
        assert set(counts) == set(crowd)
        assert await wikidata.neighbor_counts([TOKYO]) == {TOKYO: Count(2)}


async def test_a_relation_is_known_by_its_property_and_never_looked_for_in_statements(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        label = Iri("http://www.w3.org/2000/01/rdf-schema#label")
        found = await wikidata.describe([wdt("P36"), wdt("P99999"), label])
        roles = {term: described.roles for term, described in found.items()}
        assert roles == {wdt("P36"): {"relation"}, label: {"relation"}}
        assert found[wdt("P36")] == Description("property P36", None, (), frozenset({"relation"}))
        assert [asked.query for asked in stand_in.asked(QUERY) if "?s3 ?t ?o3" in asked.query] == []


async def test_the_schema_knows_statements_of_entities_only(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, _):
        schema = await wikidata.schema()
        assert {each.iri: each.triples for each in schema.relations} == {
            wdt("P27"): Count(CITIZENS),
            wdt("P17"): Count(1),
            wdt("P31"): Count(1),
            wdt("P36"): Count(1),
        }
        assert {each.iri: each.label for each in schema.features} == {
            wdt(each): f"property {each}" for each in ("P18", "P31", "P36", "P856")
        }


T = TypeVar("T")

QUESTIONS: Final = 40
_WD, _WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
_ITEMS = (*NODES, *CLASSES, iri("nowhere"))
_PLACES: Final[Mapping[Iri, Iri]] = {
    **{node: Iri(f"{_WD}Q{number}") for number, node in enumerate(_ITEMS, start=1)},
    **{relation: Iri(f"{_WDT}P{number}") for number, relation in enumerate((*RELATIONS, FEATURES[0]), start=1)},
    iri("type"): WIKIDATA_TYPES[0],
    iri("subClassOf"): WIKIDATA_TYPES[1],
}
A, B, C, D, E = NODES
P, Q = RELATIONS
F = FEATURES[0]
FACTS: tuple[Fact, ...] = (
    *(Triple(head, P, tail) for head, tail in ((A, B), (B, C), (C, A), (C, C), (D, B), (E, D))),
    *(Triple(head, Q, tail) for head, tail in ((A, C), (B, A), (D, E), (E, E), (C, D))),
    *(Triple(head, iri("type"), CLASSES[0]) for head in (A, B)),
    *(Triple(head, iri("type"), CLASSES[1]) for head in (C, D)),
    Triple(CLASSES[0], iri("subClassOf"), CLASSES[1]),
    *(
        Attribute(head, F, typed(text, "decimal"))
        for head, text in ((A, "1"), (A, "12"), (B, "2"), (C, "12"), (E, "2.5"))
    ),
    Attribute(D, F, typed("ab", "string")),
)


def as_wikidata(part: T) -> T:
    """Return a fact or a question in which items and properties stand for the nodes and relations."""
    if isinstance(part, Iri):
        return cast("T", _PLACES.get(part, part))
    if isinstance(part, tuple):
        return cast("T", tuple(as_wikidata(each) for each in cast("tuple[object, ...]", part)))
    if is_dataclass(part) and not isinstance(part, type):
        changed: dict[str, Any] = {each.name: as_wikidata(getattr(part, each.name)) for each in fields(part)}
        return cast("T", replace(part, **changed))
    return part


async def test_random_questions_have_the_same_answers_by_one_request_each(tmp_path: Path) -> None:
    facts = as_wikidata(FACTS)
    reference = sets_of(facts, VOCABULARY)
    store = pyoxigraph.Store()
    store.bulk_load(written(facts), pyoxigraph.RdfFormat.N_TRIPLES)
    asked: list[int] = []
    async with running(WikidataStandIn(store)) as stand_in:
        options = OpenOptions(tmp_path, wikidata=stand_in.options(scholarly_url=None))
        async with aclosing(await open_wikidata("", options, rates=Rates())) as graph:
            for question in map(as_wikidata, drawn(QUESTIONS, FACTS)):
                request, before = SetRequest(question, limit=3, cell_limit=2, witnesses=0), len(stand_in.asked(QUERY))
                assert agree(await graph.compute(request), reference.compute(request)), question
                asked.append(len(stand_in.asked(QUERY)) - before)
    assert set(asked) <= {0, 1}
    assert asked.count(1) > QUESTIONS // 2
