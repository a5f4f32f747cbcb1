"""The engine of an endpoint is found out when it is opened, without a setting.

No live QLever, GraphDB or Blazegraph has answered here: their exchanges are written from the sources that are named.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from fault_endpoint import Asked, FaultEndpoint, Script, Wire, answering, refusing, results, serving, stalling
from kg_adapters.http.options import EndpointOptions
from kg_adapters.labels import Vocabulary
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.dialects import Engine
from kg_adapters.sparql.opening import open_sparql
from kg_adapters.terms import Iri
from kg_adapters.testing import iri
from remote_graphs import CITIES, answering_from, failing_about

# composeIndexStats of QLever's src/engine/ResponseJson.cpp at commit 1075455fa.
QLEVER = answering(
    json.dumps(
        {
            "git-hash-index": "1075455",
            "git-hash-server": "1075455",
            "name-index": "cities",
            "name-text-index": "",
            "num-permutations": 6,
            "num-text-records": 5,
            "num-triples-internal": 0,
            "num-triples-normal": 8,
            "version-server": "0.6.0",
        }
    ),
    media_type="application/json",
)
# What Blazegraph's clients read in RemoteRepositoryManager.getRepositoryDescriptions.
BLAZEGRAPH = answering(
    '<http://example.org/sparql> <http://www.bigdata.com/rdf#/features/KB/Namespace> "kb" .',
    media_type="application/n-triples",
)
FORM = answering("<!DOCTYPE html><form>", media_type="text/html")
KYOTO = {
    "s": {"type": "uri", "value": "http://example.org/kyoto"},
    "a": {"type": "uri", "value": "http://www.w3.org/2000/01/rdf-schema#label"},
    "l": {"type": "literal", "value": "Kyoto"},
}
NO_INDEX = "nothing asks so"


def engine_with(headers: Mapping[str, str], index: str) -> Script:
    """Answer from the cities, and queries for a full-text index by one name."""
    stored, found = answering_from(CITIES, headers), answering(results("sal", KYOTO), headers=headers)
    # The search of Virtuoso is nothing that another engine reads.
    return failing_about(index, found, failing_about("OPTION (", answering(results("sal"), headers=headers), stored))


async def engine_of(server: FaultEndpoint, cache: Path, **options: object) -> Engine:
    told = EndpointOptions.model_validate({"url": server.url, "max_retries": 0, **options})
    graph = await open_sparql(server.url, OpenOptions(cache), endpoint=told)
    await graph.aclose()
    assert graph.engine is not None
    return graph.engine


@pytest.mark.parametrize(
    ("headers", "about", "index", "expected"),
    [
        # As a running Virtuoso 7.2 answers, which tests/engines asks too.
        ({"Server": "Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu"}, FORM, "bif:contains", ("virtuoso", "virtuoso")),
        ({"Server": "Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu"}, FORM, NO_INDEX, ("virtuoso", "none")),
        # FusekiRequestIdHeader in the source of Apache Jena; its releases name no server.
        ({"Fuseki-Request-Id": "7"}, FORM, "jena.apache.org/text#query", ("fuseki", "lucene")),
        # From memory of GraphDB 10; no source was at hand.
        ({"Server": "GraphDB/10.2.0 RDF4J/4.2.2"}, FORM, "ontotext.com/connectors/lucene", ("graphdb", "lucene")),
        ({}, QLEVER, "contains-word", ("qlever", "qlever")),
        ({"Server": "nginx"}, QLEVER, NO_INDEX, ("qlever", "none")),
        ({"Server": "Jetty(9.4)"}, BLAZEGRAPH, "rdf/search#search", ("blazegraph", "blazegraph")),
        # `with_server_name` in Oxigraph's cli/src/main.rs, and whatever has a name that is not known.
        ({"Server": "Oxigraph/0.4"}, stalling, NO_INDEX, ("standard", "none")),
        ({"Server": "nginx"}, FORM, NO_INDEX, ("standard", "none")),
        ({}, refusing(404), NO_INDEX, ("standard", "none")),
        (
            {},
            answering(b'{"x": "' + b"x" * 100_000 + b'"}', media_type="application/json"),
            NO_INDEX,
            ("standard", "none"),
        ),
        ({}, answering("[1]", media_type="application/json"), NO_INDEX, ("standard", "none")),
    ],
)
async def test_an_engine_and_its_index_are_found_out_once(
    tmp_path: Path, headers: Mapping[str, str], about: Script, index: str, expected: tuple[str, str]
) -> None:
    async with serving(engine_with(headers, index)) as server:
        server.about = about
        found = await engine_of(server, tmp_path)
        asked = len(server.requests), len(server.asked_about)
        assert (found.dialect, found.text_search) == expected
        assert await engine_of(server, tmp_path) == found
        # Which index QLever has is asked at each opening.
        assert (len(server.requests), len(server.asked_about)) == (asked[0], asked[1] + (found.dialect == "qlever"))
        assert asked[0] <= (4 if found.dialect == "graphdb" else 3)


@pytest.mark.parametrize("fault", [stalling, refusing(503, "down")])
async def test_an_engine_that_does_not_say_what_it_is_now_is_asked_at_the_next_opening(
    tmp_path: Path, fault: Script
) -> None:
    async with serving(engine_with({}, "contains-word")) as server:
        server.about = fault
        assert await engine_of(server, tmp_path, timeout_s=0.3) == Engine()
        server.about = QLEVER
        assert await engine_of(server, tmp_path) == Engine("qlever", "qlever")


@pytest.mark.parametrize("told", [{}, {"dialect": "graphdb", "text_search": "lucene"}])
async def test_the_connector_of_graphdb_that_has_the_names_is_found(tmp_path: Path, told: Mapping[str, str]) -> None:
    # From "Lucene GraphDB connector: List available connector instances" of the GraphDB 10 documentation.
    instance, label = "http://www.ontotext.com/connectors/lucene/instance#", str(Vocabulary().labels[0])
    fields = {"notes": "http://example.org/note", "my_names": label, "more": "http://example.org/other"}
    rows = [
        {
            "c": {"type": "uri", "value": instance + name},
            "d": {"type": "literal", "value": json.dumps({"fields": [{"fieldName": "x", "propertyChain": [chain]}]})},
        }
        for name, chain in fields.items()
    ]
    headers = {"Server": "GraphDB/10.2.0 RDF4J/4.2.2"}
    listed = failing_about("listConnectors", answering(results("cd", *rows)), engine_with(headers, "lucene#query"))
    async with serving(listed) as server:
        found = [await engine_of(server, tmp_path, **told) for _ in range(2)]
        assert found == 2 * [Engine("graphdb", "lucene", connector=Iri(instance + "my_names"))]
        assert found[0].dialect_of().connector == found[0].connector
        assert sum("listConnectors" in asked.query for asked in server.requests) == 1


async def test_a_setting_is_not_questioned(tmp_path: Path) -> None:
    async with serving(engine_with({}, "contains-word")) as server:
        server.about = QLEVER
        told = {"dialect": "virtuoso", "text_search": "none"}
        assert await engine_of(server, tmp_path, **told) == Engine("virtuoso", "none")
        assert await engine_of(server, tmp_path, text_search="none") == Engine("qlever", "none")
        assert await engine_of(server, tmp_path, dialect="standard") == Engine()
        assert (len(server.requests), len(server.asked_about)) == (3, 3)


@pytest.mark.parametrize(("allowed", "asked_for"), [("5s", None), ("9s", "7s"), ("soon", "7s")])
async def test_no_query_asks_for_more_time_than_qlever_allows(
    tmp_path: Path, allowed: str, asked_for: str | None
) -> None:
    # RuntimeParameters::toMap of QLever's src/global/RuntimeParameters.cpp; more is refused with 403 in Server.cpp.
    settings = answering(json.dumps({"default-query-timeout": allowed}), media_type="application/json")

    async def about(asked: Asked, wire: Wire) -> None:
        await (settings if asked.parameters["cmd"] == ["get-settings"] else QLEVER)(asked, wire)

    async with serving(engine_with({}, NO_INDEX)) as server:
        server.about = about
        for _ in range(2):
            told = EndpointOptions(url=server.url, timeout_s=8.0)
            graph = await open_sparql(server.url, OpenOptions(tmp_path), endpoint=told)
            await graph.labels([iri("kyoto")])
            await graph.aclose()
            assert server.requests[-1].parameters.get("timeout") == ([asked_for] if asked_for else None)


async def test_an_index_that_the_engine_refuses_to_use_is_none(tmp_path: Path) -> None:
    # As QLever's src/engine/QueryPlanner.cpp throws.
    said = "contains-word is not allowed inside GRAPH clauses or in queries with FROM/FROM NAMED clauses."
    refused = refusing(500, json.dumps({"exception": said}))
    stored = answering_from(CITIES)

    async def answer(asked: Asked, wire: Wire) -> None:
        await (refused if "contains-word" in asked.query else stored)(asked, wire)

    async with serving(answer) as server:
        server.about = QLEVER
        assert await engine_of(server, tmp_path) == Engine("qlever", "none")
