"""A SPARQL endpoint in place of a graph: how its settings reach it, and what goes wrong with them."""

from pathlib import Path

import pyoxigraph as ox
import pytest
from benchmarks.engines.oxigraph import running_oxigraph

from calls import plain
from cli_runs import CommandLine
from kg_adapters.errors import InvalidRequest
from kg_adapters.http.options import EndpointOptions
from kg_server.commands.graphs import endpoint_of
from kg_server.settings import Settings
from story_graphs import TOKYO

URL = "https://example.org/sparql"


def reached(**settings: object) -> EndpointOptions | None:
    return endpoint_of(Settings.model_validate({"graph": URL, **settings}))


def test_only_a_url_has_an_endpoint() -> None:
    assert reached(graph="sample") is None
    assert reached() == EndpointOptions(url=URL, timeout_s=9.0)


def test_every_setting_reaches_it(tmp_path: Path) -> None:
    told: dict[str, object] = {
        "dialect": "virtuoso",
        "text_search": "virtuoso",
        "default_graphs": "http://g/1, http://g/2",
        "named_graphs": ["http://g/3"],
        "ca_file": tmp_path,
        "max_concurrency": 2,
        "max_retries": 0,
        "max_mb": 1,
    }
    expected = {**told, "default_graphs": ["http://g/1", "http://g/2"], "url": URL, "timeout_s": 18.0}
    assert reached(endpoint=told, timeout_s=20) == EndpointOptions.model_validate(expected)


def test_a_url_that_cannot_be_asked_is_refused_without_its_secrets() -> None:
    with pytest.raises(InvalidRequest, match="The setting graph: it must not hold a user or password") as raised:
        reached(graph="https://me:secret@example.org/")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"USER": "me"}, "user and password go together"),
        ({"USER": "me", "TOKEN": "secret"}, "set either the token, or user and password"),
        ({"DEFAULT_GRAPHS": "no secret iri"}, "each must be an absolute IRI"),
        ({"TEXT_SEARCH": "lucene"}, "set fuseki or graphdb"),
    ],
)
def test_settings_that_do_not_fit_are_explained_without_their_secrets(
    cli: CommandLine, environ: dict[str, str], said: str
) -> None:
    variables = {f"KG_SEXTANT_ENDPOINT__{name}": value for name, value in environ.items()}
    run = cli.run("call", "Schema", "--graph", URL, **variables)
    assert (run.code, said in run.err, "secret" in run.err) == (2, True, False)


def test_a_call_is_answered_from_an_endpoint(cli: CommandLine, tmp_path: Path) -> None:
    with running_oxigraph(tmp_path) as endpoint:
        endpoint.load("http://g/story", _triples())
        environ = {"KG_SEXTANT_ENDPOINT__DEFAULT_GRAPHS": "http://g/story"}
        run = cli.run("call", "GetNeighbor", "entity=Q1490", "--graph", endpoint.url, **environ)
        found = cli.run("call", "Retrieve", "text=Shinjko", "--graph", endpoint.url, **environ)
    assert (run.code, "\ncapital | Shinjuku" in plain(run.out)) == (0, True)
    assert "since this endpoint has no full-text index in its settings" in found.out


def test_an_endpoint_that_is_away_is_named_with_what_to_do(cli: CommandLine) -> None:
    run = cli.run("call", "GetNeighbor", "entity=wd:Q1490", "--graph", "http://127.0.0.1:1/sparql")
    assert (run.code, "The endpoint 127.0.0.1:1 cannot be reached" in run.err) == (1, True)


def _triples() -> bytes:
    found = ox.serialize(ox.parse(TOKYO, format=ox.RdfFormat.TURTLE), format=ox.RdfFormat.N_TRIPLES)
    assert found is not None
    return found
