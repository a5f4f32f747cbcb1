"""A SPARQL endpoint in place of a graph: how its settings reach it, and what goes wrong with them."""

from pathlib import Path

import pyoxigraph as ox
import pytest

from cli_runs import CommandLine
from kg_adapters.errors import InvalidRequest
from kg_adapters.http.options import BasicAuthentication, BearerAuthentication, DigestAuthentication, EndpointOptions
from kg_server.commands.graphs import endpoint_of
from kg_server.settings import Settings
from oxigraph_endpoint import running_oxigraph
from story_graphs import TOKYO

URL = "https://example.org/sparql"


def reached(**settings: object) -> EndpointOptions | None:
    return endpoint_of(Settings.model_validate({"graph": URL, **settings}))


def test_only_a_url_has_an_endpoint() -> None:
    assert reached(graph="sample") is None
    assert reached() == EndpointOptions(url=URL, timeout_s=9.0)


def test_every_setting_reaches_it(tmp_path: Path) -> None:
    assert reached(
        endpoint_dialect="virtuoso",
        endpoint_text_search="virtuoso",
        endpoint_default_graphs="http://g/1, http://g/2",
        endpoint_named_graphs=["http://g/3"],
        endpoint_ca_file=tmp_path,
        endpoint_max_concurrency=2,
        endpoint_max_retries=0,
        endpoint_max_mb=1,
        timeout_s=20,
    ) == EndpointOptions(
        url=URL,
        dialect="virtuoso",
        text_search="virtuoso",
        default_graphs=("http://g/1", "http://g/2"),
        named_graphs=("http://g/3",),
        ca_file=tmp_path,
        max_concurrency=2,
        max_retries=0,
        max_bytes=1_000_000,
        timeout_s=18.0,
    )


def test_there_are_three_ways_to_say_who_asks() -> None:
    password: dict[str, object] = {"endpoint_user": "me", "endpoint_password": "secret"}
    kinds = [reached(**password), reached(**password, endpoint_digest=True), reached(endpoint_token="secret")]
    assert [type(each.authentication) for each in kinds if each is not None] == [
        BasicAuthentication,
        DigestAuthentication,
        BearerAuthentication,
    ]
    assert "secret" not in repr(kinds)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"endpoint_user": "me"}, "endpoint_user and endpoint_password go together"),
        ({"endpoint_user": "me", "endpoint_token": "x"}, "Set either endpoint_token, or"),
        ({"graph": "https://me:secret@example.org/"}, "The setting graph: it must not hold a user or password"),
        ({"endpoint_default_graphs": "no iri"}, "The setting endpoint_default_graphs: "),
    ],
)
def test_settings_that_do_not_fit_are_named_without_their_secrets(settings: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        reached(**settings)
    assert (said in str(raised.value), "secret" in str(raised.value)) == (True, False)


def test_a_call_is_answered_from_an_endpoint(cli: CommandLine, tmp_path: Path) -> None:
    with running_oxigraph(tmp_path) as endpoint:
        endpoint.load("http://g/story", _triples())
        environ = {"KG_SEXTANT_ENDPOINT_DEFAULT_GRAPHS": "http://g/story"}
        run = cli.run("call", "GetNeighbor", "entity=Q1490", "--graph", endpoint.url, **environ)
        found = cli.run("call", "Retrieve", "text=Shinjko", "--graph", endpoint.url, **environ)
    assert (run.code, "\ncapital (P36) | Shinjuku (Q179645)" in run.out) == (0, True)
    assert "since this endpoint has no full-text index in its settings" in found.out


def test_an_endpoint_that_is_away_is_named_with_what_to_do(cli: CommandLine) -> None:
    run = cli.run("call", "GetNeighbor", "entity=wd:Q1490", "--graph", "http://127.0.0.1:1/sparql")
    assert (run.code, "The endpoint 127.0.0.1:1 cannot be reached" in run.err) == (1, True)


def _triples() -> bytes:
    found = ox.serialize(ox.parse(TOKYO, format=ox.RdfFormat.TURTLE), format=ox.RdfFormat.N_TRIPLES)
    assert found is not None
    return found
