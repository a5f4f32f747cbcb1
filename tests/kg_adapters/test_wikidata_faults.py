"""Whatever Wikidata does, a call ends in time with the cause and the next step, and the next one works again."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from pydantic import ValidationError

from extractions import extracted, offline, order_for
from fault_endpoint import (
    Script,
    answering,
    redirecting,
    refusing,
    stalling,
)
from kg_adapters.errors import BackendError, BackendUnavailable, KGError
from kg_adapters.extraction.journal import Bounds
from kg_adapters.http.pacing import Rates, Timing
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Literal
from kg_adapters.testing import feature_page
from kg_adapters.wikidata.adapter import WikidataAdapter
from kg_adapters.wikidata.opening import REPLIES, open_wikidata
from kg_adapters.wikidata.options import WikidataOptions
from played_time import PlayedTime
from wikidata_stand_in import WikidataStandIn, graph, running

TOKYO, JAPAN = Iri("http://www.wikidata.org/entity/Q1490"), Iri("http://www.wikidata.org/entity/Q17")
TURTLE = """
wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P17 wd:Q17 . wd:Q17 rdfs:label "Japan"@en ; wdt:P36 wd:Q1490 .
wd:P17 rdfs:label "country"@en . wd:P36 rdfs:label "capital"@en .
"""


@asynccontextmanager
async def opened(
    cache: Path, *first: Script, timing: Timing | None = None, rates: Rates | None = None, **options: object
) -> AsyncGenerator[tuple[WikidataAdapter, WikidataStandIn]]:
    async with running(WikidataStandIn(graph(TURTLE))) as stand_in:
        stand_in.endpoint.follow(*first, stand_in.script)
        told = OpenOptions(cache, wikidata=stand_in.options(**options))
        async with aclosing(await open_wikidata("", told, timing=timing, rates=rates or Rates())) as wikidata:
            yield wikidata, stand_in


async def tails(wikidata: WikidataAdapter) -> list[object]:
    page = (await wikidata.neighbors(NeighborRequest((TOKYO,), direction="out", limit=5)))[TOKYO]
    return [triple.tail for triple in page.triples]


async def test_a_silent_service_does_not_keep_names_waiting(tmp_path: Path) -> None:
    async with opened(tmp_path, stalling, timeout_s=30) as (wikidata, stand_in), anyio.create_task_group() as tasks:
        tasks.start_soon(tails, wikidata)
        await stand_in.endpoint.until(lambda: len(stand_in.endpoint.requests) == 1)
        assert await wikidata.labels([JAPAN]) == {JAPAN: "Japan"}
        tasks.cancel_scope.cancel()


async def test_all_graphs_of_a_process_share_the_limit_of_a_host(tmp_path: Path) -> None:
    played, rates = PlayedTime(), Rates()
    async with opened(tmp_path, timing=played.timing, rates=rates, requests_per_minute=3) as (wikidata, stand_in):
        told = OpenOptions(tmp_path, wikidata=stand_in.options(requests_per_minute=3, timeout_s=5))
        async with aclosing(await open_wikidata("", told, timing=played.timing, rates=rates)) as other:
            for graph_ in (wikidata, other, wikidata):
                assert await tails(graph_) == [JAPAN]
            with pytest.raises(BackendUnavailable, match=r"may be asked 3 times a minute"):
                await tails(other)
            assert len(stand_in.endpoint.requests) == 3
            played.elapsed_s += 60
            assert await tails(other) == [JAPAN]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (refusing(404), r"failed \(HTTP 404\)\. There is no web API at this path: check the URL\.$"),
        (refusing(400, "no"), r"says that the request is wrong \(HTTP 400\): no\. Change the request\.$"),
        (answering("<html>Wikimedia</html>", media_type="text/html"), r"Check that the URL is that of the web API\.$"),
        (redirecting("http://example.org/"), r"If that is the web API, set its URL\.$"),
        (answering(b" " * 8_000_001, media_type="application/json"), "is larger than 8 MB and was not read further"),
    ],
)
async def test_what_goes_wrong_with_names_is_told_of_the_web_api(tmp_path: Path, fault: Script, said: str) -> None:
    async with opened(tmp_path, fault) as (wikidata, stand_in):
        with pytest.raises(KGError, match=said) as caught:
            await wikidata.search("Tokyo", limit=3)
    assert f"he web API {stand_in.endpoint.host}" in str(caught.value)
    assert "SPARQL" not in str(caught.value)


async def test_a_web_api_that_is_down_is_left_alone_under_its_own_name(tmp_path: Path) -> None:
    async with opened(tmp_path, refusing(500, "broken"), timing=PlayedTime().timing) as (wikidata, stand_in):
        stand_in.endpoint.follow(refusing(500, "broken"))
        for _ in range(5):
            with pytest.raises(BackendError, match=f"The web API {stand_in.endpoint.host} failed"):
                await wikidata.search("Tokyo", limit=3)
        with pytest.raises(BackendUnavailable, match=r"^The web API \S+ has failed 5 times in a row"):
            await wikidata.search("Tokyo", limit=3)


def test_wikidata_takes_no_language_that_is_none() -> None:
    with pytest.raises(ValidationError, match="a language tag must be written like"):
        WikidataOptions(languages=("en", "de|fr"))


COUNTRY = Iri("http://www.wikidata.org/prop/direct/P17")
TOKYO_ALONE = (
    'wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P17 wd:Q17 . wd:Q17 rdfs:label "Japan"@en . wd:P17 rdfs:label "country"@en .'
)


async def session(stand_in: WikidataStandIn, cache: Path, **options: object) -> None:
    told = OpenOptions(cache, wikidata=stand_in.options(**options))
    async with aclosing(await open_wikidata("", told, rates=Rates())) as wikidata:
        page = (await wikidata.neighbors(NeighborRequest((TOKYO,), direction="out", limit=5)))[TOKYO]
        assert [triple.tail for triple in page.triples] == [JAPAN]
        assert await wikidata.labels([COUNTRY]) == {COUNTRY: "country"}
        assert [each.entity for each in await wikidata.search("Tokyo", limit=5)] == [TOKYO]


async def test_the_next_session_asks_nothing_again(tmp_path: Path) -> None:
    async with running(WikidataStandIn(graph(TOKYO_ALONE))) as stand_in:
        for _ in range(3):
            await session(stand_in, tmp_path, replies_kept_s=60)
        assert len(stand_in.endpoint.requests) == 3
        assert (tmp_path / REPLIES).is_file()


async def test_without_a_memory_every_session_asks(tmp_path: Path) -> None:
    async with running(WikidataStandIn(graph(TOKYO_ALONE))) as stand_in:
        for _ in range(2):
            await session(stand_in, tmp_path, replies_kept_s=0)
        assert len(stand_in.endpoint.requests) == 6
        assert not (tmp_path / REPLIES).exists()


@pytest.mark.parametrize("body", ['{"entities": {}}', '{"error": {"code": "internal_api_error", "info": "x"}}', "{"])
async def test_an_answer_that_was_of_no_use_is_not_remembered(tmp_path: Path, body: str) -> None:
    async with running(WikidataStandIn(graph(TOKYO_ALONE))) as stand_in:
        stand_in.endpoint.follow(answering(body, media_type="application/json"), stand_in.script)
        told = OpenOptions(tmp_path, wikidata=stand_in.options(replies_kept_s=60))
        async with aclosing(await open_wikidata("", told, rates=Rates())) as wikidata:
            with pytest.raises(BackendError):
                await wikidata.labels([JAPAN])
            assert await wikidata.labels([JAPAN]) == {JAPAN: "Japan"}


PER_MINUTE = 2
POPULATION = Iri("http://www.wikidata.org/prop/direct/P1082")
MANY_TOWNS = (
    'wd:P17 rdfs:label "country"@en ; wikibase:directClaim wdt:P17 . wd:Q17 rdfs:label "Japan"@en .\n'
    'wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P17 wd:Q17 ; wdt:P1082 14 .\n'
) + "".join(f'wd:Q{100 + number} rdfs:label "town {number}"@en ; wdt:P17 wd:Q17 .\n' for number in range(20))


async def test_a_limit_of_requests_a_minute_is_waited_out(tmp_path: Path) -> None:
    played = PlayedTime()
    async with running(WikidataStandIn(graph(MANY_TOWNS))) as stand_in:
        options = stand_in.options(requests_per_minute=PER_MINUTE, timeout_s=1_000_000)
        told = OpenOptions(tmp_path, wikidata=options)
        async with aclosing(await open_wikidata("", told, timing=played.timing, rates=Rates())) as wikidata:
            order = order_for("Q1490", bounds=Bounds(hops=2))
            await extracted(wikidata, order, tmp_path / "store")
            expected = await wikidata.neighbors(NeighborRequest((TOKYO,), direction="out", limit=10))
    asked = len(stand_in.endpoint.requests)
    assert asked > 3 * PER_MINUTE
    assert played.elapsed_s >= 60 * (asked // PER_MINUTE - 1)
    async with aclosing(offline(tmp_path / "store")) as store:
        assert await store.neighbors(NeighborRequest((TOKYO,), direction="out", limit=10)) == expected
        assert await store.labels([TOKYO, COUNTRY]) == {TOKYO: "Tokyo", COUNTRY: "country"}
        values = (await feature_page(store, TOKYO, relation=POPULATION)).features
        assert [each.value for each in values] == [Literal("14", Iri("http://www.w3.org/2001/XMLSchema#integer"))]
        assert store.prefixes.shorten(TOKYO) == "Q1490"
