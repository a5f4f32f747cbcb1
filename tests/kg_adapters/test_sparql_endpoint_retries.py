"""When a request is repeated, and after which pause."""

from collections.abc import Mapping

import anyio
import pytest

from fault_endpoint import (
    Asked,
    Script,
    Wire,
    answering,
    dropping,
    opened,
    refusing,
    results,
    serving,
    stalling,
)
from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable, InvalidRequest
from kg_adapters.http.pacing import Backoff, SharedHold, retry_after_s
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.solutions import Solutions
from played_time import START, PlayedTime

NOTHING = answering(results(["x"]))
NO_ROWS = Solutions(("x",), ())
PAUSING: Mapping[str, object] = {"failures_until_pause": 3, "pause_s": 15}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        (" 120 ", 120.0),
        ("1.5", 1.0),
        ("-1", None),
        ("soon", None),
        ("9" * 400, None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 14:00:30 +0200", 30.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sun, 01 Mar 2020 12:00:00 GMT", 0.0),
        ("", None),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, START) == seconds


def test_pauses_double_up_to_a_limit_and_end() -> None:
    backoff = Backoff(most=5, first_s=1.0, longest_s=6.0)
    assert [backoff.pause_s(repetition, 0.0) for repetition in range(6)] == [1.0, 2.0, 4.0, 6.0, 6.0, None]


def test_chance_takes_up_to_half_of_a_pause_away() -> None:
    assert Backoff(most=1, first_s=1.0, longest_s=6.0).pause_s(0, 0.5) == 0.75


@pytest.mark.parametrize("fault", [refusing(429), refusing(502), refusing(503), refusing(504), dropping])
async def test_a_failure_that_may_pass_is_repeated_until_it_has_passed(fault: Script) -> None:
    time = PlayedTime()
    async with serving(fault, fault, NOTHING) as server, opened(server, time.timing, max_retries=3) as endpoint:
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
    assert len(server.requests) == 3
    assert time.pauses == [0.25, 0.5]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 406, 410, 413, 500, 501])
async def test_a_failure_that_stays_is_not_repeated(status: int) -> None:
    time = PlayedTime()
    async with serving(refusing(status), NOTHING) as server, opened(server, time.timing, max_retries=3) as endpoint:
        with pytest.raises(Exception, match=f"HTTP {status}"):
            await endpoint.query("SELECT ?x {}")
    assert (len(server.requests), time.pauses) == (1, [])


async def test_repetitions_end_and_the_last_failure_is_told() -> None:
    time = PlayedTime()
    async with (
        serving(refusing(503, "busy"), refusing(502, "gone")) as server,
        opened(server, time.timing, max_retries=2) as endpoint,
    ):
        with pytest.raises(BackendUnavailable, match=r"cannot serve now \(HTTP 502\): gone\. Ask again later\."):
            await endpoint.query("SELECT ?x {}")
    assert (len(server.requests), time.pauses) == (3, [0.25, 0.5])


async def test_no_repetition_starts_behind_the_deadline() -> None:
    time = PlayedTime()
    async with serving(refusing(503)) as server, opened(server, time.timing, max_retries=20) as endpoint:
        with pytest.raises(BackendUnavailable, match="HTTP 503"):
            await endpoint.query("SELECT ?x {}", timeout_s=4.0)
    assert time.pauses == [0.25, 0.5, 1.0, 2.0]


@pytest.mark.parametrize("value", ["3", "Sun, 01 Mar 2026 12:00:03 GMT"])
async def test_the_endpoint_says_how_long_to_wait(value: str) -> None:
    time = PlayedTime()
    async with (
        serving(refusing(429, Retry_After=value), NOTHING) as server,
        opened(server, time.timing, max_retries=3) as endpoint,
    ):
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
    assert time.pauses == [3.0]


async def test_a_wait_longer_than_the_time_left_fails_at_once_and_says_when_to_return() -> None:
    time = PlayedTime()
    async with (
        serving(refusing(429, "Too many requests.", Retry_After="90")) as server,
        opened(server, time.timing, timeout_s=60, max_retries=3) as endpoint,
    ):
        with pytest.raises(BackendUnavailable) as caught:
            await endpoint.query("SELECT ?x {}")
    assert str(caught.value) == (
        f"The endpoint {server.host} is asked too often (HTTP 429): Too many requests. "
        "It asks to be left alone for 90 s: ask again at 12:01:30 UTC."
    )
    assert (len(server.requests), time.pauses) == (1, [])


async def test_everybody_leaves_the_endpoint_alone_as_long_as_it_asked_for() -> None:
    time = PlayedTime()
    async with (
        serving(refusing(429, Retry_After="90"), NOTHING) as server,
        opened(server, time.timing, timeout_s=60, max_retries=3) as endpoint,
    ):
        with pytest.raises(BackendUnavailable):
            await endpoint.query("SELECT ?x {}")
        with pytest.raises(BackendUnavailable) as caught:
            await endpoint.query("SELECT ?x {}")
        assert len(server.requests) == 1
        time.elapsed_s = 85.0
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
    assert str(caught.value) == (
        f"The endpoint {server.host} has asked to be left alone for 90 s more. Ask again at 12:01:30 UTC."
    )
    assert time.pauses == [5.0]


async def test_a_server_that_asks_for_a_day_is_asked_again_after_ten_minutes() -> None:
    time = PlayedTime()
    hold = SharedHold("The endpoint example.org", time.timing)
    hold.hold(86_400)
    hold.hold(1)
    await hold.turn(1_000)
    assert time.pauses == [600.0]


@pytest.mark.parametrize("fault", [refusing(503, Retry_After="2"), refusing(500, Retry_After="2")])
async def test_a_wait_is_honoured_where_waiting_can_help(fault: Script) -> None:
    time = PlayedTime()
    async with serving(fault, NOTHING) as server, opened(server, time.timing, max_retries=0) as endpoint:
        with pytest.raises(BackendError) as caught:
            await endpoint.query("SELECT ?x {}")
        assert ("left alone for 2 s" in str(caught.value)) is ("HTTP 503" in str(caught.value))
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
    assert time.pauses == ([2.0] if "HTTP 503" in str(caught.value) else [])


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
    async with serving(fault) as server, opened(server, time.timing, **PAUSING) as endpoint:
        last = await fail(endpoint, times=3)
        refused = await fail(endpoint)
    assert len(server.requests) == 3
    assert refused == (
        f"The endpoint {server.host} has failed 3 times in a row, so it is left alone for now. "
        f"It is tried again at 12:00:15 UTC: ask again then. Last: {last}"
    )


async def test_when_it_is_back_one_query_finds_out_and_all_go_on() -> None:
    time = PlayedTime()
    async with serving(refusing(500)) as server, opened(server, time.timing, **PAUSING) as endpoint:
        await fail(endpoint, times=4)
        server.follow(NOTHING)
        time.elapsed_s = 15.0
        answers = [await endpoint.query("SELECT ?x {}") for _ in range(2)]
    assert answers == [NO_ROWS, NO_ROWS]


async def test_a_trial_that_fails_starts_another_pause() -> None:
    time = PlayedTime()
    async with serving(refusing(500)) as server, opened(server, time.timing, **PAUSING) as endpoint:
        await fail(endpoint, times=3)
        time.elapsed_s = 15.0
        await fail(endpoint)
        refused = await fail(endpoint)
    assert len(server.requests) == 4
    assert "has failed 4 times in a row" in refused
    assert "12:00:30 UTC" in refused


async def test_while_one_query_tries_it_the_others_fail_at_once() -> None:
    time = PlayedTime()
    async with serving(refusing(500)) as server, opened(server, time.timing, **PAUSING) as endpoint:
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


async def test_a_success_ends_the_row() -> None:
    time = PlayedTime()
    async with (
        serving(refusing(500), refusing(500), NOTHING, refusing(500), refusing(500), NOTHING) as server,
        opened(server, time.timing, **PAUSING) as endpoint,
    ):
        for _ in range(2):
            await fail(endpoint, times=2)
            assert await endpoint.query("SELECT ?x {}") == NO_ROWS


@pytest.mark.parametrize(
    "refusal",
    [
        refusing(400, "Parse error"),
        refusing(429),
        refusing(404),
        refusing(500, "Virtuoso 42000 Error The estimated execution time 900 (sec) exceeds the limit of 400 (sec)."),
        refusing(500, "java.util.concurrent.TimeoutException"),
        # As in QLever's src/util/MemoryLimitTracker.h.
        refusing(500, '{"exception": "Tried to allocate 6.6 GB, but only 3.3 GB were available"}'),
        answering("<html>", media_type="text/html"),
    ],
)
async def test_an_endpoint_that_refuses_a_query_is_not_down(refusal: Script) -> None:
    time = PlayedTime()
    async with serving(refusal) as server, opened(server, time.timing, **PAUSING) as endpoint:
        for _ in range(6):
            with pytest.raises((BackendError, InvalidRequest)):
                await endpoint.query("SELECT ?x {}")
        assert len(server.requests) == 6
        server.follow(NOTHING)
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS


async def test_a_caller_in_a_hurry_says_nothing_about_the_endpoint() -> None:
    async with serving(stalling) as server, opened(server, timeout_s=60, failures_until_pause=3) as endpoint:
        for _ in range(6):
            with pytest.raises(BackendTimeout):
                await endpoint.query("SELECT ?x {}", timeout_s=0.05)
        server.follow(NOTHING)
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS


def waiting_for(event: anyio.Event, script: Script) -> Script:
    async def answer(asked: Asked, wire: Wire) -> None:
        await event.wait()
        await script(asked, wire)

    return answer


async def test_a_failure_that_was_under_way_when_the_pause_began_does_not_prolong_it() -> None:
    time = PlayedTime()
    release = anyio.Event()
    async with (
        serving(waiting_for(release, refusing(500)), refusing(500)) as server,
        opened(server, time.timing, **PAUSING) as endpoint,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail, endpoint)
            await server.until(lambda: len(server.requests) == 1)
            await fail(endpoint, times=3)
            time.elapsed_s = 10.0
            release.set()
        server.follow(NOTHING)
        time.elapsed_s = 15.0
        assert await endpoint.query("SELECT ?x {}") == NO_ROWS
