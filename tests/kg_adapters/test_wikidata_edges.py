"""What of Wikidata is an edge and what a value, how far hubs are counted, and where entities are looked for."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from kg_adapters.http.pacing import Rates
from kg_adapters.models import Count, Degree, Description, Feature, FeaturePage, NeighborPage, RelationCount
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import XSD, Iri, Literal, Triple
from kg_adapters.testing import feature_page
from kg_adapters.wikidata.adapter import WikidataAdapter
from kg_adapters.wikidata.opening import open_wikidata
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
