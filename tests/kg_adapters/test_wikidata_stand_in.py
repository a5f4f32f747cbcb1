"""What stands in for Wikidata answers in its shapes and holds its limits, and the client keeps to them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kg_adapters.http.pacing import SharedRate
from kg_adapters.wikidata.api import WikidataApi
from played_time import PlayedTime
from wikidata_limits import Limited, Limits
from wikidata_stand_in import WikidataStandIn, graph, running

TURTLE = """
wd:Q1490 rdfs:label "Tokyo"@en , "東京"@ja ; schema:description "capital of Japan"@en ; skos:altLabel "Tokio"@en .
wd:P17 rdfs:label "country"@en ; wikibase:propertyType wikibase:WikibaseItem .
"""
PAPER = 'wd:Q30000001 rdfs:label "On graphs"@en .'
EVERYTHING = "SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY ?s"
KNOWN, STRANGER = "kg-sextant/1 (someone@example.org) httpx2/2", "kg-sextant/1 httpx2/2"


def stand_in_of(lag_s: float = 0.0) -> WikidataStandIn:
    return WikidataStandIn(graph(TURTLE), graph(PAPER), merged={"Q404": "Q1490"}, lag_s=lag_s)


@asynccontextmanager
async def limited(played: PlayedTime, limits: Limits | None = None) -> AsyncGenerator[tuple[WikidataStandIn, Limited]]:
    """Run a stand-in that holds limits."""
    async with running(stand_in_of()) as stand_in:
        guard = Limited(stand_in.script, played.timing.clock, limits or Limits())
        stand_in.endpoint.follow(guard)
        yield stand_in, guard


@asynccontextmanager
async def api(stand_in: WikidataStandIn, played: PlayedTime, **options: object) -> AsyncGenerator[WikidataApi]:
    told = stand_in.options(**options)
    client = WikidataApi(told, pace=SharedRate("host", told.per_minute, timing=played.timing), timing=played.timing)
    try:
        yield client
    finally:
        await client.aclose()


async def test_a_stranger_s_client_is_never_refused_however_much_it_is_asked() -> None:
    played = PlayedTime()
    options: dict[str, object] = {"contact": None, "requests_per_minute": None, "timeout_s": 100.0}
    async with limited(played) as (stand_in, guard), api(stand_in, played, **options) as client:
        for _ in range(35):
            assert "Q1490" in await client.entities(["Q1490"])
    assert (guard.refusals, len(stand_in.endpoint.requests), played.elapsed_s) == ([], 35, 180.0)


async def test_a_client_that_expects_too_much_is_put_right_and_goes_on() -> None:
    played = PlayedTime()
    options: dict[str, object] = {"contact": None, "timeout_s": 100.0, "max_retries": 1}
    async with limited(played) as (stand_in, guard), api(stand_in, played, **options) as client:
        for _ in range(11):
            assert "Q1490" in await client.entities(["Q1490"])
    assert (guard.refusals, played.pauses) == (["too often"], [60.0])
