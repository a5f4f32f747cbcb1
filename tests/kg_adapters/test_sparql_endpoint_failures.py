"""What engines say when they refuse, and what is told of it."""

import ssl
from dataclasses import dataclass

import httpx2
import pytest

from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable, InvalidRequest, KGError
from kg_adapters.http.failures import Failure, FailureTeller, Refusal
from kg_boundary.bodies import stays_in_place
from kg_boundary.secrets import Redactor

LESS = "Ask for less at once."
TELLER = FailureTeller("The endpoint example.org", Redactor(frozenset({"hunter2"})))
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


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "."),
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
    assert told(TELLER.refused(Refusal(400, text))) == expected


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
                "failed (HTTP 500): Virtuoso 40001 Error SR172: Transaction deadlocked. Ask for less, or again later; "
                "if every query fails, its owner can find the reason in its log.",
                counts=True,
            ),
        ),
    ],
)
def test_each_refusal_is_told_and_judged(status: int, text: str, expected: Told) -> None:
    assert told(TELLER.refused(Refusal(status, text))) == expected


def test_hostile_words_are_told_in_no_time() -> None:
    for text in ("<head" * 1_600, "<" * 8_000, " " * 8_000, "at a(" * 1_600, "<!doctype" + "<script>" * 1_000):
        assert isinstance(TELLER.refused(Refusal(400, text)).error, InvalidRequest)


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
    failure = TELLER.broken(error)
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
    failure = TELLER.broken(error)
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
