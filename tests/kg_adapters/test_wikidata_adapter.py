"""Wikidata as a graph: truthy edges, names in the languages asked for, values as people read them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.http.pacing import Rates
from kg_adapters.models import (
    Candidate,
    Count,
    Degree,
    Description,
    Feature,
    FeaturePage,
    NeighborPage,
    RelationCandidate,
    RelationCount,
)
from kg_adapters.protocol import KGAdapter, SupportsFeatureNote, SupportsSearchNote
from kg_adapters.registry import OpenOptions, open_graph
from kg_adapters.requests import NeighborRequest, SurroundingsRequest
from kg_adapters.terms import RDF_LANG_STRING, XSD, Iri, Literal, Node, Triple
from kg_adapters.testing import feature_page
from kg_adapters.wikidata.adapter import WikidataAdapter
from kg_adapters.wikidata.opening import open_wikidata
from wikidata_stand_in import API, QUERY, SCHOLARLY, WikidataStandIn, graph, running, wd, wdt

FANS = 40
PROPERTIES = {
    "P17": ("country", "WikibaseItem"),
    "P31": ("instance of", "WikibaseItem"),
    "P39": ("position held", "WikibaseItem"),
    "P214": ("VIAF ID", "ExternalId"),
    "P279": ("subclass of", "WikibaseItem"),
    "P569": ("date of birth", "Time"),
    "P580": ("start time", "Time"),
    "P625": ("coordinate location", "GlobeCoordinate"),
    "P737": ("influenced by", "WikibaseItem"),
    "P1082": ("population", "Quantity"),
    "P1366": ("replaced by", "WikibaseItem"),
    "P2046": ("area", "Quantity"),
}
TURTLE = (
    """
wd:Q5879 rdfs:label "Goethe"@en , "Goethe (fr)"@fr ; schema:description "German writer"@en ;
  skos:altLabel "J. W. Goethe"@en , "von Goethe"@de ;
  wdt:P31 wd:Q5 ; wdt:P17 wd:Q183 ; wdt:P39 wd:Q83307 ; wdt:P214 "24602065" ;
  wdt:P569 "1749-08-28T00:00:00Z"^^xsd:dateTime ;
  schema:version 7 ; rdfs:seeAlso wd:Q183 ;
  p:P569 wds:born ; p:P39 wds:held .
wds:born a wikibase:BestRank ; ps:P569 "1749-08-28T00:00:00Z"^^xsd:dateTime ; psv:P569 wdv:born .
wdv:born wikibase:timeValue "1749-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 9 .
wds:held a wikibase:BestRank ; ps:P39 wd:Q83307 ; pq:P580 "1782-01-01T00:00:00Z"^^xsd:dateTime ; pq:P1366 wd:Q64 .
wd:Q83307 rdfs:label "minister"@en . wd:Q183 rdfs:label "Germany"@en , "Allemagne"@fr ; wdt:P31 wd:Q6256 .
wd:Q6256 rdfs:label "country"@en . wd:Q5 rdfs:label "human"@en ; wdt:P279 wd:Q154954 .
wd:Q64 rdfs:label "Berlin"@en ; wdt:P31 wd:Q515 ; wdt:P17 wd:Q183 ; wdt:P625 "Point(13.4 52.5)"^^geo:wktLiteral ;
  wdt:P1082 "+3755251"^^xsd:decimal ; wdt:P2046 "+891.3"^^xsd:decimal ; p:P2046 wds:area ; p:P1082 wds:people .
wds:area a wikibase:BestRank ; psv:P2046 wdv:area .
wdv:area wikibase:quantityAmount "+891.3"^^xsd:decimal ; wikibase:quantityUnit wd:Q712226 .
wds:people a wikibase:BestRank ; psv:P1082 wdv:people .
wdv:people wikibase:quantityAmount "+3755251"^^xsd:decimal ; wikibase:quantityUnit wd:Q199 .
wd:Q712226 rdfs:label "square kilometre"@en . wd:Q154954 rdfs:label "natural person"@en .
wd:Q515 rdfs:label "city"@en ; wdt:P279 wd:Q486972 . wd:Q614184 rdfs:label "Berlin, Maryland"@en ; wdt:P31 wd:Q3957 .
wd:Q404 owl:sameAs wd:Q5879 . wd:Q9 rdfs:label "nur deutsch"@de ; wdt:P17 wd:Q183 . wd:Q10 rdfs:label "all"@mul .
"""
    + "".join(
        f'wd:Q{2_000 + n} rdfs:label "fan {n:02}"@en ; wdt:P737 wd:Q5879 ; wdt:P31 wd:Q5 .\n' for n in range(FANS)
    )
    + "".join(
        f'wd:{each} rdfs:label "{label}"@en ; wikibase:directClaim wdt:{each} ; '
        f"wikibase:propertyType wikibase:{kind} ; "
        f"wikibase:claim p:{each} ; wikibase:statementProperty ps:{each} ; wikibase:statementValue psv:{each} ; "
        f"wikibase:qualifier pq:{each} .\n"
        for each, (label, kind) in PROPERTIES.items()
    )
)
ARTICLES = """
wd:Q55001 rdfs:label "On Faust"@en ; wdt:P31 wd:Q13442814 ; wdt:P50 wd:Q5879 .
"""
PREFIXES = (
    "@prefix wds: <http://www.wikidata.org/entity/statement/> .\n@prefix wdv: <http://www.wikidata.org/value/> .\n"
)


GOETHE, OLD_GOETHE, GERMANY, HUMAN = wd("Q5879"), wd("Q404"), wd("Q183"), wd("Q5")


@asynccontextmanager
async def opened(cache: Path, **options: object) -> AsyncGenerator[tuple[WikidataAdapter, WikidataStandIn]]:
    stand_in = WikidataStandIn(graph(PREFIXES + TURTLE), graph(ARTICLES), merged={"Q404": "Q5879"})
    async with running(stand_in):
        told = OpenOptions(cache, wikidata=stand_in.options(**options))
        async with aclosing(await open_wikidata("", told, rates=Rates())) as adapter:
            yield adapter, stand_in


def far(page: NeighborPage, entity: Node) -> list[Node]:
    return [triple.tail if triple.head == entity else triple.head for triple in page.triples]


async def test_only_truthy_statements_between_items_are_edges(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, _):
        found = await wikidata.neighbors(NeighborRequest((GOETHE, wd("Q99")), direction="out", limit=10))
        triples = tuple(
            Triple(GOETHE, wdt(relation), wd(tail))
            for relation, tail in (("P17", "Q183"), ("P31", "Q5"), ("P39", "Q83307"))
        )
        assert found == {GOETHE: NeighborPage(triples, Count(3), truncated=False)}


async def test_a_hub_is_paged_through_and_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, _):
        seen: list[Node] = []
        cursor: str | None = None
        while True:
            found = await wikidata.neighbors(NeighborRequest((GOETHE,), direction="in", limit=15, cursor=cursor))
            page = found[GOETHE]
            assert page.total == Count(FANS)
            seen += far(page, GOETHE)
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(map(str, seen)) == sorted(str(wd(f"Q{2_000 + n}")) for n in range(FANS))
        influenced = RelationCount(wdt("P737"), "in", Count(FANS))
        assert (await wikidata.degrees([GOETHE], direction="in"))[GOETHE] == Degree(Count(FANS), (influenced,))


async def test_a_hub_with_more_edges_than_are_looked_at_has_at_least_so_many(tmp_path: Path) -> None:
    async with opened(tmp_path, most_counted=25) as (wikidata, _):
        page = (await wikidata.neighbors(NeighborRequest((GOETHE,), direction="in", limit=5)))[GOETHE]
        assert page.total == Count(FANS, exact=False)
        assert len(page.triples) == 5
        assert page.truncated
        degree = (await wikidata.degrees([GOETHE], direction="in"))[GOETHE]
        assert degree.neighbors == Count(25, exact=False)
        assert degree.relations == (RelationCount(wdt("P737"), "in", Count(25, exact=False)),)


async def test_labels_follow_the_languages_and_are_asked_for_once(tmp_path: Path) -> None:
    async with opened(tmp_path, languages=("fr",)) as (wikidata, stand_in):
        terms = [GOETHE, GERMANY, HUMAN, wd("Q9"), wd("Q10"), wdt("P17"), wd("P17"), Iri("http://example.org/x")]
        expected = {
            GOETHE: "Goethe (fr)",
            GERMANY: "Allemagne",
            HUMAN: "human",
            wd("Q9"): "nur deutsch",
            wd("Q10"): "all",
            wdt("P17"): "country",
            wd("P17"): "country",
        }
        assert await wikidata.labels(terms) == expected
        asked = len(stand_in.endpoint.requests)
        assert await wikidata.labels(terms) == expected
        # The second one asked for a name in any language.
        assert len(stand_in.endpoint.requests) == asked == 2


async def test_names_that_came_along_with_edges_are_not_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        await wikidata.neighbors(NeighborRequest((GOETHE,), direction="out", limit=10))
        assert await wikidata.labels([GERMANY, HUMAN]) == {GERMANY: "Germany", HUMAN: "human"}
        assert stand_in.asked(API) == []


async def test_entities_and_relations_are_described(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, _):
        assert await wikidata.describe([GOETHE, wdt("P17"), wdt("P99"), wd("Q77")]) == {
            GOETHE: Description("Goethe", "German writer", (HUMAN,), frozenset({"entity"})),
            wdt("P17"): Description("country", None, (), frozenset({"relation"})),
        }


async def test_properties_are_found_by_name_whatever_their_values_are(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        assert await wikidata.find_relations("Date of Birth", limit=3) == [
            RelationCandidate(wdt("P569"), 1.0, "label", "date of birth")
        ]
        assert [each.relation for each in await wikidata.find_relations("country", limit=3)] == [wdt("P17")]
        assert await wikidata.find_relations("c", limit=3) == []
        assert [asked.parameters["type"] for asked in stand_in.asked(API)] == [["property"]] * 3
        assert stand_in.asked(QUERY) == []


async def test_what_was_merged_answers_with_what_the_new_entity_has(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        described = await wikidata.describe([OLD_GOETHE, GOETHE])
        assert described[OLD_GOETHE].description == "merged into Q5879: German writer"
        assert described[OLD_GOETHE].label == described[GOETHE].label == "Goethe"
        asked = len(stand_in.asked(API))
        pages = await wikidata.neighbors(NeighborRequest((OLD_GOETHE,), limit=4))
        assert {OLD_GOETHE} == {each for triple in pages[OLD_GOETHE].triples for each in (triple.head, triple.tail)} - {
            *far(pages[OLD_GOETHE], OLD_GOETHE)
        }
        assert (await wikidata.degrees([OLD_GOETHE]))[OLD_GOETHE] == (await wikidata.degrees([GOETHE]))[GOETHE]
        assert await feature_page(wikidata, OLD_GOETHE) == await feature_page(wikidata, GOETHE)
        around = await wikidata.surroundings(SurroundingsRequest((OLD_GOETHE,), per_relation=5, per_entity=50))
        assert around.entities == (OLD_GOETHE,)
        assert around.triple(0) == Triple(OLD_GOETHE, wdt("P17"), GERMANY)
        assert len(stand_in.asked(API)) == asked + 1


async def test_a_triple_is_there_under_an_old_id_and_at_the_scholarly_endpoint_too(tmp_path: Path) -> None:
    there = [
        Triple(GOETHE, wdt("P31"), HUMAN),
        Triple(OLD_GOETHE, wdt("P17"), GERMANY),
        Triple(wd("Q2000"), wdt("P737"), OLD_GOETHE),
        Triple(wd("Q55001"), wdt("P50"), GOETHE),
    ]
    absent = [
        Triple(HUMAN, wdt("P31"), GOETHE),
        Triple(wd("Q77"), wdt("P31"), HUMAN),
        Triple(GOETHE, Iri("http://www.w3.org/2000/01/rdf-schema#seeAlso"), GERMANY),
    ]
    async with opened(tmp_path) as (wikidata, stand_in):
        assert await wikidata.contains([*there, *absent]) == frozenset(there)
        asked = len(stand_in.asked(QUERY)), len(stand_in.asked(API))
        assert await wikidata.contains(there) == frozenset(there)
        assert (len(stand_in.asked(QUERY)), len(stand_in.asked(API))) == (asked[0] + 1, asked[1])


async def test_what_was_deleted_is_unknown(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        gone = wd("Q77")
        assert await wikidata.describe([gone]) == {}
        assert await wikidata.neighbors(NeighborRequest((gone,), direction="out", limit=5)) == {}
        assert await wikidata.degrees([gone]) == {}
        assert await feature_page(wikidata, gone) == FeaturePage((), Count(0))
        assert stand_in.asked(SCHOLARLY) == []


async def test_articles_are_looked_for_at_the_scholarly_endpoint(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        article = wd("Q55001")
        assert (await wikidata.describe([article]))[article].label == "On Faust"
        page = (await wikidata.neighbors(NeighborRequest((article, GOETHE), direction="out", limit=10)))[article]
        assert far(page, article) == [wd("Q13442814"), GOETHE]
        around = await wikidata.surroundings(SurroundingsRequest((article,), per_relation=5, per_entity=50))
        assert [around.triple(edge) for edge in range(len(around))] == list(page.triples)
        assert around.relation_labels[0] == "instance of"
        assert len(stand_in.asked(SCHOLARLY)) == 3


async def test_the_edges_around_many_entities_cost_one_query_and_name_relations_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        seeds = [GOETHE, GERMANY, wd("Q64")]
        around = await wikidata.surroundings(SurroundingsRequest(tuple(seeds), per_relation=5, per_entity=50))
        assert around.relation_labels == ["country", "instance of", "position held", "influenced by"]
        assert set(around.far_labels) >= {"Germany", "human", "Berlin", "fan 00"}
        assert around.sampled == (GOETHE,)
        await wikidata.surroundings(SurroundingsRequest(tuple(seeds), per_relation=5, per_entity=50))
        assert len(stand_in.asked(QUERY)) == 2
        assert len(stand_in.asked(API)) == 1


async def test_features_have_precision_and_units_and_leave_out_external_ids(tmp_path: Path) -> None:
    label, description = Iri("http://www.w3.org/2000/01/rdf-schema#label"), Iri("http://schema.org/description")
    alias = Iri("http://www.w3.org/2004/02/skos/core#altLabel")
    born = Feature(wdt("P569"), Literal("1749", Iri(XSD + "gYear")))
    english = [
        Feature(description, Literal("German writer", RDF_LANG_STRING, "en")),
        Feature(label, Literal("Goethe", RDF_LANG_STRING, "en")),
        Feature(alias, Literal("J. W. Goethe", RDF_LANG_STRING, "en")),
        born,
    ]
    async with opened(tmp_path) as (wikidata, stand_in):
        assert await feature_page(wikidata, GOETHE) == FeaturePage(tuple(english), Count(4))
        assert await feature_page(wikidata, GOETHE, limit=1) == FeaturePage(tuple(english[:1]), Count(4))
        assert await feature_page(wikidata, GOETHE, relation=wdt("P569")) == FeaturePage((born,), Count(1))
        viaf = FeaturePage((Feature(wdt("P214"), Literal("24602065")),), Count(1))
        assert await feature_page(wikidata, GOETHE, relation=wdt("P214")) == viaf
        assert stand_in.asked(API) == []
        berlin = await feature_page(wikidata, wd("Q64"))
        assert [each for each in berlin.features if each.relation.value.startswith(wdt("P").value)] == [
            Feature(wdt("P1082"), Literal("3755251", Iri(XSD + "decimal"))),
            Feature(wdt("P2046"), Literal("891.3 square kilometre")),
            Feature(wdt("P625"), Literal("52.5° N, 13.4° E")),
        ]
        assert isinstance(wikidata, SupportsFeatureNote)
        assert "left out" in wikidata.feature_note
    async with opened(tmp_path, external_ids=True) as (wikidata, _):
        assert Feature(wdt("P214"), Literal("24602065")) in (await feature_page(wikidata, GOETHE)).features
        assert wikidata.feature_note == ""


async def test_qualifiers_are_shown_on_demand(tmp_path: Path) -> None:
    held = Feature(wdt("P39"), Literal("minister (replaced by: Berlin; start time: 1782-01-01)"))
    async with opened(tmp_path, qualifiers=True) as (wikidata, _):
        assert held in (await feature_page(wikidata, GOETHE)).features
        assert await feature_page(wikidata, GOETHE, relation=wdt("P39")) == FeaturePage((held,), Count(1))
    async with opened(tmp_path) as (wikidata, _):
        assert held not in (await feature_page(wikidata, GOETHE)).features


async def test_a_mirror_without_statements_shows_plain_values(tmp_path: Path) -> None:
    truthy = 'wd:Q1 rdfs:label "one"@en ; wdt:P569 "1749-08-28T00:00:00Z"^^xsd:dateTime ; wdt:P214 "7" .'
    async with running(WikidataStandIn(graph(truthy))) as stand_in:
        told = stand_in.options(query_url="http://127.0.0.1:9/elsewhere")
        options = OpenOptions(tmp_path, wikidata=told)
        async with aclosing(await open_wikidata(stand_in.endpoint.url, options, rates=Rates())) as wikidata:
            page = await feature_page(wikidata, wd("Q1"))
            assert [each.value.value for each in page.features if each.relation == wdt("P569")] == ["1749-08-28"]
            assert stand_in.asked(SCHOLARLY) == []


async def test_names_are_searched_by_wikidata_itself(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        assert await wikidata.search("BERLIN", limit=5) == [
            Candidate(wd("Q64"), 1.0, "label", "Berlin"),
            Candidate(wd("Q614184"), 0.9, "label", "Berlin, Maryland"),
        ]
        assert await wikidata.search("j. w. goethe", limit=1) == [Candidate(GOETHE, 1.0, "alias", "J. W. Goethe")]
        assert stand_in.asked(QUERY) == []
        assert [each.entity for each in await wikidata.search("Berlin", limit=5, type=wd("Q515"))] == [wd("Q64")]
        assert [each.entity for each in await wikidata.search("Berlin", limit=5, type=wd("Q486972"))] == [wd("Q64")]
        assert len(stand_in.asked(QUERY)) == 2
        assert await wikidata.search("nobody at all", limit=5, type=HUMAN) == []
        assert isinstance(wikidata, SupportsSearchNote)
        assert "Wikidata's own search" in wikidata.search_note


async def test_one_slip_of_the_pen_in_each_word_is_forgiven(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        (goethe,) = await wikidata.search("Goehte", limit=5)
        assert (goethe.entity, goethe.matched_by, goethe.matched_text) == (GOETHE, "text", "Goethe")
        assert len(stand_in.asked(API)) == 3
        (maryland,) = await wikidata.search("Berlin Marylnad", limit=5)
        assert maryland.matched_text == "Berlin, Maryland"
        assert await wikidata.search("Nowhere", limit=5) == []
        assert await wikidata.search("?!", limit=5) == []


async def test_the_schema_is_bounded_named_and_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as (wikidata, stand_in):
        schema = await wikidata.schema()
        named = {"country", "instance of", "position held", "influenced by", "subclass of"}
        assert {each.label for each in schema.relations} == named
        assert schema.classes[0].iri == HUMAN
        asked = len(stand_in.asked(QUERY))
        assert await wikidata.schema() == schema
        assert len(stand_in.asked(QUERY)) == asked


async def test_it_opens_by_name_and_remembers_answers(tmp_path: Path) -> None:
    async with running(WikidataStandIn(graph(PREFIXES + TURTLE))) as stand_in:
        options = OpenOptions(tmp_path, wikidata=stand_in.options())
        async with aclosing(await open_graph("wikidata", options)) as wikidata:
            assert isinstance(wikidata, KGAdapter)
            assert stand_in.endpoint.requests == []
            for _ in range(3):
                assert GOETHE in await wikidata.neighbors(NeighborRequest((GOETHE,), direction="out", limit=3))
            assert len(stand_in.endpoint.requests) == 1
            assert isinstance(wikidata, SupportsFeatureNote)


@pytest.mark.parametrize("mirror", ["ftp://example.org/", "nonsense", "http://user:secret@example.org/"])
async def test_a_mirror_must_have_a_url(tmp_path: Path, mirror: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^The mirror's URL cannot be used") as raised:
        await open_wikidata(mirror, OpenOptions(tmp_path))
    assert "secret" not in str(raised.value)
