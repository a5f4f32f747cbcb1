"""What stands in for Wikidata answers in its shapes and holds its limits, and the client keeps to them."""

import gzip
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import anyio
import pytest

from fault_endpoint import Asked, Wire
from kg_adapters.errors import BackendError, BackendUnavailable, InvalidRequest
from kg_adapters.http.client import EndpointClient
from kg_adapters.http.messages import HttpReply, HttpRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.http.pacing import SharedRate
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Iri
from kg_adapters.wikidata.api import WikidataApi
from played_time import PlayedTime
from wikidata_limits import Limited, Limits
from wikidata_stand_in import WikidataStandIn, as_wikidata, graph, running

TURTLE = """
wd:Q1490 rdfs:label "Tokyo"@en , "東京"@ja ; schema:description "capital of Japan"@en ; skos:altLabel "Tokio"@en .
wd:P17 rdfs:label "country"@en ; wikibase:propertyType wikibase:WikibaseItem .
"""
PAPER = 'wd:Q30000001 rdfs:label "On graphs"@en .'
EVERYTHING = "SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY ?s"
KNOWN, STRANGER = "kg-sextant/1 (someone@example.org) httpx2/2", "kg-sextant/1 httpx2/2"


def stand_in_of(lag_s: float = 0.0) -> WikidataStandIn:
    return WikidataStandIn(graph(TURTLE), graph(PAPER), merged={"Q404": "Q1490"}, lag_s=lag_s)


async def asked_of_api(stand_in: WikidataStandIn, **parameters: str) -> HttpReply:
    """Ask the web API as any program might."""
    options = stand_in.options().api_endpoint
    client = EndpointClient(options)
    told = {"format": "json", "formatversion": "2", "maxlag": "5", **parameters}
    try:
        request = HttpRequest("GET", f"{options.url}?{urlencode(told)}", ("application/json",))
        return await client.fetch(request, timeout_s=10.0)
    finally:
        await client.aclose()


async def solutions(url: str, query: str = EVERYTHING, user_agent: str = KNOWN) -> Solutions:
    """Ask an endpoint as any program might."""
    endpoint = SparqlEndpoint(EndpointOptions(url=url, user_agent=user_agent, max_retries=0, max_concurrency=20))
    try:
        return await endpoint.query(query)
    finally:
        await endpoint.aclose()


async def test_entities_have_the_texts_asked_for_and_say_whose_they_are() -> None:
    async with running(stand_in_of()) as stand_in:
        reply = await asked_of_api(
            stand_in, action="wbgetentities", ids="Q1490|Q404|Q405", languages="ja|fr", languagefallback="1"
        )
    labels = {
        "ja": {"value": "東京", "language": "ja", "for-language": "ja"},
        "fr": {"value": "Tokyo", "language": "en", "for-language": "fr"},
    }
    descriptions = {
        language: {"value": "capital of Japan", "language": "en", "for-language": language} for language in ("ja", "fr")
    }
    tokyo = {"type": "item", "id": "Q1490", "labels": labels, "descriptions": descriptions}
    assert json.loads(reply.body) == {
        "entities": {
            "Q1490": tokyo,
            "Q404": {**tokyo, "redirects": {"from": "Q404", "to": "Q1490"}},
            "Q405": {"id": "Q405", "missing": ""},
        },
        "success": 1,
    }


async def test_more_than_fifty_ids_are_refused_with_status_200() -> None:
    async with running(stand_in_of()) as stand_in:
        ids = "|".join(f"Q{number}" for number in range(1, 52))
        reply = await asked_of_api(stand_in, action="wbgetentities", ids=ids, languages="en")
    assert reply.status == 200
    assert json.loads(reply.body)["error"]["code"] == "toomanyvalues"


async def test_a_search_tells_which_text_matched() -> None:
    async with running(stand_in_of()) as stand_in:
        reply = await asked_of_api(stand_in, action="wbsearchentities", search="toki", type="item", limit="5")
    (hit,) = json.loads(reply.body)["search"]
    assert (hit["id"], hit["match"]) == ("Q1490", {"type": "alias", "language": "en", "text": "Tokio"})


async def test_lag_is_told_with_status_200_and_in_the_headers() -> None:
    async with running(stand_in_of(lag_s=7.5)) as stand_in:
        reply = await asked_of_api(stand_in, action="wbgetentities", ids="Q1490", languages="en")
        patient = await asked_of_api(stand_in, action="wbgetentities", ids="Q1490", languages="en", maxlag="9")
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"], error["lag"]) == (200, "maxlag", 7.5)
    assert reply.headers["retry-after"] == "5"
    assert "Q1490" in json.loads(patient.body)["entities"]


async def test_scholarly_articles_stand_at_an_endpoint_of_their_own() -> None:
    async with running(stand_in_of()) as stand_in:
        options = stand_in.options()
        assert options.scholarly_url is not None
        main, scholarly = await solutions(options.query_url), await solutions(options.scholarly_url)
    entity = "http://www.wikidata.org/entity/"
    assert main.rows == ((Iri(entity + "P17"),), (Iri(entity + "Q1490"),))
    assert scholarly.rows == ((Iri(entity + "Q30000001"),),)


async def test_a_query_that_does_not_read_is_refused_as_such() -> None:
    async with running(stand_in_of()) as stand_in:
        with pytest.raises(InvalidRequest, match="says that the query is wrong"):
            await solutions(stand_in.options().query_url, "SELECT ?s { ?s <a b> ?o }")


async def test_the_sample_gets_the_form_of_wikidata(sample_source: Path) -> None:
    with gzip.open(sample_source, "rt", encoding="utf-8") as lines:
        stand_in = WikidataStandIn(as_wikidata(lines))
    query = (
        "PREFIX wikibase: <http://wikiba.se/ontology#> PREFIX wdt: <http://www.wikidata.org/prop/direct/> "
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
        "SELECT ?property ?kind { ?property wikibase:directClaim wdt:P31 ; wikibase:propertyType ?kind ; "
        'rdfs:label "instance of"@en FILTER NOT EXISTS { wdt:P31 ?p ?o } }'
    )
    async with running(stand_in):
        found = await solutions(stand_in.options().query_url, query)
    kind = Iri("http://wikiba.se/ontology#WikibaseItem")
    assert found.rows == ((Iri("http://www.wikidata.org/entity/P31"), kind),)


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


@pytest.mark.parametrize("user_agent", ["Mozilla", "-", "(someone@example.org)"])
async def test_who_does_not_say_what_it_is_is_refused(user_agent: str) -> None:
    async with limited(PlayedTime()) as (stand_in, guard):
        with pytest.raises(BackendError, match=r"HTTP 403.*says who you are"):
            await solutions(stand_in.options().query_url, user_agent=user_agent)
    assert guard.refusals == ["nameless"]


async def test_a_stranger_may_ask_less_than_somebody_with_a_contact() -> None:
    played = PlayedTime()
    async with limited(played, Limits(known_per_minute=4, stranger_per_minute=2)) as (stand_in, guard):
        url = stand_in.options().query_url
        for user_agent, allowed in ((KNOWN, 4), (STRANGER, 2)):
            for _ in range(allowed):
                await solutions(url, user_agent=user_agent)
            played.elapsed_s += 0.5
            with pytest.raises(BackendUnavailable, match=r"HTTP 429.*left alone for 60 s"):
                await solutions(url, user_agent=user_agent)
        played.elapsed_s += 59.5
        await solutions(url, user_agent=STRANGER)
    assert guard.refusals == ["too often", "too often"]


async def test_queries_beyond_five_at_once_are_refused() -> None:
    async with limited(PlayedTime()) as (stand_in, guard):
        open_now, answer = anyio.Event(), guard.script

        async def wait(asked: Asked, wire: Wire) -> None:
            await open_now.wait()
            await answer(asked, wire)

        guard.script = wait
        url = stand_in.options().query_url
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(solutions, url)
            await stand_in.endpoint.until(lambda: len(stand_in.endpoint.requests) == 5)
            with pytest.raises(BackendUnavailable, match=r"HTTP 429.*left alone for 1 s"):
                await solutions(url)
            open_now.set()
    assert guard.refusals == ["too many at once"]


async def test_a_stranger_s_client_is_never_refused_however_much_it_is_asked() -> None:
    played = PlayedTime()
    options: dict[str, object] = {"contact": None, "requests_per_minute": None, "timeout_s": 100.0}
    async with limited(played) as (stand_in, guard), api(stand_in, played, **options) as client:
        for _ in range(35):
            assert "Q1490" in await client.entities(["Q1490"])
    assert (guard.refusals, len(stand_in.endpoint.requests), played.elapsed_s) == ([], 35, 180.0)


async def test_a_client_is_never_refused_for_asking_much_at_once() -> None:
    played = PlayedTime()
    async with limited(played) as (stand_in, guard), api(stand_in, played, requests_per_minute=None) as client:
        await client.entities([f"Q{number}" for number in range(1, 1_001)])
    assert (guard.refusals, len(stand_in.endpoint.requests)) == ([], 20)


async def test_a_client_that_expects_too_much_is_put_right_and_goes_on() -> None:
    played = PlayedTime()
    options: dict[str, object] = {"contact": None, "timeout_s": 100.0, "max_retries": 1}
    async with limited(played) as (stand_in, guard), api(stand_in, played, **options) as client:
        for _ in range(11):
            assert "Q1490" in await client.entities(["Q1490"])
    assert (guard.refusals, played.pauses) == (["too often"], [60.0])
