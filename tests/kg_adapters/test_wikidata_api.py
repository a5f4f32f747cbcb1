"""Names come from Wikidata's web API, fifty at a time, whatever it answers."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import pytest

from fault_endpoint import Script, answering, refusing
from kg_adapters.errors import BackendError, BackendUnavailable
from kg_adapters.http.pacing import SharedRate, Timing
from kg_adapters.wikidata.api import ApiMatch, NamedEntity, WikidataApi
from played_time import PlayedTime
from wikidata_stand_in import API, WikidataStandIn, graph, running

MANY = 120
TOKYO = {"en": {"language": "en", "value": "Tokyo"}}
TURTLE = """
wd:Q1490 rdfs:label "Tokyo"@en , "東京"@ja ; schema:description "capital of Japan"@en ; skos:altLabel "Tokio"@en .
wd:Q2 rdfs:label "Mul only"@mul .
wd:Q3 rdfs:label "Seulement"@fr ; schema:description "en français"@fr .
wd:Q64 rdfs:label "Berlin"@en . wd:Q614184 rdfs:label "Berlin, Maryland"@en .
wd:P17 rdfs:label "country"@en , "pays"@fr .
""" + "".join(f'wd:Q{1_000_000 + number} rdfs:label "item {number}"@en .\n' for number in range(MANY))


@asynccontextmanager
async def api(
    *first: Script, stand_in: WikidataStandIn | None = None, timing: Timing | None = None, **options: object
) -> AsyncGenerator[tuple[WikidataApi, WikidataStandIn]]:
    """Open the web API of a stand-in, which follows some scripts before it answers."""
    async with running(stand_in or WikidataStandIn(graph(TURTLE), merged={"Q404": "Q1490"})) as running_one:
        running_one.endpoint.follow(*first, running_one.script)
        told = running_one.options(**options)
        rate = SharedRate("host", told.per_minute, timing=timing)
        client = WikidataApi(told, pace=rate, timing=timing)
        try:
            yield client, running_one
        finally:
            await client.aclose()


def said(document: object, **headers: str) -> Script:
    return answering(json.dumps(document), media_type="application/json", headers=headers)


def refused(code: str, **more: object) -> Mapping[str, object]:
    return {"error": {"code": code, "info": "Try later.", **more}}


async def test_names_are_those_of_the_first_language_that_an_entity_has() -> None:
    async with api(languages=("ja",)) as (client, _):
        assert await client.entities(["Q1490", "Q2", "Q3", "P17"]) == {
            "Q1490": NamedEntity("Q1490", "東京", ("Tokio",)),
            "Q2": NamedEntity("Q2", "Mul only"),
            "Q3": NamedEntity("Q3", "Seulement"),
            "P17": NamedEntity("P17", "country"),
        }


async def test_a_merged_entity_has_its_new_id_and_a_deleted_one_is_left_out() -> None:
    async with api() as (client, _):
        found = await client.entities(["Q404", "Q405"])
        assert found == {"Q404": NamedEntity("Q1490", "Tokyo")}


async def test_a_merged_entity_may_stand_under_its_new_id() -> None:
    entity: dict[str, object] = {"id": "Q1490", "redirects": {"from": "Q404", "to": "Q1490"}, "labels": TOKYO}
    async with api(said({"entities": {"Q1490": entity}})) as (client, _):
        assert await client.entities(["Q404", "Q1490"]) == {
            "Q404": NamedEntity("Q1490", "Tokyo"),
            "Q1490": NamedEntity("Q1490", "Tokyo"),
        }


async def test_fifty_ids_cost_a_request() -> None:
    async with api() as (client, stand_in):
        ids = [f"Q{1_000_000 + number}" for number in range(MANY)]
        assert len(await client.entities([*ids, *ids])) == MANY
        assert sorted(len(each.parameters["ids"][0].split("|")) for each in stand_in.asked(API)) == [20, 50, 50]
        assert stand_in.endpoint.most_at_once <= 3


async def test_what_can_be_no_id_is_not_asked_for() -> None:
    async with api() as (client, stand_in):
        assert await client.entities(["Q0", "Q99999999999999999999", "Q2147483648", "x|Q1", "", "Q1\n"]) == {}
        assert stand_in.endpoint.requests == []


async def test_every_request_says_who_asks_and_may_be_refused_when_copies_lag() -> None:
    async with api(maxlag_s=4) as (client, stand_in):
        await client.entities(["Q64"])
        (asked,) = stand_in.asked(API)
        assert asked.headers["user-agent"].startswith("kg-sextant/")
        assert "(someone@example.org)" in asked.headers["user-agent"]
        parameters = {name: values[0] for name, values in asked.parameters.items()}
        assert parameters == {
            "action": "wbgetentities",
            "format": "json",
            "formatversion": "2",
            "ids": "Q64",
            "languagefallback": "1",
            "languages": "en|mul",
            "maxlag": "4",
            "props": "labels",
        }


async def test_a_search_finds_labels_and_aliases() -> None:
    async with api() as (client, stand_in):
        assert await client.search(" Berlin ", limit=5) == [
            ApiMatch("Q64", "Berlin", is_alias=False),
            ApiMatch("Q614184", "Berlin, Maryland", is_alias=False),
        ]
        assert await client.search("tokio", limit=5) == [ApiMatch("Q1490", "Tokio", is_alias=True)]
        assert await client.search("country", limit=5, kind="property") == [ApiMatch("P17", "country", is_alias=False)]
        assert len(await client.search("item", limit=200)) == 50
        asked = len(stand_in.asked(API))
        assert await client.search("  ", limit=5) == await client.search("Berlin", limit=0) == []
        assert len(stand_in.asked(API)) == asked


async def test_a_lagging_api_is_asked_again_when_it_says_so() -> None:
    played = PlayedTime()
    lagging = said(refused("maxlag", lag=7.5), **{"Retry-After": "5"})
    async with api(lagging, timing=played.timing, max_retries=1) as (client, stand_in):
        assert "Q64" in await client.entities(["Q64"])
        assert len(stand_in.asked(API)) == 2
        assert played.elapsed_s == 5.0


async def test_while_the_api_lags_nobody_else_asks_it() -> None:
    played = PlayedTime()
    lagging = said(refused("maxlag", lag=7.5), **{"Retry-After": "5"})
    async with api(lagging, timing=played.timing, timeout_s=3.0) as (client, stand_in):
        for cause in ("maxlag", "left alone for 5 s more"):
            with pytest.raises(BackendUnavailable, match=cause):
                await client.entities(["Q64"])
        assert len(stand_in.asked(API)) == 1
        played.elapsed_s += 5
        assert "Q64" in await client.entities(["Q64"])


async def test_a_refusal_without_a_time_is_repeated_with_growing_pauses_until_it_is_told() -> None:
    played = PlayedTime()
    busy = said(refused("ratelimited"))
    async with api(busy, busy, timing=played.timing, max_retries=2) as (client, _):
        assert "Q64" in await client.entities(["Q64"])
        assert played.pauses == [0.25, 0.5]
    async with api(busy, busy, timing=played.timing, max_retries=1) as (client, _):
        with pytest.raises(BackendUnavailable, match=r"\(ratelimited: Try later\.\)\. Ask again later\."):
            await client.entities(["Q64"])


async def test_an_api_that_lags_for_longer_than_the_call_may_take_is_told() -> None:
    stand_in = WikidataStandIn(graph(TURTLE), lag_s=60.0)
    async with api(stand_in=stand_in, timeout_s=3.0, max_retries=2) as (client, _):
        with pytest.raises(BackendUnavailable, match=r"cannot serve names now \(maxlag: .*60.* Ask again in 5 s\."):
            await client.entities(["Q64"])
        assert len(stand_in.asked(API)) == 1


async def test_a_refusal_that_will_not_pass_is_told_once() -> None:
    async with api(said(refused("param-missing")), max_retries=3) as (client, stand_in):
        with pytest.raises(BackendError, match=r"refuses the question for names \(param-missing: Try later\.\)"):
            await client.entities(["Q64"])
        assert len(stand_in.asked(API)) == 1


@pytest.mark.parametrize(
    "body", ["", "null", "[]", '{"entities": 3}', '{"entities": {"Q64": {"labels": {"en": 7}}}}', "{" * 5_000]
)
async def test_an_answer_of_another_form_is_told(body: str) -> None:
    async with api(answering(body, media_type="application/json")) as (client, _):
        with pytest.raises(BackendError, match=r"answered what its web API does not .*api\.php"):
            await client.entities(["Q64"])


@pytest.mark.parametrize("body", ["{}", '{"entities": []}', '{"entities": {"Q1": {"id": "Q1", "labels": []}}}'])
async def test_an_answer_that_passes_over_an_id_does_not_say_that_there_is_no_such_entity(body: str) -> None:
    async with api(answering(body, media_type="application/json")) as (client, _):
        with pytest.raises(BackendError, match=r"what its web API does not \(nothing about Q64\)"):
            await client.entities(["Q1", "Q64"] if "Q1" in body else ["Q64"])


async def test_an_answer_without_hits_or_their_absence_does_not_say_that_nothing_was_found() -> None:
    async with api(said({"success": 1})) as (client, _):
        with pytest.raises(BackendError, match=r"what its web API does not \(search\)"):
            await client.search("Berlin", limit=5)


async def test_one_request_of_many_that_fails_fails_them_all_at_once() -> None:
    async with api(refusing(500, "broken"), timeout_s=5.0) as (client, _):
        with pytest.raises(BackendError, match="HTTP 500"):
            await client.entities([f"Q{1_000_000 + number}" for number in range(MANY)])
