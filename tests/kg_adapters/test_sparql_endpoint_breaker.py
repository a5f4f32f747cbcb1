"""An endpoint that is down is left alone, and found again when it is back."""

import anyio
import pytest

from fault_endpoint import (
    Asked,
    FaultEndpoint,
    Script,
    Wire,
    answering,
    dropping,
    refusing,
    results,
    serving,
    stalling,
)
from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.solutions import Solutions
from played_time import PlayedTime

NOTHING = answering(results(["x"]))
NO_ROWS = Solutions(("x",), ())


def endpoint_of(server: FaultEndpoint, time: PlayedTime) -> SparqlEndpoint:
    options = EndpointOptions(url=server.url, max_retries=0, failures_until_pause=3, pause_s=15)
    return SparqlEndpoint(options, timing=time.timing)


async def fail(endpoint: SparqlEndpoint, times: int = 1) -> str:
    message = ""
    for _ in range(times):
        with pytest.raises(BackendError) as caught:
            await endpoint.query("SELECT ?x {}")
        message = str(caught.value)
    return message


@pytest.mark.parametrize("fault", [refusing(500, "broken"), refusing(503), dropping])
async def test_after_some_failures_in_a_row_nothing_more_is_sent_for_a_while(fault: Script) -> None:
    time = PlayedTime()
    async with serving(fault) as server:
        endpoint = endpoint_of(server, time)
        last = await fail(endpoint, times=3)
        refused = await fail(endpoint)
        await endpoint.aclose()
    assert len(server.requests) == 3
    assert refused == (
        f"The endpoint {server.host} has failed 3 times in a row, so it is left alone for now. "
        f"It is tried again at 12:00:15 UTC: ask again then. Last: {last}"
    )


async def test_when_it_is_back_one_query_finds_out_and_all_go_on() -> None:
    time = PlayedTime()
    async with serving(refusing(500)) as server:
        endpoint = endpoint_of(server, time)
        await fail(endpoint, times=4)
        server.follow(NOTHING)
        time.elapsed_s = 15.0
        answers = [await endpoint.query("SELECT ?x {}") for _ in range(2)]
        await endpoint.aclose()
    assert answers == [NO_ROWS, NO_ROWS]


async def test_a_trial_that_fails_starts_another_pause() -> None:
    time = PlayedTime()
    async with serving(refusing(500)) as server:
        endpoint = endpoint_of(server, time)
        await fail(endpoint, times=3)
        time.elapsed_s = 15.0
        await fail(endpoint)
        refused = await fail(endpoint)
        await endpoint.aclose()
    assert len(server.requests) == 4
    assert "has failed 4 times in a row" in refused
    assert "12:00:30 UTC" in refused


async def test_while_one_query_tries_it_the_others_fail_at_once() -> None:
    time = PlayedTime()
    async with serving(refusing(500)) as server:
        endpoint = endpoint_of(server, time)
        await fail(endpoint, times=3)
        server.follow(stalling)
        time.elapsed_s = 15.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(endpoint.query, "SELECT ?x {}")
            await server.until(lambda: len(server.requests) == 4)
            assert "One query is trying it now: ask again then." in await fail(endpoint)
            tasks.cancel_scope.cancel()
        server.follow(NOTHING)
        # The cancelled trial has shown nothing, so the next query tries again.
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
        await endpoint.aclose()


async def test_a_success_ends_the_row() -> None:
    time = PlayedTime()
    async with serving(refusing(500), refusing(500), NOTHING, refusing(500), refusing(500), NOTHING) as server:
        endpoint = endpoint_of(server, time)
        for _ in range(2):
            await fail(endpoint, times=2)
            assert await endpoint.query("SELECT ?x {}") == NO_ROWS
        await endpoint.aclose()


@pytest.mark.parametrize(
    "refusal",
    [
        refusing(400, "Parse error"),
        refusing(429),
        refusing(404),
        refusing(500, "Virtuoso 42000 Error The estimated execution time 900 (sec) exceeds the limit of 400 (sec)."),
        refusing(500, "java.util.concurrent.TimeoutException"),
        answering("<html>", media_type="text/html"),
    ],
)
async def test_an_endpoint_that_refuses_a_query_is_not_down(refusal: Script) -> None:
    time = PlayedTime()
    async with serving(refusal) as server:
        endpoint = endpoint_of(server, time)
        for _ in range(6):
            with pytest.raises((BackendError, InvalidRequest)):
                await endpoint.query("SELECT ?x {}")
        assert len(server.requests) == 6
        server.follow(NOTHING)
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
        await endpoint.aclose()


async def test_a_caller_in_a_hurry_says_nothing_about_the_endpoint() -> None:
    async with serving(stalling) as server:
        endpoint = SparqlEndpoint(EndpointOptions(url=server.url, timeout_s=60, failures_until_pause=3))
        for _ in range(6):
            with pytest.raises(BackendTimeout):
                await endpoint.query("SELECT ?x {}", timeout_s=0.05)
        server.follow(NOTHING)
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
        await endpoint.aclose()


def waiting_for(event: anyio.Event, script: Script) -> Script:
    async def answer(asked: Asked, wire: Wire) -> None:
        await event.wait()
        await script(asked, wire)

    return answer


async def test_a_failure_that_was_under_way_when_the_pause_began_does_not_prolong_it() -> None:
    time = PlayedTime()
    release = anyio.Event()
    async with serving(waiting_for(release, refusing(500)), refusing(500)) as server:
        endpoint = endpoint_of(server, time)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail, endpoint)
            await server.until(lambda: len(server.requests) == 1)
            await fail(endpoint, times=3)
            time.elapsed_s = 10.0
            release.set()
        server.follow(NOTHING)
        time.elapsed_s = 15.0
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
        await endpoint.aclose()
