"""Which hosts are asked and trusted, and who is told a secret: the one that the options name, and nobody else."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from certificates import Authority
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
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Iri
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
