"""An endpoint that fails in every way: each call ends in time with a cause and a next step, and others go on."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx2
import pytest

from fault_endpoint import (
    Script,
    answering,
    cutting_the_body,
    dropping,
    opened,
    redirecting,
    refusing,
    results,
    serving,
    stalling,
    stalling_behind_headers,
    uri,
)
from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable, InvalidRequest, KGError
from kg_adapters.http.failures import Failure, FailureMessages, Refusal
from kg_adapters.http.options import EndpointOptions
from kg_adapters.open_options import setting
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Iri
from kg_boundary.bodies import stays_in_place
from kg_boundary.secrets import Redactor
from played_time import PlayedTime

ONE_ROW = answering(results(["x"], {"x": uri("http://example.org/a")}))
ONE = Solutions(("x",), ((Iri("http://example.org/a"),),))
QUERY = "SELECT ?x { ?x ?y ?z }"
HTML = "<!DOCTYPE html><html><head><title>no</title></head><body><h1>Down</h1> for &lt;repair&gt;</body></html>"
FAULTS: list[tuple[Script, type[KGError], str]] = [
    (stalling, BackendTimeout, "gave no answer within 3 s; time ran out while connecting or waiting for its answer."),
    (stalling_behind_headers, BackendTimeout, "gave no answer within 3 s; time ran out while reading its answer."),
    (dropping, BackendUnavailable, "dropped the connection before its answer was complete."),
    (cutting_the_body, BackendUnavailable, "dropped the connection before its answer was complete."),
    (
        answering("x,y\r\n1,2", media_type="text/csv"),
        BackendError,
        "answered with text/csv instead of results: x,y 1,2.",
    ),
    (
        answering(HTML, media_type="text/html; charset=utf-8"),
        BackendError,
        "answered with text/html instead of results",
    ),
    (answering("", media_type=""), BackendError, "answered with an unnamed type instead of results."),
    (answering(HTML, media_type="text/html", status=503), BackendUnavailable, "(HTTP 503): Down for <repair>."),
    (refusing(429), BackendUnavailable, "is asked too often (HTTP 429)."),
    (refusing(500, "boom"), BackendError, "failed (HTTP 500): boom. Ask for less, or again later"),
    (answering('{"head": {"vars": ["x"]}, "results": {"bin'), BackendError, "ends in the middle of one"),
    (answering("[]"), BackendError, "sent an answer that cannot be read: it is not a JSON object."),
    (answering("[" * 200_000), BackendError, "sent an answer that cannot be read: its JSON is nested too deeply."),
    (answering(b'{"head": {"vars": ["\xff"]}}'), BackendError, "it is not written in UTF-8."),
    (answering("{}", headers={"Content-Encoding": "br"}), BackendError, "compressed its answer ('br')"),
    (answering("{}", headers={"Content-Encoding": "gzip"}), BackendError, "compressed its answer ('gzip')"),
    (answering("", media_type="text/plain", status=303, headers={"Location": "/x"}), BackendError, "(HTTP 303)."),
    (refusing(302), BackendError, "redirects to nowhere, and redirects are not followed there."),
    (
        redirecting("https://user:pass@example.org:8443/secret?token=1"),
        BackendError,
        "redirects to https://example.org, and redirects are not followed there.",
    ),
    (
        refusing(400, "Virtuoso 37000 Error SP030: syntax error at 'x'\n\nSPARQL query:\nSELECT x"),
        InvalidRequest,
        "(HTTP 400): Virtuoso 37000 Error SP030: syntax error at 'x'. Change the query.",
    ),
]


@pytest.mark.parametrize(("fault", "kind", "message"), FAULTS)
async def test_each_fault_ends_with_its_cause_and_a_next_step_and_passes_by_itself(
    fault: Script, kind: type[KGError], message: str
) -> None:
    async with serving(fault, ONE_ROW) as server, opened(server) as endpoint:
        with pytest.raises(KGError) as caught:
            await endpoint.query(QUERY, timeout_s=3 if kind is BackendTimeout else None)
        recovered = await endpoint.query(QUERY)
        await endpoint.aclose()
        await server.until(lambda: server.open_connections == 0)
    assert (type(caught.value), str(caught.value).startswith(f"The endpoint {server.host} ")) == (kind, True)
    assert message in str(caught.value)
    assert recovered == ONE


async def test_a_failure_that_was_being_repeated_when_time_ran_out_is_told_too() -> None:
    played = PlayedTime().timing
    async with serving(refusing(502, "gone"), stalling) as server, opened(server, played, max_retries=1) as endpoint:
        with pytest.raises(BackendTimeout, match=r"Before that: .* \(HTTP 502\): gone\. Ask again later\."):
            await endpoint.query(QUERY, timeout_s=3)


async def test_a_call_that_finds_no_free_connection_ends_in_time_and_is_not_held_against_the_endpoint() -> None:
    async with (
        serving(stalling) as server,
        opened(server, max_concurrency=1, failures_until_pause=1) as endpoint,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(endpoint.query, QUERY)
        await server.until(lambda: len(server.requests) == 1)
        for _ in range(2):
            with pytest.raises(BackendTimeout, match="time ran out while waiting for a free connection"):
                await endpoint.query(QUERY, timeout_s=0.05)
        tasks.cancel_scope.cancel()
    assert len(server.requests) == 1


async def test_a_refused_connection_is_named() -> None:
    async with serving(ONE_ROW) as server:
        pass
    async with opened(server) as endpoint:
        with pytest.raises(BackendUnavailable) as caught:
            await endpoint.query(QUERY)
    assert str(caught.value) == (
        f"The endpoint {server.host} cannot be reached: the connection was refused. Check its URL and that it is "
        "running, then ask again."
    )


async def test_an_endpoint_that_comes_up_meanwhile_is_reached() -> None:
    async with serving(ONE_ROW) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
    answers: list[Solutions] = []
    async with opened(server, max_retries=8, backoff_s=0.05) as endpoint, anyio.create_task_group() as tasks:

        async def ask() -> None:
            answers.append(await endpoint.query(QUERY))

        tasks.start_soon(ask)
        async with serving(ONE_ROW, port=port) as again:
            await again.until(lambda: len(again.requests) == 1 and again.bytes_sent > 0)
    assert answers == [ONE]


async def test_a_small_body_that_unpacks_to_a_huge_one_is_not_unpacked_to_the_end() -> None:
    packed = gzip.compress(b" " * 50_000_000)
    bomb = answering(packed, headers={"Content-Encoding": "gzip"})
    async with serving(bomb) as server, opened(server, max_mb=1) as endpoint:
        with pytest.raises(BackendError, match="larger than 1 MB"):
            await endpoint.query(QUERY)


@asynccontextmanager
async def saying(words: bytes) -> AsyncGenerator[str]:
    """Run a server that answers whatever it gets with the same words; gives its host and port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(words)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("scheme", "words", "message"),
    [
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS as it should. Check that"),
        ("http", b"220 mail.example.org ready\r\n\r\n", r"answered what HTTP does not allow \(RemoteProtocolError\)"),
    ],
)
async def test_a_server_of_another_kind_is_recognised(scheme: str, words: bytes, message: str) -> None:
    async with saying(words) as host:
        endpoint = SparqlEndpoint(EndpointOptions(url=f"{scheme}://{host}/sparql"))
        with pytest.raises(BackendUnavailable, match=message):
            await endpoint.query(QUERY)
        await endpoint.aclose()


@pytest.mark.parametrize("fault", [stalling, stalling_behind_headers])
async def test_a_healthy_endpoint_keeps_answering_while_another_stalls(fault: Script) -> None:
    async with (
        serving(fault) as slow,
        serving(ONE_ROW) as healthy,
        opened(slow) as stalled,
        opened(healthy) as endpoint,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(5):
            tasks.start_soon(stalled.query, QUERY)
        await slow.until(lambda: len(slow.requests) == 5)
        assert [await endpoint.query(QUERY) for _ in range(20)] == [ONE] * 20
        assert slow.open_connections == 5
        tasks.cancel_scope.cancel()


LESS = "Ask for less at once."
LATER = "Ask again later, and less often."
NARROW = "Narrow it, or ask for less at once."
IN_ITS_LOG = "Ask for less, or again later; if every query fails, its owner can find the reason in its log."
MESSAGES = FailureMessages("The endpoint example.org", Redactor(frozenset({"hunter2"})))
STACK = (
    "SPARQL-QUERY: queryStr=SELECT x\njava.util.concurrent.ExecutionException: "
    'org.openrdf.query.MalformedQueryException: Encountered "x" at line 1.\n'
    "\tat java.util.concurrent.FutureTask.report(FutureTask.java:122)\n\tat java.lang.Thread.run(Thread.java:829)\n"
)


@dataclass(frozen=True, slots=True)
class Told:
    kind: type[KGError]
    text: str
    may_pass: bool = False
    counts: bool = False


def told(failure: Failure) -> Told:
    text = str(failure.error).removeprefix("The endpoint example.org ")
    return Told(type(failure.error), text, failure.may_pass, failure.counts)


# As composeError of QLever's src/engine/ResponseJson.cpp writes it, at commit 1075455fa, keys in order of the alphabet.
QLEVER = '{"exception": "%s", "query": "SELECT ?timeout {}", "status": "ERROR", "runtimeInformation": {"x": ['


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "."),
        (QLEVER % "No such predicate", ": No such predicate."),
        (STACK, ': Encountered "x" at line 1.'),
        ("Virtuoso 37000 Error: x.\n\nSPARQL query:\nSELECT", ": Virtuoso 37000 Error: x."),
        (
            '{"exception": "Invalid SPARQL query: no x", "status": "ERROR"}',
            ": Invalid SPARQL query: no x.",
        ),
        ('{"error": "first", "Message": "better"}', ": better."),
        ('{"detail": 7}', ': {"detail": 7}.'),
        ('{"title": 5} is no message', ': {"title": 5} is no message.'),
        ("no hunter2 here\x00\x1b[0m", r": no … here\u0000\u001b[0m."),
        ("turned \u202eround\u2028| a\n| b", r": turned \u202eround | a | b."),
        ("<html><head><title>x</title></head><p>A &amp; B</p><script>f()</script>", ": A & B."),
        ("a < b > c", ": a < b > c."),
        ("word " * 1_000, f": {('word ' * 60)[:299]}…."),
    ],
)
def test_what_an_engine_says_is_told_in_short(text: str, quoted: str) -> None:
    expected = Told(InvalidRequest, f"says that the query is wrong (HTTP 400){quoted} Change the query.")
    assert told(MESSAGES.refused(Refusal(400, text))) == expected


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (422, "no", Told(InvalidRequest, "says that the query is wrong (HTTP 422): no. Change the query.")),
        (414, "", Told(InvalidRequest, "finds the query too long (HTTP 414). Change the query.")),
        (401, "", Told(BackendError, "failed (HTTP 401). Check the authentication in its settings.")),
        (418, "", Told(BackendError, "failed (HTTP 418). Check its settings.")),
        (507, "", Told(BackendError, "failed (HTTP 507). Ask again later.", counts=True)),
        (501, "", Told(BackendError, "failed (HTTP 501). It does not support this query.")),
        (
            500,
            "bigdata.QueryTimeoutException: late",
            Told(BackendTimeout, "gave up on the query (HTTP 500): bigdata.QueryTimeoutException: late. " + LESS),
        ),
        (
            429,  # the catch of CancellationException in QLever's src/engine/Server.cpp
            QLEVER % "Operation timed out. Last operation: Join on ?x",
            Told(
                BackendTimeout,
                "gave up on the query (HTTP 429): Operation timed out. Last operation: Join on ?x. " + LESS,
            ),
        ),
        (
            403,  # verifyUserSubmittedQueryTimeout in the same file
            "User submitted timeout was higher than what is currently allowed by this instance (5s).",
            Told(
                BackendError,
                "allows less time for a query than it was asked for (HTTP 403): User submitted timeout was higher than "
                f"what is currently allowed by this instance (5s). Lower {setting('timeout_s')}.",
            ),
        ),
        (
            429,
            QLEVER % "Rate limit",
            Told(BackendUnavailable, "is asked too often (HTTP 429): Rate limit. " + LATER, may_pass=True),
        ),
        (
            500,  # AllocationExceedsLimitException of QLever's src/util/MemoryLimitTracker.h
            QLEVER % "Tried to allocate 6.6 GB, but only 3.3 GB were available",
            Told(
                BackendError,
                "has too little memory for this query (HTTP 500): Tried to allocate 6.6 GB, but only 3.3 GB were "
                "available. " + NARROW,
            ),
        ),
        (
            500,  # a message that only repeats a query about timeouts
            QLEVER % "Assertion failed",
            Told(BackendError, "failed (HTTP 500): Assertion failed. " + IN_ITS_LOG, counts=True),
        ),
        (
            500,  # "Graph Engine Error Messages and Codes" of the Amazon Neptune user guide
            '{"code": "MemoryLimitExceededException", "detailedMessage": "Query cannot be completed", "message": "x"}',
            Told(
                BackendError,
                "has too little memory for this query (HTTP 500): MemoryLimitExceededException: Query cannot be "
                "completed. " + NARROW,
            ),
        ),
        (
            500,  # the same page
            '{"code": "TimeLimitExceededException", "detailedMessage": "Operation terminated"}',
            Told(
                BackendTimeout,
                "gave up on the query (HTTP 500): TimeLimitExceededException: Operation terminated. " + LESS,
            ),
        ),
        (503, "Query timed out", Told(BackendTimeout, "gave up on the query (HTTP 503): Query timed out. " + LESS)),
        (
            504,
            "<html>504 Gateway Time-out",
            Told(BackendUnavailable, "cannot serve now (HTTP 504): 504 Gateway Time-out. Ask again later.", True, True),
        ),
        (
            500,
            "Virtuoso 22023 Error SR324",
            Told(
                BackendError,
                "refuses this query (HTTP 500): Virtuoso 22023 Error SR324. Change it, or ask for less.",
            ),
        ),
        (
            500,
            "Virtuoso 40001 Error SR172: Transaction deadlocked",
            Told(
                BackendError,
                "failed (HTTP 500): Virtuoso 40001 Error SR172: Transaction deadlocked. " + IN_ITS_LOG,
                counts=True,
            ),
        ),
    ],
)
def test_each_refusal_is_told_and_judged(status: int, text: str, expected: Told) -> None:
    assert told(MESSAGES.refused(Refusal(status, text))) == expected


def test_hostile_words_are_told_in_no_time() -> None:
    for text in ("<head" * 1_600, "<" * 8_000, " " * 8_000, "at a(" * 1_600, "<!doctype" + "<script>" * 1_000):
        assert isinstance(MESSAGES.refused(Refusal(400, text)).error, InvalidRequest)


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def certificate_error(message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_message = message
    return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            caused(httpx2.ConnectError("x"), OSError(-2, "Name or service not known")),
            "cannot be reached: name or service not known. Check its URL and that it is running, then ask again.",
        ),
        (
            httpx2.ConnectError("All connection attempts failed"),
            "cannot be reached: no connection could be made. Check its URL and that it is running, then ask again.",
        ),
        (httpx2.ProxyError("502"), "cannot be reached through the proxy. Check the proxy's URL."),
        (
            httpx2.ReadError(""),
            "dropped the connection before its answer was complete. Ask again; if it repeats, ask for less.",
        ),
    ],
)
def test_a_broken_connection_may_be_mended(error: Exception, text: str) -> None:
    failure = MESSAGES.broken(error)
    assert told(failure) == Told(BackendUnavailable, text, may_pass=True, counts=True)
    assert failure.cause is error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            caused(httpx2.ConnectError("x"), certificate_error("Hostname mismatch")),
            "has a certificate that cannot be trusted: Hostname mismatch. If a private authority signed it, name that "
            "authority's file in the setting ca_file.",
        ),
        (httpx2.InvalidURL("x"), "answered what HTTP does not allow (InvalidURL). Check its URL."),
    ],
)
def test_a_server_that_breaks_the_rules_is_not_asked_again(error: Exception, text: str) -> None:
    failure = MESSAGES.broken(error)
    assert told(failure) == Told(BackendUnavailable, text, counts=True)
    assert failure.cause is error


@pytest.mark.parametrize(
    ("asked", "target", "stays"),
    [
        ("http://a.org/x", "http://a.org/y?z", True),
        ("http://a.org/x", "http://a.org:80/y", True),
        ("http://a.org/x", "https://a.org/x", True),
        ("https://a.org/x", "http://a.org/x", False),
        ("http://a.org:8890/x", "https://a.org/x", False),
        ("http://a.org/x", "https://a.org:8443/x", False),
        ("http://a.org/x", "http://a.org:8080/x", False),
        ("http://a.org/x", "http://www.a.org/x", False),
        ("http://a.org/x", "http://ada:hunter2@a.org/x", False),
        ("http://a.org/x", "ftp://a.org/x", False),
    ],
)
def test_a_redirect_stays_on_its_host_and_port_or_moves_to_https(asked: str, target: str, stays: bool) -> None:
    assert stays_in_place(httpx2.URL(asked), httpx2.URL(target)) is stays
