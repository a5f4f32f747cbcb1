"""Which hosts an endpoint may lead to, and the options of its client."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from pydantic import SecretStr, ValidationError

from fault_endpoint import (
    FaultEndpoint,
    answering,
    opened,
    redirecting,
    results,
    serving,
    uri,
)
from kg_adapters.errors import BackendError, BackendUnavailable, InvalidRequest, InvalidSource
from kg_adapters.http.client import EndpointClient
from kg_adapters.http.messages import HttpRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.sparql.solutions import Solutions, query_form
from kg_adapters.terms import Iri
from loopback_service import Authority
from played_time import PlayedTime

ONE_ROW = answering(results(["x"], {"x": uri("http://example.org/a")}))
ONE = Solutions(("x",), ((Iri("http://example.org/a"),),))
QUERY = "SELECT ?x { ?x ?y ?z }"


async def test_an_expired_certificate_is_not_accepted_nor_tried_again(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    time = PlayedTime()
    async with (
        serving(ONE_ROW, tls=authority.server(hours=-1)) as server,
        opened(server, time.timing, ca_file=authority.file, max_retries=3) as endpoint,
    ):
        with pytest.raises(BackendUnavailable) as caught:
            await endpoint.query(QUERY)
    assert str(caught.value) == (
        f"The endpoint {server.host} has a certificate that cannot be trusted: certificate has expired. "
        "Its owner must renew it."
    )
    assert (server.requests, time.pauses) == ([], [])


async def test_a_certificate_of_an_unknown_authority_is_not_accepted(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    async with serving(ONE_ROW, tls=authority.server(hours=1)) as server, opened(server) as endpoint:
        with pytest.raises(BackendUnavailable, match="name that authority's file in the setting ca_file"):
            await endpoint.query(QUERY)
    assert server.requests == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_on_the_same_host_is_followed_once_with_everything(status: int) -> None:
    async with (
        serving(redirecting("/elsewhere", status), ONE_ROW) as server,
        opened(server, user="ada", password="hunter2", max_url_length=0) as endpoint,
    ):
        assert await endpoint.query(QUERY) == ONE
    first, second = server.requests
    assert second == replace(first, path="/elsewhere")


async def test_a_second_redirect_is_not_followed() -> None:
    async with serving(redirecting("/a"), redirecting("/b"), ONE_ROW) as server, opened(server) as endpoint:
        with pytest.raises(BackendError, match="HTTP 302"):
            await endpoint.query(QUERY)
    assert [asked.path for asked in server.requests] == ["/sparql", "/a"]


async def test_a_trusted_certificate_is_accepted(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    tls = authority.server(hours=1)
    async with serving(ONE_ROW, tls=tls) as server, opened(server, ca_file=authority.file) as endpoint:
        assert await endpoint.query(QUERY) == ONE


async def test_a_missing_file_of_authorities_is_reported_with_its_setting(tmp_path: Path) -> None:
    async with serving(ONE_ROW) as server, opened(server, ca_file=tmp_path / "none.pem") as endpoint:
        with pytest.raises(
            InvalidSource, match=r"file of authorities cannot be read: No such file or directory\. .* ca_file"
        ):
            await endpoint.query(QUERY)


async def test_a_redirect_to_another_host_gets_neither_request_nor_credentials() -> None:
    async with (
        serving(ONE_ROW) as other,
        serving(redirecting(other.url)) as server,
        opened(server, user="ada", password="hunter2") as endpoint,
    ):
        with pytest.raises(BackendError, match="redirects are not followed there"):
            await endpoint.query(QUERY)
    assert (other.connections, len(server.requests)) == (0, 1)


async def test_a_request_for_another_host_is_not_sent() -> None:
    async with serving(ONE_ROW) as other, serving(ONE_ROW) as server:
        client = EndpointClient(EndpointOptions(url=server.url))
        with pytest.raises(InvalidRequest, match=f"Only {server.host} may be asked here"):
            await client.ask(HttpRequest("GET", other.url, ("application/json",)), lambda reply: reply, timeout_s=5)
        await client.aclose()
    assert (other.connections, server.connections) == (0, 0)


WATCHED = """
import json, sys, anyio
from kg_adapters.errors import KGError
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.http.options import EndpointOptions

contacted = []
def watch(event, arguments):
    if event in {"socket.connect", "socket.sendto"}:
        contacted.append(list(arguments[1][:2]))
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        contacted.append(list(arguments[:2]))
sys.addaudithook(watch)

async def ask(proxies):
    endpoint = SparqlEndpoint(EndpointOptions(url=sys.argv[1], max_retries=0, use_environment_proxies=proxies))
    for pattern in ["", "SERVICE <http://a.example/> {}", "GRAPH <http://b.example/> {}"]:
        try:
            await endpoint.query("SELECT ?x {" + pattern + "}")
        except KGError:
            pass
    await endpoint.aclose()

anyio.run(ask, sys.argv[2] == "proxies")
print(json.dumps(contacted))
"""


async def contacted(server: FaultEndpoint, proxy: FaultEndpoint, *, use_proxies: bool) -> list[list[object]]:
    command = [sys.executable, "-c", WATCHED, server.url, "proxies" if use_proxies else "no proxies"]
    environment = {"HTTP_PROXY": f"http://{proxy.host}", "ALL_PROXY": f"http://{proxy.host}"}
    run = await anyio.run_process(command, env=environment, stderr=subprocess.PIPE)
    found: list[list[object]] = json.loads(run.stdout)
    return found


def place_of(server: FaultEndpoint) -> list[object]:
    host, _, port = server.host.partition(":")
    return [host, int(port)]


async def test_no_host_is_contacted_that_the_options_do_not_name() -> None:
    async with serving(ONE_ROW) as other, serving(redirecting(other.url), ONE_ROW) as server:
        places = await contacted(server, other, use_proxies=False)
    assert {json.dumps(place) for place in places} == {json.dumps(place_of(server))}
    assert (other.connections, len(server.requests)) == (0, 3)


async def test_the_proxies_of_the_environment_are_used_when_the_options_say_so() -> None:
    async with serving(ONE_ROW) as proxy, serving(ONE_ROW) as server:
        places = await contacted(server, proxy, use_proxies=True)
    assert {json.dumps(place) for place in places} == {json.dumps(place_of(proxy))}
    assert (len(proxy.requests), server.connections) == (3, 0)


URL = "https://example.org/sparql"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://example.org/sparql", "it must start with http:// or https://"),
        ("example.org/sparql", "it must start with http:// or https://"),
        ("https:///sparql", "it names no host"),
        ("https://ada:hunter2@example.org/sparql", "it must not hold a user or password"),
        ("https://example.org/sparql?default-graph-uri=x", "it must end before ? or #"),
        ("https://example.org/sparql#here", "it must end before ? or #"),
        ("https://example.org/spar ql", "it holds a blank"),
        ("https://example.org/ä", "it holds a blank, a control or a character"),
        ("https://example.org:99999/", "it is not a URL"),
        ("https://example.org:0/", "its port is 0"),
        ("https://[::1/", "it is not a URL"),
    ],
)
def test_a_url_that_cannot_be_an_endpoint_is_refused_without_being_shown(url: str, problem: str) -> None:
    with pytest.raises(ValidationError, match="url") as caught:
        EndpointOptions(url=url)
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_s": 0},
        {"timeout_s": float("inf")},
        {"max_concurrency": 0},
        {"max_retries": -1},
        {"default_graphs": ("no iri",)},
        {"named_graphs": ("no iri",)},
        {"user_agent": " "},
        {"user_agent": "two\r\nlines"},
        {"headers": {"X-Key": "two\r\nlines"}},
        {"headers": {"no name": "x"}},
        {"headers": {"Host": "example.com"}},
        {"headers": {"authorization": "Basic xyz"}},
        {"parameters": {"query": "SELECT"}},
        {"user": "ada"},
        {"password": "x"},
        {"user": "a:b", "password": "x"},
        {"user": "ada", "password": "x", "token": "t"},
        {"text_search": "grep"},
        {"dialect": "sql"},
        {"unknown": 1},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EndpointOptions.model_validate({"url": URL, **wrong})


def test_secrets_do_not_show() -> None:
    secret = SecretStr("hunter2")
    given = {"user": "ada", "password": secret}, {"token": secret}
    options = [EndpointOptions.model_validate({"url": URL, "headers": {"X-Key": secret}, **each}) for each in given]
    for each in options:
        assert "hunter2" not in f"{each!r} {each} {each.model_dump()} {each.model_dump_json()}"


def test_options_are_read_from_plain_values() -> None:
    written = {
        "url": URL,
        "token": "t",
        "default_graphs": ["http://example.org/g"],
    }
    assert EndpointOptions.model_validate(written) == EndpointOptions(
        url=URL,
        token=SecretStr("t"),
        default_graphs=("http://example.org/g",),
    )


def test_the_host_is_named_with_its_port() -> None:
    assert [EndpointOptions(url=url).host for url in (URL, "http://localhost:8890/sparql")] == [
        "example.org",
        "localhost:8890",
    ]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("SELECT * { ?s ?p ?o }", "SELECT"),
        ("ask{}", "ASK"),
        ("construct where {}", "CONSTRUCT"),
        ("\ufeffDESCRIBE <http://example.org/a>", "DESCRIBE"),
        ("# insert nothing\nSELECT * {}", "SELECT"),
        ("PREFIX a: <http://example.org/> # ask not\r\nSELECT * {}", "SELECT"),
        ("BASE <http://example.org/#select> PREFIX : <ask> prefix select:<x>CONSTRUCT {} {}", "CONSTRUCT"),
        ("PREFIX # why\n a: # oh\n <http://example.org/> ASK {}", "ASK"),
        (" " * 200_000 + "ASK {}", "ASK"),
    ],
)
def test_the_form_is_the_first_keyword_behind_the_prologue(text: str, form: str) -> None:
    assert query_form(text) == form


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# SELECT",
        "INSERT DATA { <a:a> <a:b> <a:c> }",
        "PREFIX a: <http://example.org/> DELETE WHERE { ?s ?p ?o }",
        "LOAD <http://example.org/>",
        "SELECTED",
        "{ SELECT * {} }",
        "\\u0053ELECT * {}",
        "PREFIX a: <http://example.org/",
    ],
)
def test_what_is_no_query_that_reads_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not a query that reads"):
        query_form(text)


def test_half_a_character_is_refused_by_its_position() -> None:
    with pytest.raises(InvalidRequest, match=r"half of a character .* at position 8"):
        query_form('SELECT "\ud800" {}')


@pytest.mark.parametrize("dialect", ["standard", "virtuoso", "qlever"])
def test_a_lucene_index_needs_the_engine_that_says_how_it_is_asked(dialect: str) -> None:
    told = {"url": URL, "text_search": "lucene"}
    with pytest.raises(ValidationError, match="set fuseki or graphdb"):
        EndpointOptions.model_validate({**told, "dialect": dialect})
    assert EndpointOptions.model_validate(told).dialect == "auto"
    assert EndpointOptions.model_validate({**told, "dialect": "graphdb"}).dialect == "graphdb"
