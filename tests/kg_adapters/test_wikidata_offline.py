"""What lies around entities of Wikidata is taken as slowly as its limits ask for, and is the same offline."""

from contextlib import aclosing
from pathlib import Path

from extractions import extracted, offline, order_for
from kg_adapters.extraction.journal import Bounds
from kg_adapters.http.pacing import Rates
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Literal
from kg_adapters.testing import feature_page
from kg_adapters.wikidata.opening import open_wikidata
from played_time import PlayedTime
from wikidata_stand_in import WikidataStandIn, graph, running

PER_MINUTE = 2
TOKYO = Iri("http://www.wikidata.org/entity/Q1490")
COUNTRY, POPULATION = (Iri(f"http://www.wikidata.org/prop/direct/{each}") for each in ("P17", "P1082"))
TURTLE = (
    'wd:P17 rdfs:label "country"@en ; wikibase:directClaim wdt:P17 . wd:Q17 rdfs:label "Japan"@en .\n'
    'wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P17 wd:Q17 ; wdt:P1082 14 .\n'
) + "".join(f'wd:Q{100 + number} rdfs:label "town {number}"@en ; wdt:P17 wd:Q17 .\n' for number in range(20))


async def test_a_limit_of_requests_a_minute_is_waited_out(tmp_path: Path) -> None:
    played = PlayedTime()
    async with running(WikidataStandIn(graph(TURTLE))) as stand_in:
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
