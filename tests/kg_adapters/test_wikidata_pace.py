"""All that a process asks one host comes at one rate, and waits when the host asks for that."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from pydantic import ValidationError

from kg_adapters.errors import BackendUnavailable
from kg_adapters.http.pacing import Rates, SharedRate
from kg_adapters.wikidata.api import WikidataApi
from kg_adapters.wikidata.opening import advice
from kg_adapters.wikidata.options import WikidataOptions
from played_time import PlayedTime
from wikidata_stand_in import Limited, Limits, WikidataStandIn, graph, running

ADVICE = "Set a contact."


async def asked(rate: SharedRate, times: int, time_left_s: float = 100.0) -> None:
    for _ in range(times):
        await rate.turn(time_left_s)


async def test_a_minute_s_worth_comes_at_once_and_more_a_minute_after_it() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 3, timing=played.timing)
    await asked(rate, 1)
    played.elapsed_s += 20
    await asked(rate, 2)
    assert played.pauses == []
    await asked(rate, 3)
    assert played.pauses == [40.0, 20.0]


async def test_no_minute_sees_more_however_they_come() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 10, timing=played.timing)
    came: list[float] = []
    for number in range(200):
        played.elapsed_s += number % 7
        await rate.turn(100.0)
        came.append(played.elapsed_s)
    assert max(sum(start <= each < start + 60 for each in came) for start in came) == 10


async def test_callers_at_the_same_time_share_the_rate() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 10, timing=played.timing)
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(asked, rate, 3)
    assert played.pauses == [60.0]


async def test_who_cannot_wait_is_told_when_to_come_back_and_takes_no_turn() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 10, advice=ADVICE, timing=played.timing)
    await asked(rate, 10)
    for _ in range(2):
        with pytest.raises(BackendUnavailable) as raised:
            await rate.turn(3.0)
        assert str(raised.value) == (
            "host may be asked 10 times a minute, and has been. Ask again in 60 s, or ask for more at once. "
            "Set a contact."
        )
    await rate.turn(60.0)
    assert played.pauses == [60.0]


async def test_a_host_that_asks_to_be_left_alone_is_by_everybody() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 10, timing=played.timing)
    rate.hold(30.0)
    with pytest.raises(BackendUnavailable, match="left alone for 30 s more"):
        await rate.turn(10.0)
    await rate.turn(40.0)
    assert played.elapsed_s == 30.0


async def test_the_least_that_anybody_allows_holds_for_all_who_ask_a_host() -> None:
    played, rates = PlayedTime(), Rates()
    rate = rates.of("a", 10, timing=played.timing)
    await asked(rate, 6)
    assert rates.of("a", 4) is rate
    assert rates.of("a", 10) is rate
    await asked(rate, 1)
    assert played.pauses == [60.0]


CONTACT = "someone@example.org"


def test_the_user_agent_names_the_project_its_version_the_contact_and_the_library() -> None:
    known, stranger = (WikidataOptions(contact=contact).user_agent for contact in (CONTACT, None))
    assert re.fullmatch(r"kg-sextant/\S+ \(someone@example\.org\) httpx2/\S+", known)
    assert re.fullmatch(r"kg-sextant/\S+ httpx2/\S+", stranger)


def test_without_a_contact_it_stays_under_the_limit_for_strangers_and_says_so() -> None:
    assert WikidataOptions().per_minute == 10
    assert WikidataOptions(contact=CONTACT).per_minute == 200
    assert WikidataOptions(requests_per_minute=7).per_minute == 7
    (told,) = advice(WikidataOptions())
    assert "wikidata.contact" in told
    assert advice(WikidataOptions(contact=CONTACT)) == []
    here = "https://example.org/x"
    assert advice(WikidataOptions(query_url=here, scholarly_url=None, api_url=here)) == []
    assert advice(WikidataOptions(query_url=here, scholarly_url=None)) == [told]


def test_names_for_all_languages_and_english_ones_come_last() -> None:
    assert WikidataOptions(languages=("ja", "de-CH")).all_languages == ("ja", "de-ch", "mul", "en")
    assert WikidataOptions(languages=("en", "mul")).all_languages == ("en", "mul")


def test_at_most_three_requests_at_once_go_to_the_web_api() -> None:
    options = WikidataOptions(max_concurrency=5)
    assert options.query_endpoint.max_concurrency == 5
    assert options.api_endpoint.max_concurrency == 3
    assert WikidataOptions(max_concurrency=2).api_endpoint.max_concurrency == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("contact", "me"),
        ("contact", "a@b.org\r\nX: 1"),
        ("contact", "who (me) a@b.org"),
        ("contact", "ä@example.org"),
        ("query_url", "ftp://example.org/"),
        ("api_url", "https://user:secret@example.org/"),
        ("requests_per_minute", 0),
        ("languages", ()),
        ("dialect", "unheard-of"),
    ],
)
def test_a_wrong_value_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        WikidataOptions.model_validate({field: value})


TURTLE = """
wd:Q1490 rdfs:label "Tokyo"@en , "東京"@ja ; schema:description "capital of Japan"@en ; skos:altLabel "Tokio"@en .
wd:P17 rdfs:label "country"@en ; wikibase:propertyType wikibase:WikibaseItem .
"""
PAPER = 'wd:Q30000001 rdfs:label "On graphs"@en .'


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
