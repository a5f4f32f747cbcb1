"""How an endpoint is described, and what form a query has."""

import pytest
from pydantic import SecretStr, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.sparql.solutions import query_form

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
    with pytest.raises(ValidationError, match="set fuseki or graphdb"):
        EndpointOptions.model_validate(told)
    assert EndpointOptions.model_validate({**told, "dialect": "graphdb"}).dialect == "graphdb"
