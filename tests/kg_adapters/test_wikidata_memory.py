"""What Wikidata answered is known to the next session, and what it refused is not."""

from contextlib import aclosing
from pathlib import Path

import pytest

from fault_endpoint import answering
from kg_adapters.errors import BackendError
from kg_adapters.http.pacing import Rates
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri
from kg_adapters.wikidata.opening import REPLIES, open_wikidata
from wikidata_stand_in import WikidataStandIn, graph, running

TOKYO, JAPAN = Iri("http://www.wikidata.org/entity/Q1490"), Iri("http://www.wikidata.org/entity/Q17")
COUNTRY = Iri("http://www.wikidata.org/prop/direct/P17")
TURTLE = (
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
    async with running(WikidataStandIn(graph(TURTLE))) as stand_in:
        for _ in range(3):
            await session(stand_in, tmp_path, replies_kept_s=60)
        assert len(stand_in.endpoint.requests) == 3
        assert (tmp_path / REPLIES).is_file()


async def test_without_a_memory_every_session_asks(tmp_path: Path) -> None:
    async with running(WikidataStandIn(graph(TURTLE))) as stand_in:
        for _ in range(2):
            await session(stand_in, tmp_path, replies_kept_s=0)
        assert len(stand_in.endpoint.requests) == 6
        assert not (tmp_path / REPLIES).exists()


@pytest.mark.parametrize("body", ['{"entities": {}}', '{"error": {"code": "internal_api_error", "info": "x"}}', "{"])
async def test_an_answer_that_was_of_no_use_is_not_remembered(tmp_path: Path, body: str) -> None:
    async with running(WikidataStandIn(graph(TURTLE))) as stand_in:
        stand_in.endpoint.follow(answering(body, media_type="application/json"), stand_in.script)
        told = OpenOptions(tmp_path, wikidata=stand_in.options(replies_kept_s=60))
        async with aclosing(await open_wikidata("", told, rates=Rates())) as wikidata:
            with pytest.raises(BackendError):
                await wikidata.labels([JAPAN])
            assert await wikidata.labels([JAPAN]) == {JAPAN: "Japan"}
