"""Values of Wikidata as facts: with the edges in one query, as people read them, and whether they are stated."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from kg_adapters.http.pacing import Rates
from kg_adapters.models import Count
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import RDF_LANG_STRING, XSD, Attribute, Iri, Literal, Triple
from kg_adapters.wikidata.adapter import WikidataAdapter
from kg_adapters.wikidata.opening import open_wikidata
from wikidata_stand_in import API, QUERY, WikidataStandIn, graph, running

KINDS = {"P17": "WikibaseItem", "P214": "ExternalId", "P569": "Time", "P2044": "Quantity", "P625": "GlobeCoordinate"}
NAMES = "".join(
    f'wd:{each} rdfs:label "name of {each}"@en ; wikibase:directClaim wdt:{each} ; '
    f"wikibase:propertyType wikibase:{kind} ; wikibase:claim p:{each} ; wikibase:statementValue psv:{each} .\n"
    for each, kind in {**KINDS, "P1448": "Monolingualtext"}.items()
)
TURTLE = f"""
@prefix wds: <http://www.wikidata.org/entity/statement/> .
@prefix wdv: <http://www.wikidata.org/value/> .
wd:Q1 rdfs:label "One"@en ; schema:description "the first"@en ; wdt:P17 wd:Q2 ; wdt:P214 "24602065" ;
  wdt:P569 "1749-08-28T00:00:00Z"^^xsd:dateTime ; p:P569 wds:born ;
  wdt:P625 "Point(13.4 52.5)"^^geo:wktLiteral ; wdt:P1448 "Der Erste"@de ;
  wdt:P2044 "+2544"^^xsd:decimal ; p:P2044 wds:high .
wds:born a wikibase:BestRank ; psv:P569 wdv:born .
wdv:born wikibase:timeValue "1749-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 9 .
wds:high a wikibase:BestRank ; psv:P2044 wdv:high .
wdv:high wikibase:quantityAmount "+2544"^^xsd:decimal ; wikibase:quantityUnit wd:Q11573 .
wd:Q11573 rdfs:label "metre"@en , "Meter"@de . wd:Q2 rdfs:label "Two"@en ; wdt:P2044 "+7"^^xsd:decimal .
{NAMES}"""
WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
ONE, TWO = Iri(f"{WD}Q1"), Iri(f"{WD}Q2")
FACTS = (
    Attribute(ONE, Iri(f"{WDT}P1448"), Literal("Der Erste", RDF_LANG_STRING, "de")),
    Triple(ONE, Iri(f"{WDT}P17"), TWO),
    Attribute(ONE, Iri(f"{WDT}P2044"), Literal("2544 metre")),
    Attribute(ONE, Iri(f"{WDT}P569"), Literal("1749", Iri(XSD + "gYear"))),
    Attribute(ONE, Iri(f"{WDT}P625"), Literal("52.5° N, 13.4° E")),
)
VIAF = Attribute(ONE, Iri(f"{WDT}P214"), Literal("24602065"))


@pytest.fixture
async def stand_in() -> AsyncIterator[WikidataStandIn]:
    async with running(WikidataStandIn(graph(TURTLE))) as running_one:
        yield running_one


@pytest.fixture
async def wikidata(stand_in: WikidataStandIn, tmp_path: Path) -> AsyncIterator[WikidataAdapter]:
    options = OpenOptions(tmp_path, wikidata=stand_in.options(scholarly_url=None))
    async with aclosing(await open_wikidata("", options, rates=Rates())) as graph:
        yield graph


async def test_values_come_with_the_edges_in_one_query(wikidata: WikidataAdapter, stand_in: WikidataStandIn) -> None:
    pages = await wikidata.neighbors(NeighborRequest((ONE, TWO), "out", values=True))
    assert (pages[ONE].facts, pages[ONE].total, pages[ONE].truncated) == (FACTS, Count(5), False)
    assert pages[TWO].facts == (Attribute(TWO, Iri(f"{WDT}P2044"), Literal("7", Iri(XSD + "decimal"))),)
    assert (len(stand_in.asked(QUERY)), len(stand_in.asked(API))) == (1, 0)


async def test_they_are_paged_with_the_edges(wikidata: WikidataAdapter) -> None:
    first = (await wikidata.neighbors(NeighborRequest((ONE,), "out", limit=3, values=True)))[ONE]
    assert (first.facts, first.total, first.truncated) == (FACTS[:3], Count(5), True)
    rest = (await wikidata.neighbors(NeighborRequest((ONE,), "out", limit=3, values=True, cursor=first.cursor)))[ONE]
    assert (rest.facts, rest.cursor) == (FACTS[3:], None)


async def test_ids_and_names_are_values_where_they_are_asked_for(wikidata: WikidataAdapter) -> None:
    label = Iri("http://www.w3.org/2000/01/rdf-schema#label")
    named = NeighborRequest((ONE,), "out", frozenset({VIAF.relation, label, FACTS[1].relation}), values=True)
    name = Attribute(ONE, label, Literal("One", RDF_LANG_STRING, "en"))
    assert (await wikidata.neighbors(named))[ONE].facts == (name, FACTS[1], VIAF)


async def test_what_is_shown_as_a_value_is_stated(wikidata: WikidataAdapter) -> None:
    wrong = Attribute(ONE, FACTS[2].relation, Literal("2544 foot"))
    assert await wikidata.contains([*FACTS, VIAF, wrong]) == frozenset([*FACTS, VIAF])


async def test_the_features_of_many_cost_one_query(wikidata: WikidataAdapter, stand_in: WikidataStandIn) -> None:
    others = tuple(Iri(f"{WD}P{number}") for number in (17, 214, 569, 625))
    pages = await wikidata.features(FeatureRequest((ONE, TWO, *others)))
    assert set(pages) == {ONE, TWO, *others}
    assert len(stand_in.asked(QUERY)) == 1
