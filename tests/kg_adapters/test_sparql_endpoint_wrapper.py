"""SPARQLWrapper over the pooled client, beside the original."""

import json

import anyio
import anyio.to_thread
import pytest
from SPARQLWrapper import JSON, POST, QueryResult, SPARQLWrapper

from fault_endpoint import (
    JSON_RESULTS,
    answering,
    results,
    serving,
    uri,
)
from kg_adapters.http.client import EndpointClient
from kg_adapters.http.messages import HttpReply, HttpRequest
from kg_adapters.http.options import (
    EndpointOptions,
)
from kg_adapters.sparql.endpoint import PooledWrapper

QUERY = "SELECT ?x { ?x ?y ?z }"


async def test_the_wrapper_answers_like_the_original_one() -> None:
    body = results(["x"], {"x": uri("http://example.org/a")})
    async with serving(answering(body)) as server:
        original = SPARQLWrapper(server.url, returnFormat=JSON)
        original.setQuery(QUERY)
        client = EndpointClient(EndpointOptions(url=server.url))

        async def send(request: HttpRequest) -> HttpReply:
            return await client.ask(request, lambda reply: reply, timeout_s=5)

        ours = PooledWrapper(server.url, send, max_url_length=2_000)
        ours.ask_for(QUERY)
        theirs_result, ours_result = [await anyio.to_thread.run_sync(each.query) for each in (original, ours)]
        ours.setMethod(POST)
        in_loop = await ours.query_in_loop()
        await client.aclose()
    assert seen(ours_result) == seen(theirs_result) == seen(in_loop) == (200, JSON_RESULTS, "json", json.loads(body))
    assert [asked.method for asked in server.requests] == ["GET", "GET", "POST"]
    assert ours_result.geturl() == f"{server.url}?query=SELECT+%3Fx+%7B+%3Fx+%3Fy+%3Fz+%7D"


def seen(result: QueryResult) -> tuple[object, ...]:
    return result.response.status, result.info()["content-type"], result.requestedFormat, result.convert()


async def test_the_wrapper_cannot_block_the_event_loop() -> None:
    async def send(request: HttpRequest) -> HttpReply:
        raise AssertionError(request)

    wrapper = PooledWrapper("http://127.0.0.1:1/", send, max_url_length=2_000)
    wrapper.ask_for(QUERY)
    with pytest.raises(RuntimeError):
        wrapper.query()
