"""What QLever knows of its index without reading it is used, and another index takes the place of the first.

No running QLever has answered here: its exchanges are written from its source at commit 1075455fa.
"""

import json
import re
from contextlib import aclosing
from pathlib import Path

import pytest
from mcp import Client

from fault_endpoint import FaultEndpoint, Script, answering, serving
from kg_adapters.caching import CachingAdapter
from kg_adapters.errors import InvalidRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.opening import open_sparql
from kg_adapters.testing import iri
from kg_server.app import build_server
from remote_graphs import answering_from, quiet

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
CITY, POPULATION = iri("City"), iri("population")
LARGE = 5_000_000


def cities(names: str) -> Script:
    """Answer from 300 cities, of which every second has a population, and one of which has two neighbours."""
    lines = [f"<{iri('kyoto').value}> <{iri('country').value}> <{iri(end).value}> ." for end in ("japan", "asia")]
    for number in range(300):
        city = f"<{iri(f'city{number:03}').value}>"
        lines.append(f"{city} {TYPE} <{CITY.value}> .")
        lines.append(f'{city} {LABEL} "{names} {number}" .')
        if number % 2:
            lines.append(f'{city} <{POPULATION.value}> "{number}"^^<http://www.w3.org/2001/XMLSchema#integer> .')
    return answering_from("\n".join(lines))


def stats(statements: int) -> Script:
    """Answer as composeIndexStats of src/engine/ResponseJson.cpp."""
    told = {"git-hash-server": "1075455", "name-index": "cities", "num-triples-normal": statements}
    return answering(json.dumps(told), media_type="application/json")


async def opened(server: FaultEndpoint, cache: Path, now: list[float], dialect: str) -> SparqlAdapter:
    told = {"url": server.url, "dialect": dialect, "text_search": "none", "max_retries": 0}
    options = EndpointOptions.model_validate(told)
    return await open_sparql(server.url, OpenOptions(cache), endpoint=options, clock=lambda: now[0])


async def test_relations_are_counted_over_all_instances_where_that_reads_no_statements(tmp_path: Path) -> None:
    async with serving(cities("Town")) as server:
        server.about = stats(LARGE)
        graph = await opened(server, tmp_path, [0.0], "qlever")
        await graph.learn_profile()
        await graph.aclose()
        known = graph.known_profile().profile_of(CITY)
        assert known is not None
        # src/engine/CheckUsePatternTrick.cpp: one counted variable, and ?p and ?o nowhere else.
        trick = re.compile(r"SELECT \?p \(COUNT\(DISTINCT \?s\) AS \?n\) \{[^po]*?\. \?s \?p \?o \} GROUP BY \?p")
        assert sum(trick.search(re.sub("<[^>]*>", "", asked.query)) is not None for asked in server.requests) == 1
        assert not any("(COUNT(*) AS ?n) { ?s ?p ?o }" in asked.query for asked in server.requests)
    coverage = known.coverage(POPULATION)
    assert coverage is not None
    assert (coverage.having, coverage.instances, coverage.sampled) == (150, 300, False)
    assert known.looked_at == 200


async def test_another_index_is_noticed_within_a_minute(tmp_path: Path) -> None:
    now, kyoto = [0.0], iri("kyoto")
    async with serving(cities("Town")) as server:
        server.about = stats(LARGE)
        graph = CachingAdapter(await opened(server, tmp_path, now, "qlever"))
        first = (await graph.neighbors(NeighborRequest((kyoto,), limit=1)))[kyoto]
        before = (await graph.labels([iri("city007")]), await graph.schema())
        server.scripts[:], server.about = [cities("Village")], stats(LARGE + 1)
        now[0] = 59.0
        assert (await graph.labels([iri("city007")]), await graph.schema()) == before
        now[0] = 60.0
        assert await graph.labels([iri("city007")]) == {iri("city007"): "Village 7"}
        asked = len(server.requests)
        await graph.schema()
        assert len(server.requests) > asked
        with pytest.raises(InvalidRequest, match="as it was before"):
            await graph.neighbors(NeighborRequest((kyoto,), limit=1, cursor=first.cursor))
        about = len(server.asked_about)
        await graph.aclose()
        again = await opened(server, tmp_path, [0.0], "qlever")
        asked = len(server.requests)
        await again.schema()
        await again.aclose()
        assert len(server.requests) > asked
        assert len(server.asked_about) - about == 1


async def test_a_page_of_what_is_stored_both_ways_ends_with_its_index(tmp_path: Path) -> None:
    inverse = "<http://www.w3.org/2002/07/owl#inverseOf>"
    asia, part, whole = (f"<{iri(name).value}>" for name in ("asia", "part", "whole"))
    lands = [f"<{iri(f'land{number}').value}>" for number in range(4)]
    lines = [f"{part} {inverse} {whole} .", *(f"{asia} {part} {land} ." for land in lands[:3])]
    lines += [f"{lands[3]} {whole} {asia} .", *(f"{each} {TYPE} <{CITY.value}> ." for each in (asia, *lands))]
    stored, now = answering_from("\n".join(lines)), [0.0]
    async with serving(stored) as server:
        server.about = stats(LARGE)
        graph = CachingAdapter(await opened(server, tmp_path, now, "qlever"))
        await graph.learn_profile()
        async with aclosing(graph), Client(build_server(graph, quiet(tmp_path))) as client:
            asked = {"entity": iri("asia").value, "relation": iri("part").value, "limit": 2}
            first = (await client.call_tool("GetNeighbor", asked)).structured_content
            assert first is not None
            assert first["total"] == 4
            asked["cursor"] = first["cursor"]
            assert not (await client.call_tool("GetNeighbor", asked)).is_error
            server.about, now[0] = stats(LARGE + 1), 60.0
            later = await client.call_tool("GetNeighbor", asked)
    assert later.is_error
    assert "as it was before" in str(later.content)


async def test_no_other_engine_is_asked_for_its_index(tmp_path: Path) -> None:
    async with serving(cities("Town")) as server:
        graph = CachingAdapter(await opened(server, tmp_path, [0.0], "virtuoso"))
        await graph.labels([iri("city007")])
        await graph.aclose()
        assert server.asked_about == []
